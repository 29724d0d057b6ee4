#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/exec/uv_loop.h"
#include "base/result/result.h"
#include "cli/command.h"
#include "client/client.h"
#include "features/gates/feature_gates.h"
#include "storage/store.h"

namespace drakkar::cmd {

// One part of the system with its loop. Parts are started in order and stopped in reverse; both are
// called on the main loop and answer there. Stop may come before Start has answered, which it then
// need not do any more; a part is never destroyed without it once it was started.
class Part {
 public:
  virtual ~Part() = default;
  virtual std::string_view name() const = 0;
  // Whether the others stop when this one cannot start or go on.
  virtual bool is_vital() const { return true; }
  virtual void Start(std::function<void(Result<void>)> done) = 0;
  virtual void Stop(std::function<void()> done) = 0;
  // To be called, on the main loop, when a started part cannot go on: everything stops, or the part
  // alone if the others can do without it. Set by RunParts.
  std::function<void(const Error&)> on_fatal = [](const Error&) {};
};

// Makes a client for a part: direct calls in the same process, or HTTP.
using ClientFactory = std::function<std::unique_ptr<client::Client>(
    UvLoop& loop, std::string user, std::vector<std::string> groups, storage::Mark mark)>;

// Runs parts until SIGINT or SIGTERM (or until a vital one of them fails to start): the main loop
// of every daemon command. `on_ready` runs when all have started.
int RunParts(UvLoop& main_loop, std::vector<std::unique_ptr<Part>> parts, cli::Console& console,
             std::function<void()> on_ready);

// This machine's, in lower case.
std::string HostName();

// Flags every daemon has: --feature-gates, --emulated-version, --logging-format, -v.
std::vector<cli::Flag> CommonFlags();
// Sets logging up and reads the gates; `turned_on` are on unless a flag, or the gates of a
// configuration file, say otherwise.
Result<FeatureGates> ReadCommonFlags(const cli::Arguments& arguments,
                                     std::vector<Gate> turned_on = {},
                                     const std::string& file_gates = {});

}  // namespace drakkar::cmd
