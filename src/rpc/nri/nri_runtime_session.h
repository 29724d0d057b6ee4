#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "rpc/nri/nri.h"
#include "rpc/ttrpc/endpoint.h"

namespace drakkar::rpc {

// The runtime's side of one NRI socket: waits for the plugin to register, configures it, sends it
// the existing pods and containers, then delivers events and waits for the answers. Bytes in, bytes
// out, no I/O.
//
// Loop-bound. A plugin that times out or breaks the protocol is disconnected.
class NriRuntimeSession {
 public:
  using Updated = absl::AnyInvocable<void(Result<std::vector<NriContainerUpdate>> failed)>;

  struct Options {
    EventLoop& loop;
    std::string runtime_name = "drakkar";
    std::string runtime_version;
    Duration registration_timeout = kNriRegistrationTimeout;
    Duration request_timeout = kNriRequestTimeout;
    std::function<void(std::string bytes)> send;
    // The plugin is configured, its events are known: call Synchronize.
    std::function<void()> on_configured;
    // The plugin wants to change or evict containers on its own. `done` takes what failed.
    std::function<void(std::vector<NriContainerUpdate> updates, std::vector<NriEviction> evictions,
                       Updated done)>
        on_update;
    // Close the socket. Runs once.
    std::function<void(const Error& error)> on_failed;
  };
  explicit NriRuntimeSession(Options options);

  Result<void> Receive(std::string_view bytes) { return endpoint_.Receive(bytes); }
  void Close(const Error& error) { endpoint_.Close(error); }

  // Sends what exists, in parts that fit into messages. `done` takes the updates that the plugin
  // wants in return; from then on the plugin is ready.
  void Synchronize(std::vector<NriPodSandbox> pods, std::vector<NriContainer> containers,
                   absl::AnyInvocable<void(Result<std::vector<NriContainerUpdate>>)> done);

  bool is_configured() const { return state_ == State::kConfigured || state_ == State::kReady; }
  bool is_ready() const { return state_ == State::kReady; }
  const std::string& name() const { return name_; }
  const std::string& index() const { return index_; }
  std::string title() const;  // "50-name"
  bool Wants(NriEvent event) const { return (events_ & NriEventBit(event)) != 0; }

  // Ok at once if the plugin did not subscribe to the event. An error from the plugin is passed on;
  // a connection error (timeouts included) disconnects the plugin and counts as ok, so that a dead
  // plugin cannot hold up pods. `resources` are those of kUpdatePodSandbox.
  void Deliver(NriEvent event, const NriPodSandbox& pod, const NriResources& resources,
               NriDone done);
  // The same for a container event. `resources` are those of kUpdateContainer.
  void DeliverContainer(NriEvent event, const NriPodSandbox& pod, const NriContainer& container,
                        const NriResources& resources, NriAnswered done);
  // An error if the plugin rejects the changes, or could not be asked.
  void Validate(const NriValidation& validation, NriDone done);

 private:
  enum class State { kWaiting, kConfiguring, kConfigured, kReady, kFailed };

  void Serve(const std::string& method, const std::string& payload, TtrpcDone done);
  void ServeUpdate(const std::string& payload, TtrpcDone done);
  void Configure();
  void Fail(const Error& error);
  // `payload` encodes the method's own request, or the one of StateChange.
  void Call(NriEvent event, std::function<std::string(bool as_state_change)> payload,
            TtrpcDone done);

  const Options options_;
  State state_ = State::kWaiting;
  std::string name_;
  std::string index_;
  std::int32_t events_ = 0;
  bool only_state_changes_ = false;  // the plugin has no method per event
  TtrpcEndpoint endpoint_;
  TimerHandle registration_timer_;
};

}  // namespace drakkar::rpc
