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
  // Runs on the loop at each change; a connection starts out disconnected.
  std::function<void(bool connected)> on_connection_change;
  Duration initial_backoff = std::chrono::seconds(1);
  Duration max_backoff = std::chrono::seconds(120);
};

// A persistent connection to one plugin instance, shared by calls and health streams. It connects
// at once, and reconnects whenever the connection is lost. While connecting keeps failing, calls do
// not wait but end with Unavailable.
//
// Lives on the loop; callbacks run there, never inside a call. Destroying it cancels the calls in
// flight, and no callback runs afterwards.
class DraPluginClient {
 public:
  virtual ~DraPluginClient() = default;
  virtual bool IsConnected() const = 0;
  virtual void Prepare(const std::vector<ClaimReference>& claims, Duration timeout,
                       PrepareDone done) = 0;
  // Announces the claims of the upcoming Prepare to a plugin that supports kAnnouncementService.
  // Best effort: the outcome is not reported.
  virtual void AnnouncePrepare(const std::vector<AnnouncedClaim>& claims, Duration timeout) = 0;
  virtual void Unprepare(const std::vector<ClaimReference>& claims, Duration timeout,
                         UnprepareDone done) = 0;
  // Accepts any of the services, whether or not the plugin advertises it; `on_end` gets
  // Unimplemented if the plugin lacks it.
  virtual std::unique_ptr<HealthStream> WatchHealth(HealthService service,
                                                    HealthStreamCallbacks callbacks) = 0;
};

std::unique_ptr<DraPluginClient> DialDraPlugin(Transport& transport, DraPluginOptions options);

}  // namespace drakkar::rpc
