#include "rpc/nri/nri_runtime_session.h"

#include <utility>

#include "base/text/text.h"
#include "rpc/nri/nri_codec.h"

namespace drakkar::rpc {
namespace {

// Pods told in one message of Synchronize: far below the limit of a message.
constexpr std::size_t kPodsPerMessage = 256;

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
    return done(Error{ErrorCode::kUnimplemented, "containers are not changed by NRI plugins here"});
  }
  if (method != StrCat(nri::kRuntimeService, "RegisterPlugin")) {
    return done(Error{ErrorCode::kUnimplemented, "unknown method " + method});
  }
  if (state_ != State::kWaiting) return done(FailedPrecondition("the plugin has registered already"));
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
  endpoint_.Call(StrCat(nri::kPluginService, "Configure"),
                 nri::EncodeConfiguration(
                     {.runtime_name = options_.runtime_name,
                      .runtime_version = options_.runtime_version,
                      .registration_timeout_ms = milliseconds(options_.registration_timeout),
                      .request_timeout_ms = milliseconds(options_.request_timeout)}),
                 options_.request_timeout, [this](Result<std::string> answer) {
                   auto events = answer.ok() ? nri::DecodeEvents(*answer)
                                             : Result<std::int32_t>(answer.error());
                   if (!events.ok()) return Fail(events.error().Prefixed("configure NRI plugin " + name_));
                   // Nothing in particular means everything.
                   events_ = *events == 0 ? -1 : *events;
                   Synchronize();
                 });
}

void NriRuntimeSession::Synchronize() {
  auto pods = std::make_shared<std::vector<NriPodSandbox>>();
  if (options_.pods) *pods = options_.pods();
  // One part after the other; the last one makes the plugin ready.
  auto send = std::make_shared<std::function<void(std::size_t)>>();
  *send = [this, pods, weak = std::weak_ptr(send)](std::size_t from) {
    nri::Synchronization part;
    const std::size_t to = std::min(pods->size(), from + kPodsPerMessage);
    part.pods.assign(pods->begin() + static_cast<std::ptrdiff_t>(from),
                     pods->begin() + static_cast<std::ptrdiff_t>(to));
    part.more = to < pods->size();
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
  const bool as_state_change = only_state_changes_;
  const std::string method =
      StrCat(nri::kPluginService, as_state_change ? "StateChange" : NriEventName(event));
  std::string payload = as_state_change
                            ? nri::EncodeStateChange({static_cast<std::int32_t>(event), pod})
                            : nri::EncodePod(pod);
  endpoint_.Call(method, payload, options_.request_timeout,
                 [this, event, pod, as_state_change,
                  done = std::move(done)](Result<std::string> answer) mutable {
                   OnDelivered(event, pod, as_state_change, std::move(answer), std::move(done));
                 });
}

void NriRuntimeSession::OnDelivered(NriEvent event, const NriPodSandbox& pod, bool as_state_change,
                                    Result<std::string> answer, NriDone done) {
  if (answer.ok()) return done(Ok());
  const Error& error = answer.error();
  if (error.code == ErrorCode::kUnimplemented && !as_state_change) {
    only_state_changes_ = true;
    return Deliver(event, pod, std::move(done));
  }
  const std::string what = StrCat("NRI plugin ", index_, "-", name_, ": ", NriEventName(event));
  if (!IsFatal(error.code)) return done(error.Prefixed(what));
  const Error fatal = error.Prefixed(what);
  done(Ok());
  Fail(fatal);
}

}  // namespace drakkar::rpc
