#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rpc/nri/nri.h"
#include "rpc/ttrpc/endpoint.h"

namespace drakkar::rpc {

namespace nri {
struct ContainerEvent;
}

// The plugin's side of one NRI socket: registers, subscribes to events, and passes them to the
// callbacks. Bytes in, bytes out, no I/O. Loop-bound.
class NriPluginSession {
 public:
  struct Callbacks {
    // Pods that already exist, in one or more parts. May be empty.
    std::function<void(const std::vector<NriPodSandbox>& pods)> on_pods;
    // Containers that already exist, likewise; the updates of the last part count.
    std::function<std::vector<NriContainerUpdate>(const std::vector<NriContainer>& containers)>
        on_containers;
    // The runtime waits for `done`; an error fails the pod's start. Null: not subscribed.
    std::function<void(const NriPodSandbox& pod, NriDone done)> on_run_pod_sandbox;
    std::function<void(const NriPodSandbox& pod, NriDone done)> on_stop_pod_sandbox;
    std::function<void(const NriPodSandbox& pod, NriDone done)> on_remove_pod_sandbox;
    // The pod's resources are about to change.
    std::function<void(const NriPodSandbox& pod, const NriResources& resources, NriDone done)>
        on_update_pod_sandbox;
    std::function<void(const NriPodSandbox& pod, NriDone done)> on_post_update_pod_sandbox;
    // A container is about to be created: it may be adjusted, and others updated or evicted; an
    // error fails its creation.
    std::function<void(const NriPodSandbox& pod, const NriContainer& container, NriAnswered done)>
        on_create_container;
    // A container's resources are about to change; the answer may change them again.
    std::function<void(const NriPodSandbox& pod, const NriContainer& container,
                       const NriResources& resources, NriAnswered done)>
        on_update_container;
    // A container has ended; the answer may update others.
    std::function<void(const NriPodSandbox& pod, const NriContainer& container, NriAnswered done)>
        on_stop_container;
    // The changes of all plugins to a container; an error rejects them and its creation.
    std::function<void(const NriValidation& validation, NriDone done)> on_validate;
    // Other container events, as listed in `container_events`. An error from kStartContainer fails
    // the start.
    std::function<void(NriEvent event, const NriPodSandbox& pod, const NriContainer& container,
                       NriDone done)>
        on_container_event;
    std::vector<NriEvent> container_events;
    // Registered and configured: events follow.
    std::function<void(const std::string& runtime)> on_ready;
    // The registration was refused, or the runtime shuts the plugin down. Close the socket.
    std::function<void(const Error& error)> on_failed;
  };
  struct Options {
    EventLoop& loop;
    std::string name;
    std::string index = "50";
    std::function<void(std::string bytes)> send;
    Callbacks callbacks;
  };
  explicit NriPluginSession(Options options);

  // The socket is open: registers.
  void Start();
  Result<void> Receive(std::string_view bytes) { return endpoint_.Receive(bytes); }
  void Close(const Error& error) { endpoint_.Close(error); }

  // Asks the runtime to change or evict containers. `done` takes the updates that failed.
  void UpdateContainers(const std::vector<NriContainerUpdate>& updates,
                        const std::vector<NriEviction>& evictions,
                        absl::AnyInvocable<void(Result<std::vector<NriContainerUpdate>>)> done);

 private:
  std::int32_t Events() const;
  void Configure(const std::string& payload, TtrpcDone done);
  void Synchronize(const std::string& payload, TtrpcDone done);
  void Validate(const std::string& payload, TtrpcDone done);
  void Serve(const std::string& method, const std::string& payload, TtrpcDone done);
  void Deliver(NriEvent event, const NriPodSandbox& pod, const NriResources& resources,
               TtrpcDone done);
  void DeliverContainer(NriEvent event, const nri::ContainerEvent& told, TtrpcDone done);

  const Options options_;
  TtrpcEndpoint endpoint_;
};

}  // namespace drakkar::rpc
