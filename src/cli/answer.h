#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "answers/cluster/device_table.h"
#include "answers/cluster/snapshot_reader.h"
#include "answers/render/devices.h"
#include "answers/who/who.h"
#include "cli/command.h"
#include "cli/session.h"
#include "scheduler/settings.h"

namespace drakkar::cli {

// What the commands that answer questions about devices share: free, who, top, why, doctor.

// The cluster at one moment, with the rights of the caller.
Result<answers::Snapshot> ReadSnapshot(Session& session, std::uint32_t kinds);

// Asks the nodes for the health of their devices and adds what they say; one line for all that do
// not answer.
void AddNodeHealth(Session& session, Console& console, answers::Snapshot& snapshot);

// How the scheduler is set up, if it says so; else its defaults, and a sentence in `note`.
scheduler::Settings ReadSchedulerSettings(Session& session, std::string& note);

enum class AnswerFormat : std::uint8_t { kText, kWide, kJson, kYaml };
// "", "text", "wide", "json", "yaml".
Result<AnswerFormat> ParseAnswerFormat(std::string_view text);
Flag AnswerFormatFlag();

// As wide as the terminal, but at least 80 columns; -o wide: as wide as it gets.
answers::RenderOptions RenderOptionsFor(Session& session, const Console& console,
                                        const Arguments& arguments, AnswerFormat format);

// Which holders the command line names, and the flags that it does so with.
Result<answers::WhoFilter> WhoFilterFrom(const Arguments& arguments);
std::vector<Flag> WhoFilterFlags();

// JSON, or the same as YAML.
void PrintJson(Console& console, AnswerFormat format, const std::string& json);

}  // namespace drakkar::cli
