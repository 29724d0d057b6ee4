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

// One component with its loop. RunParts starts parts in order and stops them in reverse order; it
// calls Start and Stop on the main loop, where they also report back. Stop may be called before
// Start has reported, in which case Start need not report any more. A part that was started is
// always stopped before it is destroyed.
class Part {
 public:
  virtual ~Part() = default;
  virtual std::string_view name() const = 0;
  // Whether the other parts stop if this one cannot start or fails.
  virtual bool is_vital() const { return true; }
  virtual void Start(std::function<void(Result<void>)> done) = 0;
  virtual void Stop(std::function<void()> done) = 0;
  // A started part calls this on the main loop when it cannot continue. RunParts sets it: it stops
  // everything, or only this part if the others can do without it.
  std::function<void(const Error&)> on_fatal = [](const Error&) {};
};

// Creates a client for a part, over HTTP or as direct calls in the same process.
using ClientFactory = std::function<std::unique_ptr<client::Client>(
    UvLoop& loop, std::string user, std::vector<std::string> groups, storage::Mark mark)>;

// Runs parts until SIGINT or SIGTERM, or until a vital part fails. The main loop of every daemon
// command. Calls `on_ready` when all parts have started.
int RunParts(UvLoop& main_loop, std::vector<std::unique_ptr<Part>> parts, cli::Console& console,
             std::function<void()> on_ready);

// This machine's host name in lower case.
std::string HostName();

// Flags of all daemons: --feature-gates, --emulated-version, --logging-format, --log-level.
std::vector<cli::Flag> CommonFlags();
// Sets up logging and reads the feature gates. Gates in `turned_on` are on unless a flag or a
// configuration file turns them off.
Result<FeatureGates> ReadCommonFlags(const cli::Arguments& arguments,
                                     std::vector<Gate> turned_on = {},
                                     const std::string& file_gates = {});

}  // namespace drakkar::cmd
