#pragma once

#include <memory>
#include <string>

#include "base/env/random.h"
#include "base/exec/uv_loop.h"
#include "rpc/nri/nri_plugin_session.h"

namespace drakkar::driver {

// Registers the driver's process as an NRI plugin with the container runtime, for drivers that know
// their devices only after the pod's network is set up: update the metadata in on_run_pod_sandbox
// (Driver::UpdateRequestMetadata) and call `done`; no container of the pod starts before that.
//
// Connects at once, and reconnects with back-off (0.1 s to 5 s) whenever the runtime is
// unavailable. Loop-bound; makes no calls after destruction.
class NriHook {
 public:
  struct Options {
    UvLoop& loop;
    Random& random;
    std::string socket_path = "/var/run/nri/nri.sock";
    std::string name;  // usually the driver's name
    std::string index = "50";
    // on_failed gets the reason for a lost connection; on_ready is called after each registration.
    rpc::NriPluginSession::Callbacks callbacks;
  };
  explicit NriHook(Options options);
  ~NriHook();
  NriHook(const NriHook&) = delete;
  NriHook& operator=(const NriHook&) = delete;

  void Start();
  bool is_registered() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drakkar::driver
