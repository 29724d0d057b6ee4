#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/codec/yaml_reader.h"
#include "api/meta/time.h"
#include "cli/describe_kinds.h"

namespace drakkar::cli {
namespace {

using api::TreePtr;
using api::Value;
using ::testing::HasSubstr;

TreePtr Yaml(std::string_view text) {
  return api::ParseYaml(text).value().at(0);
}

constexpr std::string_view kClaim = R"(
metadata: {name: gpu, namespace: default}
spec:
  devices:
    requests:
    - name: any
      firstAvailable:
      - {name: big, deviceClassName: big.example.com, allocationMode: All}
      - {name: small, deviceClassName: small.example.com, count: 2}
status:
  allocation:
    allocationTimestamp: "2026-01-01T00:00:00Z"
    nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}]}
    devices:
      results:
      - {request: any/small, driver: d.example.com, pool: p, device: dev-0,
         bindingConditions: [Attached], bindingFailureConditions: [Broken]}
      - {request: any/small, driver: d.example.com, pool: p, device: dev-1, shareID: s1,
         consumedCapacity: {memory: 1Gi}}
  devices:
  - {driver: d.example.com, pool: p, device: dev-0,
     conditions: [{type: Attached, status: "False", reason: Waiting, message: not yet}]}
  reservedFor: [{resource: pods, name: web, uid: u-1}]
)";

class DescribeTest : public ::testing::Test {
 protected:
  DescribeTest() {
    related_.now = api::ParseTime("2026-01-01T00:01:30Z").value();
    related_.get = [this](std::string_view, std::string_view, std::string_view name) {
      const auto found = objects_.find(std::string(name));
      return found == objects_.end() ? Value() : found->second->root();
    };
    related_.list = [this](std::string_view type, std::string_view, std::string_view) {
      const auto found = objects_.find(std::string(type));
      return found == objects_.end() ? Value() : found->second->root();
    };
  }

  std::map<std::string, TreePtr> objects_;
  RelatedObjects related_;
  Description description_;
};

TEST_F(DescribeTest, ClaimShowsAllocationConditionsAndUsers) {
  const TreePtr claim = Yaml(kClaim);
  DescribeResourceClaim(description_, claim->root(), related_);
  EXPECT_EQ(PrintDescription(description_),
            R"(State:         allocated,reserved
Requests:
  any:
    First Available Of:
      big:
        Device Class:  big.example.com
        Count:         all
      small:
        Device Class:  small.example.com
        Count:         2
Allocation:
  Since:  2026-01-01T00:00:00Z (90s)
  Nodes:  metadata.name In n1
  Devices:
    d.example.com/p/dev-0:
      Request:                     any/small
      Binding Conditions:          Attached
      Binding Failure Conditions:  Broken
      Conditions:
        Type       Status   Reason    Message
        Attached   False    Waiting   not yet
    d.example.com/p/dev-1 share s1:
      Request:   any/small
      Capacity:  memory: 1Gi
Reserved For:  pods/web (uid u-1)
)");
}

TEST_F(DescribeTest, PodShowsContainersHealthAndTheDevicesOfItsClaims) {
  objects_["gpu"] = Yaml(kClaim);
  const TreePtr pod = Yaml(R"(
metadata: {name: web, namespace: default}
spec:
  nodeName: n1
  resourceClaims:
  - {name: dev, resourceClaimTemplateName: tmpl}
  - {name: later, resourceClaimTemplateName: tmpl}
  containers:
  - {name: main, image: i, env: [{name: A, value: b}], resources: {claims: [{name: dev, request: any}]}}
status:
  phase: Running
  hostIP: 10.0.0.1
  resourceClaimStatuses: [{name: dev, resourceClaimName: gpu}]
  containerStatuses:
  - name: main
    ready: false
    restartCount: 3
    state: {waiting: {reason: CrashLoopBackOff, message: back-off}}
    lastState: {terminated: {exitCode: 2, reason: Error, startedAt: t1, finishedAt: t2}}
    allocatedResourcesStatus:
    - {name: "claim:dev", resources: [{resourceID: x/y/z, health: Unhealthy}]}
)");
  DescribePod(description_, pod->root(), related_);
  const std::string text = PrintDescription(description_);
  EXPECT_THAT(text, HasSubstr("Node:             n1/10.0.0.1\n"));
  EXPECT_THAT(text, HasSubstr("    State:            Waiting\n      Reason:   CrashLoopBackOff\n"));
  EXPECT_THAT(text, HasSubstr("      Exit Code:  2\n"));
  EXPECT_THAT(text, HasSubstr("    Restart Count:    3\n"));
  EXPECT_THAT(text, HasSubstr("    Device Health:    claim:dev x/y/z: Unhealthy\n"));
  EXPECT_THAT(text, HasSubstr("    Resource Claims:  dev (request any)\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "  dev:\n    Template:  tmpl\n    Claim:     gpu\n    State:     allocated,reserved\n"
          "    Devices:   d.example.com/p/dev-0\n"
          "               d.example.com/p/dev-1 share s1\n"));
  EXPECT_THAT(text, HasSubstr("  later:\n    Template:  tmpl\n    Claim:     <not created yet>\n"));
}

TEST_F(DescribeTest, APodThatWaitsForDevicesShowsItsNominatedNode) {
  const TreePtr pod = Yaml(R"(
metadata: {name: p, namespace: default}
spec: {containers: [{name: c, image: i}]}
status: {phase: Pending, nominatedNodeName: n7}
)");
  DescribePod(description_, pod->root(), related_);
  EXPECT_THAT(PrintDescription(description_), ::testing::ContainsRegex("NominatedNodeName: +n7\n"));
}

TEST_F(DescribeTest, SliceShowsItsDevices) {
  const TreePtr slice = Yaml(R"(
spec:
  driver: d.example.com
  pool: {name: p, generation: 2, resourceSliceCount: 1}
  nodeName: n1
  skipNodeOperations: ["*"]
  devices:
  - name: dev-0
    attributes: {model: {string: fast}, cores: {int: 8}}
    capacity: {memory: {value: 8Gi}}
    taints: [{key: broken, effect: NoSchedule}]
  - {name: dev-1}
)");
  DescribeResourceSlice(description_, slice->root(), related_);
  const std::string text = PrintDescription(description_);
  EXPECT_THAT(text, HasSubstr("Pool:                  p, generation 2, 1 slice(s)\n"));
  EXPECT_THAT(text, HasSubstr("Skip Node Operations:  [\"*\"]\n"));
  EXPECT_THAT(text,
              HasSubstr("  dev-0:\n    Attributes:  model: fast\n                 cores: 8\n"
                        "    Capacity:    memory: 8Gi\n    Taints:      broken:NoSchedule\n"));
  EXPECT_THAT(text, HasSubstr("  dev-1:  <no attributes>\n"));
}

TEST_F(DescribeTest, NodeShowsFeaturesDevicesAndPods) {
  objects_["resourceslices"] = Yaml(
      "items: [{metadata: {name: s}, spec: {driver: d, pool: {name: p}, devices: [{name: a}, "
      "{name: b}]}}]");
  objects_["pods"] =
      Yaml("items: [{metadata: {name: web, namespace: default}, status: {phase: Running}}]");
  const TreePtr node = Yaml(R"(
metadata: {name: n1}
spec: {taints: [{key: k, value: v, effect: NoExecute}]}
status:
  conditions: [{type: Ready, status: "True", reason: AgentReady, message: fine}]
  declaredFeatures: [A, B]
  capacity: {cpu: "2"}
)");
  DescribeNode(description_, node->root(), related_);
  const std::string text = PrintDescription(description_);
  EXPECT_THAT(text, HasSubstr("Taints:             k=v:NoExecute\n"));
  EXPECT_THAT(text, HasSubstr("Declared Features:  A\n                    B\n"));
  EXPECT_THAT(text, HasSubstr("  Driver   Pool   Slice   Devices\n  d        p      s       2\n"));
  EXPECT_THAT(text, HasSubstr("  default     web    Running   0\n"));
  EXPECT_THAT(text, HasSubstr("  Ready   True     AgentReady   fine\n"));
}

TEST_F(DescribeTest, EventsAreInOrderAndCounted) {
  const TreePtr events = Yaml(R"(
- {type: Normal, reason: Second, message: "b\n", source: {component: node}, lastTimestamp: "2026-01-01T00:01:00Z"}
- {type: Warning, reason: First, message: a, reportingComponent: sched, count: 4,
   firstTimestamp: "2026-01-01T00:00:00Z", lastTimestamp: "2026-01-01T00:00:30Z"}
)");
  description_.entries.push_back(EventsEntry(events->root(), related_.now));
  EXPECT_EQ(PrintDescription(description_),
            "Events:\n"
            "  Type      Reason   Age                 From    Message\n"
            "  Warning   First    60s (x4 over 90s)   sched   a\n"
            "  Normal    Second   30s                 node    b\n");
}

TEST_F(DescribeTest, FieldNamesBecomeTitles) {
  EXPECT_EQ(TitleOf("nodeName"), "Node Name");
  EXPECT_EQ(TitleOf("podCIDR"), "Pod CIDR");
  EXPECT_EQ(TitleOf("example.com/x"), "example.com/x");
}

}  // namespace
}  // namespace drakkar::cli
