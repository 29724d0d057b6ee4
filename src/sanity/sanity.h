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
  // of the API server that the driver uses; may write claims and their status
  client::Client& client;
  rpc::Transport& transport;

  // Runs the loop until `condition` holds; returns false if it does not within `limit`.
  std::function<bool(const std::function<bool()>& condition, Duration limit)> wait_until;

  // The registration socket, or the DRA service socket of a driver that is registered otherwise.
  std::string driver_socket;
  // If empty: the name from the registration, and the only node that the driver has published for.
  std::string driver_name;
  std::string node_name;
  std::string namespace_name = "default";
  std::vector<std::string> cdi_directories;     // if empty, CDI ids are not resolved
  Duration timeout = std::chrono::seconds(10);  // for a response, and for slices to be published
  bool slow = false;  // also run checks that take up to half a minute: repeated health
  // Kills and restarts the driver; if null, checks that need it are skipped.
  std::function<Result<void>()> restart_driver;
  // For rolling updates: starts a second instance beside the first and returns its registration
  // socket; terminates the first one gracefully, as a DaemonSet does. If null, checks that need
  // them are skipped.
  std::function<Result<std::string>()> start_second;
  std::function<Result<void>()> stop_first;
  // Called after each check, for progress. May be null.
  std::function<void(const CheckResult& result)> on_result;
};

// Checks what Kubernetes expects of a DRA driver. It creates claims named drakkar-sanity-* for the
// driver's published devices, as a scheduler would, and a pod for them that is never scheduled, and
// deletes them at the end. Devices that other claims hold are left alone. In a cluster in use, a
// scheduler may allocate the same device at the same moment.
Report RunSanity(const Options& options);

}  // namespace drakkar::sanity
