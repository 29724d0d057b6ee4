#include "sdk/metadata/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "api/metadata/document.h"
#include "base/env/pause.h"
#include "base/testing/memory_file_system.h"
#include "base/text/text.h"
#include "sdk/metadata/output.h"

namespace drakkar::metadata {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr Duration kWait = std::chrono::seconds(60);
constexpr char kFile[] = "/var/run/dra-device-attributes/c/gpu/d.example.com-metadata.json";

DeviceMetadata Metadata(std::string driver = "d.example.com", std::string request = "gpu",
                        std::string claim = "c") {
  DeviceMetadata metadata;
  metadata.claim_name = claim;
  metadata.claim_namespace = "ns";
  metadata.claim_uid = "uid-" + claim;
  metadata.generation = 1;
  Device device;
  device.driver = std::move(driver);
  device.pool = "node";
  device.name = "gpu-0";
  device.attributes = {{"model", std::string("it's")},
                       {"resource.kubernetes.io/numaNode", std::int64_t{3}}};
  metadata.requests = {{std::move(request), {device}}};
  return metadata;
}

std::string Text(const DeviceMetadata& metadata, std::string_view version = kV1alpha1) {
  return EncodeMetadata(metadata, std::vector{std::string(version)});
}

// Time passes only while somebody waits, and then events may happen.
class FakeTime final : public Clock, public Pause {
 public:
  WallTime Now() const override { return WallTime(now_); }
  MonotonicTime Monotonic() const override { return MonotonicTime(now_); }
  void For(Duration duration) override {
    now_ += duration;
    if (on_pause) on_pause();
  }
  std::unique_ptr<ChangeWatch> WatchChanges(const std::vector<std::string>& paths) override {
    if (!watches) return nullptr;
    watched = paths;
    return std::make_unique<Watch>(*this);
  }
  std::function<void()> on_pause;
  std::function<void(Duration limit)> on_wait;
  bool watches = false;
  std::vector<std::string> watched;

 private:
  struct Watch final : ChangeWatch {
    explicit Watch(FakeTime& given) : time(given) {}
    void Wait(Duration limit) override { time.on_wait(limit); }
    FakeTime& time;
  };
  Duration now_{};
};

class MetadataReaderTest : public ::testing::Test {
 protected:
  MetadataReaderTest() : reader_({.files = &files_, .clock = &time_, .pause = &time_}) {}

  void Put(const std::string& path, const std::string& text) {
    ASSERT_TRUE(files_.MakeDirectories(DirectoryName(path), 0755).ok());
    ASSERT_TRUE(files_.WriteFile(path, text, 0644).ok());
  }

  MemoryFileSystem files_;
  std::vector<std::string> pending_;
  FakeTime time_;
  Reader reader_;
};

TEST_F(MetadataReaderTest, ReadsOneFileOfAnyVersion) {
  for (const std::string_view version : {kV1alpha1, kV1beta1}) {
    Put(kFile, Text(Metadata(), version));
    const auto read = reader_.ReadFile(kFile);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(*read, Metadata());
  }
}

TEST_F(MetadataReaderTest, ReadsByClaimAndRequestFromEitherDirectory) {
  EXPECT_EQ(reader_.ReadRequest("c", "gpu").error().code, ErrorCode::kNotFound);
  DeviceMetadata templated = Metadata("d.example.com", "gpu", "pod-dev-x1");
  templated.pod_claim_name = "dev";
  Put("/var/run/kubernetes.io/dra-device-attributes/resourceclaimtemplates/dev/gpu/"
      "d.example.com-metadata.json",
      Text(templated));
  Put("/var/run/kubernetes.io/dra-device-attributes/resourceclaims/c/gpu/"
      "d.example.com-metadata.json",
      Text(Metadata()));
  EXPECT_EQ(*reader_.ReadRequest("c", "gpu"), Metadata());
  EXPECT_EQ(*reader_.ReadRequest("c", "gpu/big"), Metadata()) << "subrequests share the file";
  EXPECT_EQ(*reader_.ReadRequest("dev", "gpu"), templated);
  // Only the KEP's directory, and the name in the pod.
  ASSERT_TRUE(files_.RemoveTree("/var/run/kubernetes.io").ok());
  Put("/var/run/dra-device-attributes/pod-dev-x1/gpu/d.example.com-metadata.json", Text(templated));
  EXPECT_EQ(*reader_.ReadRequest("dev", "gpu"), templated);
  EXPECT_EQ(*reader_.ReadRequest("pod-dev-x1", "gpu"), templated);
}

TEST_F(MetadataReaderTest, FilesOfAllDriversOfARequestAreMerged) {
  Put(kFile, Text(Metadata()));
  Put("/var/run/dra-device-attributes/c/gpu/bar.com-metadata.json", Text(Metadata("bar.com")));
  Put("/var/run/dra-device-attributes/c/gpu/unrelated.json", "{}");
  Put("/var/run/dra-device-attributes/c/nic/bar.com-metadata.json",
      Text(Metadata("bar.com", "nic")));
  const auto request = reader_.ReadRequest("c", "gpu");
  ASSERT_TRUE(request.ok()) << request.error().message;
  ASSERT_EQ(request->requests.size(), 1u);
  EXPECT_EQ(request->requests[0].devices.size(), 2u);
  EXPECT_EQ(reader_.ReadRequest("c", "")->requests.size(), 2u);
}

TEST_F(MetadataReaderTest, FindsEveryDriverWhicheverPathItMounts) {
  const std::string kubernetes = "/var/run/kubernetes.io/dra-device-attributes";
  const auto drivers = [&](const std::string& claim) {
    std::vector<std::string> names;
    const auto read = reader_.ReadRequest(claim, "gpu");
    if (!read.ok()) return std::vector{read.error().message};
    for (const Request& request : read->requests) {
      for (const Device& device : request.devices) names.push_back(device.driver);
    }
    return names;
  };
  // One driver mounts the proposal's path, one Kubernetes' path, one both.
  Put(kFile, Text(Metadata()));
  Put(kubernetes + "/resourceclaims/c/gpu/kube.com-metadata.json", Text(Metadata("kube.com")));
  for (const char* directory : {"/var/run/dra-device-attributes/",
                                "/var/run/kubernetes.io/dra-device-attributes/resourceclaims/"}) {
    Put(StrCat(directory, "c/gpu/both.com-metadata.json"), Text(Metadata("both.com")));
  }
  EXPECT_THAT(drivers("c"), UnorderedElementsAre("both.com", "d.example.com", "kube.com"));
  // The same for a claim from a template, by either of its names.
  const auto templated = [](const std::string& driver) {
    DeviceMetadata metadata = Metadata(driver, "gpu", "pod-dev-x1");
    metadata.pod_claim_name = "dev";
    metadata.claim_uid = "templated";
    return Text(metadata);
  };
  Put("/var/run/dra-device-attributes/pod-dev-x1/gpu/d.example.com-metadata.json",
      templated("d.example.com"));
  Put(kubernetes + "/resourceclaimtemplates/dev/gpu/kube.com-metadata.json", templated("kube.com"));
  EXPECT_THAT(drivers("dev"), UnorderedElementsAre("d.example.com", "kube.com"));
  EXPECT_THAT(drivers("pod-dev-x1"), UnorderedElementsAre("d.example.com", "kube.com"));
  // A claim whose name equals another claim's name in the pod is still a different claim.
  Put(kubernetes + "/resourceclaims/dev/gpu/other.com-metadata.json",
      Text(Metadata("other.com", "gpu", "dev")));
  EXPECT_THAT(drivers("dev"), UnorderedElementsAre("d.example.com", "kube.com"));
  // If one is missing, the result is "not yet".
  Put(kubernetes + "/resourceclaims/c/gpu/kube.com-metadata.json", "");
  EXPECT_EQ(reader_.ReadRequest("c", "gpu").error().code, ErrorCode::kNotFound);
}

TEST_F(MetadataReaderTest, PrefersTheDirectoryWithTheCurrentFile) {
  DeviceMetadata current = Metadata();
  current.generation = 7;
  Put(kFile, Text(Metadata()));
  Put("/var/run/dra-device-attributes/c/gpu/d.example.com-metadata.d/d.example.com-metadata.json",
      Text(current));
  Put("/var/run/dra-device-attributes/c/gpu/d.example.com-metadata.d/metadata.json", "{");
  EXPECT_EQ(*reader_.ReadRequest("c", "gpu"), current);
  EXPECT_THAT(*reader_.ReadAll(), ElementsAre(current));
}

// A file that changes on every read and is always complete. The other functions are only there for
// the compiler.
class RestlessFiles final : public FileSystem {
 public:
  Result<std::string> ReadFile(const std::string&) override {
    DeviceMetadata metadata = Metadata();
    metadata.generation = ++generation;
    return Text(metadata);
  }
  Result<void> WriteFile(const std::string&, std::string_view, std::uint32_t) override {
    return Ok();
  }
  Result<void> AppendFile(const std::string&, std::string_view, std::uint32_t) override {
    return Ok();
  }
  Result<void> SyncFile(const std::string&) override { return Ok(); }
  Result<void> SyncDirectory(const std::string&) override { return Ok(); }
  Result<void> Rename(const std::string&, const std::string&) override { return Ok(); }
  Result<void> Remove(const std::string&) override { return Ok(); }
  Result<void> RemoveTree(const std::string&) override { return Ok(); }
  Result<void> MakeDirectories(const std::string&, std::uint32_t) override { return Ok(); }
  Result<std::vector<std::string>> ListDirectory(const std::string&) override {
    return std::vector<std::string>();
  }
  Result<FileInfo> Stat(const std::string&) override { return FileInfo(); }
  Result<FileInfo> LinkStat(const std::string&) override { return FileInfo(); }
  Result<std::string> ReadLink(const std::string&) override { return std::string(); }
  Result<void> SetMode(const std::string&, std::uint32_t) override { return Ok(); }

  std::int64_t generation = 0;
};

TEST_F(MetadataReaderTest, AWriterThatNeverPausesDoesNotFailTheReader) {
  RestlessFiles files;
  Reader reader({.files = &files, .clock = &time_, .pause = &time_});
  for (int i = 0; i < 10; ++i) {
    const auto read = reader.ReadFile(kFile);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read->generation, files.generation) << "the newest one seen";
  }
}

TEST_F(MetadataReaderTest, FindsEverythingInTheContainerOnce) {
  EXPECT_TRUE(reader_.ReadAll()->empty());
  Put(kFile, Text(Metadata()));
  Put("/var/run/kubernetes.io/dra-device-attributes/resourceclaims/c/gpu/"
      "d.example.com-metadata.json",
      Text(Metadata()));
  Put("/var/run/dra-device-attributes/b/gpu/d.example.com-metadata.json",
      Text(Metadata("d.example.com", "gpu", "b")));
  const auto all = reader_.ReadAll();
  ASSERT_TRUE(all.ok()) << all.error().message;
  EXPECT_THAT(*all, ElementsAre(Metadata("d.example.com", "gpu", "b"), Metadata()));
}

TEST_F(MetadataReaderTest, EmptyAndMissingFilesAreNotYet) {
  EXPECT_EQ(reader_.ReadFile(kFile).error().code, ErrorCode::kNotFound);
  Put(kFile, "");
  EXPECT_EQ(reader_.ReadFile(kFile).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(reader_.ReadRequest("c", "gpu").error().code, ErrorCode::kNotFound);
  EXPECT_THAT(reader_.ReadAll().error().message, HasSubstr("no metadata yet"));
}

TEST_F(MetadataReaderTest, WaitsUntilItIsWritten) {
  int pauses = 0;
  time_.on_pause = [&] {
    if (++pauses == 10) Put(kFile, "");
    if (pauses == 20) Put(kFile, Text(Metadata()));
  };
  const auto read = reader_.ReadRequest("c", "gpu", std::chrono::seconds(5));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_GE(pauses, 20);
  EXPECT_TRUE(reader_.ReadAll(std::chrono::seconds(1)).ok());
}

// With inotify there is no polling.
TEST_F(MetadataReaderTest, WaitsForNotifications) {
  Put(kFile, "");
  time_.watches = true;
  std::vector<Duration> waits;
  time_.on_wait = [&](Duration limit) {
    waits.push_back(limit);
    if (waits.size() == 3) Put(kFile, Text(Metadata()));
  };
  for (const auto& read :
       {std::function<bool()>([&] { return reader_.ReadFile(kFile, kWait).ok(); }),
        std::function<bool()>([&] { return reader_.ReadRequest("c", "gpu", kWait).ok(); }),
        std::function<bool()>([&] { return reader_.ReadAll(kWait).ok(); })}) {
    Put(kFile, "");
    waits.clear();
    EXPECT_TRUE(read());
    // It waits for a notification; polling is only for file systems without any.
    EXPECT_THAT(waits, ElementsAre(std::chrono::seconds(1), std::chrono::seconds(1),
                                   std::chrono::seconds(1)));
    EXPECT_THAT(time_.watched, ::testing::Contains(kFile));
  }
  EXPECT_THAT(time_.watched, ::testing::Contains("/var/run/dra-device-attributes"));
  EXPECT_THAT(time_.watched,
              ::testing::Contains("/var/run/kubernetes.io/dra-device-attributes/resourceclaims"));
}

TEST_F(MetadataReaderTest, StopsWaitingAtTheDeadline) {
  const MonotonicTime begun = time_.Monotonic();
  const auto read = reader_.ReadRequest("c", "gpu", std::chrono::milliseconds(250));
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_THAT(read.error().message, HasSubstr("after 250 ms"));
  EXPECT_GE(time_.Monotonic() - begun, std::chrono::milliseconds(250));
  EXPECT_LE(time_.Monotonic() - begun, std::chrono::milliseconds(300));
  EXPECT_EQ(reader_.ReadAll(std::chrono::milliseconds(50)).error().code,
            ErrorCode::kDeadlineExceeded);
}

// One of two requests has deferred metadata.
TEST_F(MetadataReaderTest, ReturnsWhatIsAvailableAndListsWhatIsMissing) {
  const std::string missing = "/var/run/dra-device-attributes/c/nic/d.example.com-metadata.json";
  const std::string also =
      "/var/run/kubernetes.io/dra-device-attributes/resourceclaims/c/nic/"
      "d.example.com-metadata.json";
  Put(kFile, Text(Metadata()));
  Put(missing, "");
  Put(also, "");
  EXPECT_EQ(reader_.ReadRequest("c", "").error().code, ErrorCode::kNotFound) << "all or nothing";
  EXPECT_EQ(reader_.ReadAll().error().code, ErrorCode::kNotFound);
  EXPECT_EQ(reader_.ReadAll(kWait).error().code, ErrorCode::kDeadlineExceeded);

  const auto part = reader_.ReadRequest("c", "", Reader::kNoWait, &pending_);
  ASSERT_TRUE(part.ok()) << part.error().message;
  EXPECT_EQ(*part, Metadata());
  EXPECT_THAT(pending_, ElementsAre(missing));
  const MonotonicTime before = time_.Monotonic();
  const auto all = reader_.ReadAll(kWait, &pending_);
  ASSERT_TRUE(all.ok()) << all.error().message;
  EXPECT_THAT(*all, ElementsAre(Metadata()));
  EXPECT_THAT(pending_, ElementsAre(missing)) << "mounted twice, listed once";
  EXPECT_GE(time_.Monotonic() - before, kWait) << "waits for the rest";

  std::string note;
  EXPECT_EQ(*RunQuery({.claim = "c"}, reader_, pending_), Text(Metadata()));
  EXPECT_EQ(PartialExit({.claim = "c"}, pending_, note), 0);
  EXPECT_EQ(note, missing + ": no metadata yet\n");
  EXPECT_EQ(PartialExit({.claim = "c", .wait = kWait}, pending_, note), 3);

  Put(kFile, "");
  EXPECT_EQ(reader_.ReadAll(Reader::kNoWait, &pending_).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(reader_.ReadRequest("c", "", kWait, &pending_).error().code,
            ErrorCode::kDeadlineExceeded);
  Put(kFile, "{broken");
  EXPECT_EQ(reader_.ReadAll(Reader::kNoWait, &pending_).error().code, ErrorCode::kInvalidArgument);
  Put(kFile, Text(Metadata()));
  Put(missing, Text(Metadata("d.example.com", "nic")));
  Put(also, Text(Metadata("d.example.com", "nic")));
  EXPECT_TRUE(reader_.ReadAll(Reader::kNoWait, &pending_).ok());
  EXPECT_TRUE(pending_.empty());
}

TEST_F(MetadataReaderTest, ATornReadIsRetried) {
  const std::string whole = Text(Metadata());
  for (const std::string& torn : {whole.substr(0, 40), std::string()}) {
    Put(kFile, torn);
    time_.on_pause = [&] { Put(kFile, whole); };
    const auto read = reader_.ReadFile(kFile);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(*read, Metadata());
  }
}

TEST_F(MetadataReaderTest, CorruptFilesAndUnknownVersionsAreErrorsThatNameTheFile) {
  Put(kFile, "{\"apiVersion\":");
  EXPECT_EQ(reader_.ReadFile(kFile).error().message,
            StrCat(kFile, ": read metadata object from stream: unexpected EOF"));
  Put(kFile, R"({"apiVersion":"metadata.resource.k8s.io/v9","kind":"DeviceMetadata"})");
  EXPECT_THAT(reader_.ReadRequest("c", "gpu", std::chrono::seconds(1)).error().message,
              HasSubstr("unknown versions: metadata.resource.k8s.io/v9"));
}

TEST_F(MetadataReaderTest, AFileThatCannotBeReadIsAnErrorAndNotMissing) {
  ASSERT_TRUE(files_.MakeDirectories(kFile, 0755).ok());
  const auto read = reader_.ReadFile(kFile, kWait);
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().code, ErrorCode::kNotFound);
  EXPECT_NE(read.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_FALSE(reader_.ReadRequest("c", "gpu", Reader::kNoWait, &pending_).ok());
  EXPECT_TRUE(pending_.empty());
}

// A writer that never finishes: what is read is never complete and never the same twice.
TEST_F(MetadataReaderTest, GivesUpOnAFileThatIsNeverComplete) {
  const std::string whole = Text(Metadata());
  std::size_t size = 40;
  Put(kFile, whole.substr(0, size));
  int pauses = 0;
  time_.on_pause = [&] {
    ++pauses;
    Put(kFile, whole.substr(0, ++size));
  };
  EXPECT_THAT(reader_.ReadFile(kFile).error().message, HasSubstr("unexpected EOF"));
  EXPECT_EQ(pauses, 7) << "eight attempts";
}

TEST_F(MetadataReaderTest, ACorruptFileThatStaysTheSameIsNotReadEightTimes) {
  Put(kFile, "{broken");
  int pauses = 0;
  time_.on_pause = [&] { ++pauses; };
  EXPECT_FALSE(reader_.ReadFile(kFile).ok());
  EXPECT_EQ(pauses, 2);
}

TEST_F(MetadataReaderTest, AnEmptyFileIsReadTwice) {
  Put(kFile, "");
  int pauses = 0;
  time_.on_pause = [&] { ++pauses; };
  EXPECT_EQ(reader_.ReadFile(kFile).error().message, StrCat(kFile, ": no metadata yet"));
  EXPECT_EQ(pauses, 1);
}

TEST_F(MetadataReaderTest, LooksBelowTheGivenRoot) {
  Reader inside({.files = &files_, .clock = &time_, .pause = &time_, .root = "/proc/7/root"});
  Put(StrCat("/proc/7/root", kFile), Text(Metadata()));
  EXPECT_EQ(*inside.ReadRequest("c", "gpu"), Metadata());
  EXPECT_THAT(*inside.ReadAll(), ElementsAre(Metadata()));
  EXPECT_FALSE(reader_.ReadRequest("c", "gpu").ok());
}

TEST_F(MetadataReaderTest, WatchesEveryDirectoryAndFile) {
  const std::string kubernetes = "/var/run/kubernetes.io/dra-device-attributes";
  Put(kFile, "");
  Put(kubernetes + "/resourceclaimtemplates/dev/gpu/d.example.com-metadata.json", "");
  time_.watches = true;
  time_.on_wait = [&](Duration) {
    Put(kFile, Text(Metadata()));
    Put(kubernetes + "/resourceclaimtemplates/dev/gpu/d.example.com-metadata.json",
        Text(Metadata("d.example.com", "gpu", "dev")));
  };
  ASSERT_TRUE(reader_.ReadAll(kWait).ok());
  EXPECT_THAT(
      time_.watched,
      UnorderedElementsAre(
          "/var/run/dra-device-attributes", "/var/run/dra-device-attributes/c",
          "/var/run/dra-device-attributes/c/gpu", kFile, kubernetes + "/resourceclaims",
          kubernetes + "/resourceclaimtemplates", kubernetes + "/resourceclaimtemplates/dev",
          kubernetes + "/resourceclaimtemplates/dev/gpu",
          kubernetes + "/resourceclaimtemplates/dev/gpu/d.example.com-metadata.json"));
}

TEST_F(MetadataReaderTest, TheErrorNamesClaimRequestAndBothDirectories) {
  const std::string where =
      " in /var/run/dra-device-attributes or /var/run/kubernetes.io/dra-device-attributes";
  EXPECT_EQ(reader_.ReadRequest("c", "gpu").error().message,
            "no metadata files found for claim c and request gpu" + where);
  EXPECT_EQ(reader_.ReadRequest("c", "").error().message,
            "no metadata files found for claim c" + where);
  EXPECT_THAT(reader_.ReadAll(std::chrono::milliseconds(1)).error().message,
              HasSubstr("no metadata files found" + where));
}

// Files without a uid are from drivers that do not write it.
TEST_F(MetadataReaderTest, AFileWithoutAUidBelongsToTheClaimItIsMountedFor) {
  DeviceMetadata anonymous = Metadata("kube.com");
  anonymous.claim_uid.clear();
  Put(kFile, Text(Metadata()));
  Put("/var/run/kubernetes.io/dra-device-attributes/resourceclaims/c/gpu/kube.com-metadata.json",
      Text(anonymous));
  const auto read = reader_.ReadRequest("c", "gpu");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->requests[0].devices.size(), 2u);
}

TEST_F(MetadataReaderTest, AnotherClaimsFilesAreNotReadForATemplatesName) {
  const std::string ours = "/var/run/dra-device-attributes/";
  DeviceMetadata one = Metadata("d.example.com", "gpu", "pod-one-x");
  one.pod_claim_name = "one";
  DeviceMetadata two = Metadata("e.example.com", "gpu", "pod-two-x");
  two.pod_claim_name = "two";
  Put(ours + "pod-one-x/gpu/d.example.com-metadata.json", Text(one));
  Put(ours + "pod-two-x/gpu/e.example.com-metadata.json", Text(two));
  Put(ours + "pod-zzz-x/gpu/f.example.com-metadata.json", "{broken");
  EXPECT_EQ(*reader_.ReadRequest("one", "gpu"), one);
  EXPECT_EQ(*reader_.ReadRequest("two", "gpu"), two);
}

TEST_F(MetadataReaderTest, NamesMustNotBePaths) {
  EXPECT_EQ(reader_.ReadRequest(".", "gpu").error().message, "claim \".\" is not a valid name");
  EXPECT_EQ(reader_.ReadRequest("c", ".").error().message, "request \".\" is not a valid name");
  EXPECT_EQ(reader_.ReadRequest(std::string("c\0d", 3), "gpu").error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(reader_.ReadRequest("a/b", "gpu").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(reader_.ReadRequest("../x", "gpu").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(reader_.ReadRequest("..", "gpu").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(reader_.ReadRequest("c", "..").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(reader_.ReadRequest("", "gpu").error().code, ErrorCode::kInvalidArgument);
}

TEST_F(MetadataReaderTest, PrintsEveryClaimRequestAndDevice) {
  DeviceMetadata one = Metadata("d.example.com", "gpu", "one");
  one.pod_claim_name = "";
  one.requests[0].devices.push_back(one.requests[0].devices[0]);
  one.requests[0].devices[1].name = "gpu-1";
  one.requests.push_back({"nic/fast", {}});
  DeviceMetadata two = Metadata("d.example.com", "gpu", "two");
  two.pod_claim_name = "my-two";
  two.requests[0].devices[0].attributes = {{"text", std::string("a\0b", 3)}};
  Put("/var/run/dra-device-attributes/one/gpu/d.example.com-metadata.json", Text(one));
  Put("/var/run/dra-device-attributes/two/gpu/d.example.com-metadata.json", Text(two));
  EXPECT_EQ(ToEnvironment(one),
            "DRA_ONE_GENERATION='1'\n"
            "DRA_ONE_GPU_COUNT='2'\n"
            "DRA_ONE_GPU_0_DEVICE='gpu-0'\nDRA_ONE_GPU_0_DRIVER='d.example.com'\n"
            "DRA_ONE_GPU_0_POOL='node'\nDRA_ONE_GPU_0_ATTR_MODEL='it'\\''s'\n"
            "DRA_ONE_GPU_0_ATTR_RESOURCE_KUBERNETES_IO_NUMANODE='3'\n"
            "DRA_ONE_GPU_1_DEVICE='gpu-1'\nDRA_ONE_GPU_1_DRIVER='d.example.com'\n"
            "DRA_ONE_GPU_1_POOL='node'\nDRA_ONE_GPU_1_ATTR_MODEL='it'\\''s'\n"
            "DRA_ONE_GPU_1_ATTR_RESOURCE_KUBERNETES_IO_NUMANODE='3'\n"
            "DRA_ONE_NIC_COUNT='0'\n");
  EXPECT_EQ(ToEnvironment(two),
            "DRA_MY_TWO_GENERATION='1'\n"
            "DRA_MY_TWO_GPU_COUNT='1'\n"
            "DRA_MY_TWO_GPU_0_DEVICE='gpu-0'\nDRA_MY_TWO_GPU_0_DRIVER='d.example.com'\n"
            "DRA_MY_TWO_GPU_0_POOL='node'\nDRA_MY_TWO_GPU_0_ATTR_TEXT='ab'\n")
      << "a shell cannot hold a null byte";
  EXPECT_EQ(RunQuery({.output = "env"}, reader_, pending_)->find("DRA_MY_TWO_GENERATION"),
            ToEnvironment(*reader_.ReadRequest("one", "")).size());
  EXPECT_EQ(*RunQuery({.output = "jsonpath={.items[*].metadata.name}"}, reader_, pending_),
            "one two\n");
  EXPECT_THAT(*RunQuery({}, reader_, pending_), HasSubstr("\"kind\": \"DeviceMetadataList\""));
  EXPECT_FALSE(RunQuery({.output = "jsonpath={"}, reader_, pending_).ok());
  EXPECT_FALSE(RunQuery({.file = "/nowhere"}, reader_, pending_).ok());
  std::string note;
  EXPECT_EQ(PartialExit({.wait = kWait}, {}, note), 0);
  EXPECT_EQ(note, "");
}

TEST_F(MetadataReaderTest, PrintsForShells) {
  DeviceMetadata metadata = Metadata();
  metadata.requests[0].devices[0].network_data =
      NetworkDeviceData{"eth0", {"10.0.0.5/24", "fd00::1/64"}, "aa:bb"};
  metadata.requests[0].devices[0].attributes["ints"] = std::vector<std::int64_t>{1, 2};
  Put(kFile, Text(metadata));
  EXPECT_EQ(*RunQuery({.claim = "c", .request = "gpu", .output = "env"}, reader_, pending_),
            "DRA_C_GENERATION='1'\n"
            "DRA_C_GPU_COUNT='1'\n"
            "DRA_C_GPU_0_DEVICE='gpu-0'\n"
            "DRA_C_GPU_0_DRIVER='d.example.com'\n"
            "DRA_C_GPU_0_POOL='node'\n"
            "DRA_C_GPU_0_ATTR_INTS='1 2'\n"
            "DRA_C_GPU_0_ATTR_MODEL='it'\\''s'\n"
            "DRA_C_GPU_0_ATTR_RESOURCE_KUBERNETES_IO_NUMANODE='3'\n"
            "DRA_C_GPU_0_INTERFACE='eth0'\n"
            "DRA_C_GPU_0_IPS='10.0.0.5/24 fd00::1/64'\n"
            "DRA_C_GPU_0_HARDWARE_ADDRESS='aa:bb'\n");
  EXPECT_EQ(*RunQuery({.claim = "c",
                       .output = "jsonpath={.requests[0].devices[0].attributes.model.string}"},
                      reader_, pending_),
            "it's\n");
  EXPECT_EQ(*RunQuery({.output = "jsonpath={.items[*].metadata.name}"}, reader_, pending_), "c\n");
  EXPECT_EQ(*RunQuery({.file = kFile}, reader_, pending_), Text(metadata));
  EXPECT_THAT(RunQuery({.output = "yaml"}, reader_, pending_).error().message,
              HasSubstr("must be json, env or jsonpath=TEMPLATE"));
}

}  // namespace
}  // namespace drakkar::metadata
