#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/metadata/device_metadata.h"
#include "api/tree/value.h"
#include "base/env/clock.h"
#include "base/exec/lifetime.h"
#include "base/result/result.h"
#include "client/client.h"
#include "rpc/dra/dra.h"
#include "sdk/driver/prepare/claim_fetcher.h"

namespace drakkar::driver {

// A driver's status of an allocated device in the claim's `status.devices`.

struct DeviceCondition {
  std::string type;    // "Ready", "example.com/attached"
  std::string status;  // "True", "False" or "Unknown"
  std::string reason;  // a CamelCase word; must not be empty
  std::string message;
};

using DeviceNetworkData = metadata::NetworkDeviceData;

struct AllocatedDeviceStatus {
  std::string pool_name;
  std::string device_name;
  std::optional<std::string> share_id;
  std::vector<DeviceCondition> conditions;
  api::TreePtr data;  // any object; null for none
  std::optional<DeviceNetworkData> network;
};

// The API's limits, checked before anything is sent.
constexpr std::size_t kMaxDeviceConditions = 8;
constexpr std::size_t kMaxDeviceDataBytes = 10'240;
constexpr std::size_t kMaxDeviceIps = 16;

// Sets a driver's part of `status.devices` by server-side apply, with the driver's name as field
// manager. Entries of other drivers and of other writers stay. Fields that the driver no longer
// sets are removed.
//
// The claim is read first: it must have the expected UID, and the devices must be among the results
// of this driver. A condition whose status did not change keeps its lastTransitionTime. Loop-bound;
// runs no callback once destroyed.
class ClaimStatusWriter {
 public:
  ClaimStatusWriter(client::Client& client, const Clock& clock, std::string driver_name)
      : client_(client), clock_(clock), driver_name_(std::move(driver_name)), fetcher_(client) {}
  ClaimStatusWriter(const ClaimStatusWriter&) = delete;
  ClaimStatusWriter& operator=(const ClaimStatusWriter&) = delete;

  using Done = std::function<void(Result<void>)>;
  void Apply(rpc::ClaimReference claim, std::vector<AllocatedDeviceStatus> devices, Done done);

 private:
  void Send(const api::ObjectPtr& claim, const std::vector<AllocatedDeviceStatus>& devices,
            const Done& done);

  client::Client& client_;
  const Clock& clock_;
  const std::string driver_name_;
  ClaimFetcher fetcher_;
  Lifetime lifetime_;
};

// The patch that Apply sends; for tests, and for drivers with their own client.
Result<std::string> RenderClaimStatus(const api::Object& claim, const std::string& driver_name,
                                      const std::vector<AllocatedDeviceStatus>& devices,
                                      WallTime now);

}  // namespace drakkar::driver
