#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/exec/uv_loop.h"
#include "base/os/descriptor_watch.h"
#include "base/os/process.h"
#include "base/result/result.h"
#include "node/runtime/oci/bundle.h"
#include "node/runtime/oci/oci_runtime.h"
#include "node/runtime/oci/record.h"

namespace drakkar::node {

// The programs that the embedded runtime uses, as absolute paths.
struct OciPrograms {
  std::string runtime;  // runc or crun
  std::string conmon;
  // conmon truncates a log at this size. A container that writes faster than logs are rotated loses
  // the beginning of the file.
  std::uint64_t max_log_bytes = kMaxLogBytes;
};

// Finds conmon and runc (or crun, or the given one) in PATH and the standard directories.
// kFailedPrecondition says what to install.
Result<OciPrograms> FindPrograms(FileSystem& files, const std::string& wanted_runtime,
                                 bool unified_cgroups);

// The program of a runtime handler: a name in PATH, or a path.
Result<std::string> FindRuntimeProgram(FileSystem& files, const std::string& handler,
                                       const std::string& wanted, bool unified_cgroups);

// conmon's arguments for a container: it daemonizes, runs `runc create`, holds stdio, writes the
// log in CRI format and finally the exit code to the exits directory.
std::vector<std::string> ConmonArguments(const OciPrograms& programs, const OciPaths& paths,
                                         const ContainerRecord& record);

// Parses conmon's one-line report from its sync pipe: the pid of the container's init, or the
// error.
Result<int> ParseConmonReport(std::string_view line);

// The last meaningful line of a runtime's output, without log formatting.
std::string MeaningfulLine(std::string_view output);

// One container being created under conmon. Reports once: the pid of the container's init, which
// then waits to be released. By then the foreground conmon has exited, its child's pid is in the
// pid file, and any error is known. Destroying this stops the reporting, not conmon.
class ConmonLaunch {
 public:
  // conmon runs in `directory`, where it creates the file `oom` if the kernel OOM-kills the
  // container.
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
  std::optional<Result<int>> report_;  // received through the pipe
  bool has_ended_ = false;             // the foreground conmon
  int sync_pipe_ = -1;
  std::string line_;
  std::string conmon_output_;
  std::unique_ptr<DescriptorWatch> watch_;
  std::unique_ptr<Process> process_;
};

}  // namespace drakkar::node
