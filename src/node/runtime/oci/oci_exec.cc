#include "node/runtime/oci/oci_runtime_impl.h"

#include <signal.h>

#include "base/text/text.h"
#include "node/runtime/oci/oci_spec.h"
#include "node/runtime/oci/pod_port.h"

namespace drakkar::node {
namespace {

constexpr Duration kKillEvery = std::chrono::milliseconds(20);
// A runtime that takes longer than this to write its command's pid hangs and is killed itself.
constexpr int kMaxKillTries = 250;

}  // namespace

void OciRuntime::ExecSync(const std::string& id, std::vector<std::string> command, Duration timeout,
                          RuntimeCallback<ExecResult> done) {
  loop_.AssertInLoop();
  auto started = StartExec(id, command, timeout, done);
  if (!started.ok()) Answer(std::move(done), Result<ExecResult>(std::move(started).error()));
}

Result<std::unique_ptr<PortConnection>> OciRuntime::ConnectPort(const std::string& sandbox_id,
                                                                std::uint16_t port,
                                                                PortConnection::Events& events) {
  loop_.AssertInLoop();
  const auto sandbox = sandboxes_.find(sandbox_id);
  if (sandbox == sandboxes_.end() || sandbox->second->record.phase != Phase::kRunning) {
    return FailedPrecondition("the pod is not running");
  }
  return ConnectPodPort(loop_, workers_, sandbox->second->record.network_namespace, port, events);
}

void OciRuntime::ReopenLog(const std::string& id, RuntimeCallback<void> done) {
  loop_.AssertInLoop();
  auto container = Find(id);
  if (!container || container->record.phase != Phase::kRunning) {
    return Answer(std::move(done),
                  Result<void>(FailedPrecondition("the container is not running")));
  }
  // "2" asks conmon to reopen its log file.
  Answer(std::move(done), TellConmon(builder_->paths().Container(id), "2 0 0\n"));
}

Result<std::unique_ptr<ProcessStreams>> OciRuntime::Exec(const std::string& id,
                                                         std::vector<std::string> command,
                                                         const StreamOptions& options,
                                                         ProcessStreams::Events& events) {
  loop_.AssertInLoop();
  ASSIGN_OR_RETURN(ExecFiles files, WriteExecFiles(id, command, options.terminal));
  auto started = ExecCommand::Start({
      .loop = loop_,
      .spawner = *spawner_,
      .files = files_,
      .arguments = std::move(files.arguments),
      .base = files.base,
      .streams = options,
      .events = events,
      .on_gone = [this, number = files.number] { commands_with_streams_.erase(number); },
  });
  if (!started.ok()) return std::move(started).error();
  commands_with_streams_[files.number] = *started;
  return (*started)->MakeFront();
}

Result<std::unique_ptr<ProcessStreams>> OciRuntime::Attach(const std::string& id,
                                                           const StreamOptions& options,
                                                           ProcessStreams::Events& events) {
  loop_.AssertInLoop();
  auto container = Find(id);
  if (!container || container->record.phase != Phase::kRunning) {
    return FailedPrecondition("attach: the container is not running");
  }
  return AttachToConmon(loop_, builder_->paths().Container(id), options, events);
}

Result<OciRuntime::ExecFiles> OciRuntime::WriteExecFiles(const std::string& id,
                                                         const std::vector<std::string>& command,
                                                         bool terminal) {
  auto container = Find(id);
  if (!container || container->record.phase != Phase::kRunning) {
    return FailedPrecondition("exec: the container is not running");
  }
  if (command.empty()) return InvalidArgument("exec: no command");
  const std::string directory = builder_->paths().Container(id);
  ASSIGN_OR_RETURN(const std::string spec, files_.ReadFile(directory + "/config.json"));
  ASSIGN_OR_RETURN(const std::string process_json, WriteExecProcess(spec, command, terminal));
  ExecFiles made;
  made.number = next_exec_++;
  made.base = StrCat(directory, "/exec-", made.number);
  RETURN_IF_ERROR(files_.WriteFile(made.base + ".json", process_json, 0600));
  made.arguments = {ProgramsOf(container->record.sandbox_id).runtime,
                    "--root",
                    builder_->paths().runtime_state,
                    "exec",
                    "--process",
                    made.base + ".json",
                    "--pid-file",
                    made.base + ".pid",
                    id};
  return made;
}

Result<void> OciRuntime::StartExec(const std::string& id, const std::vector<std::string>& command,
                                   Duration timeout, RuntimeCallback<ExecResult>& done) {
  ASSIGN_OR_RETURN(ExecFiles files, WriteExecFiles(id, command, false));
  const std::uint64_t number = files.number;
  const std::string base = files.base;
  auto exec = std::make_shared<CommandRun>();
  ProcessOptions options;
  options.arguments = std::move(files.arguments);
  auto process = spawner_->Spawn(std::move(options), [this, number, base](ProcessExit exit) {
    FinishExec(number, base, std::move(exit));
  });
  if (!process.ok()) return std::move(process).error();
  exec->process = *std::move(process);
  exec->done = std::move(done);
  if (timeout > Duration::zero()) {
    exec->timer = loop_.RunAfter(timeout, [this, weak = std::weak_ptr(exec), base] {
      auto alive = weak.lock();
      if (!alive) return;
      alive->timed_out = true;
      KillExec(alive, base, kMaxKillTries);
    });
  }
  execs_[number] = std::move(exec);
  return Ok();
}

// Kill the command: killing only runc would leave the command running.
void OciRuntime::KillExec(const std::shared_ptr<CommandRun>& exec, const std::string& base,
                          int tries) {
  auto pid = ReadPidFile(files_, base + ".pid");
  auto handle =
      pid.ok() ? ProcessHandle::Open(*pid) : Result<ProcessHandle>(std::move(pid).error());
  if (handle.ok()) {
    static_cast<void>(handle->Signal(SIGKILL).ok());
  } else if (tries == 0) {
    static_cast<void>(exec->process->Signal(SIGKILL).ok());
  } else {
    exec->timer = loop_.RunAfter(kKillEvery, [this, weak = std::weak_ptr(exec), base, tries] {
      if (auto alive = weak.lock()) KillExec(alive, base, tries - 1);
    });
  }
}

void OciRuntime::FinishExec(std::uint64_t number, const std::string& base, ProcessExit exit) {
  auto found = execs_.find(number);
  if (found == execs_.end()) return;
  auto exec = std::move(found->second);
  execs_.erase(found);
  exec->timer.reset();
  static_cast<void>(files_.Remove(base + ".json").ok());
  static_cast<void>(files_.Remove(base + ".pid").ok());
  if (exec->timed_out) {
    return exec->done(Error{ErrorCode::kDeadlineExceeded, "exec: the command timed out"});
  }
  if (exit.exit_code != 0 && exit.error_output.find("exec failed: ") != std::string::npos &&
      exit.error_output.find("level=error") != std::string::npos) {
    return exec->done(FailedPrecondition("exec: " + MeaningfulLine(exit.error_output)));
  }
  exec->done(ExecResult{exit.exit_code, std::move(exit.output), std::move(exit.error_output)});
}

void OciRuntime::RunRuntime(std::vector<std::string> verb, const ContainerRecord& record,
                            absl::AnyInvocable<void(Result<bool>)> then) {
  ProcessOptions options;
  const std::string program = ProgramsOf(record.sandbox_id).runtime;
  const std::string what = StrCat(BaseName(program), " ", verb.front());
  options.arguments = {program, "--root", builder_->paths().runtime_state};
  options.arguments.insert(options.arguments.end(), verb.begin(), verb.end());
  options.arguments.push_back(record.id);
  auto shared = std::make_shared<absl::AnyInvocable<void(Result<bool>)>>(std::move(then));
  const std::uint64_t number = next_exec_++;
  auto process =
      spawner_->Spawn(std::move(options), [this, shared, what, number](ProcessExit exit) {
        commands_.erase(number);
        if (exit.exit_code == 0) return (*shared)(true);
        (*shared)(FailedPrecondition(StrCat(what, ": ", MeaningfulLine(exit.error_output))));
      });
  if (!process.ok()) {
    loop_.Post([shared, error = std::move(process).error()] { (*shared)(error); });
    return;
  }
  commands_[number] = *std::move(process);
}

}  // namespace drakkar::node
