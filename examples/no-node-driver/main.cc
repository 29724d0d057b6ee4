// A controller that publishes devices which need no preparation on the node (KEP-5945, scenario 1):
// floating licenses that every node can use. No socket, no registration, no DaemonSet: nodes do not
// call a driver.
//
//   no-node-driver --kubeconfig=admin.kubeconfig [--licenses=2]
#include <cstdio>

#include "base/text/text.h"
#include "sdk/driver/host/driver_host.h"

using namespace drakkar;

namespace {

constexpr char kDriver[] = "licenses.example.com";

// Never called, because there is nothing to prepare.
class NoPlugin final : public driver::SynchronousPlugin {
 public:
  Result<std::vector<driver::PreparedDevice>> PrepareResourceClaim(const api::Object&) override {
    return Internal("nodes do not call this driver");
  }
  Result<void> UnprepareResourceClaim(const rpc::ClaimReference&) override {
    return Internal("nodes do not call this driver");
  }
};

driver::DriverResources Offer(std::int64_t licenses) {
  driver::Slice slice;
  slice.skip_node_operations = {"*"};  // nodes neither prepare nor unprepare these
  for (std::int64_t i = 0; i < licenses; ++i) {
    slice.devices.push_back(
        {.name = StrCat("license-", i), .attributes = {{"product", std::string("Simulator")}}});
  }
  driver::DriverResources resources;
  driver::Pool& pool = resources.pools["licenses"];
  pool.all_nodes = true;  // or a node_selector
  pool.slices = {slice};
  return resources;
}

}  // namespace

int main(int argc, char** argv) {
  driver::DriverFlags flags{.driver_name = kDriver};
  auto rest = flags.Parse({argv + 1, argv + argc});
  std::int64_t licenses = 2;
  if (rest.ok()) {
    for (const std::string& word : *rest) {
      const auto count =
          word.starts_with("--licenses=") ? ParseInt64(word.substr(11)) : std::nullopt;
      if (!count || *count < 0) rest = InvalidArgument("unknown argument " + word);
      if (!rest.ok()) break;
      licenses = *count;
    }
  }
  if (!rest.ok()) {
    std::fprintf(stderr, "%s\n  --licenses=NUMBER\n%s", rest.error().message.c_str(),
                 flags.Help().c_str());
    return 2;
  }
  auto host = driver::DriverHost::Create(flags);
  if (!host.ok()) {
    std::fprintf(stderr, "%s\n", host.error().message.c_str());
    return 1;
  }
  NoPlugin plugin;
  return (*host)->Run([&](driver::DriverHost& running) -> Result<std::unique_ptr<driver::Driver>> {
    driver::DriverOptions options = running.Options(plugin);
    options.node_name.clear();
    options.registration_service = false;
    options.dra_service = false;
    options.pool_name = "licenses";
    ASSIGN_OR_RETURN(std::unique_ptr<driver::Driver> driver,
                     driver::Driver::Start(std::move(options)));
    RETURN_IF_ERROR(driver->PublishResources(Offer(licenses)));
    return driver;
  });
}
