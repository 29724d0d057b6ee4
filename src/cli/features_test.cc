#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/commands.h"
#include "cli/testing/fake_console.h"

namespace drakkar::cli {
namespace {

using testing::FakeConsole;
using ::testing::HasSubstr;

class FeatureCommands : public ::testing::Test {
 protected:
  FeatureCommands() { AddFeatureCommands(app_); }
  int Run(const std::vector<std::string>& words) {
    console_.out.clear();
    console_.err.clear();
    return app_.Run(words, console_);
  }
  void Write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(console_.memory.WriteFile(path, text, 0644).ok());
  }

  App app_{"drakkar", ""};
  FakeConsole console_;
};

TEST_F(FeatureCommands, DiscoverShowsWhatANodeWillDeclare) {
  Write(
      "/kubelet.yaml",
      "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
      "featureGates: {UserNamespacesHostNetworkSupport: true, ExtendWebSocketsToKubelet: false}\n");
  EXPECT_EQ(Run({"features", "discover", "--kubelet-config", "/kubelet.yaml", "--runtime-features",
                 "UserNamespacesHostNetwork", "--version", "1.37"}),
            kExitOk)
      << console_.err;
  EXPECT_THAT(console_.out, HasSubstr("UserNamespacesHostNetworkSupport\n"));
  EXPECT_THAT(console_.out, ::testing::Not(HasSubstr("ExtendWebSockets")));
  const std::string once = console_.out;
  Run({"features", "discover", "--kubelet-config", "/kubelet.yaml", "--runtime-features",
       "UserNamespacesHostNetwork", "--version", "1.37"});
  EXPECT_EQ(console_.out, once);
  // Our own agent declares less.
  EXPECT_EQ(Run({"features", "discover", "--agent", "drakkar"}), kExitOk);
  EXPECT_EQ(console_.out, "ExtendWebSocketsToKubelet\nRestartAllContainersOnContainerExits\n");
  EXPECT_EQ(Run({"features", "discover", "--agent", "drakkar", "-o", "json"}), kExitOk);
  EXPECT_EQ(console_.out,
            "{\n  \"declaredFeatures\": [\n    \"ExtendWebSocketsToKubelet\",\n    "
            "\"RestartAllContainersOnContainerExits\"\n  ]\n}\n");
}

TEST_F(FeatureCommands, GatesDependOnTheRelease) {
  EXPECT_EQ(Run({"features", "gates", "--version", "1.36"}), kExitOk) << console_.err;
  EXPECT_THAT(console_.out, HasSubstr("DRAAdminAccess=true (locked), needs "
                                      "DynamicResourceAllocation\n"));
  EXPECT_THAT(console_.out, ::testing::Not(HasSubstr("DRAOptionalNodePreparation")));
  EXPECT_EQ(Run({"features", "gates"}), kExitOk);
  EXPECT_THAT(console_.out,
              HasSubstr("DRAOptionalNodePreparation=false, also DRAOptionalNodeOperations, needs "
                        "DynamicResourceAllocation, NodeDeclaredFeatures\n"));
  EXPECT_EQ(Run({"features", "gates", "--version", "1.99"}), kExitUsage);
}

TEST_F(FeatureCommands, MistakesGetAClearError) {
  Write("/pod.yaml", "kind: Pod\n");
  EXPECT_EQ(Run({"features", "discover", "--kubelet-config", "/pod.yaml"}), kExitFailure);
  EXPECT_THAT(console_.err, HasSubstr("kind is \"Pod\", but must be KubeletConfiguration"));
  EXPECT_EQ(Run({"features", "discover", "--kubelet-config", "/missing.yaml"}), kExitFailure);
  EXPECT_THAT(console_.err, HasSubstr("/missing.yaml"));
  EXPECT_EQ(Run({"features", "discover", "--runtime-features", "Magic"}), kExitFailure);
  EXPECT_THAT(console_.err, HasSubstr("unknown runtime feature \"Magic\""));
  EXPECT_EQ(Run({"features", "discover", "--version", "new"}), kExitFailure);
  EXPECT_EQ(Run({"features", "discover", "--agent", "other"}), kExitUsage);
  EXPECT_EQ(Run({"features", "discover", "-o", "yaml"}), kExitUsage);
  EXPECT_EQ(Run({"features", "require"}), kExitUsage);
  EXPECT_THAT(console_.err, HasSubstr("no pod given; use -f"));
  EXPECT_EQ(Run({"features", "needs", "UserNamespaceHostNetworkSupport"}), kExitFailure);
  EXPECT_THAT(console_.err, HasSubstr("did you mean UserNamespacesHostNetworkSupport?"));
}

TEST_F(FeatureCommands, RequireShowsWhatAPodRequiresAndWhy) {
  Write("/pod.yaml", R"(apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  hostNetwork: true
  hostUsers: false
  containers: [{name: c, image: i}]
  resourceClaims: [{name: gpu, resourceClaimName: mine}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: mine}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: c}}]}}
status: {allocation: {devices: {results: [{request: r, driver: d, pool: p, device: x, skipNodeOperations: true}]}}}
)");
  EXPECT_EQ(Run({"features", "require", "-f", "/pod.yaml"}), kExitOk) << console_.err;
  EXPECT_EQ(console_.out, "DraOptionalNodePreparation\nUserNamespacesHostNetworkSupport\n");
  EXPECT_EQ(Run({"features", "require", "-f", "/pod.yaml", "--why"}), kExitOk);
  EXPECT_EQ(console_.out,
            "DraOptionalNodePreparation: claim mine: "
            "status.allocation.devices.results[0].skipNodeOperations\n"
            "UserNamespacesHostNetworkSupport: spec.hostUsers\n");
  EXPECT_EQ(Run({"features", "require", "-f", "/pod.yaml", "--catalog", "kubernetes"}), kExitOk);
  EXPECT_EQ(console_.out, "UserNamespacesHostNetworkSupport\n");
}

TEST_F(FeatureCommands, NeedsShowsWhatAFeatureDependsOn) {
  EXPECT_EQ(Run({"features", "needs", "DRAOptionalNodeOperations"}), kExitOk);
  EXPECT_EQ(console_.out,
            "feature: DraOptionalNodePreparation\nalso declared as: DRAOptionalNodeOperations\n"
            "feature gate: DRAOptionalNodePreparation\n");
  EXPECT_EQ(Run({"features", "needs"}), kExitOk);
  EXPECT_THAT(console_.out, HasSubstr("RestartAllContainersOnContainerExits\n"));
}

}  // namespace
}  // namespace drakkar::cli
