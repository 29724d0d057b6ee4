#include "rpc/nri/nri_runtime_session.h"

#include <algorithm>
#include <utility>

#include "base/text/text.h"
#include "rpc/nri/nri_codec.h"

namespace drakkar::rpc {
namespace {

// Pods and containers per Synchronize message, and how many bytes they may take: far below the
// limit of a message.
constexpr std::size_t kObjectsPerMessage = 256;
constexpr std::size_t kBytesPerMessage = kMaxTtrpcData / 4;

constexpr std::int32_t kAllEvents = (1 << kLastNriEvent) - 1;

// Runtimes have always had dedicated methods for these: they are never sent as a state change.
bool HasOwnMethod(NriEvent event) {
  return event == NriEvent::kCreateContainer || event == NriEvent::kUpdateContainer ||
         event == NriEvent::kStopContainer || event == NriEvent::kUpdatePodSandbox;
}

bool IsFatal(ErrorCode code) {
  return code == ErrorCode::kDeadlineExceeded || code == ErrorCode::kUnavailable ||
         code == ErrorCode::kCancelled;
}

// A rough size: only the parts of an object that may be long.
std::size_t SizeOf(const NriContainer& container) {
  std::size_t size = 1'024;
  for (const std::string& text : container.env) size += text.size();
  for (const std::string& text : container.args) size += text.size();
  for (const auto& [name, value] : container.annotations) size += name.size() + value.size();
  for (const NriMount& mount : container.mounts) {
    size += mount.destination.size() + mount.source.size() + 64;
  }
  return size;
}

std::size_t SizeOf(const NriPodSandbox& pod) {
  std::size_t size = 512;
  for (const auto& [name, value] : pod.annotations) size += name.size() + value.size();
  for (const auto& [name, value] : pod.labels) size += name.size() + value.size();
  return size;
}

}  // namespace

NriRuntimeSession::NriRuntimeSession(Options options)
    : options_(std::move(options)),
      endpoint_({.loop = options_.loop,
                 .serving_connection = kNriRuntimeConnection,
                 .calling_connection = kNriPluginConnection,
                 .send = options_.send,
                 .serve = [this](const std::string& method, const std::string& payload,
                                 TtrpcDone done) { Serve(method, payload, std::move(done)); }}) {
  registration_timer_ = options_.loop.RunAfter(options_.registration_timeout, [this] {
    Fail({ErrorCode::kDeadlineExceeded, "the NRI plugin did not register in time"});
  });
}

void NriRuntimeSession::Serve(const std::string& method, const std::string& payload,
                              TtrpcDone done) {
  if (method == StrCat(nri::kRuntimeService, "UpdateContainers")) {
    return ServeUpdate(payload, std::move(done));
  }
  if (method != StrCat(nri::kRuntimeService, "RegisterPlugin")) {
    return done(Error{ErrorCode::kUnimplemented, "unknown method " + method});
  }
  if (state_ != State::kWaiting)
    return done(FailedPrecondition("the plugin is already registered"));
  auto registration = nri::DecodeRegistration(payload);
  Result<void> valid = registration.ok() ? CheckNriPluginName(registration->name)
                                         : Result<void>(registration.error());
  if (valid.ok()) valid = CheckNriPluginIndex(registration->index);
  if (!valid.ok()) {
    done(valid.error());
    return Fail(valid.error());
  }
  name_ = registration->name;
  index_ = registration->index;
  state_ = State::kConfiguring;
  registration_timer_.reset();
  done(std::string());
  Configure();
}

void NriRuntimeSession::ServeUpdate(const std::string& payload, TtrpcDone done) {
  if (state_ != State::kReady) {
    return done(FailedPrecondition("the plugin is not registered and synchronized"));
  }
  auto request = nri::DecodeUpdateRequest(payload);
  if (!request.ok()) return done(std::move(request).error());
  if (!options_.on_update) {
    return done(Error{ErrorCode::kUnimplemented, "this node does not update containers"});
  }
  options_.on_update(
      std::move(request->updates), std::move(request->evictions),
      [done = std::move(done)](Result<std::vector<NriContainerUpdate>> failed) mutable {
        if (!failed.ok()) return done(std::move(failed).error());
        done(nri::EncodeFailedUpdates(*failed));
      });
}

void NriRuntimeSession::Configure() {
  const auto milliseconds = [](Duration time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  };
  endpoint_.Call(StrCat(nri::kPluginService, "Configure"),
                 nri::EncodeConfiguration(
                     {.runtime_name = options_.runtime_name,
                      .runtime_version = options_.runtime_version,
                      .registration_timeout_ms = milliseconds(options_.registration_timeout),
                      .request_timeout_ms = milliseconds(options_.request_timeout)}),
                 options_.request_timeout, [this](Result<std::string> answer) {
                   auto events = answer.ok() ? nri::DecodeEvents(*answer)
                                             : Result<std::int32_t>(answer.error());
                   if (events.ok() && (*events & ~kAllEvents) != 0) {
                     events = InvalidArgument(StrCat("it subscribes to unknown events: ", *events));
                   }
                   if (!events.ok())
                     return Fail(events.error().Prefixed("configure NRI plugin " + name_));
                   // An empty set means all events.
                   events_ = *events == 0 ? kAllEvents : *events;
                   state_ = State::kConfigured;
                   if (options_.on_configured) options_.on_configured();
                 });
}

std::string NriRuntimeSession::title() const {
  return StrCat(index_, "-", name_);
}

void NriRuntimeSession::Synchronize(
    std::vector<NriPodSandbox> pods, std::vector<NriContainer> containers,
    absl::AnyInvocable<void(Result<std::vector<NriContainerUpdate>>)> done) {
  struct Progress {
    std::vector<NriPodSandbox> pods;
    std::vector<NriContainer> containers;
    std::size_t next = 0;  // all pods first
    absl::AnyInvocable<void(Result<std::vector<NriContainerUpdate>>)> done;
    std::function<void(const std::shared_ptr<Progress>&)> send;
  };
  auto progress = std::make_shared<Progress>();
  progress->pods = std::move(pods);
  progress->containers = std::move(containers);
  progress->done = std::move(done);
  progress->send = [this](const std::shared_ptr<Progress>& at) {
    nri::Synchronization part;
    const std::size_t pod_count = at->pods.size(), all = pod_count + at->containers.size();
    std::size_t bytes = 0, count = 0;
    for (; at->next < all && count < kObjectsPerMessage; ++at->next, ++count) {
      const bool is_pod = at->next < pod_count;
      bytes += is_pod ? SizeOf(at->pods[at->next]) : SizeOf(at->containers[at->next - pod_count]);
      if (count > 0 && bytes > kBytesPerMessage) break;
      if (is_pod) {
        part.pods.push_back(std::move(at->pods[at->next]));
      } else {
        part.containers.push_back(std::move(at->containers[at->next - pod_count]));
      }
    }
    part.more = at->next < all;
    endpoint_.Call(
        StrCat(nri::kPluginService, "Synchronize"), nri::EncodeSynchronization(part),
        options_.request_timeout, [this, at, more = part.more](Result<std::string> answer) {
          auto synchronized = answer.ok() ? nri::DecodeSynchronized(*answer)
                                          : Result<nri::Synchronized>(answer.error());
          if (synchronized.ok() && more && !synchronized->more) {
            synchronized = Error{ErrorCode::kUnimplemented, "it does not accept several parts"};
          }
          if (!synchronized.ok()) {
            const Error error = synchronized.error().Prefixed("synchronize NRI plugin " + name_);
            at->done(error);
            return Fail(error);
          }
          if (more) return at->send(at);
          state_ = State::kReady;
          at->done(std::move(synchronized->updates));
        });
  };
  progress->send(progress);
}

void NriRuntimeSession::Fail(const Error& error) {
  if (state_ == State::kFailed) return;
  state_ = State::kFailed;
  registration_timer_.reset();
  if (options_.on_failed) options_.on_failed(error);
}

void NriRuntimeSession::Deliver(NriEvent event, const NriPodSandbox& pod,
                                const NriResources& resources, NriDone done) {
  if (state_ != State::kReady || !Wants(event)) return done(Ok());
  Call(
      event,
      [event, pod, resources](bool as_state_change) {
        return as_state_change ? nri::EncodeStateChange({static_cast<std::int32_t>(event), pod, {}})
                               : nri::EncodePodEvent({pod, resources, pod.pod_overhead});
      },
      [done = std::move(done)](Result<std::string> answer) mutable {
        if (!answer.ok()) return done(std::move(answer).error());
        done(Ok());
      });
}

void NriRuntimeSession::DeliverContainer(NriEvent event, const NriPodSandbox& pod,
                                         const NriContainer& container,
                                         const NriResources& resources, NriAnswered done) {
  if (state_ != State::kReady || !Wants(event)) return done(NriAnswer());
  Call(
      event,
      [event, pod, container, resources](bool as_state_change) {
        return as_state_change
                   ? nri::EncodeStateChange({static_cast<std::int32_t>(event), pod, container})
                   : nri::EncodeContainerEvent({pod, container, resources});
      },
      [event, done = std::move(done)](Result<std::string> answer) mutable {
        if (!answer.ok()) return done(std::move(answer).error());
        done(nri::DecodeAnswer(event, *answer));
      });
}

void NriRuntimeSession::Validate(const NriValidation& validation, NriDone done) {
  const NriEvent event = NriEvent::kValidateContainerAdjustment;
  if (state_ != State::kReady || !Wants(event)) return done(Ok());
  endpoint_.Call(
      StrCat(nri::kPluginService, NriEventName(event)), nri::EncodeValidation(validation),
      options_.request_timeout,
      [this, name = validation.container.name,
       done = std::move(done)](Result<std::string> answer) mutable {
        // Nothing may pass unseen: a validator that does not answer has not agreed.
        auto verdict =
            answer.ok() ? nri::DecodeVerdict(*answer) : Result<nri::Verdict>(answer.error());
        if (!verdict.ok()) {
          const Error error = verdict.error().Prefixed(StrCat(
              "NRI plugin ", title(), " could not validate the changes of container ", name));
          done(error);
          if (IsFatal(verdict.error().code)) Fail(error);
          return;
        }
        if (!verdict->reject) return done(Ok());
        done(FailedPrecondition(StrCat("NRI plugin ", title(), " rejects the changes of container ",
                                       name, ": ", verdict->reason)));
      });
}

// Calls `done` with an error only if the plugin answered with one.
void NriRuntimeSession::Call(NriEvent event, std::function<std::string(bool)> payload,
                             TtrpcDone done) {
  const bool as_state_change = only_state_changes_ && !HasOwnMethod(event);
  endpoint_.Call(StrCat(nri::kPluginService, as_state_change ? "StateChange" : NriEventName(event)),
                 payload(as_state_change), options_.request_timeout,
                 [this, event, payload, as_state_change,
                  done = std::move(done)](Result<std::string> answer) mutable {
                   if (answer.ok()) return done(std::move(answer));
                   const Error& error = answer.error();
                   if (error.code == ErrorCode::kUnimplemented && !as_state_change) {
                     if (HasOwnMethod(event)) return done(std::string());
                     only_state_changes_ = true;
                     return Call(event, std::move(payload), std::move(done));
                   }
                   const Error told =
                       error.Prefixed(StrCat("NRI plugin ", title(), ": ", NriEventName(event)));
                   if (!IsFatal(error.code)) return done(told);
                   done(std::string());
                   Fail(told);
                 });
}

}  // namespace drakkar::rpc
