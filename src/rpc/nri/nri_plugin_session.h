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
    // The runtime waits for `done`; an error fails the pod's start. Null: not subscribed.
    std::function<void(const NriPodSandbox& pod, NriDone done)> on_run_pod_sandbox;
    std::function<void(const NriPodSandbox& pod, NriDone done)> on_stop_pod_sandbox;
    std::function<void(const NriPodSandbox& pod, NriDone done)> on_remove_pod_sandbox;
    // A container is about to be created: it may be adjusted; an error fails its creation.
    std::function<void(const NriPodSandbox& pod, const NriContainer& container, NriAdjusted done)>
        on_create_container;
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

 private:
  void Serve(const std::string& method, const std::string& payload, TtrpcDone done);
  void Deliver(NriEvent event, const NriPodSandbox& pod, TtrpcDone done);
  void DeliverContainer(NriEvent event, const nri::ContainerEvent& told, TtrpcDone done);

  const Options options_;
  TtrpcEndpoint endpoint_;
};

}  // namespace drakkar::rpc
