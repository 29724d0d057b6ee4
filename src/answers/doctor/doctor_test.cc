#include "answers/doctor/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "answers/render/doctor.h"
#include "answers/testing/snapshots.h"
#include "api/json/reader.h"
#include "device/cel_expressions.h"

namespace drakkar::answers {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kClass[] =
    "---\nkind: DeviceClass\nmetadata: {name: gpu.example.com}\n"
    "spec: {selectors: [{cel: {expression: \"device.driver == 'gpu.example.com'\"}}]}\n";

class DoctorTest : public ::testing::Test {
 protected:
  DoctorAnswer Ask(const std::string& yaml) {
    snapshot_ = FromYaml(yaml);
    DoctorInput input{.snapshot = snapshot_, .compiler = compiler_};
    input.nodes = nodes_;
    input.server = server_;
    input.scheduler_gates = scheduler_gates_;
    input.certificates = certificates_;
    return Diagnose(input);
  }
  // The findings as "check: first object".
  std::vector<std::string> Found(const std::string& yaml) {
    std::vector<std::string> found;
    for (const Finding& finding : Ask(yaml).findings) {
      found.push_back(StrCat(finding.check, ": ", finding.objects.front()));
    }
    return found;
  }
  ServerFacts& Server() {
    if (!server_)
      server_ =
          ServerFacts{.gates = {}, .now = Time("12:00:00"), .unattended = {}, .certificates = {}};
    return *server_;
  }
  static WallTime Time(std::string_view clock) {
    return api::ParseTime(StrCat("2026-01-01T", clock, "Z")).value();
  }

  device::CelExpressions compiler_;
  Snapshot snapshot_;
  std::map<std::string, NodeDrivers> nodes_;
  std::optional<ServerFacts> server_;
  std::map<std::string, bool> scheduler_gates_;
  std::vector<CertificateFact> certificates_;
};

const std::string kHealthy = StrCat(Node("n1"), Slice("n1", "[{name: a}, {name: b}]"), kClass,
                                    HeldClaim("c", "n1", {"a"}, "p"), RunningPod("p", "n1"));

TEST_F(DoctorTest, FindsNothingInAHealthyCluster) {
  nodes_["n1"].drivers["gpu.example.com"] = true;
  Server().gates["DRADeviceTaints"] = true;
  scheduler_gates_["DRADeviceTaints"] = true;
  certificates_ = {{"client certificate", Time("12:00:00") + std::chrono::hours(24 * 300), ""}};
  const DoctorAnswer answer = Ask(kHealthy);
  EXPECT_THAT(answer.findings, IsEmpty());
  EXPECT_EQ(RenderDoctor(answer, {}), "no problems found by 13 checks\n");
}

TEST_F(DoctorTest, FindsDriversThatAreNotRegistered) {
  nodes_["n1"];
  EXPECT_THAT(Found(kHealthy),
              ElementsAre("drivers: driver gpu.example.com on node n1: not registered"));
  nodes_["n1"].drivers["gpu.example.com"] = false;
  EXPECT_THAT(Found(kHealthy), ElementsAre("drivers: driver gpu.example.com on node n1: "
                                           "registered, but not connected"));
}

TEST_F(DoctorTest, FindsClassesPoolsAndSlicesThatAreOfNoUse) {
  EXPECT_THAT(Found(StrCat(Node("n1"), kClass)), ElementsAre("classes: class gpu.example.com"));
  EXPECT_THAT(Found(StrCat(Node("n1"),
                           "---\nkind: ResourceSlice\nmetadata: {name: s}\nspec: {driver: "
                           "gpu.example.com, nodeName: n1, pool: {name: n1, generation: 1, "
                           "resourceSliceCount: 2}, devices: [{name: a}]}\n")),
              ElementsAre(HasSubstr("pools: gpu.example.com/n1: ")));
  EXPECT_THAT(Found(Slice("gone", "[{name: a}]")),
              ElementsAre("slices: slice gone-gpu.example.com of node gone"));
}

TEST_F(DoctorTest, FindsClaimsWithoutPodsAndDevicesThatAreGone) {
  EXPECT_THAT(
      Found(StrCat(Node("n1"), Slice("n1", "[{name: a}]"), HeldClaim("c", "n1", {"a"}, "p"))),
      ElementsAre(AllOf(HasSubstr("claims: claim default/c: allocated for 3h"),
                        HasSubstr("reserved for pod p, which does not exist"))));
  EXPECT_THAT(Found(StrCat(Node("n1"), Slice("n1", "[{name: a}]"), HeldClaim("c", "n1", {"a"}))),
              ElementsAre(HasSubstr("no pod uses it")));
  EXPECT_THAT(Found(StrCat(Node("n1"), HeldClaim("c", "n1", {"a"}, "p"), RunningPod("p", "n1"))),
              ElementsAre("devices: device gpu.example.com/n1/a of claim default/c"));
}

TEST_F(DoctorTest, FindsWhatIsStuckInDeletion) {
  const auto pod = [](std::string_view due) {
    return StrCat(Node("n1"),
                  RunningPod("p", "n1", "default",
                             StrCat(", deletionGracePeriodSeconds: 30, deletionTimestamp: '", due,
                                    "', finalizers: [example.com/x]")));
  };
  EXPECT_THAT(Found(pod("2026-01-01T11:50:00Z")),
              ElementsAre(AllOf(HasSubstr("terminating: pod default/p: deleted for 10m"),
                                HasSubstr("finalizer example.com/x, waits for the controller of "
                                          "example.com"))));
  EXPECT_THAT(Found(pod("2026-01-01T11:59:00Z")), IsEmpty()) << "that is normal for a while";
}

TEST_F(DoctorTest, FindsUnreadableCdiSpecs) {
  nodes_["n1"] = ReadNodeDrivers(
      api::ParseJson(R"({"drivers":[{"name":"gpu.example.com","connected":true}],)"
                     R"("cdiErrors":[{"file":"/etc/cdi/x.json","error":"not JSON"}]})")
          .value()
          ->root());
  EXPECT_THAT(Found(kHealthy), ElementsAre("cdi: node n1, /etc/cdi/x.json: not JSON"));
}

TEST_F(DoctorTest, ComparesClocks) {
  Server().now = Time("12:01:00");
  const auto lease = [](std::string_view renewed) {
    return StrCat(kHealthy,
                  "---\nkind: Lease\nmetadata: {name: n1, managedFields: [{time: "
                  "'2026-01-01T11:59:50Z'}]}\nspec: {renewTime: '2026-01-01T",
                  renewed, "Z', leaseDurationSeconds: 40}\n");
  };
  EXPECT_THAT(Found(lease("11:59:50.000000")),
              ElementsAre("clocks: this machine: 60s behind the API server"));
  Server().now = Time("12:00:03");
  EXPECT_THAT(Found(lease("11:59:54.000000")), IsEmpty());
  EXPECT_THAT(Found(lease("12:04:50.000000")),
              ElementsAre("clocks: node n1: 5m ahead of the API server"));
}

TEST_F(DoctorTest, ComparesGatesAndDeclaredFeatures) {
  Server().gates = {{"DRADeviceTaints", false}, {"DRAAdminAccess", true}};
  scheduler_gates_ = {{"DRADeviceTaints", true}, {"DRAAdminAccess", true}, {"Other", true}};
  EXPECT_THAT(Found(kHealthy),
              ElementsAre("gates: DRADeviceTaints: on in the scheduler, off in the API server"));
  scheduler_gates_.clear();
  EXPECT_THAT(
      Found(StrCat(Node("n1"),
                   "---\nkind: ResourceSlice\nmetadata: {name: s}\nspec: {driver: d, nodeName: n1, "
                   "skipNodeOperations: true, pool: {name: n1, generation: 1, "
                   "resourceSliceCount: 1}, devices: [{name: a}]}\n")),
      ElementsAre("features: slice s on node n1"));
}

TEST_F(DoctorTest, FindsCertificatesThatExpireAndObjectsNobodyActsOn) {
  const auto facts = ReadServerFacts(
      api::ParseJson(R"({"now":"2026-01-01T12:00:00Z","featureGates":{"A":true},)"
                     R"("certificates":[{"name":"CA","notAfter":"2026-01-04T12:00:00Z",)"
                     R"("renewal":"make a new one"}],)"
                     R"("unattended":[{"kind":"Ingress","count":3,"warning":"nobody"}]})")
          .value()
          ->root());
  ASSERT_TRUE(facts);
  server_ = facts;
  EXPECT_THAT(Found(kHealthy), ElementsAre("unattended: 3 Ingress: nobody",
                                           "certificates: CA: expires in 3d; make a new one"));
  certificates_ = {{"client certificate", Time("11:00:00"), ""}};
  EXPECT_THAT(Found(kHealthy), ElementsAre("certificates: client certificate: expired 60m ago",
                                           "unattended: 3 Ingress: nobody"))
      << "an expired one is an error, and errors come first";
  EXPECT_FALSE(ReadServerFacts(api::ParseJson(R"({"kind":"Status"})").value()->root()));
}

TEST_F(DoctorTest, RendersInEightyColumnsAndAsJson) {
  std::string yaml = kHealthy;
  for (int i = 0; i < 120; ++i) yaml += Slice(StrCat("gone-", i), "[{name: a}]");
  const DoctorAnswer answer = Ask(yaml);
  ASSERT_EQ(answer.findings.size(), 1u);
  EXPECT_EQ(answer.findings[0].count, 120u);
  EXPECT_EQ(answer.findings[0].objects.size(), Finding::kMaxObjects);
  EXPECT_EQ(RenderDoctor(answer, {}),
            "0 errors, 1 warning in 13 checks\n\n"
            "warning slices: 120 ResourceSlices are of nodes that no longer exist\n"
            "  - slice gone-0-gpu.example.com of node gone-0\n"
            "  - slice gone-1-gpu.example.com of node gone-1\n"
            "  - slice gone-2-gpu.example.com of node gone-2\n"
            "  - slice gone-3-gpu.example.com of node gone-3\n"
            "  - slice gone-4-gpu.example.com of node gone-4\n"
            "  - ... (-o json shows up to 100)\n"
            "  what to do: drakkar delete resourceslice NAME, if the node does not come back\n");
  const api::TreePtr json = api::ParseJson(DoctorToJson(answer)).value();
  EXPECT_EQ(json->root().Entry("warnings").integer(), 1);
  EXPECT_EQ(json->root().Entry("findings").at(0).Entry("count").integer(), 120);
}

}  // namespace
}  // namespace drakkar::answers
