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

void NriPluginSession::Serve(const std::string& method, const std::string& payload,
                             TtrpcDone done) {
  const std::string_view service = nri::kPluginService;
  if (!method.starts_with(service)) {
    return done(Error{ErrorCode::kUnimplemented, "unknown service of " + method});
  }
  const std::string_view name = std::string_view(method).substr(service.size());
  const Callbacks& callbacks = options_.callbacks;
  if (name == "Configure") {
    auto configuration = nri::DecodeConfiguration(payload);
    if (!configuration.ok()) return done(std::move(configuration).error());
    std::int32_t events = 0;
    if (callbacks.on_run_pod_sandbox) events |= NriEventBit(NriEvent::kRunPodSandbox);
    if (callbacks.on_stop_pod_sandbox) events |= NriEventBit(NriEvent::kStopPodSandbox);
    if (callbacks.on_remove_pod_sandbox) events |= NriEventBit(NriEvent::kRemovePodSandbox);
    if (callbacks.on_create_container) events |= NriEventBit(NriEvent::kCreateContainer);
    if (callbacks.on_container_event) {
      for (const NriEvent event : callbacks.container_events) events |= NriEventBit(event);
    }
    done(nri::EncodeEvents(events));
    if (callbacks.on_ready) {
      callbacks.on_ready(StrCat(configuration->runtime_name, " ", configuration->runtime_version));
    }
    return;
  }
  if (name == "Synchronize") {
    auto synchronization = nri::DecodeSynchronization(payload);
    if (!synchronization.ok()) return done(std::move(synchronization).error());
    if (callbacks.on_pods) callbacks.on_pods(synchronization->pods);
    return done(nri::EncodeSynchronized(synchronization->more));
  }
  if (name == "Shutdown") {
    done(std::string());
    if (callbacks.on_failed)
      callbacks.on_failed(Unavailable("the runtime shut the NRI plugin down"));
    return;
  }
  if (name == "StateChange") {
    // How runtimes before NRI 0.10 deliver most events.
    auto change = nri::DecodeStateChange(payload);
    if (!change.ok()) return done(std::move(change).error());
    if (change->event < 1 || change->event > kLastNriEvent) return done(std::string());
    const auto event = static_cast<NriEvent>(change->event);
    if (IsPodEvent(event)) return Deliver(event, change->pod, std::move(done));
    return DeliverContainer(event, {change->pod, change->container}, std::move(done));
  }
  for (int number = 1; number <= kLastNriEvent; ++number) {
    const auto event = static_cast<NriEvent>(number);
    if (name != NriEventName(event)) continue;
    if (IsPodEvent(event)) {
      auto pod = nri::DecodePod(payload);
      if (!pod.ok()) return done(std::move(pod).error());
      return Deliver(event, *pod, std::move(done));
    }
    if (event == NriEvent::kUpdatePodSandbox || event == NriEvent::kPostUpdatePodSandbox ||
        event == NriEvent::kValidateContainerAdjustment) {
      break;
    }
    auto told = nri::DecodeContainerEvent(payload);
    if (!told.ok()) return done(std::move(told).error());
    return DeliverContainer(event, *told, std::move(done));
  }
  done(Error{ErrorCode::kUnimplemented, StrCat("this plugin does not serve ", name)});
}

void NriPluginSession::Deliver(NriEvent event, const NriPodSandbox& pod, TtrpcDone done) {
  const auto& callback = event == NriEvent::kRunPodSandbox ? options_.callbacks.on_run_pod_sandbox
                         : event == NriEvent::kStopPodSandbox
                             ? options_.callbacks.on_stop_pod_sandbox
                             : options_.callbacks.on_remove_pod_sandbox;
  if (!callback) return done(std::string());
  callback(pod, [done = std::move(done)](Result<void> result) mutable {
    if (result.ok()) return done(std::string());
    done(std::move(result).error());
  });
}

void NriPluginSession::DeliverContainer(NriEvent event, const nri::ContainerEvent& told,
                                        TtrpcDone done) {
  const Callbacks& callbacks = options_.callbacks;
  if (event == NriEvent::kCreateContainer) {
    if (!callbacks.on_create_container) return done(std::string());
    return callbacks.on_create_container(
        told.pod, told.container,
        [done = std::move(done)](Result<NriContainerAdjustment> adjusted) mutable {
          if (adjusted.ok()) return done(nri::EncodeAdjustment(*adjusted));
          done(std::move(adjusted).error());
        });
  }
  if (!callbacks.on_container_event) return done(std::string());
  callbacks.on_container_event(event, told.pod, told.container,
                               [done = std::move(done)](Result<void> result) mutable {
                                 if (result.ok()) return done(std::string());
                                 done(std::move(result).error());
                               });
}

}  // namespace drakkar::rpc
