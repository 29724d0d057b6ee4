#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/env/clock.h"
#include "rpc/dra/dra.h"
#include "rpc/health/health.h"

namespace drakkar::rpc {

class Transport;

struct DraPluginOptions {
  std::string endpoint;  // path of the service socket
  DraVersion version = DraVersion::kV1;
  // Each change, on the loop; a connection starts as not connected.
  std::function<void(bool connected)> on_connection_change;
  Duration initial_backoff = std::chrono::seconds(1);
  Duration max_backoff = std::chrono::seconds(120);
};

// A persistent connection to one plugin instance, shared by calls and health streams. It connects
// at once and again whenever the connection is lost. Calls do not wait for a connection that keeps
// failing: they end with Unavailable.
//
// Lives on the loop; callbacks run there, never from inside a call. Destroying it cancels what is
// in flight, and no callback runs afterwards.
class DraPluginClient {
 public:
  virtual ~DraPluginClient() = default;
  virtual bool IsConnected() const = 0;
  virtual void Prepare(const std::vector<ClaimReference>& claims, Duration timeout,
                       PrepareDone done) = 0;
  // Tells which claims Prepare will be about, to a plugin that names kAnnouncementService. Nobody
  // hears whether it was heard.
  virtual void AnnouncePrepare(const std::vector<AnnouncedClaim>& claims, Duration timeout) = 0;
  virtual void Unprepare(const std::vector<ClaimReference>& claims, Duration timeout,
                         UnprepareDone done) = 0;
  // Any of the services, whatever the plugin advertises; Unimplemented arrives at `on_end`.
  virtual std::unique_ptr<HealthStream> WatchHealth(HealthService service,
                                                    HealthStreamCallbacks callbacks) = 0;
};

std::unique_ptr<DraPluginClient> DialDraPlugin(Transport& transport, DraPluginOptions options);

}  // namespace drakkar::rpc
