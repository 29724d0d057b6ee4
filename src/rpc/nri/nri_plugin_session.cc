#include "rpc/nri/nri_plugin_session.h"

#include <utility>

#include "base/text/text.h"
#include "rpc/nri/nri_codec.h"

namespace drakkar::rpc {

NriPluginSession::NriPluginSession(Options options)
    : options_(std::move(options)),
      endpoint_({.loop = options_.loop,
                 .serving_connection = kNriPluginConnection,
                 .calling_connection = kNriRuntimeConnection,
                 .send = options_.send,
                 .serve = [this](const std::string& method, const std::string& payload,
                                 TtrpcDone done) { Serve(method, payload, std::move(done)); }}) {}

void NriPluginSession::Start() {
  endpoint_.Call(
      StrCat(nri::kRuntimeService, "RegisterPlugin"),
      nri::EncodeRegistration({options_.name, options_.index, ""}), kNriRegistrationTimeout,
      [this](Result<std::string> answer) {
        if (answer.ok()) return;
        if (options_.callbacks.on_failed) {
          options_.callbacks.on_failed(answer.error().Prefixed("register the NRI plugin"));
        }
      });
}

void NriPluginSession::UpdateContainers(
    const std::vector<NriContainerUpdate>& updates, const std::vector<NriEviction>& evictions,
    absl::AnyInvocable<void(Result<std::vector<NriContainerUpdate>>)> done) {
  endpoint_.Call(StrCat(nri::kRuntimeService, "UpdateContainers"),
                 nri::EncodeUpdateRequest({updates, evictions}), kNriRequestTimeout,
                 [done = std::move(done)](Result<std::string> answer) mutable {
                   if (!answer.ok()) return done(std::move(answer).error());
                   done(nri::DecodeFailedUpdates(*answer));
                 });
}

std::int32_t NriPluginSession::Events() const {
  const Callbacks& callbacks = options_.callbacks;
  std::int32_t events = 0;
  const auto add = [&](NriEvent event, bool wanted) {
    if (wanted) events |= NriEventBit(event);
  };
  add(NriEvent::kRunPodSandbox, callbacks.on_run_pod_sandbox != nullptr);
  add(NriEvent::kStopPodSandbox, callbacks.on_stop_pod_sandbox != nullptr);
  add(NriEvent::kRemovePodSandbox, callbacks.on_remove_pod_sandbox != nullptr);
  add(NriEvent::kUpdatePodSandbox, callbacks.on_update_pod_sandbox != nullptr);
  add(NriEvent::kPostUpdatePodSandbox, callbacks.on_post_update_pod_sandbox != nullptr);
  add(NriEvent::kCreateContainer, callbacks.on_create_container != nullptr);
  add(NriEvent::kUpdateContainer, callbacks.on_update_container != nullptr);
  add(NriEvent::kStopContainer, callbacks.on_stop_container != nullptr);
  add(NriEvent::kValidateContainerAdjustment, callbacks.on_validate != nullptr);
  if (callbacks.on_container_event) {
    for (const NriEvent event : callbacks.container_events) add(event, true);
  }
  return events;
}

void NriPluginSession::Configure(const std::string& payload, TtrpcDone done) {
  auto configuration = nri::DecodeConfiguration(payload);
  if (!configuration.ok()) return done(std::move(configuration).error());
  done(nri::EncodeEvents(Events()));
  if (options_.callbacks.on_ready) {
    options_.callbacks.on_ready(
        StrCat(configuration->runtime_name, " ", configuration->runtime_version));
  }
}

void NriPluginSession::Synchronize(const std::string& payload, TtrpcDone done) {
  auto part = nri::DecodeSynchronization(payload);
  if (!part.ok()) return done(std::move(part).error());
  const Callbacks& callbacks = options_.callbacks;
  if (callbacks.on_pods) callbacks.on_pods(part->pods);
  nri::Synchronized answer{{}, part->more};
  if (callbacks.on_containers) answer.updates = callbacks.on_containers(part->containers);
  if (part->more) answer.updates.clear();
  done(nri::EncodeSynchronized(answer));
}

void NriPluginSession::Validate(const std::string& payload, TtrpcDone done) {
  auto validation = nri::DecodeValidation(payload);
  if (!validation.ok()) return done(std::move(validation).error());
  if (!options_.callbacks.on_validate) return done(nri::EncodeVerdict({}));
  options_.callbacks.on_validate(*validation, [done = std::move(done)](Result<void> valid) mutable {
    done(nri::EncodeVerdict({!valid.ok(), valid.ok() ? "" : valid.error().message}));
  });
}

void NriPluginSession::Serve(const std::string& method, const std::string& payload,
                             TtrpcDone done) {
  const std::string_view service = nri::kPluginService;
  if (!method.starts_with(service)) {
    return done(Error{ErrorCode::kUnimplemented, "unknown service of " + method});
  }
  const std::string_view name = std::string_view(method).substr(service.size());
  if (name == "Configure") return Configure(payload, std::move(done));
  if (name == "Synchronize") return Synchronize(payload, std::move(done));
  if (name == "Shutdown") {
    done(std::string());
    if (options_.callbacks.on_failed)
      options_.callbacks.on_failed(Unavailable("the runtime shut the NRI plugin down"));
    return;
  }
  if (name == "StateChange") {
    // How runtimes before NRI 0.10 deliver most events.
    auto change = nri::DecodeStateChange(payload);
    if (!change.ok()) return done(std::move(change).error());
    if (change->event < 1 || change->event > kLastNriEvent) return done(std::string());
    const auto event = static_cast<NriEvent>(change->event);
    if (IsPodEvent(event)) return Deliver(event, change->pod, {}, std::move(done));
    return DeliverContainer(event, {change->pod, change->container, {}}, std::move(done));
  }
  for (int number = 1; number <= kLastNriEvent; ++number) {
    const auto event = static_cast<NriEvent>(number);
    if (name != NriEventName(event)) continue;
    if (event == NriEvent::kValidateContainerAdjustment) return Validate(payload, std::move(done));
    if (IsPodEvent(event)) {
      auto told = nri::DecodePodEvent(payload);
      if (!told.ok()) return done(std::move(told).error());
      return Deliver(event, told->pod, told->resources, std::move(done));
    }
    auto told = nri::DecodeContainerEvent(payload);
    if (!told.ok()) return done(std::move(told).error());
    return DeliverContainer(event, *told, std::move(done));
  }
  done(Error{ErrorCode::kUnimplemented, StrCat("this plugin does not serve ", name)});
}

void NriPluginSession::Deliver(NriEvent event, const NriPodSandbox& pod,
                               const NriResources& resources, TtrpcDone done) {
  const Callbacks& callbacks = options_.callbacks;
  auto answer = [done = std::move(done)](Result<void> result) mutable {
    if (result.ok()) return done(std::string());
    done(std::move(result).error());
  };
  if (event == NriEvent::kUpdatePodSandbox) {
    if (!callbacks.on_update_pod_sandbox) return answer(Ok());
    return callbacks.on_update_pod_sandbox(pod, resources, std::move(answer));
  }
  const auto& callback = event == NriEvent::kRunPodSandbox    ? callbacks.on_run_pod_sandbox
                         : event == NriEvent::kStopPodSandbox ? callbacks.on_stop_pod_sandbox
                         : event == NriEvent::kRemovePodSandbox
                             ? callbacks.on_remove_pod_sandbox
                             : callbacks.on_post_update_pod_sandbox;
  if (!callback) return answer(Ok());
  callback(pod, std::move(answer));
}

void NriPluginSession::DeliverContainer(NriEvent event, const nri::ContainerEvent& told,
                                        TtrpcDone done) {
  const Callbacks& callbacks = options_.callbacks;
  const bool is_create = event == NriEvent::kCreateContainer && callbacks.on_create_container;
  const bool is_update = event == NriEvent::kUpdateContainer && callbacks.on_update_container;
  const bool is_stop = event == NriEvent::kStopContainer && callbacks.on_stop_container;
  if (is_create || is_update || is_stop) {
    auto answer = [event, done = std::move(done)](Result<NriAnswer> given) mutable {
      if (given.ok()) return done(nri::EncodeAnswer(event, *given));
      done(std::move(given).error());
    };
    if (is_create) {
      return callbacks.on_create_container(told.pod, told.container, std::move(answer));
    }
    if (is_stop) return callbacks.on_stop_container(told.pod, told.container, std::move(answer));
    return callbacks.on_update_container(told.pod, told.container, told.resources,
                                         std::move(answer));
  }
  if (event == NriEvent::kCreateContainer || !callbacks.on_container_event) {
    return done(std::string());
  }
  callbacks.on_container_event(event, told.pod, told.container,
                               [done = std::move(done)](Result<void> result) mutable {
                                 if (result.ok()) return done(std::string());
                                 done(std::move(result).error());
                               });
}

}  // namespace drakkar::rpc
