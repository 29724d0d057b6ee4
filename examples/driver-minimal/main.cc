// A complete DRA driver: two devices, injected into containers as an environment variable through
// CDI.
//
//   driver-minimal --kubeconfig=admin.kubeconfig --node-name=n1 --registry-dir=... --cdi-dir=...
#include "base/text/text.h"
#include "cdi/names.h"
#include "cdi/spec.h"
#include "cdi/spec_writer.h"
#include "cdi/validate.h"
#include "sdk/driver/host/driver_host.h"

using namespace drakkar;

namespace {

constexpr char kDriver[] = "minimal.example.com";

// A real driver would configure its hardware in these two functions.
class MinimalDriver final : public driver::SynchronousPlugin {
 public:
  explicit MinimalDriver(std::string cdi_directory) : cdi_directory_(std::move(cdi_directory)) {}

  // Gets the allocated claim from the API server. Must return the same result if it is called
  // again: nodes repeat the call after a restart.
  Result<std::vector<driver::PreparedDevice>> PrepareResourceClaim(
      const api::Object& claim) override {
    const std::string uid(claim.uid());
    std::vector<driver::PreparedDevice> prepared;
    std::vector<std::string> names;
    for (const api::Value result : claim["status"]["allocation"]["devices"]["results"].elements()) {
      if (result["driver"].str() != kDriver) continue;  // another driver's device
      names.emplace_back(result["device"].str());
      prepared.push_back({.request_names = {std::string(result["request"].str())},
                          .pool_name = std::string(result["pool"].str()),
                          .device_name = names.back()});
    }
    if (prepared.empty()) return FailedPrecondition("the claim has no device of this driver");

    // The container gets MINIMAL_DEVICES, whichever request it references.
    cdi::Spec spec;
    spec.kind = StrCat(kDriver, "/claim");
    cdi::Device device;
    device.name = uid;
    device.container_edits.env = {"MINIMAL_DEVICES=" + Join(names, ",")};
    spec.devices = {device};
    spec.cdi_version = cdi::MinimumVersion(spec);
    RETURN_IF_ERROR(
        RealFileSystem().WriteFileAtomically(SpecPath(uid), cdi::WriteSpecJson(spec), 0644));
    for (driver::PreparedDevice& each : prepared) {
      each.cdi_device_ids = {cdi::QualifiedName{kDriver, "claim", uid}.ToString()};
    }
    return prepared;
  }

  // Must also succeed for claims that were deleted or never prepared.
  Result<void> UnprepareResourceClaim(const rpc::ClaimReference& claim) override {
    auto removed = RealFileSystem().Remove(SpecPath(claim.uid));
    if (!removed.ok() && removed.error().code != ErrorCode::kNotFound) return removed;
    return Ok();
  }

 private:
  std::string SpecPath(const std::string& uid) const {
    return JoinPath(cdi_directory_, StrCat(kDriver, "_", uid, ".json"));
  }
  const std::string cdi_directory_;
};

// The driver's devices: one pool, named after the node, with two devices.
driver::DriverResources Offer(const std::string& node_name) {
  driver::Slice slice;
  for (const char* name : {"minimal-0", "minimal-1"}) {
    slice.devices.push_back({.name = name,
                             .attributes = {{"model", std::string("Minimal")}},
                             .capacity = {{"memory", "1Gi"}}});
  }
  driver::DriverResources resources;
  resources.pools[node_name].slices = {slice};
  return resources;
}

}  // namespace

int main(int argc, char** argv) {
  driver::DriverFlags flags{.driver_name = kDriver};
  if (!flags.ParseCommandLine(argc, argv)) return 2;
  MinimalDriver plugin(flags.cdi_directory);
  return driver::RunDriver(flags, plugin, [&](driver::Driver& running) {
    return running.PublishResources(Offer(flags.node_name));
  });
}
