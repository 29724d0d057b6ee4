#include "sanity/sanity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/memory_file_system.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "rpc/testing/fake_dra_plugin.h"
#include "rpc/testing/memory_transport.h"
#include "sdk/driver/reference/reference_driver.h"
#include "tests/support/api_server.h"

namespace drakkar::sanity {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SanityTest : public ::testing::Test {
 protected:
  SanityTest() : api_(loop_), transport_(loop_) {
    api_.Create(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}})");
  }

  Options MakeOptions(const std::string& socket) {
    return {.loop = loop_,
            .random = loop_.random(),
            .files = files_,
            .client = api_.client(),
            .transport = transport_,
            .wait_until =
                [this](const std::function<bool()>& condition, Duration limit) {
                  loop_.RunUntilIdle();
                  if (condition()) return true;
                  loop_.Advance(limit);
                  return condition();
                },
            .driver_socket = socket,
            .node_name = "n1",
            .cdi_directories = {"/cdi"}};
  }
  std::vector<std::string> Failures(const Report& report) {
    std::vector<std::string> failures;
    for (const CheckResult& check : report.checks) {
      if (check.outcome == Outcome::kFailed) failures.push_back(StrCat(check.id, ": ", check.why));
    }
    return failures;
  }

  SeededLoop loop_;
  testing::TestApiServer api_;
  rpc::MemoryTransport transport_;
  MemoryFileSystem files_;
};

class ReferenceUnderTest : public SanityTest {
 protected:
  void Start() { driver_ = StartInstance("", "/plugin"); }
  std::unique_ptr<driver::ReferenceDriver> StartInstance(const std::string& pod_uid,
                                                         const std::string& directory) {
    auto instance = std::make_unique<driver::ReferenceDriver>(
        driver::ReferenceDriver::Options{.loop = loop_,
                                         .random = loop_.random(),
                                         .files = files_,
                                         .client = api_.client(),
                                         .transport = transport_,
                                         .node_name = "n1",
                                         .registry_directory = "/registry",
                                         .plugin_directory = directory,
                                         .cdi_directory = "/cdi",
                                         .pod_uid = pod_uid,
                                         .devices = *driver::ParseDeviceConfig("")});
    EXPECT_TRUE(instance->Start().ok());
    loop_.RunUntilIdle();
    return instance;
  }
  std::unique_ptr<driver::ReferenceDriver> driver_;
};

TEST_F(ReferenceUnderTest, TheReferenceDriverPassesEveryCheck) {
  Start();
  Options options = MakeOptions("/registry/sim.drakkar.io-reg.sock");
  options.restart_driver = [this]() -> Result<void> {
    driver_.reset();
    loop_.RunUntilIdle();
    Start();
    return Ok();
  };
  options.slow = true;
  const Report report = RunSanity(options);
  EXPECT_THAT(Failures(report), IsEmpty());
  EXPECT_EQ(report.Count(Outcome::kSkipped),
            1u);  // rolling updates, which have their own test
  EXPECT_GE(report.Count(Outcome::kPassed), 25u);
  EXPECT_EQ(report.driver, "sim.drakkar.io");
  // Nothing is left behind.
  EXPECT_FALSE(files_.ListDirectory("/cdi").ok() && !files_.ListDirectory("/cdi")->empty());
}

TEST_F(ReferenceUnderTest, WithoutARestartCommandThoseChecksAreSkipped) {
  Start();
  const Report report = RunSanity(MakeOptions("/registry/sim.drakkar.io-reg.sock"));
  EXPECT_EQ(report.Count(Outcome::kSkipped),
            5u);  // including repeated reports of three health services, and rolling
  EXPECT_THAT(RenderTable(report), HasSubstr("restart.prepared"));
  EXPECT_THAT(RenderJson(report), HasSubstr("\"failed\": 0"));
}

class RollingUnderTest : public ReferenceUnderTest {
 protected:
  // The lock shared by instances is a real file.
  RollingUnderTest() : directory_(::testing::TempDir() + "/sanity_rolling") {
    EXPECT_TRUE(RealFileSystem().MakeDirectories(directory_, 0755).ok());
    driver_ = StartInstance("a", directory_);
    options_.emplace(MakeOptions("/registry/sim.drakkar.io-a-reg.sock"));
    options_->start_second = [this]() -> Result<std::string> {
      second_ = StartInstance("b", directory_);
      return std::string("/registry/sim.drakkar.io-b-reg.sock");
    };
    options_->stop_first = [this]() -> Result<void> {
      driver_.reset();
      loop_.RunUntilIdle();
      return Ok();
    };
  }
  ~RollingUnderTest() override { static_cast<void>(RealFileSystem().RemoveTree(directory_)); }
  const std::string directory_;
  std::unique_ptr<driver::ReferenceDriver> second_;
  std::optional<Options> options_;
};

TEST_F(RollingUnderTest, TwoInstancesHandOver) {
  const Report report = RunSanity(*options_);
  EXPECT_THAT(Failures(report), IsEmpty());
  EXPECT_THAT(RenderTable(report), HasSubstr("rolling.handover"));
}

TEST_F(RollingUnderTest, AnInstanceThatUsesTheOthersSocketsFails) {
  options_->start_second = []() -> Result<std::string> {
    return std::string("/registry/sim.drakkar.io-a-reg.sock");
  };
  EXPECT_THAT(
      Failures(RunSanity(*options_)),
      Contains("rolling.beside: both instances register at /registry/sim.drakkar.io-a-reg.sock"));
}

TEST_F(RollingUnderTest, AFirstInstanceThatDoesNotExitFails) {
  options_->stop_first = []() -> Result<void> { return FailedPrecondition("it does not listen"); };
  EXPECT_THAT(Failures(RunSanity(*options_)), Contains("rolling.handover: it does not listen"));
}

// A cluster in use: other nodes, devices in use, and a controller that releases claims without a
// pod.
class ClusterUnderTest : public ReferenceUnderTest {
 protected:
  void PutSliceOfAnotherNode() {
    api_.Create(
        R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":"other"},
      "spec":{"driver":"sim.drakkar.io","nodeName":"n2","pool":{"name":"n2","generation":1,"resourceSliceCount":2},
      "devices":[{"name":"far-0"}]}})");
  }
  void Hold(const std::string& device) {
    api_.Create(StrCat(
        R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"of-)",
        device, R"(","namespace":"default"},"spec":{"devices":{"requests":[{"name":"r","exactly":)",
        R"({"deviceClassName":"sim"}}]}}})"));
    api::Draft draft(api_.Get("ResourceClaim", "default/of-" + device)->tree());
    draft["status"]["allocation"]["devices"]["results"].Append({{"request", "r"},
                                                                {"driver", "sim.drakkar.io"},
                                                                {"pool", "n1"},
                                                                {"device", api::Draft(device)}});
    const auto reply =
        api_.Update("ResourceClaim", "default/of-" + device, "status", draft.Freeze());
    ASSERT_TRUE(reply.ok()) << reply.error->message;
  }
  const CheckResult* Find(const Report& report, std::string_view id) {
    for (const CheckResult& check : report.checks) {
      if (check.id == id) return &check;
    }
    return nullptr;
  }
};

TEST_F(ClusterUnderTest, OnlySlicesOfTheNodeCount) {
  Start();
  PutSliceOfAnotherNode();
  Options options = MakeOptions("/registry/sim.drakkar.io-reg.sock");
  EXPECT_THAT(Failures(RunSanity(options)), IsEmpty());
  options.node_name.clear();
  EXPECT_THAT(Failures(RunSanity(options)),
              Contains("slices.published: driver sim.drakkar.io has slices for several nodes (n1, "
                       "n2); choose one with --node-name"));
  options.node_name = "n3";
  EXPECT_THAT(Failures(RunSanity(options)),
              Contains("slices.published: no ResourceSlices of driver sim.drakkar.io for node n3"));
}

TEST_F(ClusterUnderTest, TheOnlyNodeNeedNotBeNamed) {
  Start();
  Options options = MakeOptions("/registry/sim.drakkar.io-reg.sock");
  options.node_name.clear();
  const Report report = RunSanity(options);
  EXPECT_THAT(Failures(report), IsEmpty());
  ASSERT_NE(Find(report, "prepare.one"), nullptr);
}

TEST_F(ClusterUnderTest, AllocatedDevicesAreLeftAlone) {
  Start();
  Hold("sim-0");
  const Report report = RunSanity(MakeOptions("/registry/sim.drakkar.io-reg.sock"));
  EXPECT_THAT(Failures(report), IsEmpty());
  const CheckResult* in_use = Find(report, "slices.in-use");
  ASSERT_NE(in_use, nullptr);
  EXPECT_EQ(in_use->outcome, Outcome::kSkipped);
  EXPECT_THAT(in_use->why, HasSubstr("are allocated and left alone: n1/sim-0"));
  EXPECT_FALSE(files_.Exists("/plugin/devices/sim-0")) << "prepared for another claim";
}

TEST_F(ClusterUnderTest, WithoutAFreeDeviceNothingIsPrepared) {
  Start();
  const auto config = driver::ParseDeviceConfig("");
  for (const driver::SimulatedDevice& device : config->devices) Hold(device.device.name);
  const Report report = RunSanity(MakeOptions("/registry/sim.drakkar.io-reg.sock"));
  EXPECT_THAT(Failures(report), IsEmpty());
  const CheckResult* one = Find(report, "prepare.one");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->outcome, Outcome::kSkipped);
  EXPECT_THAT(one->why, HasSubstr("are allocated and left alone"));
}

TEST_F(ClusterUnderTest, ClaimsAreReservedForAPodThatNeverRuns) {
  Start();
  bool looked = false;
  Options options = MakeOptions("/registry/sim.drakkar.io-reg.sock");
  options.on_result = [&](const CheckResult& result) {
    if (result.id != "prepare.one") return;
    looked = true;
    std::vector<api::ObjectPtr> claims;
    std::vector<api::ObjectPtr> pods;
    api_.client().List({.kind = testing::KindNamed("ResourceClaim")}, {},
                       [&](client::ListReply reply) { claims = std::move(reply.items); });
    api_.client().List({.kind = testing::KindNamed("Pod")}, {},
                       [&](client::ListReply reply) { pods = std::move(reply.items); });
    loop_.RunUntilIdle();
    ASSERT_EQ(claims.size(), 1u);
    ASSERT_EQ(pods.size(), 1u);
    EXPECT_EQ((*claims[0])["status"]["reservedFor"].at(0)["uid"].str(), pods[0]->uid());
    EXPECT_EQ((*pods[0])["spec"]["schedulingGates"].size(), 1u);
  };
  EXPECT_THAT(Failures(RunSanity(options)), IsEmpty());
  EXPECT_TRUE(looked);
  std::vector<api::ObjectPtr> pods;
  api_.client().List({.kind = testing::KindNamed("Pod")}, {},
                     [&](client::ListReply reply) { pods = std::move(reply.items); });
  loop_.RunUntilIdle();
  EXPECT_THAT(pods, IsEmpty());
}

TEST_F(ClusterUnderTest, TheServiceSocketDoesNotReportTheDriversName) {
  Start();
  Options options = MakeOptions("/plugin/dra.sock");
  EXPECT_THAT(Failures(RunSanity(options)), Contains(HasSubstr("use --driver-name")));
  options.driver_name = "sim.drakkar.io";
  const Report report = RunSanity(options);
  EXPECT_THAT(Failures(report), IsEmpty());
  EXPECT_EQ(report.driver, "sim.drakkar.io");
  ASSERT_NE(Find(report, "prepare.one"), nullptr);
  EXPECT_EQ(Find(report, "prepare.one")->outcome, Outcome::kPassed);
}

TEST_F(ClusterUnderTest, ADriverWithAnotherNameFails) {
  Start();
  Options options = MakeOptions("/registry/sim.drakkar.io-reg.sock");
  options.driver_name = "gpu.example.com";
  EXPECT_THAT(
      Failures(RunSanity(options)),
      Contains(
          "registration.info: its name is \"sim.drakkar.io\", but must be \"gpu.example.com\""));
}

// A driver that does everything wrong.
class BrokenUnderTest : public SanityTest {
 protected:
  BrokenUnderTest() : plugin_("broken.example.com") {
    plugin_.info.endpoint = "/broken.sock";
    server_ = rpc::CreateServer(transport_, "/broken.sock", plugin_.Services());
    EXPECT_TRUE(server_->Start().ok());
  }
  void Publish(std::int64_t announced) {
    api_.Create(StrCat(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice",
      "metadata":{"name":"s"},"spec":{"driver":"broken.example.com","nodeName":"n1",
      "pool":{"name":"n1","generation":1,"resourceSliceCount":)",
                       announced, R"(},
      "devices":[{"name":"a"},{"name":"b"}]}})"));
  }
  rpc::FakeDraPlugin plugin_;
  std::unique_ptr<rpc::Server> server_;
};

TEST_F(BrokenUnderTest, EachMistakeIsReported) {
  Publish(2);
  int calls = 0;
  plugin_.prepare_claim = [&](const rpc::ClaimReference&) {
    return rpc::PrepareResult{.devices = {{.request_names = {"sanity"},
                                           .pool_name = "n1",
                                           .device_name = "a",
                                           .cdi_device_ids = {StrCat("v.com/c=d", calls++)}}}};
  };
  plugin_.unprepare_claim = [&](const rpc::ClaimReference&) {
    return rpc::UnprepareResult{"never heard of it"};
  };
  plugin_.PushHealth({{.pool_name = "n1", .device_name = "ghost"}});
  const std::vector<std::string> failures = Failures(RunSanity(MakeOptions("/broken.sock")));
  EXPECT_THAT(
      failures,
      Contains(HasSubstr(
          "slices.complete: pool n1 has 1 slices of generation 1, but resourceSliceCount is 2")));
  EXPECT_THAT(failures, Contains(HasSubstr("slices.owned: slice s is not owned by node n1")));
  EXPECT_THAT(failures, Contains(HasSubstr("prepare.cdi: unresolvable CDI devices v.com/c=d0")));
  EXPECT_THAT(failures, Contains("prepare.repeat: the second response differs from the first"));
  EXPECT_THAT(failures, Contains("prepare.unknown: the claim was prepared"));
  EXPECT_THAT(failures, Contains("prepare.unallocated: the claim was prepared"));
  EXPECT_THAT(failures, Contains("unprepare.unknown: never heard of it"));
  EXPECT_THAT(failures, Contains("health.v1.DRAResourceHealth: n1/ghost is not published"));
}

TEST_F(BrokenUnderTest, CdiIdsThatRemainAfterUnprepareAreReported) {
  Publish(1);
  plugin_.prepare_claim = [&](const rpc::ClaimReference& claim) {
    const std::string spec =
        StrCat(R"({"cdiVersion":"0.5.0","kind":"v.com/c","devices":[{"name":"x)", claim.uid,
               R"(","containerEdits":{"env":["A=b"]}}]})");
    EXPECT_TRUE(files_.MakeDirectories("/cdi", 0755).ok());
    EXPECT_TRUE(files_.WriteFile(StrCat("/cdi/", claim.uid, ".json"), spec, 0644).ok());
    return rpc::PrepareResult{.devices = {{.request_names = {"sanity"},
                                           .pool_name = "n1",
                                           .device_name = "a",
                                           .cdi_device_ids = {"v.com/c=x" + claim.uid}}}};
  };
  EXPECT_THAT(
      Failures(RunSanity(MakeOptions("/broken.sock"))),
      Contains(::testing::AllOf(HasSubstr("unprepare.cdi: v.com/c=x"), HasSubstr("still exists"))));
}

TEST_F(BrokenUnderTest, ADriverThatDoesNotRespondFailsInsteadOfHanging) {
  Publish(1);
  plugin_.hold_calls = true;
  const std::vector<std::string> failures = Failures(RunSanity(MakeOptions("/broken.sock")));
  EXPECT_THAT(failures, Contains(HasSubstr("prepare.one: ")));
  EXPECT_THAT(failures, Contains(HasSubstr("prepare.concurrent: ")));
}

TEST_F(SanityTest, ASocketWithoutAListenerFails) {
  const Report report = RunSanity(MakeOptions("/nobody.sock"));
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.checks.front().id, "registration.info");
}

}  // namespace
}  // namespace drakkar::sanity
