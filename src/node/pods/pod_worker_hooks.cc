// What containers ask to have done after their start and before their end.
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

void PodWorker::RunHook(const std::string& id, Value container, Value action, Duration timeout,
                        std::function<void(Result<void>)> done) {
  if (const Value exec = action["exec"]; exec.has_value()) {
    return context_.runtime.ExecSync(
        id, Words(exec["command"]), timeout,
        [done = std::move(done), alive = Alive()](Result<ExecResult> result) {
          if (!alive.lock()) return;
          if (!result.ok()) return done(result.error());
          if (result->exit_code == 0) return done(Ok());
          const std::string output =
              (result->output + result->error_output).substr(0, kMaxShownOutput);
          done(FailedPrecondition(
              StrCat("exit code ", result->exit_code, output.empty() ? "" : ": ", output)));
        });
  }
  if (const Value sleep = action["sleep"]; sleep.has_value()) {
    const Duration wanted =
        std::chrono::seconds(std::max<std::int64_t>(sleep["seconds"].integer(), 0));
    hook_timers_[id] =
        context_.loop.RunAfter(std::min(wanted, timeout), [this, id, done = std::move(done)] {
          const TimerHandle over = std::move(hook_timers_[id]);
          hook_timers_.erase(id);
          done(Ok());
        });
    return;
  }
  const Value http = action["httpGet"];
  if (!http.has_value()) {
    return FailHook("lifecycle hooks cannot use tcpSocket; use exec, httpGet or sleep",
                    std::move(done));
  }
  auto request = ReadHttpGet(container, http, context_.host_ip);
  if (!request.ok()) return FailHook(request.error().message, std::move(done));
  request->user_agent = "kube-lifecycle";
  // As in Kubernetes, any answer will do: it is the request that counts.
  context_.prober->Get(std::move(*request), timeout,
                       [done = std::move(done), alive = Alive()](Result<HttpAnswer> answer) {
                         if (!alive.lock()) return;
                         if (!answer.ok()) return done(answer.error());
                         done(Ok());
                       });
}

void PodWorker::FailHook(std::string why, std::function<void(Result<void>)> done) {
  context_.loop.Post([why = std::move(why), done = std::move(done), alive = Alive()] {
    if (alive.lock()) done(InvalidArgument(why));
  });
}

// The container runs meanwhile, but counts as ready, and lets the others start, only afterwards. A
// hook that fails ends it.
void PodWorker::RunPostStart(const std::string& name, const std::string& id) {
  const Value container = FindSpec(name);
  const Value action = container["lifecycle"]["postStart"];
  if (!action.has_value() || !CanRunHook(action, context_.prober != nullptr)) return;
  post_starting_.insert(id);
  // Kubernetes sets no limit either; what stops the pod ends the hook with its container.
  RunHook(id, container, action, kLongestHook, [this, name, id](Result<void> result) {
    post_starting_.erase(id);
    if (!result.ok() && !stopping_ && stops_.try_emplace(id, Tick()).second) {
      context_.events.Warning(pod_, "FailedPostStartHook",
                              StrCat("PostStartHook failed: ", result.error().message));
      context_.events.Normal(pod_, "Killing",
                             StrCat("FailedPostStartHook: container ", name, " will be killed"));
      StopOne(id, name,
              std::chrono::seconds(root()["spec"]["terminationGracePeriodSeconds"].integer(30)));
    }
    Sync();
  });
}

}  // namespace drakkar::node
