#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/env/descriptor_watch.h"
#include "base/env/process.h"
#include "base/exec/uv_loop.h"
#include "base/result/result.h"
#include "node/runtime/oci/bundle.h"
#include "node/runtime/oci/record.h"

namespace drakkar::node {

// Whoever writes faster than logs are rotated loses the begin of the file: conmon starts a log of
// this size over.
inline constexpr std::uint64_t kMaxLogBytes = 128u << 20;

// The programs behind the embedded runtime, as absolute paths.
struct OciPrograms {
  std::string runtime;  // runc or crun
  std::string conmon;
};

// Looks for conmon and runc (or crun, or the one given) in the usual places. kFailedPrecondition
// says what to install.
Result<OciPrograms> FindPrograms(FileSystem& files, const std::string& wanted_runtime,
                                 bool unified_cgroups);

// The arguments of conmon for a container: it forks away from us, runs `runc create`, keeps stdio,
// writes the log in CRI format and, at the end, the exit code to the exits directory.
std::vector<std::string> ConmonArguments(const OciPrograms& programs, const OciPaths& paths,
                                         const ContainerRecord& record);

// conmon's one line on its sync pipe: the pid of the container's init, or what went wrong.
Result<int> ParseConmonReport(std::string_view line);

// The last line of a runtime's output that says something, without its log decoration.
std::string MeaningfulLine(std::string_view output);

// One container being created under its conmon. Reports once: the pid of the container's init,
// which then waits to be released. By then the conmon that we started has ended: the one it has
// left behind is in its pid file, and what was wrong is known. Destroying it ends the reporting,
// not conmon.
class ConmonLaunch {
 public:
  // conmon runs in `directory`, where it leaves the file `oom` if the kernel ran out of memory.
  static Result<std::unique_ptr<ConmonLaunch>> Start(UvLoop& loop, Spawner& spawner,
                                                     std::vector<std::string> arguments,
                                                     std::string directory,
                                                     std::function<void(Result<int>)> done);
  ~ConmonLaunch();

 private:
  explicit ConmonLaunch(std::function<void(Result<int>)> done) : done_(std::move(done)) {}
  void OnReadable();
  void OnExit(const ProcessExit& exit);
  void Told(Result<int> report);
  void ReportWhenComplete();

  std::function<void(Result<int>)> done_;
  std::optional<Result<int>> report_;  // what came through the pipe
  bool has_ended_ = false;             // the conmon that we started
  int sync_pipe_ = -1;
  std::string line_;
  std::string conmon_output_;
  std::unique_ptr<DescriptorWatch> watch_;
  std::unique_ptr<Process> process_;
};

}  // namespace drakkar::node
