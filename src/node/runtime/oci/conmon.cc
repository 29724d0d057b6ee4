#include "node/runtime/oci/conmon.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>

#include "base/text/text.h"
#include "node/runtime/json.h"

namespace drakkar::node {
namespace {

constexpr std::size_t kMaxReportBytes = 64u << 10;
constexpr int kSyncDescriptor = 3;

// Nothing if the program does not exist. An error if a directory could not be read: choosing
// another program then would leave this one's containers unmanaged.
Result<std::optional<std::string>> FindProgram(FileSystem& files, const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return files.Exists(name) ? std::optional(name) : std::nullopt;
  }
  const char* variable = ::getenv("PATH");
  // Standard directories last: a service manager may start us with a short PATH.
  const std::string path = StrCat(variable != nullptr ? variable : "",
                                  ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  for (std::string_view directory : Split(path, ':')) {
    if (directory.empty()) continue;
    std::string candidate = JoinPath(directory, name);
    auto info = files.Stat(candidate);
    if (info.ok() && info->type == FileType::kRegular && (info->mode & 0111) != 0) {
      return std::optional(std::move(candidate));
    }
    if (info.ok()) continue;
    const ErrorCode code = info.error().code;
    const bool is_not_there = code == ErrorCode::kNotFound || code == ErrorCode::kForbidden ||
                              code == ErrorCode::kInvalidArgument;
    if (!is_not_there) return std::move(info).error();
  }
  return std::optional<std::string>();
}

Error NotInstalled(const std::string& program, const std::string& advice) {
  return FailedPrecondition(StrCat(program, " not found in PATH; ", advice));
}

// crun refuses hosts with cgroup v1 or a hybrid setup.
bool NeedsUnifiedCgroups(const std::string& program) {
  return BaseName(program) == "crun";
}

}  // namespace

Result<OciPrograms> FindPrograms(FileSystem& files, const std::string& wanted_runtime,
                                 bool unified_cgroups) {
  ASSIGN_OR_RETURN(const std::optional<std::string> conmon, FindProgram(files, "conmon"));
  if (!conmon) return NotInstalled("conmon", "install it (apt-get install conmon)");
  const std::string wanted = wanted_runtime.empty() ? "runc" : wanted_runtime;
  ASSIGN_OR_RETURN(std::optional<std::string> runtime, FindProgram(files, wanted));
  if (!runtime && wanted_runtime.empty() && unified_cgroups) {
    ASSIGN_OR_RETURN(runtime, FindProgram(files, "crun"));
  }
  if (!runtime) {
    return NotInstalled(wanted, wanted == "runc" ? "install it (apt-get install runc)"
                                                 : "install it or use --runtime=runc");
  }
  if (NeedsUnifiedCgroups(*runtime) && !unified_cgroups) {
    return FailedPrecondition(
        "crun needs cgroup v2, which this host does not use; use --runtime=runc");
  }
  OciPrograms programs;
  programs.conmon = *conmon;
  programs.runtime = *runtime;
  return programs;
}

Result<std::string> FindRuntimeProgram(FileSystem& files, const std::string& handler,
                                       const std::string& wanted, bool unified_cgroups) {
  ASSIGN_OR_RETURN(std::optional<std::string> program, FindProgram(files, wanted));
  if (!program) {
    return FailedPrecondition(
        StrCat(wanted, ", the program of runtime handler ", handler, ", was not found"));
  }
  if (NeedsUnifiedCgroups(*program) && !unified_cgroups) {
    return FailedPrecondition(StrCat("runtime handler ", handler,
                                     " is crun, which needs cgroup v2; this host does not use it"));
  }
  return *std::move(program);
}

std::vector<std::string> ConmonArguments(const OciPrograms& programs, const OciPaths& paths,
                                         const ContainerRecord& record) {
  const std::string bundle = paths.Container(record.id);
  std::vector<std::string> arguments = {
      programs.conmon,
      "--api-version",
      "1",
      "--cid",
      record.id,
      "--cuuid",
      record.id,
      "--name",
      record.name,
      "--runtime",
      programs.runtime,
      "--runtime-arg",
      "--root=" + paths.runtime_state,
      "--bundle",
      bundle,
      "--persist-dir",
      bundle,
      "--container-pidfile",
      bundle + "/pid",
      "--conmon-pidfile",
      bundle + "/conmon.pid",
      "--exit-dir",
      paths.Exits(),
      "--log-path",
      "k8s-file:" + (record.log_path.empty() ? "/dev/null" : record.log_path),
      "--full-attach",
      "--no-sync-log",
      "--log-size-max",
      std::to_string(programs.max_log_bytes),
      "--log-level",
      "error"};
  if (record.terminal) arguments.push_back("--terminal");
  if (record.standard_input) arguments.push_back("--stdin");
  if (record.standard_input && !record.standard_input_once) {
    arguments.push_back("--leave-stdin-open");
  }
  return arguments;
}

std::string MeaningfulLine(std::string_view output) {
  std::string last;
  for (std::string_view line : Split(output, '\n')) {
    line = Trim(line);
    if (line.empty()) continue;
    // logrus: time="..." level=error msg="runc create failed: ..."
    if (const std::size_t at = line.find("msg=\""); at != std::string_view::npos) {
      const bool is_minor = line.find("level=info") != std::string_view::npos ||
                            line.find("level=debug") != std::string_view::npos ||
                            line.find("level=warning") != std::string_view::npos;
      if (is_minor && !last.empty()) continue;
      std::string text;
      for (std::size_t i = at + 5; i < line.size() && line[i] != '"'; ++i) {
        if (line[i] == '\\' && i + 1 < line.size()) ++i;
        text += line[i];
      }
      last = std::move(text);
    } else {
      last = std::string(line);
    }
  }
  for (std::string_view prefix :
       {"runc create failed: ", "runc exec failed: ", "runc delete failed: "}) {
    if (last.starts_with(prefix)) last.erase(0, prefix.size());
  }
  return last;
}

Result<int> ParseConmonReport(std::string_view line) {
  auto json = ParseJson(Trim(line));
  if (!json.ok()) return Internal("cannot parse conmon's report: " + std::string(Trim(line)));
  const api::Value report = (*json)->root();
  const std::int64_t data = report["data"].integer(report["pid"].integer());
  if (data > 0) return static_cast<int>(data);
  const std::string message = MeaningfulLine(report["message"].str());
  return FailedPrecondition(message.empty() ? "the runtime gave no reason" : message);
}

Result<std::unique_ptr<ConmonLaunch>> ConmonLaunch::Start(UvLoop& loop, Spawner& spawner,
                                                          std::vector<std::string> arguments,
                                                          std::string directory,
                                                          std::function<void(Result<int>)> done) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return ErrnoError(errno, "make a pipe");
  std::unique_ptr<ConmonLaunch> launch(new ConmonLaunch(std::move(done)));
  launch->sync_pipe_ = ends[0];
  ProcessOptions options;
  options.arguments = std::move(arguments);
  options.directory = std::move(directory);
  const char* path = ::getenv("PATH");
  options.environment = {StrCat("PATH=", path != nullptr ? path : "/usr/sbin:/usr/bin:/sbin:/bin"),
                         StrCat("_OCI_SYNCPIPE=", kSyncDescriptor)};
  options.inherited_descriptors = {{ends[1], kSyncDescriptor}};
  options.new_session = true;
  auto process = spawner.Spawn(std::move(options),
                               [raw = launch.get()](ProcessExit exit) { raw->OnExit(exit); });
  ::close(ends[1]);
  if (!process.ok()) return std::move(process).error();
  launch->process_ = *std::move(process);
  launch->watch_ =
      WatchReadable(loop, launch->sync_pipe_, [raw = launch.get()] { raw->OnReadable(); });
  if (launch->watch_ == nullptr) return Internal("watch conmon's pipe");
  return launch;
}

ConmonLaunch::~ConmonLaunch() {
  watch_.reset();
  if (sync_pipe_ >= 0) ::close(sync_pipe_);
}

void ConmonLaunch::OnReadable() {
  char buffer[4096];
  while (true) {
    const ssize_t size = ::read(sync_pipe_, buffer, sizeof(buffer));
    if (size > 0) {
      line_.append(buffer, static_cast<std::size_t>(size));
      if (line_.size() > kMaxReportBytes) return Told(Internal("conmon's report is too long"));
      if (line_.ends_with('\n')) return Told(ParseConmonReport(line_));
      continue;
    }
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    break;
  }
  // The pipe was closed: conmon has exited, with or without a report.
  if (!line_.empty()) return Told(ParseConmonReport(line_));
  Told(FailedPrecondition(""));
}

void ConmonLaunch::OnExit(const ProcessExit& exit) {
  // The foreground conmon always exits early; only its error output matters.
  conmon_output_ = exit.error_output;
  has_ended_ = true;
  ReportWhenComplete();
}

void ConmonLaunch::Told(Result<int> report) {
  watch_.reset();
  report_ = std::move(report);
  ReportWhenComplete();
}

// On a busy machine the container may be created before the foreground conmon has written its
// child's pid.
void ConmonLaunch::ReportWhenComplete() {
  if (!report_ || !has_ended_ || !done_) return;
  Result<int> report = *std::move(report_);
  if (!report.ok() && report.error().message.empty()) {
    const std::string reason = MeaningfulLine(conmon_output_);
    report =
        FailedPrecondition(reason.empty() ? "conmon exited without a report" : "conmon: " + reason);
  }
  auto done = std::move(done_);
  done_ = nullptr;
  done(std::move(report));
}

}  // namespace drakkar::node
