#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/env/clock.h"
#include "base/env/file_system.h"
#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "client/client.h"
#include "rpc/transport/transport.h"
#include "sanity/report.h"

namespace drakkar::sanity {

struct Options {
  EventLoop& loop;
  Random& random;
  FileSystem& files;
  client::Client& client;  // of the API server the driver uses; may write claims and their status
  rpc::Transport& transport;

  // Lets the loop run until `condition` holds; false if it does not within `limit`.
  std::function<bool(const std::function<bool()>& condition, Duration limit)> wait_until;

  // The registration socket; or the DRA service socket of a driver that is registered otherwise.
  std::string driver_socket;
  // Empty: what the registration says, and the only node that the driver has published for.
  std::string driver_name;
  std::string node_name;
  std::string namespace_name = "default";
  std::vector<std::string> cdi_directories;     // empty: CDI ids are not resolved
  Duration timeout = std::chrono::seconds(10);  // for an answer, and for slices to be published
  bool slow = false;  // also wait for what takes up to half a minute: repeated health
  // Ends the driver and starts it again; null: what needs it is skipped.
  std::function<Result<void>()> restart_driver;
  // For rolling updates: starts a second instance beside the first and gives its registration
  // socket; ends the first in an orderly way, as a DaemonSet does. Null: what needs them is
  // skipped.
  std::function<Result<std::string>()> start_second;
  std::function<Result<void>()> stop_first;
  // After each check, for progress. May be null.
  std::function<void(const CheckResult& result)> on_result;
};

// Checks what Kubernetes expects of a DRA driver. Makes claims of its own, named drakkar-sanity-*,
// for devices the driver published, as a scheduler would, and deletes them at the end; so does it
// with the pod that they are reserved for, which is never scheduled. Devices that other claims hold
// are left alone. In a cluster that is used, a scheduler may take a device at the same moment.
Report RunSanity(const Options& options);

}  // namespace drakkar::sanity
