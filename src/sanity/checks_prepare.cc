#include <algorithm>

#include "base/text/text.h"
#include "cdi/cache.h"
#include "cdi/names.h"
#include "sanity/driver_under_test.h"

namespace drakkar::sanity {
namespace {

constexpr std::size_t kClaimsAtOnce = 8;
constexpr std::size_t kCallsPerClaim = 3;

Result<void> CheckDevices(const std::vector<rpc::PreparedDevice>& devices,
                          const PublishedDevice& wanted) {
  bool found = false;
  for (const rpc::PreparedDevice& device : devices) {
    if (device.pool_name.empty() || device.device_name.empty()) {
      return FailedPrecondition("the response has a device without a pool or name");
    }
    found = found || (device.pool_name == wanted.pool && device.device_name == wanted.device);
    for (const std::string& request : device.request_names) {
      if (request != "sanity")
        return FailedPrecondition(StrCat("the response names request ", Quote(request),
                                         ", which the claim does not have"));
    }
    for (const std::string& id : device.cdi_device_ids) {
      if (auto parsed = cdi::ParseQualifiedName(id); !parsed.ok()) {
        return FailedPrecondition(StrCat("CDI id ", Quote(id), ": ", parsed.error().message));
      }
    }
  }
  // An empty list is allowed: a driver may have nothing to inject into containers.
  if (!devices.empty() && !found) {
    return FailedPrecondition(
        StrCat("the response lacks the allocated device ", wanted.pool, "/", wanted.device));
  }
  return Ok();
}

Result<void> CheckCdi(DriverUnderTest& driver, const std::vector<rpc::PreparedDevice>& devices) {
  std::vector<std::string> ids;
  for (const rpc::PreparedDevice& device : devices) {
    ids.insert(ids.end(), device.cdi_device_ids.begin(), device.cdi_device_ids.end());
  }
  cdi::Cache cache(driver.options().files, {.directories = driver.options().cdi_directories});
  auto edits = cache.Resolve(ids);
  if (!edits.ok()) return edits.error();
  return Ok();
}

constexpr char kCdiGone[] = "the CDI ids made for it are removed";

// Ids of devices may stay for the next claim; an id that contains the claim's UID was made for it.
Result<void> CheckCdiIsGone(DriverUnderTest& driver,
                            const std::vector<rpc::PreparedDevice>& devices,
                            const std::string& claim_uid) {
  cdi::Cache cache(driver.options().files, {.directories = driver.options().cdi_directories});
  for (const rpc::PreparedDevice& device : devices) {
    for (const std::string& id : device.cdi_device_ids) {
      if (id.find(claim_uid) != std::string::npos && cache.Resolve({id}).ok())
        return FailedPrecondition(id + " still exists");
    }
  }
  return Ok();
}

Result<void> ExpectRefusal(DriverUnderTest& driver, const rpc::ClaimReference& claim) {
  const auto devices = driver.PrepareOne(claim, driver.versions().front());
  if (devices.ok()) return FailedPrecondition("the claim was prepared");
  if (devices.error().code == ErrorCode::kDeadlineExceeded) return devices.error();
  return Ok();
}

void CheckConcurrency(DriverUnderTest& driver) {
  driver.Check(
      "prepare.concurrent", "concurrent calls, for several claims and for the same one, succeed",
      [&]() -> Result<void> {
        std::vector<rpc::ClaimReference> claims;
        for (std::size_t i = 0; i < std::min(driver.devices.size(), kClaimsAtOnce); ++i) {
          auto claim = driver.MakeClaim(driver.devices[i]);
          if (!claim.ok()) return claim.error();
          claims.push_back(*std::move(claim));
        }
        std::vector<rpc::ClaimReference> calls;
        for (std::size_t i = 0; i < kCallsPerClaim; ++i)
          calls.insert(calls.end(), claims.begin(), claims.end());
        Result<void> result = CheckAnswers(calls, driver.PrepareAtOnce(calls));
        for (const rpc::ClaimReference& claim : claims) {
          const Result<void> undone = driver.UnprepareOne(claim, driver.versions().front());
          if (result.ok() && !undone.ok()) result = undone.error().Prefixed("unprepare");
          driver.DeleteClaim(claim);
        }
        return result;
      });
}

}  // namespace

Result<void> CheckAnswers(const std::vector<rpc::ClaimReference>& calls,
                          const std::vector<Result<rpc::PrepareResults>>& results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].ok()) return results[i].error();
    const auto found = results[i]->find(calls[i].uid);
    if (found == results[i]->end()) {
      return FailedPrecondition("a response does not contain the claim's UID");
    }
    if (!found->second.error.empty()) return FailedPrecondition(found->second.error);
  }
  return Ok();
}

void CheckPrepare(DriverUnderTest& driver) {
  if (auto connected = driver.Connect(); !connected.ok()) {
    driver.Check("prepare.connect", "the DRA service is reachable",
                 [&]() -> Result<void> { return connected.error(); });
    return;
  }
  if (driver.devices.empty()) {
    return driver.Skip("prepare.one", "a claim is prepared", driver.no_device);
  }
  const PublishedDevice wanted = driver.devices.front();
  const rpc::DraVersion version = driver.versions().front();
  auto claim = driver.MakeClaim(wanted);
  if (!claim.ok()) {
    return driver.Check("prepare.one", "a claim is prepared",
                        [&]() -> Result<void> { return claim.error(); });
  }
  std::vector<rpc::PreparedDevice> first;
  driver.Check("prepare.one", "a claim is prepared, and the response names its device",
               [&]() -> Result<void> {
                 auto devices = driver.PrepareOne(*claim, version);
                 if (!devices.ok()) return devices.error();
                 first = *std::move(devices);
                 return CheckDevices(first, wanted);
               });
  if (driver.options().cdi_directories.empty()) {
    driver.Skip("prepare.cdi", "its CDI ids are in valid spec files", "no CDI directory was given");
  } else {
    driver.Check("prepare.cdi", "its CDI ids are in valid spec files",
                 [&] { return CheckCdi(driver, first); });
  }
  driver.Check("prepare.repeat", "preparing it again gives the same response",
               [&]() -> Result<void> {
                 const auto again = driver.PrepareOne(*claim, version);
                 if (!again.ok()) return again.error();
                 if (!(*again == first))
                   return FailedPrecondition("the second response differs from the first");
                 return Ok();
               });
  for (const rpc::DraVersion other : driver.versions()) {
    if (other == version) continue;
    driver.Check("prepare.v1beta1", "the older version of the service returns the same devices",
                 [&]() -> Result<void> {
                   auto devices = driver.PrepareOne(*claim, other);
                   if (!devices.ok()) return devices.error();
                   // The older version has no share IDs.
                   std::vector<rpc::PreparedDevice> expected = first;
                   for (rpc::PreparedDevice& device : expected) device.share_id.reset();
                   if (!(*devices == expected))
                     return FailedPrecondition("the response differs from that of v1");
                   return Ok();
                 });
  }
  driver.Check("prepare.unknown", "a claim that does not exist is rejected", [&]() -> Result<void> {
    return ExpectRefusal(driver,
                         {driver.options().namespace_name, "no-such-uid", "drakkar-sanity-nobody"});
  });
  driver.Check("prepare.replaced", "a claim with the same name but another UID is rejected",
               [&]() -> Result<void> {
                 return ExpectRefusal(driver, {claim->namespace_name, "another-uid", claim->name});
               });
  driver.Check("prepare.unallocated", "a claim that is not allocated is rejected",
               [&]() -> Result<void> {
                 const auto unallocated = driver.MakeUnallocatedClaim();
                 if (!unallocated.ok()) return unallocated.error();
                 return ExpectRefusal(driver, *unallocated);
               });
  driver.Check("prepare.after-refusal", "rejected claims do not affect a prepared one",
               [&]() -> Result<void> {
                 const auto again = driver.PrepareOne(*claim, version);
                 if (!again.ok()) return again.error();
                 if (!(*again == first)) return FailedPrecondition("the response changed");
                 return Ok();
               });
  driver.Check("prepare.empty", "a call without claims succeeds", [&]() -> Result<void> {
    const auto results = driver.Prepare({}, version);
    if (!results.ok()) return results.error();
    return Ok();
  });
  driver.DeleteClaim(*claim);
  driver.Check("unprepare.gone", "a claim that was deleted from the API server is unprepared",
               [&] { return driver.UnprepareOne(*claim, version); });
  if (driver.options().cdi_directories.empty()) {
    driver.Skip("unprepare.cdi", kCdiGone, "no CDI directory was given");
  } else {
    driver.Check("unprepare.cdi", kCdiGone,
                 [&] { return CheckCdiIsGone(driver, first, claim->uid); });
  }
  driver.Check("unprepare.repeat", "unpreparing it again succeeds",
               [&] { return driver.UnprepareOne(*claim, version); });
  driver.Check("unprepare.unknown", "unpreparing a claim that was never prepared succeeds",
               [&]() -> Result<void> {
                 return driver.UnprepareOne(
                     {driver.options().namespace_name, "never-prepared", "drakkar-sanity-nobody"},
                     version);
               });
  CheckConcurrency(driver);
}

}  // namespace drakkar::sanity
