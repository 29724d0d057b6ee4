#include "sdk/driver/plugin.h"

#include <utility>

#include "telemetry/log/log.h"

namespace drakkar::driver {
namespace {

constexpr Logger kLog("driver");

}  // namespace

void Plugin::HandleError(const Error& error, bool recoverable) {
  kLog.Error("background error", {{"error", error.message}, {"recoverable", recoverable}});
}

void SynchronousPlugin::PrepareResourceClaims(std::vector<api::ObjectPtr> claims,
                                              PrepareDone done) {
  PrepareResults results;
  for (const api::ObjectPtr& claim : claims) {
    PrepareResult& result = results[std::string(claim->uid())];
    auto devices = PrepareResourceClaim(*claim);
    if (devices.ok()) {
      result.devices = *std::move(devices);
    } else {
      result.error = devices.error().message;
    }
  }
  done(std::move(results));
}

void SynchronousPlugin::UnprepareResourceClaims(std::vector<rpc::ClaimReference> claims,
                                                rpc::UnprepareDone done) {
  rpc::UnprepareResults results;
  for (const rpc::ClaimReference& claim : claims) {
    rpc::UnprepareResult& result = results[claim.uid];
    if (auto undone = UnprepareResourceClaim(claim); !undone.ok()) {
      result.error = undone.error().message;
    }
  }
  done(std::move(results));
}

}  // namespace drakkar::driver
