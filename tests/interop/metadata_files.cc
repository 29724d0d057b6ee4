// Writes metadata files as a driver does, for Kubernetes' reader: metadata_files DIRECTORY.
#include <cstdio>

#include "api/json/reader.h"
#include "sdk/driver/metadata/metadata_store.h"

namespace drakkar {
namespace {

Result<void> Write(const std::string& directory, metadata::Dialect dialect,
                   std::vector<std::string> versions) {
  ASSIGN_OR_RETURN(auto store, driver::MetadataStore::Create({.files = RealFileSystem(),
                                                              .driver_name = "gpu.example.com",
                                                              .directory = directory,
                                                              .cdi_directory = directory + "/cdi",
                                                              .versions = std::move(versions),
                                                              .dialect = dialect}));
  const api::Object claim(*api::ParseJson(
      R"({"metadata":{"namespace":"ns","name":"c","uid":"9f-1","annotations":
          {"resource.kubernetes.io/pod-claim-name":"dev"}},
          "status":{"allocation":{"devices":{"results":[
          {"request":"gpu/big","driver":"gpu.example.com","pool":"node/a","device":"gpu-0"},
          {"request":"plain","driver":"gpu.example.com","pool":"node/a","device":"gpu-1"}]}}}})"));
  std::vector<driver::PreparedDevice> devices(2);
  devices[0].request_names = {"gpu/big"};
  devices[0].pool_name = devices[1].pool_name = "node/a";
  devices[0].device_name = "gpu-0";
  devices[0].metadata.emplace();
  devices[0].metadata->attributes = {
      {"text", std::string("a <b> & \"c\" \xe2\x80\xa8")},
      {"number", std::int64_t{-7}},
      {"truth", false},
      {"version", metadata::Version{"1.2.3-rc.1"}},
      {"resource.kubernetes.io/numaNode", std::vector<std::int64_t>{0, 1}},
      {"texts", std::vector<std::string>{"x", "y"}},
      {"truths", std::vector<bool>{true, false}},
      {"versions", std::vector<metadata::Version>{{"1.0.0"}}}};
  devices[1].request_names = {"plain"};
  devices[1].device_name = "gpu-1";
  devices[1].metadata.emplace();
  std::vector<driver::PreparedDevice> updated = {devices[0]};
  RETURN_IF_ERROR(store->Prepare(claim, devices));
  updated[0].metadata->network_data = {"eth0", {"10.0.0.5/24", "2001:db8::1/64"}, "aa:bb"};
  return store->Update({"ns", "c", "9f-1", "gpu/big"}, updated);
}

}  // namespace
}  // namespace drakkar

int main(int argc, char** argv) {
  using namespace drakkar;
  if (argc != 2) return 2;
  const std::string alpha(metadata::kV1alpha1);
  const std::string beta(metadata::kV1beta1);
  const std::string root = argv[1];
  for (const auto& [name, written] :
       {std::pair("kep", Write(root + "/kep", metadata::Dialect::kKep, {alpha})),
        std::pair("both", Write(root + "/both", metadata::Dialect::kKubernetes, {beta, alpha}))}) {
    if (written.ok()) continue;
    std::fprintf(stderr, "%s: %s\n", name, written.error().message.c_str());
    return 1;
  }
  return 0;
}
