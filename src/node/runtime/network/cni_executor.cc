#include "node/runtime/network/cni_executor.h"

#include <signal.h>
#include <stdlib.h>

#include <map>

#include "base/exec/lifetime.h"
#include "base/text/text.h"
#include "node/runtime/network/cni_result.h"

namespace drakkar::node {
namespace {

constexpr std::uint32_t kAnyExecuteBit = 0111;
// Plugins need programs such as iptables, which a service's PATH may lack.
constexpr std::string_view kSystemPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

class ProcessCniExecutor final : public CniExecutor {
 public:
  explicit ProcessCniExecutor(CniExecutorOptions options) : options_(std::move(options)) {}

  ~ProcessCniExecutor() override {
    for (auto& [number, run] : runs_) KillGroup(*run.process);
  }

  bool HasPlugin(const std::string& type) const override { return Find(type).ok(); }

  void Run(CniCall call, RuntimeCallback<std::string> done) override {
    auto path = Find(call.plugin);
    if (!path.ok()) return Answer(std::move(done), std::move(path).error());
    ProcessOptions process;
    process.arguments = {*path};
    process.environment = {
        StrCat("PATH=", Path()),
        StrCat("CNI_COMMAND=", call.command),
        StrCat("CNI_CONTAINERID=", call.container_id),
        StrCat("CNI_NETNS=", call.namespace_path),
        StrCat("CNI_IFNAME=", call.interface),
        StrCat("CNI_ARGS=", call.arguments),
        StrCat("CNI_PATH=", Join(options_.directories, ":")),
    };
    process.standard_input = std::move(call.input);
    process.new_session = true;  // its process group is ours to kill
    const std::uint64_t number = next_run_++;
    auto started = options_.spawner.Spawn(
        std::move(process),
        lifetime_.Guard([this, number](ProcessExit exit) { Finish(number, std::move(exit)); }));
    if (!started.ok()) return Answer(std::move(done), std::move(started).error());
    Running& run = runs_[number];
    run.process = std::move(*started);
    run.what = StrCat("plugin ", call.plugin, " (", call.command, ")");
    run.done = std::move(done);
    run.timer = options_.loop.RunAfter(options_.timeout, [this, number] { TimeOut(number); });
  }

 private:
  struct Running {
    std::unique_ptr<Process> process;
    std::string what;
    RuntimeCallback<std::string> done;
    TimerHandle timer;
  };

  static std::string Path() {
    const char* own = ::getenv("PATH");
    return own == nullptr || *own == '\0' ? std::string(kSystemPath)
                                          : StrCat(own, ":", kSystemPath);
  }

  static void KillGroup(const Process& process) {
    // The plugin leads its process group, so this also reaches what it started, even after its own
    // end.
    static_cast<void>(::kill(-process.pid(), SIGKILL));
  }

  Result<std::string> Find(const std::string& type) const {
    for (const std::string& directory : options_.directories) {
      if (type.find('/') != std::string::npos) break;
      const std::string path = JoinPath(directory, type);
      const auto info = options_.files.Stat(path);
      if (info.ok() && info->type == FileType::kRegular && (info->mode & kAnyExecuteBit) != 0) {
        return path;
      }
    }
    return NotFound(StrCat("network plugin ", Quote(type), " is not installed in ",
                           Join(options_.directories, " or ")));
  }

  void Answer(RuntimeCallback<std::string> done, Result<std::string> result) {
    options_.loop.Post(
        lifetime_.Guard([done = std::move(done), result = std::move(result)]() mutable {
          done(std::move(result));
        }));
  }

  void Finish(std::uint64_t number, ProcessExit exit) {
    const auto found = runs_.find(number);
    if (found == runs_.end()) return;
    Running run = std::move(found->second);
    runs_.erase(found);
    if (exit.exit_code == 0) return run.done(std::move(exit.output));
    run.done(Internal(StrCat(run.what, " failed: ",
                             DescribeCniFailure(exit.output, exit.error_output, exit.exit_code))));
  }

  // Answers at once: a descendant that left the process group may keep the output open.
  void TimeOut(std::uint64_t number) {
    const auto found = runs_.find(number);
    if (found == runs_.end()) return;
    Running run = std::move(found->second);
    runs_.erase(found);
    KillGroup(*run.process);
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options_.timeout).count();
    run.done(Error{ErrorCode::kDeadlineExceeded,
                   StrCat(run.what, " did not finish within ", seconds, " s and was killed")});
  }

  const CniExecutorOptions options_;
  std::map<std::uint64_t, Running> runs_;
  std::uint64_t next_run_ = 0;
  Lifetime lifetime_;
};

}  // namespace

std::unique_ptr<CniExecutor> MakeCniExecutor(CniExecutorOptions options) {
  return std::make_unique<ProcessCniExecutor>(std::move(options));
}

}  // namespace drakkar::node
