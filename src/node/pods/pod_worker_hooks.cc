// Lifecycle hooks of containers: postStart and preStop.
#include "base/text/text.h"
#include "client/event_recorder.h"
#include "node/pods/container_probes.h"
#include "node/pods/pod_worker.h"

namespace drakkar::node {
namespace {

using api::Value;

constexpr std::size_t kMaxShownOutput = 1'024;

std::vector<std::string> Words(Value list) {
  std::vector<std::string> words;
  for (Value word : list.elements()) words.emplace_back(word.str());
  return words;
}

}  // namespace

bool PodWorker::IsPostStarting(const std::string& id) const {
  const auto found = attempts_.find(id);
  return found != attempts_.end() && found->second.post_start == PostStartHook::kRunning;
}

void PodWorker::RunHook(const std::string& id, Value container, Value action, Duration timeout,
                        TimerHandle ContainerAttempt::*timer,
                        std::function<void(Result<void>)> done) {
  if (const Value exec = action["exec"]; exec.has_value()) {
    return context_.runtime.ExecSync(
        id, Words(exec["command"]), timeout,
        lifetime_.Guard([done = std::move(done)](Result<ExecResult> result) {
          if (!result.ok()) return done(result.error());
          if (result->exit_code == 0) return done(Ok());
          const std::string output =
              (result->output + result->error_output).substr(0, kMaxShownOutput);
          done(FailedPrecondition(
              StrCat("exit code ", result->exit_code, output.empty() ? "" : ": ", output)));
        }));
  }
  if (const Value sleep = action["sleep"]; sleep.has_value()) {
    const Duration wanted = BoundedSeconds(sleep["seconds"].integer());
    // Cancelled with the attempt, once the hook's result is no longer needed.
    attempts_[id].*timer = context_.loop.RunAfter(
        std::min(wanted, timeout), [this, id, timer, done = std::move(done)] {
          const TimerHandle over = std::move(attempts_[id].*timer);
          done(Ok());
        });
    return;
  }
  const Value http = action["httpGet"];
  if (!http.has_value()) {
    return FailHook("lifecycle hooks cannot use tcpSocket; use exec, httpGet or sleep",
                    std::move(done));
  }
  auto request = ReadHttpGet(container, http, PodIp());
  if (!request.ok()) return FailHook(request.error().message, std::move(done));
  request->user_agent = "kube-lifecycle";
  // As in Kubernetes, any response counts as success.
  context_.prober->Get(std::move(*request), timeout,
                       lifetime_.Guard([done = std::move(done)](Result<HttpAnswer> answer) {
                         if (!answer.ok()) return done(answer.error());
                         done(Ok());
                       }));
}

void PodWorker::FailHook(std::string why, std::function<void(Result<void>)> done) {
  context_.loop.Post(lifetime_.Guard(
      [why = std::move(why), done = std::move(done)] { done(InvalidArgument(why)); }));
}

// While the hook runs, the container is not ready and the next containers do not start. If the hook
// fails, the container is stopped.
void PodWorker::RunPostStart(const std::string& name, const std::string& id) {
  const Value container = FindSpec(name);
  const Value action = container["lifecycle"]["postStart"];
  if (!action.has_value() || !CanRunHook(action, context_.prober != nullptr)) return;
  attempts_[id].post_start = PostStartHook::kRunning;
  // Kubernetes has no limit either. Stopping the pod ends the hook together with its container.
  auto finish = [this, name, id](Result<void> result) {
    // The attempt may have been removed in the meantime.
    if (const auto found = attempts_.find(id); found != attempts_.end()) {
      found->second.post_start = PostStartHook::kEnded;
    }
    if (!result.ok() && !IsStopping() && !IsStopRequested(id)) {
      context_.events.Warning(pod_, "FailedPostStartHook",
                              StrCat("PostStartHook failed: ", result.error().message));
      context_.events.Normal(pod_, "Killing",
                             StrCat("FailedPostStartHook: container ", name, " will be killed"));
      StopContainer(id, name, GracePeriod());
    }
    Sync();
  };
  RunHook(id, container, action, kLongestHook, &ContainerAttempt::post_start_timer,
          std::move(finish));
}

}  // namespace drakkar::node
