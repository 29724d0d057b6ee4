#include "rpc/nri/nri_runtime_session.h"

#include <utility>

#include "base/text/text.h"
#include "rpc/nri/nri_codec.h"

namespace drakkar::rpc {
namespace {

// Pods and containers per Synchronize message: far below the message size limit.
constexpr std::size_t kObjectsPerMessage = 256;

// Runtimes have always had dedicated methods for these: they are never sent as a state change.
bool HasOwnMethod(NriEvent event) {
  return event == NriEvent::kCreateContainer || event == NriEvent::kStopContainer;
}

bool IsFatal(ErrorCode code) {
  return code == ErrorCode::kDeadlineExceeded || code == ErrorCode::kUnavailable ||
         code == ErrorCode::kCancelled;
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
    return done(
        Error{ErrorCode::kUnimplemented, "NRI plugins cannot update containers on this node"});
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

void NriRuntimeSession::Configure() {
  const auto milliseconds = [](Duration time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  };
  endpoint_.Call(
      StrCat(nri::kPluginService, "Configure"),
      nri::EncodeConfiguration(
          {.runtime_name = options_.runtime_name,
           .runtime_version = options_.runtime_version,
           .registration_timeout_ms = milliseconds(options_.registration_timeout),
           .request_timeout_ms = milliseconds(options_.request_timeout)}),
      options_.request_timeout, [this](Result<std::string> answer) {
        auto events =
            answer.ok() ? nri::DecodeEvents(*answer) : Result<std::int32_t>(answer.error());
        if (!events.ok()) return Fail(events.error().Prefixed("configure NRI plugin " + name_));
        // An empty set means all events.
        events_ = *events == 0 ? -1 : *events;
        subscribed_ = *events;
        // A plugin that wants to veto changes must not assume that it will be called.
        if ((subscribed_ & NriEventBit(NriEvent::kValidateContainerAdjustment)) != 0) {
          return Fail(Error{ErrorCode::kUnimplemented,
                            StrCat("NRI plugin ", title(),
                                   " wants to validate container changes, which this node does "
                                   "not support")});
        }
        Synchronize();
      });
}

std::string NriRuntimeSession::title() const {
  return StrCat(index_, "-", name_);
}

std::vector<NriEvent> NriRuntimeSession::subscribed() const {
  std::vector<NriEvent> events;
  for (int number = 1; number <= kLastNriEvent; ++number) {
    const auto event = static_cast<NriEvent>(number);
    if ((subscribed_ & NriEventBit(event)) != 0) events.push_back(event);
  }
  return events;
}

void NriRuntimeSession::Synchronize() {
  auto whole = std::make_shared<nri::Synchronization>();
  if (options_.pods) whole->pods = options_.pods();
  if (options_.containers) whole->containers = options_.containers();
  // One part after another, all pods first; the last part makes the plugin ready.
  auto send = std::make_shared<std::function<void(std::size_t)>>();
  *send = [this, whole, weak = std::weak_ptr(send)](std::size_t from) {
    nri::Synchronization part;
    const std::size_t pods = whole->pods.size(), all = pods + whole->containers.size();
    const std::size_t to = std::min(all, from + kObjectsPerMessage);
    for (std::size_t i = from; i < to; ++i) {
      if (i < pods) {
        part.pods.push_back(whole->pods[i]);
      } else {
        part.containers.push_back(whole->containers[i - pods]);
      }
    }
    part.more = to < all;
    endpoint_.Call(StrCat(nri::kPluginService, "Synchronize"), nri::EncodeSynchronization(part),
                   options_.request_timeout,
                   [this, to, more = part.more, next = weak.lock()](Result<std::string> answer) {
                     if (!answer.ok()) {
                       return Fail(answer.error().Prefixed("synchronize NRI plugin " + name_));
                     }
                     if (more) return (*next)(to);
                     state_ = State::kReady;
                     if (options_.on_ready) options_.on_ready();
                   });
  };
  (*send)(0);
}

void NriRuntimeSession::Fail(const Error& error) {
  if (state_ == State::kFailed) return;
  state_ = State::kFailed;
  registration_timer_.reset();
  if (options_.on_failed) options_.on_failed(error);
}

void NriRuntimeSession::Deliver(NriEvent event, const NriPodSandbox& pod, NriDone done) {
  if (state_ != State::kReady || !Wants(event)) return done(Ok());
  Call(
      event,
      [event, pod](bool as_state_change) {
        return as_state_change ? nri::EncodeStateChange({static_cast<std::int32_t>(event), pod, {}})
                               : nri::EncodePod(pod);
      },
      [done = std::move(done)](Result<std::string> answer) mutable {
        if (!answer.ok()) return done(std::move(answer).error());
        done(Ok());
      });
}

void NriRuntimeSession::DeliverContainer(NriEvent event, const NriPodSandbox& pod,
                                         const NriContainer& container, NriAdjusted done) {
  if (state_ != State::kReady || !Wants(event)) return done(NriContainerAdjustment());
  Call(
      event,
      [event, pod, container](bool as_state_change) {
        return as_state_change
                   ? nri::EncodeStateChange({static_cast<std::int32_t>(event), pod, container})
                   : nri::EncodeContainerEvent({pod, container});
      },
      [this, event, name = container.name,
       done = std::move(done)](Result<std::string> answer) mutable {
        if (!answer.ok()) return done(std::move(answer).error());
        if (event != NriEvent::kCreateContainer) return done(NriContainerAdjustment());
        auto adjustment = nri::DecodeAdjustment(*answer);
        if (adjustment.ok() && !adjustment->unsupported.empty()) {
          return done(FailedPrecondition(
              StrCat("NRI plugin ", title(), " changes ", Join(adjustment->unsupported, ", "),
                     " of container ", name,
                     "; this node supports only changes to environment, mounts and annotations")));
        }
        done(std::move(adjustment));
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
