#include "sdk/driver/metadata/metadata_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "api/json/reader.h"
#include "api/metadata/document.h"
#include "base/hash/sha256.h"
#include "base/testing/memory_file_system.h"
#include "base/text/text.h"
#include "cdi/spec_reader.h"

namespace drakkar::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kDriver[] = "gpu.example.com";
constexpr char kHome[] = "/plugins/gpu.example.com";
constexpr char kFile[] = "/plugins/gpu.example.com/dra-device-metadata/ns_c/gpu/metadata.json";
// The files as containers see them, in the mounted directory.
constexpr char kDirectory[] = "/plugins/gpu.example.com/dra-device-metadata/ns_c/gpu";
constexpr char kContainerFile[] =
    "/plugins/gpu.example.com/dra-device-metadata/ns_c/gpu/gpu.example.com-metadata.json";
constexpr char kRecord[] = "/plugins/gpu.example.com/dra-device-metadata-records/ns_c";
constexpr char kOldRecord[] = "/plugins/gpu.example.com/dra-device-metadata-claims/ns_c/claim.json";
constexpr char kOtherFile[] = "/plugins/gpu.example.com/dra-device-metadata/ns_c/nic/metadata.json";
constexpr char kUpdateFile[] =
    "/plugins/gpu.example.com/dra-device-metadata-claims/ns_c/gpu.update";

std::string ResultJson(std::string_view request, std::string_view device,
                       std::string_view driver = kDriver, std::string_view more = "") {
  return StrCat(R"({"request":")", request, R"(","driver":")", driver,
                R"(","pool":"node","device":")", device, "\"", more, "}");
}

api::TreePtr ClaimTree(const std::vector<std::string>& results, std::string_view uid,
                       std::string_view more_metadata) {
  return *api::ParseJson(
      StrCat(R"({"metadata":{"namespace":"ns","name":"c","uid":")", uid, "\"", more_metadata,
             R"(},"status":{"allocation":{"devices":{"results":[)", Join(results, ","), "]}}}}"));
}

api::Object MakeClaim(const std::vector<std::string>& results, std::string_view uid = "u1",
                      std::string_view more_metadata = "") {
  return api::Object(ClaimTree(results, uid, more_metadata));
}

api::ObjectPtr MakeSharedClaim(const std::vector<std::string>& results) {
  return std::make_shared<const api::Object>(ClaimTree(results, "u1", ""));
}

PreparedDevice Prepared(std::string request, std::string device,
                        std::optional<std::string> model = std::nullopt) {
  PreparedDevice prepared;
  if (!request.empty()) prepared.request_names = {std::move(request)};
  prepared.pool_name = "node";
  prepared.device_name = std::move(device);
  prepared.cdi_device_ids = {"gpu.example.com/gpu=" + prepared.device_name};
  if (model.has_value()) {
    prepared.metadata.emplace();
    prepared.metadata->attributes["model"] = *model;
  }
  return prepared;
}

class MetadataStoreTest : public ::testing::Test {
 protected:
  MetadataStoreTest() { Open(); }

  void Open(metadata::Dialect dialect = metadata::Dialect::kKep) {
    auto store = MetadataStore::Create({.files = files_,
                                        .driver_name = kDriver,
                                        .directory = kHome,
                                        .cdi_directory = "/cdi",
                                        .dialect = dialect});
    ASSERT_TRUE(store.ok());
    store_ = *std::move(store);
  }

  // One device of one request, with a model.
  Result<void> PrepareOne(std::optional<std::string> model, std::string_view uid = "u1") {
    devices_ = {Prepared("gpu", "gpu-0", std::move(model))};
    return store_->Prepare(MakeClaim({ResultJson("gpu", "gpu-0")}, uid), devices_);
  }
  Result<void> UpdateOne(std::string model, std::string request = "gpu") {
    return store_->Update({"ns", "c", "u1", std::move(request)},
                          {Prepared("gpu", "gpu-0", std::move(model))});
  }
  std::string Text(const std::string& path) {
    auto text = files_.ReadFile(path);
    return text.ok() ? *text : "<" + text.error().message + ">";
  }
  metadata::DeviceMetadata Read(const std::string& path = kFile) {
    auto decoded = metadata::DecodeMetadata(Text(path));
    EXPECT_TRUE(decoded.ok()) << decoded.error().message << " in " << Text(path);
    return decoded.ok() ? *decoded : metadata::DeviceMetadata();
  }
  std::string Model(const std::string& path = kFile) {
    const metadata::DeviceMetadata read = Read(path);
    if (read.requests.empty() || read.requests[0].devices.empty()) return "<none>";
    return std::get<std::string>(read.requests[0].devices[0].attributes.at("model"));
  }
  std::vector<std::string> List(const std::string& directory) {
    auto names = files_.ListDirectory(directory);
    return names.ok() ? *names : std::vector<std::string>();
  }
  // An injected failure that was not reached must not affect what follows.
  void FailNoMore() { files_.FailCall(1'000'000); }
  // Nothing is left of any claim.
  void ExpectClean() {
    EXPECT_THAT(List(StrCat(kHome, "/dra-device-metadata")), IsEmpty());
    EXPECT_THAT(List(StrCat(kHome, "/dra-device-metadata-records")), IsEmpty());
    EXPECT_THAT(List(StrCat(kHome, "/dra-device-metadata-claims")), IsEmpty());
    EXPECT_THAT(List("/cdi"), IsEmpty());
  }

  MemoryFileSystem files_;
  std::unique_ptr<MetadataStore> store_;
  std::vector<PreparedDevice> devices_;
};

TEST_F(MetadataStoreTest, PreparingWithAPlanWritesTheSameFiles) {
  const api::ObjectPtr claim = MakeSharedClaim({ResultJson("gpu", "gpu-0")});
  Result<ClaimPlan> plan = store_->Plan(*claim);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  ExpectClean();
  devices_ = {Prepared("gpu", "gpu-0", "Longship")};
  ASSERT_TRUE(store_->Prepare(*claim, devices_, *std::move(plan)).ok());
  EXPECT_EQ(Model(), "Longship");
  const std::string file = Text(kFile);
  const std::vector<std::string> specs = List("/cdi");
  ASSERT_EQ(specs.size(), 1u);
  const std::string spec = Text("/cdi/" + specs.front());
  ASSERT_TRUE(store_->Remove({"ns", "u1", "c"}).ok());
  ASSERT_TRUE(PrepareOne("Longship").ok());
  EXPECT_EQ(Text(kFile), file);
  EXPECT_EQ(Text("/cdi/" + specs.front()), spec);
}

TEST_F(MetadataStoreTest, AClaimWithABadRequestNameHasNoPlan) {
  EXPECT_FALSE(store_->Plan(*MakeSharedClaim({ResultJson("No Label", "gpu-0")})).ok());
}

TEST_F(MetadataStoreTest, PrepareWritesTheFileBelowTheDriversDirectory) {
  ASSERT_TRUE(PrepareOne("Longship").ok());
  const metadata::DeviceMetadata read = Read();
  EXPECT_EQ(read.claim_name, "c");
  EXPECT_EQ(read.claim_namespace, "ns");
  EXPECT_EQ(read.claim_uid, "u1");
  EXPECT_EQ(read.generation, 1);
  EXPECT_FALSE(read.pod_claim_name.has_value());
  ASSERT_EQ(read.requests.size(), 1u);
  EXPECT_EQ(read.requests[0].name, "gpu");
  EXPECT_EQ(read.requests[0].devices[0].driver, kDriver);
  EXPECT_EQ(read.requests[0].devices[0].pool, "node");
  EXPECT_EQ(read.requests[0].devices[0].name, "gpu-0");
  EXPECT_EQ(Model(), "Longship");
  EXPECT_EQ(files_.Stat(kFile)->mode, 0644u);
  EXPECT_THAT(Text(kFile), HasSubstr("metadata.resource.k8s.io/v1alpha1"));
}

TEST_F(MetadataStoreTest, OneCdiDeviceHasBothMounts) {
  ASSERT_TRUE(PrepareOne("x").ok());
  EXPECT_THAT(devices_[0].cdi_device_ids,
              ElementsAre("gpu.example.com/gpu=gpu-0", "gpu.example.com/metadata=u1_gpu"));
  const auto spec = cdi::ReadSpecJson(Text("/cdi/gpu.example.com_metadata_u1_gpu.json"));
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_EQ(spec->cdi_version, "0.3.0");
  EXPECT_EQ(spec->kind, "gpu.example.com/metadata");
  ASSERT_EQ(spec->devices.size(), 1u);
  EXPECT_EQ(spec->devices[0].name, "u1_gpu");
  const auto& mounts = spec->devices[0].container_edits.mounts;
  ASSERT_EQ(mounts.size(), 2u);
  EXPECT_EQ(mounts[0].container_path, "/var/run/dra-device-attributes/c/gpu");
  EXPECT_EQ(mounts[1].container_path,
            "/var/run/kubernetes.io/dra-device-attributes/resourceclaims/c/gpu");
  for (const auto& mount : mounts) {
    EXPECT_EQ(mount.host_path, kDirectory) << "where a running container sees updates";
    EXPECT_THAT(mount.options, ElementsAre("ro", "bind"));
  }
  EXPECT_THAT(List(kDirectory), ElementsAre("gpu.example.com-metadata.json", "metadata.json"));
  EXPECT_EQ(Text(kContainerFile), Text(kFile));
  EXPECT_EQ(files_.Stat(kContainerFile)->mode, 0644u);
  EXPECT_EQ(files_.Stat(kDirectory)->mode, 0755u);
}

TEST_F(MetadataStoreTest, ARequestWithSeveralDriversHasMountsPerDriver) {
  devices_ = {Prepared("gpu", "gpu-0", "a"), Prepared("nic", "nic-0", "b")};
  ASSERT_TRUE(store_
                  ->Prepare(MakeClaim({ResultJson("gpu/big", "bar-0", "bar.com"),
                                       ResultJson("gpu", "gpu-0"), ResultJson("nic", "nic-0")}),
                            devices_)
                  .ok());
  std::vector<std::string> mounts;
  for (const char* request : {"gpu", "nic"}) {
    const auto spec =
        cdi::ReadSpecJson(Text(StrCat("/cdi/gpu.example.com_metadata_u1_", request, ".json")));
    ASSERT_TRUE(spec.ok()) << spec.error().message;
    for (const auto& mount : spec->devices[0].container_edits.mounts) {
      mounts.push_back(StrCat(BaseName(mount.host_path), " ", mount.container_path));
    }
  }
  EXPECT_THAT(
      mounts,
      ElementsAre(
          "metadata.json /var/run/dra-device-attributes/c/gpu/gpu.example.com-metadata.json",
          "gpu /var/run/dra-device-attributes/c/gpu/gpu.example.com-metadata.d",
          "metadata.json /var/run/kubernetes.io/dra-device-attributes/resourceclaims/c/gpu/"
          "gpu.example.com-metadata.json",
          "gpu /var/run/kubernetes.io/dra-device-attributes/resourceclaims/c/gpu/"
          "gpu.example.com-metadata.d",
          "nic /var/run/dra-device-attributes/c/nic",
          "nic /var/run/kubernetes.io/dra-device-attributes/resourceclaims/c/nic"));
}

TEST_F(MetadataStoreTest, AnIdThatStartsWithADigitNeedsANewerCdiVersion) {
  ASSERT_TRUE(PrepareOne("x", "9f-1").ok());
  EXPECT_EQ(cdi::ReadSpecJson(Text("/cdi/gpu.example.com_metadata_9f-1_gpu.json"))->cdi_version,
            "0.5.0");
}

TEST_F(MetadataStoreTest, ClaimsFromTemplatesKeepTheirNameInThePod) {
  devices_ = {Prepared("gpu", "gpu-0", "x")};
  ASSERT_TRUE(
      store_
          ->Prepare(MakeClaim({ResultJson("gpu", "gpu-0")}, "u1",
                              R"(,"annotations":{"resource.kubernetes.io/pod-claim-name":"dev"})"),
                    devices_)
          .ok());
  EXPECT_EQ(Read().pod_claim_name, "dev");
  const auto spec = cdi::ReadSpecJson(Text("/cdi/gpu.example.com_metadata_u1_gpu.json"));
  const auto& mounts = spec->devices[0].container_edits.mounts;
  EXPECT_EQ(mounts[0].container_path, "/var/run/dra-device-attributes/c/gpu");
  EXPECT_EQ(mounts[1].container_path,
            "/var/run/kubernetes.io/dra-device-attributes/resourceclaimtemplates/dev/gpu");
  ASSERT_TRUE(UpdateOne("y").ok());
  EXPECT_EQ(Read().pod_claim_name, "dev");
}

TEST_F(MetadataStoreTest, EachRequestHasItsOwnFileAndSpec) {
  devices_ = {Prepared("gpu", "gpu-0", "a"), Prepared("nic", "nic-0", "b"),
              Prepared("gpu", "gpu-1", "c")};
  ASSERT_TRUE(store_
                  ->Prepare(MakeClaim({ResultJson("gpu", "gpu-0"), ResultJson("gpu", "gpu-1"),
                                       ResultJson("nic", "nic-0")}),
                            devices_)
                  .ok());
  EXPECT_EQ(Read(kFile).requests[0].devices.size(), 2u) << "all devices of the request";
  EXPECT_EQ(Read(kFile).requests[0].devices[1].name, "gpu-1");
  EXPECT_EQ(Read(kOtherFile).requests[0].devices.size(), 1u);
  EXPECT_THAT(List("/cdi"), ElementsAre("gpu.example.com_metadata_u1_gpu.json",
                                        "gpu.example.com_metadata_u1_nic.json"));
  EXPECT_EQ(devices_[0].cdi_device_ids.back(), "gpu.example.com/metadata=u1_gpu");
  EXPECT_EQ(devices_[1].cdi_device_ids.back(), "gpu.example.com/metadata=u1_nic");
  EXPECT_EQ(devices_[2].cdi_device_ids.size(), 1u) << "one mount is enough";
}

TEST_F(MetadataStoreTest, ADeviceInSeveralRequestsDoesNotExposeOtherRequests) {
  PreparedDevice both = Prepared("gpu", "gpu-0", "a");
  both.request_names = {"gpu", "nic"};
  PreparedDevice all = Prepared("", "gpu-0", "a");
  for (const PreparedDevice& device : {both, all}) {
    devices_ = {device};
    ASSERT_TRUE(
        store_
            ->Prepare(MakeClaim({ResultJson("gpu", "gpu-0"), ResultJson("nic", "gpu-0")}), devices_)
            .ok());
    ASSERT_EQ(devices_.size(), 3u);
    EXPECT_EQ(devices_[0].cdi_device_ids.size(), 1u);
    EXPECT_THAT(devices_[1].request_names, ElementsAre("gpu"));
    EXPECT_THAT(devices_[1].cdi_device_ids, ElementsAre("gpu.example.com/metadata=u1_gpu"));
    EXPECT_THAT(devices_[2].request_names, ElementsAre("nic"));
    EXPECT_THAT(devices_[2].cdi_device_ids, ElementsAre("gpu.example.com/metadata=u1_nic"));
    EXPECT_EQ(Model(kFile), "a");
    EXPECT_EQ(Model(kOtherFile), "a");
  }
}

TEST_F(MetadataStoreTest, SubrequestsUseTheBaseNameForPathsAndKeepTheirsInTheFile) {
  devices_ = {Prepared("gpu/big", "gpu-0", "a")};
  ASSERT_TRUE(store_->Prepare(MakeClaim({ResultJson("gpu/big", "gpu-0")}), devices_).ok());
  EXPECT_EQ(Read().requests[0].name, "gpu/big");
  EXPECT_EQ(devices_[0].cdi_device_ids.back(), "gpu.example.com/metadata=u1_gpu");
  EXPECT_TRUE(UpdateOne("b", "gpu/big").ok());
  EXPECT_TRUE(UpdateOne("c", "gpu").ok());
  EXPECT_EQ(Read().requests[0].name, "gpu/big");
  EXPECT_EQ(Read().generation, 3);
}

TEST_F(MetadataStoreTest, OnlyDevicesOfThisDriverAreWritten) {
  devices_ = {Prepared("gpu", "gpu-0", "a")};
  ASSERT_TRUE(
      store_
          ->Prepare(MakeClaim({ResultJson("gpu", "bar-0", "bar.com"), ResultJson("gpu", "gpu-0"),
                               ResultJson("theirs", "bar-1", "bar.com")}),
                    devices_)
          .ok());
  EXPECT_EQ(Read().requests[0].devices.size(), 1u);
  EXPECT_THAT(List(StrCat(kHome, "/dra-device-metadata/ns_c")), ElementsAre("gpu"));
}

TEST_F(MetadataStoreTest, DeferredMetadataIsAnEmptyFileThatTheFirstUpdateFills) {
  ASSERT_TRUE(PrepareOne(std::nullopt).ok());
  EXPECT_EQ(Text(kFile), "");
  EXPECT_EQ(files_.Stat(kFile)->mode, 0644u);
  EXPECT_EQ(devices_[0].cdi_device_ids.back(), "gpu.example.com/metadata=u1_gpu");
  ASSERT_TRUE(UpdateOne("late").ok());
  EXPECT_EQ(Read().generation, 1);
  EXPECT_EQ(Model(), "late");
  ASSERT_TRUE(UpdateOne("later").ok());
  EXPECT_EQ(Read().generation, 2);
}

TEST_F(MetadataStoreTest, MetadataWithoutAttributesIsAFullDocument) {
  devices_ = {Prepared("gpu", "gpu-0")};
  devices_[0].metadata.emplace();
  ASSERT_TRUE(store_->Prepare(MakeClaim({ResultJson("gpu", "gpu-0")}), devices_).ok());
  EXPECT_EQ(Read().generation, 1);
  EXPECT_EQ(Read().requests[0].devices[0].name, "gpu-0");
  EXPECT_TRUE(Read().requests[0].devices[0].attributes.empty());
}

TEST_F(MetadataStoreTest, ADriverThatReturnsNoDeviceStillHasTheMount) {
  devices_.clear();
  ASSERT_TRUE(store_
                  ->Prepare(MakeClaim({ResultJson("gpu", "gpu-0"),
                                       ResultJson("gpu", "gpu-1", kDriver, R"(,"shareID":"s1")"),
                                       ResultJson("nic", "nic-0")}),
                            devices_)
                  .ok());
  ASSERT_EQ(devices_.size(), 3u);
  EXPECT_EQ(devices_[0].device_name, "gpu-0");
  EXPECT_THAT(devices_[0].cdi_device_ids, ElementsAre("gpu.example.com/metadata=u1_gpu"));
  EXPECT_EQ(devices_[1].share_id, "s1");
  EXPECT_THAT(devices_[1].cdi_device_ids, IsEmpty());
  EXPECT_THAT(devices_[2].cdi_device_ids, ElementsAre("gpu.example.com/metadata=u1_nic"));
  EXPECT_EQ(Text(kFile), "");
  ASSERT_TRUE(UpdateOne("late").ok());
  EXPECT_EQ(Read().generation, 1);
}

TEST_F(MetadataStoreTest, ARepeatedPrepareKeepsFileAndGeneration) {
  ASSERT_TRUE(PrepareOne("a").ok());
  ASSERT_TRUE(UpdateOne("b").ok());
  const std::string before = Text(kFile);
  Open();  // also in another process
  ASSERT_TRUE(PrepareOne("a").ok()) << "unchanged metadata is not an update";
  EXPECT_EQ(Text(kFile), before);
  ASSERT_TRUE(PrepareOne(std::nullopt).ok());
  EXPECT_EQ(Text(kFile), before);
  EXPECT_EQ(devices_[0].cdi_device_ids.back(), "gpu.example.com/metadata=u1_gpu");
}

TEST_F(MetadataStoreTest, ChangedMetadataInARepeatedPrepareIsTheNextGeneration) {
  ASSERT_TRUE(PrepareOne("a").ok());
  ASSERT_TRUE(PrepareOne("b").ok());
  EXPECT_EQ(Read().generation, 2);
  EXPECT_EQ(Model(), "b");
  ASSERT_TRUE(PrepareOne("b").ok());
  EXPECT_EQ(Read().generation, 2);
}

TEST_F(MetadataStoreTest, EveryUpdateIsTheNextGeneration) {
  ASSERT_TRUE(PrepareOne("a").ok());
  for (const std::int64_t generation : {2, 3, 4}) {
    ASSERT_TRUE(UpdateOne("b").ok());
    EXPECT_EQ(Read().generation, generation) << "even if the content is the same";
  }
}

TEST_F(MetadataStoreTest, ClaimsOfOlderDriversGetTheContainersFile) {
  for (const bool at_start : {true, false}) {
    files_ = MemoryFileSystem();
    ASSERT_TRUE(PrepareOne("a").ok());
    ASSERT_TRUE(files_.Remove(kContainerFile).ok());
    ASSERT_TRUE(files_.SetMode(kDirectory, 0700).ok());
    Open();
    ASSERT_TRUE(at_start ? store_->Replay().ok() : PrepareOne("a").ok());
    EXPECT_EQ(Text(kContainerFile), Text(kFile));
    EXPECT_EQ(files_.Stat(kDirectory)->mode, 0755u);
    EXPECT_EQ(Read().generation, 1);
  }
  // A torn file is not shown to containers.
  const std::string whole = Text(kFile);
  ASSERT_TRUE(files_.WriteFile(kFile, whole.substr(0, 20), 0644).ok());
  ASSERT_TRUE(store_->Replay().ok());
  EXPECT_EQ(Text(kContainerFile), whole);
}

class MetadataStoreOnDisk : public ::testing::Test {
 protected:
  MetadataStoreOnDisk() {
    auto store = MetadataStore::Create({.files = RealFileSystem(),
                                        .driver_name = kDriver,
                                        .directory = root + "/plugin",
                                        .cdi_directory = root + "/cdi"});
    if (store.ok()) store_ = *std::move(store);
  }
  ~MetadataStoreOnDisk() override { static_cast<void>(RealFileSystem().RemoveTree(root)); }

  void Prepare(std::optional<std::string> model) {
    std::vector<PreparedDevice> devices = {Prepared("gpu", "gpu-0", std::move(model))};
    const auto done = store_->Prepare(MakeClaim({ResultJson("gpu", "gpu-0")}), devices);
    ASSERT_TRUE(done.ok()) << done.error().message;
  }
  void Update(std::string model) {
    const auto done =
        store_->Update({"ns", "c", "u1", "gpu"}, {Prepared("gpu", "gpu-0", std::move(model))});
    ASSERT_TRUE(done.ok()) << done.error().message;
  }

  const std::string root = StrCat(::testing::TempDir(), "drakkar-metadata-store-", getpid());
  const std::string directory = root + "/plugin/dra-device-metadata/ns_c/gpu";
  std::unique_ptr<MetadataStore> store_;
};

// A container has mounted or opened an inode, which keeps its complete document whatever happens to
// the claim.
TEST_F(MetadataStoreOnDisk, FilesAreReplacedAndNeverWrittenInPlace) {
  Prepare("first");
  int changes = 0;
  const auto expect_replaced = [&](const std::function<void()>& change) {
    std::vector<std::pair<std::ifstream, std::string>> opened;
    for (const char* name : {"/metadata.json", "/gpu.example.com-metadata.json"}) {
      opened.emplace_back(std::ifstream(directory + name),
                          *RealFileSystem().ReadFile(directory + name));
    }
    change();
    ++changes;
    for (auto& [file, before] : opened) {
      EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), before) << changes;
    }
    const std::string now = *RealFileSystem().ReadFile(directory + "/metadata.json");
    EXPECT_NE(now, opened.front().second) << changes;
    EXPECT_EQ(*RealFileSystem().ReadFile(directory + "/gpu.example.com-metadata.json"), now);
  };
  expect_replaced([&] { Update("second, and a good deal longer than the first one was"); });
  expect_replaced([&] { Update("third"); });
  expect_replaced([&] { Prepare("fourth"); });
  // An unfinished update of an older driver.
  const std::string updates = root + "/plugin/dra-device-metadata-claims/ns_c";
  const std::string text = *RealFileSystem().ReadFile(directory + "/metadata.json");
  Update("fifth");
  ASSERT_TRUE(RealFileSystem().MakeDirectories(updates, 0700).ok());
  ASSERT_TRUE(RealFileSystem().WriteFile(updates + "/gpu.update", text, 0600).ok());
  expect_replaced([&] { ASSERT_TRUE(store_->Replay().ok()); });
  // A file that was torn by a crash, or removed by someone, while containers have it mounted.
  ASSERT_TRUE(RealFileSystem().WriteFile(directory + "/metadata.json", "{", 0644).ok());
  expect_replaced([&] { Prepare("sixth"); });
}

TEST_F(MetadataStoreOnDisk, AContainerThatOutlivesItsClaimNeverSeesAnother) {
  Prepare("first");
  const int mounted = ::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  ASSERT_GE(mounted, 0);
  ASSERT_TRUE(store_->Remove({"ns", "u1", "c"}).ok());
  Prepare("of another pod");
  EXPECT_NE(::faccessat(mounted, "gpu.example.com-metadata.json", R_OK, 0), 0);
  ::close(mounted);
}

TEST_F(MetadataStoreOnDisk, AnyUserCanReadTheFilesWhateverTheUmask) {
  const mode_t before = umask(0077);
  Prepare("a");
  const auto expect_modes = [&] {
    EXPECT_EQ(RealFileSystem().Stat(directory)->mode, 0755u);
    for (const char* name : {"/metadata.json", "/gpu.example.com-metadata.json"}) {
      EXPECT_EQ(RealFileSystem().Stat(directory + name)->mode, 0644u) << name;
    }
    EXPECT_EQ(RealFileSystem().Stat(root + "/cdi/gpu.example.com_metadata_u1_gpu.json")->mode,
              0644u);
  };
  expect_modes();
  Update("b");
  expect_modes();
  umask(before);
}

TEST_F(MetadataStoreTest, NetworkDataHasTheKeysOfTheApiAndOfTheProposal) {
  devices_ = {Prepared("gpu", "gpu-0", "a")};
  devices_[0].metadata->network_data = {"eth0", {"10.0.0.5/24"}, "aa:bb"};
  const std::vector<PreparedDevice> given = devices_;
  ASSERT_TRUE(store_->Prepare(MakeClaim({ResultJson("gpu", "gpu-0")}), devices_).ok());
  for (const char* key : {"ips", "addresses", "hardwareAddress", "hwAddress"}) {
    EXPECT_THAT(Text(kContainerFile), HasSubstr(StrCat("\"", key, "\"")));
  }
  // Records of older drivers, which did not write these keys, still show that nothing changed.
  const std::string earlier = metadata::EncodeMetadata(
      Read(), std::vector{std::string(metadata::kV1alpha1)}, metadata::Dialect::kKubernetes);
  EXPECT_THAT(Text(kRecord), HasSubstr(Sha256Hex(earlier)));
  ASSERT_TRUE(UpdateOne("b").ok());
  devices_ = given;
  ASSERT_TRUE(store_->Prepare(MakeClaim({ResultJson("gpu", "gpu-0")}), devices_).ok());
  EXPECT_EQ(Read().generation, 2);
  Open(metadata::Dialect::kKubernetes);
  devices_ = given;
  ASSERT_TRUE(store_->Prepare(MakeClaim({ResultJson("gpu", "gpu-0")}, "u2"), devices_).ok());
  EXPECT_THAT(Text(kFile), Not(HasSubstr("hwAddress")));
}

TEST_F(MetadataStoreTest, RemovingAClaimDoesNotAffectOthers) {
  ASSERT_TRUE(PrepareOne("a").ok());
  const api::Object other(*api::ParseJson(StrCat(
      R"({"metadata":{"namespace":"ns","name":"c2","uid":"u2"},"status":{"allocation":{"devices":{)",
      R"("results":[)", ResultJson("gpu", "gpu-1"), "]}}}}")));
  std::vector<PreparedDevice> devices = {Prepared("gpu", "gpu-1", "b")};
  ASSERT_TRUE(store_->Prepare(other, devices).ok());
  ASSERT_TRUE(store_->Remove({"ns", "u2", "c2"}).ok());
  EXPECT_EQ(Model(), "a");
  EXPECT_THAT(List("/cdi"), ElementsAre("gpu.example.com_metadata_u1_gpu.json"));
  EXPECT_THAT(List(StrCat(kHome, "/dra-device-metadata")), ElementsAre("ns_c"));
  ASSERT_TRUE(store_->Remove({"ns", "u1", "c"}).ok());
  ExpectClean();
}

TEST_F(MetadataStoreTest, AnotherClaimWithTheSameNameStartsFromScratch) {
  ASSERT_TRUE(PrepareOne("a").ok());
  ASSERT_TRUE(UpdateOne("b").ok());
  ASSERT_TRUE(PrepareOne("a", "u2").ok());
  EXPECT_EQ(Read().claim_uid, "u2");
  EXPECT_EQ(Read().generation, 1);
  EXPECT_THAT(List("/cdi"), ElementsAre("gpu.example.com_metadata_u2_gpu.json"));
  // A late call for the old claim does not affect the new one.
  ASSERT_TRUE(store_->Remove({"ns", "u1", "c"}).ok());
  EXPECT_EQ(Read().claim_uid, "u2");
  EXPECT_THAT(UpdateOne("x").error().message, HasSubstr("was prepared with UID u2, not u1"));
}

TEST_F(MetadataStoreTest, UpdatesAreLimitedToWhatThisDriverPrepared) {
  EXPECT_EQ(UpdateOne("x").error().message, "request \"gpu\" not found in prepared claim ns/c");
  devices_ = {Prepared("gpu", "gpu-0", "a")};
  ASSERT_TRUE(store_
                  ->Prepare(MakeClaim({ResultJson("gpu", "gpu-0"), ResultJson("nic", "nic-0"),
                                       ResultJson("theirs", "bar-0", "bar.com")}),
                            devices_)
                  .ok());
  EXPECT_EQ(UpdateOne("x", "theirs").error().message,
            "request \"theirs\" not found in prepared claim ns/c");
  const auto foreign = [&](std::string device) {
    return store_->Update({"ns", "c", "", "gpu"}, {Prepared("gpu", std::move(device), "x")});
  };
  EXPECT_THAT(foreign("nic-0").error().message, HasSubstr("is not allocated for request \"gpu\""));
  EXPECT_THAT(foreign("gpu-9").error().message, HasSubstr("is not allocated for request"));
  EXPECT_FALSE(store_
                   ->Update({"ns", "c", "", "gpu"},
                            {Prepared("gpu", "gpu-0", "x"), Prepared("gpu", "gpu-0", "y")})
                   .ok())
      << "duplicate device";
  EXPECT_EQ(Read().generation, 1);
  EXPECT_TRUE(foreign("gpu-0").ok());
  ASSERT_TRUE(store_->Remove({"ns", "u1", "c"}).ok());
  EXPECT_EQ(UpdateOne("x").error().message, "request \"gpu\" not found in prepared claim ns/c");
  ExpectClean();
}

TEST_F(MetadataStoreTest, UpdatesWorkAfterARestart) {
  ASSERT_TRUE(PrepareOne("a").ok());
  Open();
  EXPECT_TRUE(UpdateOne("b").ok());
  EXPECT_EQ(Read().generation, 2);
  EXPECT_THAT(
      store_->Update({"ns", "c", "u1", "gpu"}, {Prepared("gpu", "gpu-9", "x")}).error().message,
      HasSubstr("is not allocated"));
}

TEST_F(MetadataStoreTest, InvalidMetadataIsRejectedBeforeAnythingIsWritten) {
  EXPECT_THAT(PrepareOne(std::string(65, 'x')).error().message,
              HasSubstr("attribute \"model\": must not have more than 64 bytes"));
  ExpectClean();
  devices_ = {Prepared("nic", "gpu-0", "x")};
  EXPECT_THAT(store_->Prepare(MakeClaim({ResultJson("gpu", "gpu-0")}), devices_).error().message,
              HasSubstr("which is not allocated for request nic"));
  ExpectClean();
  ASSERT_TRUE(PrepareOne("a").ok());
  EXPECT_FALSE(UpdateOne(std::string(65, 'x')).ok());
  EXPECT_EQ(Read().generation, 1);
}

TEST_F(MetadataStoreTest, InvalidNamesDoNotBecomePaths) {
  const auto claim = [](std::string_view namespace_name, std::string_view name,
                        std::string_view uid, std::string_view request) {
    return api::Object(*api::ParseJson(
        StrCat(R"({"metadata":{"namespace":")", namespace_name, R"(","name":")", name,
               R"(","uid":")", uid, R"("},"status":{"allocation":{"devices":{"results":[)",
               ResultJson(request, "gpu-0"), "]}}}}")));
  };
  for (const auto& bad :
       {claim("../ns", "c", "u", "gpu"), claim("ns", "..", "u", "gpu"),
        claim("ns", "a/b", "u", "gpu"), claim("ns", "c", "../u", "gpu"),
        claim("ns", "c", "u", ".."), claim("ns", "c", "u", ""), claim("ns", "c", "-u", "gpu"),
        claim("ns", "c", "u.1", "gpu"), claim("ns", "c", "u_1", "gpu"),
        claim("ns", "c", std::string(129, 'u'), "gpu")}) {
    devices_.clear();
    EXPECT_FALSE(store_->Prepare(bad, devices_).ok());
  }
  for (const char* uid : {"a", "z", "A", "Z", "0", "9", "a-z"}) {
    EXPECT_TRUE(CheckClaimNames("ns", "c", uid).ok()) << uid;
  }
  for (const char* uid : {"`", "{", "@", "[", "/", ":", "."}) {
    EXPECT_FALSE(CheckClaimNames("ns", "c", uid).ok()) << uid;
  }
  EXPECT_TRUE(CheckClaimNames("ns", "c", std::string(128, 'u')).ok());
  EXPECT_TRUE(store_->Remove({"..", "u", "c"}).ok());
  EXPECT_FALSE(store_->Update({"..", "c", "u", "gpu"}, {}).ok());
  ExpectClean();
}

TEST_F(MetadataStoreTest, RemovingIsCompleteAndIdempotent) {
  devices_ = {Prepared("gpu", "gpu-0", "a")};
  ASSERT_TRUE(
      store_->Prepare(MakeClaim({ResultJson("gpu", "gpu-0"), ResultJson("nic", "nic-0")}), devices_)
          .ok());
  ASSERT_TRUE(files_.WriteFile("/cdi/gpu.example.com_metadata_u11_gpu.json", "{}", 0644).ok());
  ASSERT_TRUE(store_->Remove({"ns", "u1", "c"}).ok());
  EXPECT_THAT(List("/cdi"), ElementsAre("gpu.example.com_metadata_u11_gpu.json"));
  ASSERT_TRUE(files_.Remove("/cdi/gpu.example.com_metadata_u11_gpu.json").ok());
  ExpectClean();
  EXPECT_TRUE(store_->Remove({"ns", "u1", "c"}).ok());
  EXPECT_TRUE(store_->Remove({"ns", "u1", "other"}).ok());
}

// After each call of an operation has failed once: a clear error, and a retry succeeds.
TEST_F(MetadataStoreTest, EachFileOperationMayFailOnce) {
  const auto run = [&](auto before, auto operation, auto after) {
    for (std::size_t n = 0;; ++n) {
      files_ = MemoryFileSystem();
      before();
      const std::size_t calls = files_.calls();
      files_.FailCall(n);
      const Result<void> result = operation();
      const bool reached = files_.calls() > calls + n;
      FailNoMore();
      if (!result.ok()) {
        EXPECT_FALSE(result.error().message.empty());
        const Result<void> again = operation();
        ASSERT_TRUE(again.ok()) << n << ": " << again.error().message;
      }
      after();
      ASSERT_FALSE(::testing::Test::HasFailure()) << "call " << n;
      if (!reached) {
        EXPECT_GT(n, 3u);
        return;
      }
    }
  };
  const auto remove = [&] { return store_->Remove({"ns", "u1", "c"}); };
  run([] {}, [&] { return PrepareOne("a"); },
      [&] {
        EXPECT_EQ(Read().generation, 1);
        EXPECT_EQ(Model(), "a");
        EXPECT_EQ(Text(kContainerFile), Text(kFile));
        EXPECT_EQ(List("/cdi").size(), 1u);
      });
  run([&] { ASSERT_TRUE(PrepareOne("a").ok()); }, [&] { return PrepareOne("b"); },
      [&] {
        // A failure after the content was written may skip a generation, but never loses the
        // content.
        EXPECT_GE(Read().generation, 2);
        EXPECT_LE(Read().generation, 3);
        EXPECT_EQ(Model(), "b");
        EXPECT_EQ(Text(kContainerFile), Text(kFile));
      });
  run([&] { ASSERT_TRUE(PrepareOne("a").ok()); }, [&] { return UpdateOne("b"); },
      [&] {
        EXPECT_GE(Read().generation, 2);
        EXPECT_LE(Read().generation, 3);
        EXPECT_EQ(Model(), "b");
        EXPECT_EQ(Text(kContainerFile), Text(kFile));
      });
  run([&] { ASSERT_TRUE(PrepareOne("a").ok()); }, remove, [&] { ExpectClean(); });
}

// A crash of the process between any two operations, and a power failure there.
TEST_F(MetadataStoreTest, AnUpdateInterruptedByACrashIsCompletedAtStart) {
  for (const bool power_loss : {false, true}) {
    for (std::size_t n = 0; n < 12; ++n) {
      files_ = MemoryFileSystem();
      ASSERT_TRUE(PrepareOne("a").ok());
      for (const char* path : {kFile, kRecord}) {
        ASSERT_TRUE(files_.SyncFile(path).ok());
        for (std::string at = DirectoryName(path); at.size() > 1; at = DirectoryName(at)) {
          ASSERT_TRUE(files_.SyncDirectory(at).ok());
        }
      }
      files_.FailCall(n);
      const bool told = UpdateOne("b").ok();
      FailNoMore();
      if (power_loss) files_.Crash();
      Open();
      ASSERT_TRUE(store_->Replay().ok());
      EXPECT_EQ(Text(kContainerFile), Text(kFile));
      EXPECT_THAT(Model(), ::testing::AnyOf("b", told ? "b" : "a")) << n;
      ASSERT_TRUE(UpdateOne("c").ok());
      EXPECT_EQ(Model(), "c");
    }
  }
}

TEST_F(MetadataStoreTest, ATornFileIsCompletedFromTheSideFile) {
  ASSERT_TRUE(PrepareOne("a").ok());
  ASSERT_TRUE(UpdateOne("b").ok());
  const std::string whole = Text(kFile);
  ASSERT_TRUE(files_.MakeDirectories(DirectoryName(kUpdateFile), 0700).ok());
  ASSERT_TRUE(files_.WriteFile(kUpdateFile, whole, 0600).ok());
  ASSERT_TRUE(files_.WriteFile(kFile, whole.substr(0, 20), 0644).ok());
  Open();
  ASSERT_TRUE(store_->Replay().ok());
  EXPECT_EQ(Text(kFile), whole);
  EXPECT_FALSE(files_.Exists(kUpdateFile));
  // The next prepare rewrites a torn file that has no update.
  ASSERT_TRUE(files_.WriteFile(kFile, whole.substr(0, 20), 0644).ok());
  ASSERT_TRUE(PrepareOne("a").ok());
  EXPECT_EQ(Model(), "a");
  // An update of another claim is not applied.
  ASSERT_TRUE(PrepareOne("new", "u2").ok());
  ASSERT_TRUE(files_.MakeDirectories(DirectoryName(kUpdateFile), 0700).ok());
  ASSERT_TRUE(files_.WriteFile(kUpdateFile, whole, 0600).ok());
  ASSERT_TRUE(store_->Replay().ok());
  EXPECT_EQ(Model(), "new");
}

TEST_F(MetadataStoreTest, PrepareSurvivesAPowerFailureAtAnyPoint) {
  for (std::size_t n = 0; n < 30; ++n) {
    files_ = MemoryFileSystem();
    files_.FailCall(n);
    static_cast<void>(PrepareOne("a"));
    FailNoMore();
    files_.Crash();
    ASSERT_TRUE(PrepareOne("a").ok()) << n;
    EXPECT_EQ(Model(), "a");
    EXPECT_EQ(List("/cdi").size(), 1u);
    ASSERT_TRUE(store_->Remove({"ns", "u1", "c"}).ok());
    ExpectClean();
  }
}

TEST_F(MetadataStoreTest, KnowsWhichClaimsHaveFiles) {
  EXPECT_THAT(*store_->Claims(), IsEmpty());
  ASSERT_TRUE(PrepareOne("a").ok());
  EXPECT_THAT(*store_->Claims(), ElementsAre(rpc::ClaimReference{"ns", "u1", "c"}));
  // Files without a record, as other libraries leave them, contain their claim.
  ASSERT_TRUE(files_.RemoveTree(StrCat(kHome, "/dra-device-metadata-records")).ok());
  EXPECT_THAT(*store_->Claims(), ElementsAre(rpc::ClaimReference{"ns", "u1", "c"}));
  ASSERT_TRUE(files_.WriteFile(kFile, "", 0644).ok());
  EXPECT_THAT(*store_->Claims(), ElementsAre(rpc::ClaimReference{"ns", "", "c"}));
  EXPECT_TRUE(store_->RemoveStraySpecs().ok());
  EXPECT_EQ(List("/cdi").size(), 1u);
  ASSERT_TRUE(files_.Remove(kFile).ok());
  EXPECT_TRUE(store_->RemoveStraySpecs().ok());
  EXPECT_THAT(List("/cdi"), IsEmpty());
}

TEST_F(MetadataStoreTest, RecordsOfOlderDriversAreFound) {
  const auto make_old = [&] {
    ASSERT_TRUE(PrepareOne("a").ok());
    ASSERT_TRUE(files_.MakeDirectories(DirectoryName(kOldRecord), 0700).ok());
    ASSERT_TRUE(files_.Rename(kRecord, kOldRecord).ok());
    Open();
  };
  make_old();
  EXPECT_THAT(*store_->Claims(), ElementsAre(rpc::ClaimReference{"ns", "u1", "c"}));
  EXPECT_EQ(store_->Requests()->size(), 1u);
  ASSERT_TRUE(PrepareOne("a").ok());
  EXPECT_EQ(Read().generation, 1);
  ASSERT_TRUE(UpdateOne("b").ok());
  EXPECT_EQ(Model(), "b");
  // An unfinished update of the older driver.
  const std::string whole = Text(kFile);
  ASSERT_TRUE(files_.MakeDirectories(DirectoryName(kUpdateFile), 0700).ok());
  ASSERT_TRUE(files_.WriteFile(kUpdateFile, whole, 0600).ok());
  ASSERT_TRUE(files_.WriteFile(kFile, whole.substr(0, 20), 0644).ok());
  ASSERT_TRUE(store_->Replay().ok());
  EXPECT_EQ(Text(kFile), whole);
  // Prepare writes the new record, which takes precedence.
  ASSERT_TRUE(PrepareOne("c").ok());
  EXPECT_EQ(Read().generation, 3);
  EXPECT_TRUE(files_.Exists(kRecord));
  ASSERT_TRUE(PrepareOne("c").ok());
  EXPECT_EQ(Read().generation, 3);
  ASSERT_TRUE(store_->Remove({"ns", "u1", "c"}).ok());
  ExpectClean();
  make_old();
  ASSERT_TRUE(PrepareOne("new", "u2").ok());
  EXPECT_EQ(Read().generation, 1);
  EXPECT_THAT(*store_->Claims(), ElementsAre(rpc::ClaimReference{"ns", "u2", "c"}));
  ASSERT_TRUE(store_->Remove({"ns", "u2", "c"}).ok());
  ExpectClean();
}

TEST_F(MetadataStoreTest, TheDirectoryOfARemovedClaimIsReusedButNeverAMountedOne) {
  const std::string spare = StrCat(kHome, "/dra-device-metadata-spare");
  ASSERT_TRUE(PrepareOne("a").ok());
  ASSERT_TRUE(store_->Remove({"ns", "u1", "c"}).ok());
  EXPECT_TRUE(files_.Exists(spare));
  EXPECT_THAT(List(spare), IsEmpty()) << "a container that outlives its claim has it mounted";
  EXPECT_THAT(*store_->Claims(), IsEmpty());
  ASSERT_TRUE(PrepareOne("b", "u2").ok());
  EXPECT_FALSE(files_.Exists(spare));
  EXPECT_EQ(Model(), "b");
  EXPECT_EQ(Read().generation, 1);
  ASSERT_TRUE(store_->Remove({"ns", "u2", "c"}).ok());
  // Foreign files in it are removed with the claim.
  ASSERT_TRUE(files_.MakeDirectories(spare + "/nic", 0755).ok());
  ASSERT_TRUE(PrepareOne("c", "u3").ok());
  EXPECT_EQ(Model(), "c");
  ASSERT_TRUE(store_->Remove({"ns", "u3", "c"}).ok());
  ExpectClean();
}

TEST_F(MetadataStoreTest, APartialRecordCountsAsAbsent) {
  ASSERT_TRUE(PrepareOne("a").ok());
  ASSERT_TRUE(files_.WriteFile(kRecord, Text(kRecord).substr(0, 30), 0600).ok());
  ASSERT_TRUE(PrepareOne("a").ok());
  EXPECT_EQ(Read().generation, 1);
  ASSERT_TRUE(UpdateOne("b").ok());
  EXPECT_EQ(files_.Stat(kRecord)->mode, 0600u);
  ASSERT_TRUE(store_->Remove({"ns", "u1", "c"}).ok());
  ExpectClean();
}

TEST_F(MetadataStoreTest, ARecordMustBeCompleteAndOfItsClaim) {
  for (const char* text : {R"({"name":"c","uid":"u1","requests":{}})",
                           R"({"namespace":"ns","uid":"u1","requests":{}})",
                           R"({"namespace":"ns","name":"c","requests":{}})",
                           R"({"namespace":"ns","name":"c","uid":"u1"})"}) {
    EXPECT_FALSE(ReadClaimRecord(text).ok()) << text;
  }
  // A file of another claim under this claim's name.
  for (const char* text : {R"({"namespace":"ns","name":"other","uid":"u1","requests":{}})",
                           R"({"namespace":"other","name":"c","uid":"u1","requests":{}})"}) {
    ASSERT_TRUE(PrepareOne("a").ok());
    ASSERT_TRUE(files_.WriteFile(kRecord, text, 0600).ok());
    EXPECT_FALSE(UpdateOne("b").ok()) << text;
  }
}

TEST_F(MetadataStoreTest, DevicesThatAreReturnedInAnyOrderKeepTheirOwnMetadata) {
  devices_ = {Prepared("gpu", "gpu-1", "one"), Prepared("gpu", "gpu-0", "zero")};
  ASSERT_TRUE(
      store_->Prepare(MakeClaim({ResultJson("gpu", "gpu-0"), ResultJson("gpu", "gpu-1")}), devices_)
          .ok());
  const metadata::DeviceMetadata read = Read();
  const auto& devices = read.requests.at(0).devices;
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0].name, "gpu-0");
  EXPECT_TRUE(devices[0].attributes.at("model") == metadata::AttributeValue(std::string("zero")));
  EXPECT_EQ(devices[1].name, "gpu-1");
  EXPECT_TRUE(devices[1].attributes.at("model") == metadata::AttributeValue(std::string("one")));
}

TEST_F(MetadataStoreTest, ADeferredPrepareAfterAnUpdateKeepsTheUpdate) {
  ASSERT_TRUE(PrepareOne("a").ok());
  ASSERT_TRUE(UpdateOne("b").ok());
  for (int i = 0; i < 2; ++i) {
    devices_ = {Prepared("gpu", "gpu-0", std::nullopt)};
    ASSERT_TRUE(store_->Prepare(MakeClaim({ResultJson("gpu", "gpu-0")}), devices_).ok());
    EXPECT_EQ(Model(), "b");
  }
  ASSERT_TRUE(PrepareOne("a").ok());
  EXPECT_EQ(Model(), "b") << "what prepare returned first is still known";
}

TEST_F(MetadataStoreTest, FilesOfAnotherLibraryAreTakenOver) {
  ASSERT_TRUE(PrepareOne("a").ok());
  ASSERT_TRUE(UpdateOne("b").ok());
  ASSERT_TRUE(files_.RemoveTree(StrCat(kHome, "/dra-device-metadata-records")).ok());
  ASSERT_TRUE(PrepareOne("b").ok());
  EXPECT_EQ(Read().generation, 2) << "the same metadata is not an update";
  ASSERT_TRUE(UpdateOne("c").ok());
  EXPECT_EQ(Read().generation, 3);
}

TEST_F(MetadataStoreTest, InstancesOfARollingUpdateChangeFilesOneAtATime) {
  const std::string lock_file =
      StrCat(::testing::TempDir(), "drakkar-metadata-", getpid(), ".lock");
  auto store = MetadataStore::Create({.files = files_,
                                      .driver_name = kDriver,
                                      .directory = kHome,
                                      .cdi_directory = "/cdi",
                                      .lock_file = lock_file,
                                      .lock_limit = std::chrono::milliseconds(2)});
  store_ = *std::move(store);
  ASSERT_TRUE(PrepareOne("first").ok());
  FileLock other(lock_file);
  ASSERT_TRUE(*other.TryLock());
  ASSERT_TRUE(files_.MakeDirectories(DirectoryName(kUpdateFile), 0700).ok());
  ASSERT_TRUE(files_.WriteFile(kUpdateFile, "of another instance", 0600).ok());
  for (const Result<void>& result :
       {UpdateOne("second"), PrepareOne("third"), store_->Replay(),
        store_->Remove({"ns", "u1", "c"}), store_->RemoveStraySpecs()}) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(result.error().message, HasSubstr("acquire the lock between driver instances"));
  }
  EXPECT_EQ(Text(kUpdateFile), "of another instance");
  EXPECT_EQ(Model(), "first");
  ASSERT_TRUE(files_.Remove(kUpdateFile).ok());
  other.Unlock();
  ASSERT_TRUE(UpdateOne("second").ok());
  EXPECT_EQ(Model(), "second");
  ASSERT_TRUE(PrepareOne("third", "u2").ok()) << "nested changes";
  EXPECT_TRUE(*other.TryLock());
  ASSERT_TRUE(RealFileSystem().Remove(lock_file).ok());
}

TEST_F(MetadataStoreTest, RecordsWithoutPodsAreStillRead) {
  ASSERT_TRUE(PrepareOne("x").ok());
  auto requests = store_->Requests();
  ASSERT_TRUE(requests.ok());
  EXPECT_THAT(requests->front().pod_uids, IsEmpty());
  EXPECT_TRUE(requests->front().has_metadata);
  ClaimRecord record{.namespace_name = "ns", .name = "c", .uid = "u1", .pods = {"p1", "p2"}};
  record.pod_claim_name = "gpu";
  record.requests["r"] = {.reference = "r/s",
                          .prepared = "digest",
                          .devices = {{"pool", "one", std::nullopt}, {"pool", "two", "share"}}};
  record.requests["q"].reference = "q";
  EXPECT_EQ(*ReadClaimRecord(WriteClaimRecord(record)), record);
  EXPECT_THAT(ReadClaimRecord(R"({"namespace":"ns","name":"c","uid":"u1","requests":{}})")->pods,
              IsEmpty());
}

TEST_F(MetadataStoreTest, ListsEveryPreparedRequestWithItsDevices) {
  devices_ = {Prepared("gpu", "gpu-0", "x"), Prepared("gpu", "gpu-1", "y"), Prepared("nic", "n")};
  ASSERT_TRUE(store_
                  ->Prepare(MakeClaim({ResultJson("gpu", "gpu-0"),
                                       ResultJson("gpu", "gpu-1", kDriver, R"(,"shareID":"s1")"),
                                       ResultJson("nic", "n")}),
                            devices_)
                  .ok());
  const auto requests = store_->Requests();
  ASSERT_TRUE(requests.ok()) << requests.error().message;
  ASSERT_EQ(requests->size(), 2u);
  EXPECT_EQ((*requests)[0].request.request, "gpu");
  EXPECT_TRUE((*requests)[0].has_metadata);
  ASSERT_EQ((*requests)[0].devices.size(), 2u);
  EXPECT_EQ((*requests)[0].devices[0].device_name, "gpu-0");
  EXPECT_EQ((*requests)[0].devices[1].device_name, "gpu-1");
  EXPECT_EQ((*requests)[0].devices[1].share_id, "s1");
  EXPECT_EQ((*requests)[1].request.request, "nic");
  EXPECT_FALSE((*requests)[1].has_metadata) << "deferred";
  EXPECT_THAT((*requests)[1].devices, ::testing::SizeIs(1));
}

TEST_F(MetadataStoreTest, ARepeatedPrepareMayHaveANewRequest) {
  ASSERT_TRUE(PrepareOne("Longship").ok());
  devices_ = {Prepared("gpu", "gpu-0", "Longship"), Prepared("nic", "n", "Knarr")};
  ASSERT_TRUE(
      store_->Prepare(MakeClaim({ResultJson("gpu", "gpu-0"), ResultJson("nic", "n")}), devices_)
          .ok());
  EXPECT_EQ(Model(), "Longship");
  EXPECT_EQ(Model(kOtherFile), "Knarr");
}

TEST_F(MetadataStoreTest, OnlySpecsAreRemovedFromTheDirectoryOfSpecs) {
  ASSERT_TRUE(PrepareOne("Longship").ok());
  const std::string spec = List("/cdi").at(0);
  ASSERT_TRUE(files_.WriteFile("/cdi/" + spec + ".partial", Text("/cdi/" + spec), 0644).ok());
  ASSERT_TRUE(store_->Remove({"ns", "u1", "c"}).ok());
  EXPECT_THAT(List("/cdi"), ElementsAre(spec + ".partial"));
  ASSERT_TRUE(store_->RemoveStraySpecs().ok());
  EXPECT_THAT(List("/cdi"), ElementsAre(spec + ".partial"));
}

TEST_F(MetadataStoreTest, EverySpecWhoseFilesAreGoneIsRemoved) {
  devices_ = {Prepared("gpu", "gpu-0", "x"), Prepared("nic", "n", "y")};
  ASSERT_TRUE(
      store_->Prepare(MakeClaim({ResultJson("gpu", "gpu-0"), ResultJson("nic", "n")}), devices_)
          .ok());
  ASSERT_EQ(List("/cdi").size(), 2u);
  ASSERT_TRUE(store_->RemoveStraySpecs().ok());
  EXPECT_EQ(List("/cdi").size(), 2u) << "their files are there";
  ASSERT_TRUE(files_.RemoveTree(StrCat(kHome, "/dra-device-metadata/ns_c")).ok());
  ASSERT_TRUE(store_->RemoveStraySpecs().ok());
  EXPECT_THAT(List("/cdi"), IsEmpty());
}

TEST_F(MetadataStoreTest, ASpecThatMountsAFileIsKeptWhileTheFileIsThere) {
  ASSERT_TRUE(PrepareOne("Longship").ok());
  const std::string path = "/cdi/" + List("/cdi").at(0);
  // As older drivers and other libraries write it.
  ASSERT_TRUE(files_
                  .WriteFile(path,
                             StrCat(R"({"cdiVersion":"0.5.0","kind":"gpu.example.com/metadata",)",
                                    R"("devices":[{"name":"u1_gpu","containerEdits":{"mounts":[)",
                                    R"({"hostPath":")", kFile, R"(","containerPath":"/m"}]}}]})"),
                             0644)
                  .ok());
  ASSERT_TRUE(store_->RemoveStraySpecs().ok());
  EXPECT_TRUE(files_.Exists(path));
  ASSERT_TRUE(files_.Remove(kFile).ok());
  ASSERT_TRUE(store_->RemoveStraySpecs().ok());
  EXPECT_FALSE(files_.Exists(path));
}

TEST_F(MetadataStoreTest, TheClaimOfForeignFilesIsReadFromAnyOfThem) {
  devices_ = {Prepared("gpu", "gpu-0"), Prepared("nic", "n", "y")};
  ASSERT_TRUE(
      store_->Prepare(MakeClaim({ResultJson("gpu", "gpu-0"), ResultJson("nic", "n")}), devices_)
          .ok());
  ASSERT_TRUE(files_.RemoveTree(StrCat(kHome, "/dra-device-metadata-records")).ok());
  Open();
  const auto claims = store_->Claims();
  ASSERT_TRUE(claims.ok()) << claims.error().message;
  ASSERT_EQ(claims->size(), 1u);
  EXPECT_EQ((*claims)[0].uid, "u1") << "the first file is still empty";
}

TEST_F(MetadataStoreTest, RejectsAListOfOnlyUnknownVersions) {
  const auto create = [&](std::vector<std::string> versions) {
    return MetadataStore::Create({.files = files_,
                                  .driver_name = kDriver,
                                  .directory = kHome,
                                  .cdi_directory = "/cdi",
                                  .versions = std::move(versions)});
  };
  EXPECT_EQ(create({"bogus/v99"}).error().message,
            "none of the requested metadata API versions [bogus/v99] are supported");
  EXPECT_TRUE(create({"bogus/v99", std::string(metadata::kV1beta1)}).ok());
}

TEST_F(MetadataStoreTest, AClaimWithoutANameInThePodIsMountedByItsOwn) {
  devices_ = {Prepared("gpu", "gpu-0", "x")};
  ASSERT_TRUE(
      store_
          ->Prepare(MakeClaim({ResultJson("gpu", "gpu-0")}, "u1",
                              R"(,"annotations":{"resource.kubernetes.io/pod-claim-name":""})"),
                    devices_)
          .ok());
  const auto spec = cdi::ReadSpecJson(Text("/cdi/gpu.example.com_metadata_u1_gpu.json"));
  EXPECT_EQ(spec->devices[0].container_edits.mounts[1].container_path,
            "/var/run/kubernetes.io/dra-device-attributes/resourceclaims/c/gpu");
}

}  // namespace
}  // namespace drakkar::driver
