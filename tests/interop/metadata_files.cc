// Writes metadata files as a driver does, for other projects' readers and ours:
//
//   metadata_files DIRECTORY                       writes a few claims
//   metadata_files update DIRECTORY                updates a claim continuously until standard
//                                                  input ends
//   metadata_files read-c++|read-c FILE COUNT      reads the file COUNT times and prints how many
//                                                  generations it saw; fails at the first error
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <set>

#include "api/json/reader.h"
#include "base/text/text.h"
#include "sdk/driver/metadata/metadata_store.h"
#include "sdk/metadata/drakkar_metadata.h"
#include "sdk/metadata/reader.h"

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

constexpr int kDevices = 8;

bool HasEnded(int descriptor) {
  pollfd ready{.fd = descriptor, .events = POLLIN, .revents = 0};
  char byte = 0;
  return ::poll(&ready, 1, 0) > 0 && ::read(descriptor, &byte, 1) <= 0;
}

// The request "gpu" has only devices of this driver, "pair" also devices of another one. Alternates
// between documents of many pages and short ones, so that a partial read would be noticed.
Result<void> UpdateUntilInputEnds(const std::string& directory) {
  ASSIGN_OR_RETURN(auto store,
                   driver::MetadataStore::Create({.files = RealFileSystem(),
                                                  .driver_name = "gpu.example.com",
                                                  .directory = directory,
                                                  .cdi_directory = directory + "/cdi",
                                                  .versions = {std::string(metadata::kV1beta1),
                                                               std::string(metadata::kV1alpha1)}}));
  std::vector<std::string> results = {
      R"({"request":"pair","driver":"bar.example.com","pool":"p","device":"bar"})"};
  std::map<std::string, std::vector<driver::PreparedDevice>> devices;
  for (const std::string request : {"gpu", "pair"}) {
    for (int i = 0; i < kDevices; ++i) {
      driver::PreparedDevice& device = devices[request].emplace_back();
      device.request_names = {request};
      device.pool_name = "p";
      device.device_name = StrCat(request, "-", i);
      device.metadata.emplace();
      results.push_back(StrCat(R"({"request":")", request,
                               R"(","driver":"gpu.example.com","pool":"p","device":")",
                               device.device_name, "\"}"));
    }
  }
  const api::Object claim(
      *api::ParseJson(StrCat(R"({"metadata":{"namespace":"ns","name":"c","uid":"u1"},
          "status":{"allocation":{"devices":{"results":[)",
                             Join(results, ","), "]}}}}")));
  std::vector<driver::PreparedDevice> prepared = devices["gpu"];
  prepared.insert(prepared.end(), devices["pair"].begin(), devices["pair"].end());
  RETURN_IF_ERROR(store->Prepare(claim, prepared));
  std::puts("ready");
  std::fflush(stdout);
  for (std::int64_t turn = 0; !HasEnded(STDIN_FILENO); ++turn) {
    for (auto& [request, updated] : devices) {
      for (driver::PreparedDevice& device : updated) {
        device.metadata->attributes.clear();
        for (int i = 0; turn % 2 == 0 && i < 30; ++i) {
          device.metadata->attributes[StrCat("a", i)] = std::string(60, 'x');
        }
      }
      RETURN_IF_ERROR(store->Update({"ns", "c", "u1", request}, updated));
    }
  }
  return Ok();
}

Result<std::int64_t> ReadWithCpp(const std::string& path) {
  ASSIGN_OR_RETURN(const metadata::DeviceMetadata read, metadata::Reader().ReadFile(path));
  if (read.requests.size() != 1 || read.requests[0].devices.size() != kDevices) {
    return InvalidArgument("devices are missing");
  }
  return read.generation;
}

Result<std::int64_t> ReadWithC(const std::string& path) {
  drakkar_metadata* read = nullptr;
  char* error = nullptr;
  if (drakkar_metadata_read_file(path.c_str(), 0, &read, &error) != DRAKKAR_METADATA_OK) {
    Error failure = InvalidArgument(error == nullptr ? "" : error);
    drakkar_metadata_free_text(error);
    return failure;
  }
  drakkar_metadata_claim claim{};
  const auto status = drakkar_metadata_get_claim(read, 0, &claim);
  const std::int64_t generation = claim.generation;
  const bool is_whole = status == DRAKKAR_METADATA_OK && claim.device_count == kDevices;
  drakkar_metadata_free(read);
  if (!is_whole) return InvalidArgument("devices are missing");
  return generation;
}

Result<void> ReadOften(Result<std::int64_t> (*read)(const std::string&), const std::string& path,
                       int count) {
  std::set<std::int64_t> generations;
  for (int i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const std::int64_t generation, read(path));
    generations.insert(generation);
  }
  std::printf("%zu\n", generations.size());
  return Ok();
}

int Exit(const Result<void>& result) {
  if (result.ok()) return 0;
  std::fprintf(stderr, "%s\n", result.error().message.c_str());
  return 1;
}

}  // namespace
}  // namespace drakkar

int main(int argc, char** argv) {
  using namespace drakkar;
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "update" && argc == 3) return Exit(UpdateUntilInputEnds(argv[2]));
  if (mode == "read-c++" && argc == 4) {
    return Exit(ReadOften(ReadWithCpp, argv[2], std::atoi(argv[3])));
  }
  if (mode == "read-c" && argc == 4) {
    return Exit(ReadOften(ReadWithC, argv[2], std::atoi(argv[3])));
  }
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
