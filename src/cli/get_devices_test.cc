#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "cli/testing/test_server.h"

namespace drakkar::cli {
namespace {

using ::testing::AllOf;
using testing::CommandTest;
using ::testing::ContainsRegex;
using testing::FakeConsole;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kSlices[] = R"(
apiVersion: v1
kind: Node
metadata: {name: n1}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: "device.driver == 'gpu.example.com'"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 2, resourceSliceCount: 1}
  devices:
  - {name: a, attributes: {model: {string: A100}, index: {int: 10}}, capacity: {memory: {value: 40Gi}}}
  - {name: b, attributes: {model: {string: T4}, index: {int: 2}}, taints: [{key: hot, value: very, effect: NoSchedule}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: old}
spec: {driver: gpu.example.com, nodeName: n1, pool: {name: n1, generation: 1, resourceSliceCount: 1}, devices: [{name: gone}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: fabric}
spec: {driver: fabric.example.com, allNodes: true, pool: {name: all, generation: 1, resourceSliceCount: 1}, devices: [{name: x}]}
)";

class GetDevicesTest : public CommandTest {
 protected:
  void Create(const std::string& manifest) {
    const Outcome outcome = Run("create -f -", manifest);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  // Holds device a of node n1 for pod p of the namespace.
  void Hold(const std::string& ns) {
    Create(StrCat("apiVersion: v1\nkind: Namespace\nmetadata: {name: ", ns, "}\n"));
    Create(StrCat(R"(
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c, namespace: )",
                  ns, R"(}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}
)"));
    PatchStatus("resource.k8s.io", "ResourceClaim", ns, "c",
                R"({"allocation":{"devices":{"results":[{"request":"r",)"
                R"("driver":"gpu.example.com","pool":"n1","device":"a"}]}},)"
                R"("reservedFor":[{"resource":"pods","name":"p","uid":"u"}]})");
  }
};

TEST_F(GetDevicesTest, ShowsStateHealthAndHolders) {
  EXPECT_EQ(Run("get devices").err, "No devices found.\n");
  Create(kSlices);
  node_devices_ = R"({"kind":"DeviceList","items":[
    {"driver":"gpu.example.com","pool":"n1","device":"a","health":"Unhealthy","message":"too hot","since":"2000-01-01T00:00:00Z"}]})";
  const Outcome shown = Run("get devices");
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(
      shown.out,
      AllOf(HasSubstr("NODE   DRIVER              DEVICE  STATE      HEALTH     SINCE"),
            ContainsRegex("\nn1     gpu.example.com     a       Unhealthy  Unhealthy  [0-9]+y"),
            HasSubstr("\nn1     gpu.example.com     b       Tainted    Unknown    <none>"),
            HasSubstr("\n<any>  fabric.example.com  x       Free       Unknown    <none>"),
            Not(HasSubstr("gone"))));
  EXPECT_THAT(Run("get devices -o jsonpath={.items[*].health}").out, HasSubstr("Unhealthy"));
}

TEST_F(GetDevicesTest, WideAddsPoolModelCapacityClassTaintsAndMessage) {
  Create(kSlices);
  node_devices_ = R"({"kind":"DeviceList","items":[
    {"driver":"gpu.example.com","pool":"n1","device":"a","health":"Unhealthy","message":"too hot"}]})";
  const std::string wide = Run("get devices -o wide").out;
  EXPECT_THAT(wide, AllOf(HasSubstr("MODEL   CAPACITY     CLASS   TAINTS               MESSAGE\n"),
                          HasSubstr("A100    memory=40Gi  gpu     <none>               too hot\n"),
                          HasSubstr("T4      <none>       gpu     hot=very:NoSchedule  <none>\n")));
}

TEST_F(GetDevicesTest, OneLineNamesTheNodesThatDoNotAnswer) {
  Create(kSlices);
  const Outcome silent = Run("get devices");
  EXPECT_EQ(silent.code, 0);
  EXPECT_THAT(silent.err, HasSubstr("warning: 1 of 1 node did not report device health (n1): "));
}

TEST_F(GetDevicesTest, SelectsByNameAttributeFieldAndNamespace) {
  Create(kSlices);
  node_devices_ = R"({"items":[]})";
  const auto names = [this](const std::string& flags) {
    return Run(StrCat("get devices -o name --no-headers ", flags)).out;
  };
  const std::string a = "device/gpu.example.com/n1/a\n";
  const std::string b = "device/gpu.example.com/n1/b\n";
  const std::string x = "device/fabric.example.com/all/x\n";
  EXPECT_EQ(names("a"), a);
  EXPECT_EQ(names("n1/b gpu.example.com/n1/a"), a + b);
  EXPECT_EQ(names("-l model=T4"), b);
  EXPECT_EQ(names("--field-selector state=Free,driver!=fabric.example.com"), a);
  EXPECT_EQ(names("--field-selector model=A100"), a);
  EXPECT_EQ(names(""), x + a + b);
  Hold("team");
  EXPECT_EQ(names("-n team"), a);
  EXPECT_EQ(names("-n default"), "");
  EXPECT_EQ(names("-A"), x + a + b);
  EXPECT_THAT(Run("get devices -n team").out, HasSubstr("team/c  team/p\n"));
}

TEST_F(GetDevicesTest, SortsByAField) {
  Create(kSlices);
  node_devices_ = R"({"items":[]})";
  EXPECT_EQ(Run("get devices -o custom-columns=N:.device --no-headers --sort-by .model").out,
            "x\na\nb\n");
  EXPECT_EQ(Run("get devices -o custom-columns=N:.device --no-headers --sort-by .state").out,
            "x\na\nb\n");
  EXPECT_EQ(Run("get devices -o custom-columns=N:.device --no-headers --sort-by .device").out,
            "a\nb\nx\n");
}

TEST_F(GetDevicesTest, BadInputGetsOneSentence) {
  Create(kSlices);
  node_devices_ = R"({"items":[]})";
  const Outcome missing = Run("get devices a nope");
  EXPECT_EQ(missing.code, 1);
  EXPECT_EQ(missing.err, "error: device \"nope\" not found\n");
  EXPECT_THAT(missing.out, HasSubstr(" a "));
  EXPECT_EQ(Run("get devices nope --ignore-not-found").code, 0);
  const Outcome field = Run("get devices --field-selector color=red");
  EXPECT_EQ(field.code, kExitUsage);
  EXPECT_EQ(field.err,
            "error: --field-selector does not support \"color\" for devices; supported are "
            "metadata.name, node, "
            "driver, pool, device, state, health, model\n");
  EXPECT_EQ(Run("get devices -l a=b=c").code, kExitUsage);
  EXPECT_EQ(Run("get devices --sort-by {.a").code, kExitUsage);
}

TEST_F(GetDevicesTest, AWatchShowsWhatChanges) {
  Run("create -f -", R"(
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec: {driver: gpu.example.com, nodeName: n1, pool: {name: n1, generation: 1, resourceSliceCount: 1}, devices: [{name: a}, {name: b}]}
)");
  const std::string device =
      R"({"driver":"gpu.example.com","pool":"n1","device":"a","since":"2000-01-01T00:00:00Z","health":")";
  node_devices_ = StrCat(R"({"kind":"DeviceList","items":[)", device, R"(Healthy"}]})");
  FakeConsole console;
  Prepare(console);
  std::promise<void> listed;
  std::promise<void> changed;
  int outputs = 0;
  console.on_out = [&] {
    if (++outputs == 1) listed.set_value();
    if (outputs == 2) changed.set_value();
  };
  std::future<int> watching = std::async(std::launch::async, [&] {
    return app_.Run({"get", "devices", "-w"}, console);
  });
  listed.get_future().wait();
  thread_.RunSync([&] {
    node_devices_ = StrCat(R"({"kind":"DeviceList","items":[)", device, R"(Unhealthy"}]})");
  });
  changed.get_future().wait();
  thread_.RunSync([this] { server_.reset(); });
  EXPECT_EQ(watching.get(), 1);
  // Both at first, then the changed one, aligned with the first.
  EXPECT_THAT(console.out,
              ::testing::MatchesRegex(
                  "NODE .*\nn1 .* a .*Healthy .*\nn1 .* b .*Unknown .*\nn1 .* a .*Unhealthy .*\n"));
}

}  // namespace
}  // namespace drakkar::cli
