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

// Shared by the commands that answer questions about devices: free, who, top, why.

// A snapshot of the cluster, as far as the caller may read it.
Result<answers::Snapshot> ReadSnapshot(Session& session, std::uint32_t kinds);

// Adds the health that nodes report for their devices. Prints one warning for all nodes that do not
// respond.
void AddNodeHealth(Session& session, Console& console, answers::Snapshot& snapshot);

// The scheduler's published settings; otherwise the defaults, with a note in `note`.
scheduler::Settings ReadSchedulerSettings(Session& session, std::string& note);

enum class AnswerFormat : std::uint8_t { kText, kWide, kJson, kYaml };
// "", "text", "wide", "json", "yaml".
Result<AnswerFormat> ParseAnswerFormat(std::string_view text);
Flag AnswerFormatFlag();

// As wide as the terminal, but at least 80 columns; unlimited with -o wide.
answers::RenderOptions RenderOptionsFor(Session& session, const Console& console,
                                        const Arguments& arguments, AnswerFormat format);
answers::RenderOptions RenderOptionsFor(Session& session, const Console& console,
                                        AnswerFormat format);

// The holders selected on the command line, and the flags for that.
Result<answers::WhoFilter> WhoFilterFrom(const Arguments& arguments);
std::vector<Flag> WhoFilterFlags();

// Prints JSON, or the same as YAML.
void PrintJson(Console& console, AnswerFormat format, const std::string& json);

}  // namespace drakkar::cli
