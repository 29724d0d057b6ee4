#include <sys/resource.h>
#include <unistd.h>

#ifdef DRAKKAR_MIMALLOC
#include <mimalloc.h>
#endif

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <new>
#include <string_view>

#include "base/env/clock.h"
#include "base/result/shortage.h"
#include "cli/commands.h"
#include "cmd/drakkar/command_groups.h"
#include "telemetry/log/log.h"

namespace {

using namespace drakkar;

constexpr Logger kLog("drakkar");
constexpr std::int64_t kSecondsBetweenShortages = 60;

// Runs when memory is exhausted, so it must not allocate.
[[noreturn]] void OnOutOfMemory() {
  constexpr std::string_view kText =
      "error: out of memory: give the process more (its cgroup or systemd unit may set "
      "MemoryMax), or lower --max-events and --max-event-bytes; exiting, without losing any "
      "acknowledged write\n";
  (void)!::write(STDERR_FILENO, kText.data(), kText.size());
  std::abort();
}

#ifdef DRAKKAR_MIMALLOC
// mimalloc, being C, ends the process without asking the new handler.
void OnMimallocError(int error_number, void*) {
  if (error_number == ENOMEM) OnOutOfMemory();
}
#endif

// At most once per minute: a process that runs out of a resource does so again and again.
void OnShortage(int error_number) {
  static std::atomic<std::int64_t> told_at{0};
  const std::int64_t now =
      std::chrono::duration_cast<std::chrono::seconds>(RealClock().Monotonic().time_since_epoch())
          .count();
  std::int64_t last = told_at;
  if ((last != 0 && now - last < kSecondsBetweenShortages) ||
      !told_at.compare_exchange_strong(last, now)) {
    return;
  }
  if (error_number == ENOMEM) {
    kLog.Error("the machine is out of memory; free some, or add swap");
    return;
  }
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  kLog.Error(
      error_number == ENFILE
          ? "the machine is out of file descriptors; raise fs.file-max with sysctl"
          : "out of file descriptors; raise the limit with LimitNOFILE= in the systemd unit or "
            "ulimit -n, or close connections",
      {{"limit", std::to_string(limit.rlim_cur)}});
}

int RunApp(const cli::App& app, int argc, char** argv) {
  cli::ProcessConsole console;
  const int code = app.Run({argv + 1, argv + argc}, console);
  return code == cli::kExitOk && console.had_write_error() ? cli::kExitFailure : code;
}

// Under the name kubectl-drakkar the binary is a plugin of kubectl, with the commands that only
// read.
bool IsPlugin(std::string_view program) {
  return program.substr(program.rfind('/') + 1) == "kubectl-drakkar";
}

}  // namespace

int main(int argc, char** argv) {
  std::set_new_handler(OnOutOfMemory);
#ifdef DRAKKAR_MIMALLOC
  mi_register_error(&OnMimallocError, nullptr);
#endif
  SetShortageHook(OnShortage);
  // Survive a closed pipe (`drakkar get pods | head`) in the middle of a write.
  std::signal(SIGPIPE, SIG_IGN);
  if (argc > 0 && IsPlugin(argv[0])) {
    cli::App plugin("kubectl drakkar",
                    "Answers about the devices of a cluster: what is free, who holds it, why is "
                    "mine waiting.");
    cli::AddPluginCommands(plugin);
    return RunApp(plugin, argc, argv);
  }
  cli::App app(
      "drakkar",
      "Drakkar: Kubernetes Dynamic Resource Allocation in one binary, from API server to device "
      "driver.");
  cmd::AddUpCommand(app);
  cmd::AddControlPlaneCommands(app);
  cmd::AddNodeCommand(app);
  cmd::AddDriverCommand(app);
  cmd::AddDownCommand(app);
  cmd::AddClusterLifeCommands(app);
  cli::AddClusterCommands(app);
  cmd::AddDashboardCommand(app);
  cli::AddFeatureCommands(app);
  cmd::AddSimulateCommand(app);
  cmd::AddImageCommands(app);
  cmd::AddStoreCommands(app);
  cmd::AddSanityCommand(app);
  cmd::AddMetadataCommand(app);
  cli::AddOtherCommands(app);
  return RunApp(app, argc, argv);
}
