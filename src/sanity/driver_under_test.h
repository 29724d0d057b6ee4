#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/meta/object.h"
#include "rpc/dra/dra_client.h"
#include "rpc/registration/registration.h"
#include "sanity/sanity.h"

namespace drakkar::sanity {

struct PublishedDevice {
  std::string pool;
  std::string device;
};

// The driver as the checks see it: every call blocks until its response arrives.
class DriverUnderTest {
 public:
  explicit DriverUnderTest(const Options& options);
  ~DriverUnderTest();

  // --- facts, filled in by the checks
  std::optional<rpc::PluginInfo> info;  // none if the socket does not serve registration
  std::string driver_name;
  std::string node_name;
  std::vector<PublishedDevice> published;
  std::vector<PublishedDevice> devices;          // preparable devices that no claim holds
  std::string no_device = "no device to claim";  // why `devices` is empty

  // --- checks
  // An error is reported as a failure of the check.
  void Check(const std::string& id, const std::string& title,
             const std::function<Result<void>()>& check);
  void Skip(const std::string& id, const std::string& title, const std::string& why);
  Report& report() { return report_; }
  const Options& options() const { return options_; }
  bool Advertises(std::string_view service) const;
  std::vector<rpc::DraVersion> versions() const;  // of the DRA service, advertised or detected

  // --- registration
  Result<rpc::PluginInfo> GetInfo();
  // The same for a driver that is still starting.
  Result<rpc::PluginInfo> AwaitInfo();
  Result<void> Notify(const rpc::RegistrationStatus& status);

  // --- the DRA service
  // Connects to the endpoint; call it again after a restart of the driver.
  Result<void> Connect();
  std::string endpoint() const;
  Result<rpc::PrepareResults> Prepare(const std::vector<rpc::ClaimReference>& claims,
                                      rpc::DraVersion version = rpc::DraVersion::kV1);
  Result<rpc::UnprepareResults> Unprepare(const std::vector<rpc::ClaimReference>& claims,
                                          rpc::DraVersion version = rpc::DraVersion::kV1);
  // Makes one call per claim, concurrently, and returns as many responses. With `other`, half of
  // them go to that instance.
  std::vector<Result<rpc::PrepareResults>> PrepareAtOnce(
      const std::vector<rpc::ClaimReference>& claims, DriverUnderTest* other = nullptr);
  // The devices of one claim, or what is wrong with the response.
  Result<std::vector<rpc::PreparedDevice>> PrepareOne(
      const rpc::ClaimReference& claim, rpc::DraVersion version = rpc::DraVersion::kV1);
  Result<void> UnprepareOne(const rpc::ClaimReference& claim,
                            rpc::DraVersion version = rpc::DraVersion::kV1);
  // Fails unless a stream sends a second report within `limit`.
  Result<void> AwaitSecondHealthReport(rpc::HealthService service, Duration limit);
  // The first message of a stream.
  Result<rpc::HealthReport> FirstHealthReport(rpc::HealthService service);

  // --- the API server
  // The driver's slices for its node, or for more than one node.
  Result<std::vector<api::ObjectPtr>> ListSlices();
  // Determines the node, unless it is known.
  Result<void> FindNode();
  // This driver's devices that are held by claims of any namespace.
  Result<std::set<std::pair<std::string, std::string>>> HeldDevices();
  // Creates a claim for the device, allocated and reserved as by the scheduler.
  Result<rpc::ClaimReference> MakeClaim(const PublishedDevice& device);
  Result<rpc::ClaimReference> MakeUnallocatedClaim();
  void DeleteClaim(const rpc::ClaimReference& claim);

  bool WaitUntil(const std::function<bool()>& condition) {
    return options_.wait_until(condition, options_.timeout);
  }

 private:
  Result<std::vector<api::ObjectPtr>> ListAll(std::string_view kind, const std::string& selector);
  // The pod that claims are reserved for. It exists but is never scheduled: without it, a cluster's
  // claim controller would release the claims immediately.
  Result<std::string> PodUid();
  client::ResourceRef PodRef() const;
  client::Reply Await(const std::function<void(client::ReplyCallback)>& call);
  rpc::DraPluginClient& ClientFor(rpc::DraVersion version);

  const Options& options_;
  Report report_;
  std::unique_ptr<rpc::RegistrationClient> registration_;
  std::map<rpc::DraVersion, std::unique_ptr<rpc::DraPluginClient>> clients_;
  std::vector<rpc::ClaimReference> claims_;  // to be deleted at the end
  std::string run_id_;
  std::string pod_uid_;  // empty until created
  int next_claim_ = 0;
};

// Groups of checks, in the order they run.
void CheckRegistration(DriverUnderTest& driver);
void CheckSlices(DriverUnderTest& driver);
void CheckPrepare(DriverUnderTest& driver);
void CheckHealth(DriverUnderTest& driver);
void CheckRestart(DriverUnderTest& driver);
void CheckRollingUpdate(DriverUnderTest& driver);

// The slices as a whole: every pool is complete and names each device once.
Result<void> CheckPools(const std::vector<api::ObjectPtr>& slices);
// Waits until the driver's pools are complete. The error is the last one found when time is up.
Result<void> AwaitCompletePools(DriverUnderTest& driver);
// The answers to `calls`, one each.
Result<void> CheckAnswers(const std::vector<rpc::ClaimReference>& calls,
                          const std::vector<Result<rpc::PrepareResults>>& results);

}  // namespace drakkar::sanity
