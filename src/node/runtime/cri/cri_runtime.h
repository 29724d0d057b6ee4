#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/env/file_system.h"
#include "base/exec/event_loop.h"
#include "node/runtime/cri/stream_dialer.h"
#include "node/runtime/oci/cgroups.h"
#include "node/runtime/runtime.h"
#include "rpc/transport/transport.h"

namespace drakkar::node {

struct CriRuntimeOptions {
  EventLoop& loop;
  rpc::Transport& transport;
  FileSystem& files;
  std::string socket_path;
  // Which exits have been reported, so that the next agent does not report them again. Losing the
  // file costs a second report. Empty: all are reported.
  std::string reported_path;
  StreamDialer dial;                    // to the runtime's streaming server
  std::optional<Cgroups> cgroups = {};  // for the limits of pods; not set: none
  // The node's own credentials for an image, tried after the pod's.
  std::function<std::vector<RegistryCredential>(const std::string& image)> credentials = nullptr;
  std::function<void(const std::string&)> log = nullptr;  // one sentence each
};

// A runtime that speaks CRI v1 over a unix socket: containerd, CRI-O.
//
// Questions that the interface answers immediately are answered from a cache of the runtime's
// sandboxes, containers and images. The runtime's events keep it current; every kRelistEvery it is
// compared with the lists, and if events are not implemented, every kPollEvery. When the connection
// is lost, calls fail with kUnavailable; on reconnecting, the lists are read again, so that a
// restart of either side loses nothing. Only sandboxes with Kubernetes' label for a pod's uid are
// considered.
//
// The runtime sets up pod networks, pulls images and writes logs. CDI devices are passed by name if
// the runtime reads their directory. Bounds: one list and one event stream at a time; lists of at
// most kMaxListBytes.
class CriRuntime : public Runtime {
 public:
  static constexpr Duration kRelistEvery = std::chrono::seconds(60);
  static constexpr Duration kPollEvery = std::chrono::seconds(1);
  static constexpr Duration kConnectWithin = std::chrono::minutes(2);
  static constexpr std::size_t kMaxListBytes = 64u << 20;

  // The sandboxes of agents of ours whose containers log below this directory, by id.
  virtual std::vector<std::string> SandboxesLoggingBelow(const std::string& directory) const = 0;
};

std::unique_ptr<CriRuntime> MakeCriRuntime(CriRuntimeOptions options);

}  // namespace drakkar::node
