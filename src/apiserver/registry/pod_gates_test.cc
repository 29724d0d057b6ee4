// How the API server treats fields of features that nodes declare, with their gates on and off.
#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

class PodGatesTest : public CoreFixture {
 protected:
  void SetUp() override { StartCore(nullptr); }
  void Set(Gate gate, bool on) { gates_ = FeatureGates().With(gate, on); }

  static std::string Pod(std::string_view name, std::string_view spec_fields,
                         std::string_view mount_fields = "") {
    return StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name, R"("},"spec":{)",
                  spec_fields, R"("volumes":[{"name":"v","emptyDir":{}},)",
                  R"({"name":"image","image":{"reference":"r"}}],"containers":[{"name":"c",)",
                  R"("image":"i","volumeMounts":[{"name":"v","mountPath":"/v")", mount_fields,
                  "}]}]}}");
  }
  static std::string Refusal(const Response& response) {
    return response.failure ? response.failure->message : "";
  }
  std::size_t StoredOptions(const std::string& name) {
    return core_->Find("", "pods", "default/" + name)
        ->root()["spec"]["containers"]
        .at(0)["volumeMounts"]
        .at(0)["bindMountOptions"]
        .size();
  }
};

constexpr std::string_view kOptions = R"(,"bindMountOptions":["noexec","nodev"])";

TEST_F(PodGatesTest, MountOptionsAreDroppedWhileTheirGateIsOff) {
  Create(Pod("off", "", kOptions));
  EXPECT_EQ(StoredOptions("off"), 0u);
  Set(Gate::kVolumeBindMountOptions, true);
  Create(Pod("on", "", kOptions));
  EXPECT_EQ(StoredOptions("on"), 2u);
  // A pod that has them keeps them.
  Set(Gate::kVolumeBindMountOptions, false);
  Request request = RequestFor(Verb::kPatch, Pod("on", ""), AdminUser());
  request.object = nullptr;
  request.patch = PatchKind::kMerge;
  request.text = R"({"metadata":{"labels":{"a":"b"}}})";
  EXPECT_EQ(Refusal(Handle(std::move(request))), "");
  EXPECT_EQ(StoredOptions("on"), 2u);
}

TEST_F(PodGatesTest, TheStatusOfExtendedResourcesNeedsItsGateAndIsNotRemovedByLeavingItOut) {
  Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{
      "name":"c","image":"i","resources":{"limits":{"e.x/gpu":"1"}}}]}})");
  const auto write = [&](std::string_view status) {
    api::Draft pod(core_->Find("", "pods", "default/p")->tree());
    pod["status"] = api::Draft(*api::ParseJson(status));
    Request request = RequestFor(Verb::kUpdate, Pod("p", ""), AdminUser());
    request.subresource = "status";
    request.object = pod.Freeze();
    EXPECT_EQ(Refusal(Handle(std::move(request))), "");
    return std::string(core_->Find("", "pods", "default/p")
                           ->root()["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
                           .str());
  };
  const auto naming = [](std::string_view claim) {
    return StrCat(R"({"extendedResourceClaimStatus":{"resourceClaimName":")", claim,
                  R"(","requestMappings":[{"containerName":"c","resourceName":"e.x/gpu",)",
                  R"("requestName":"r"}]}})");
  };
  Set(Gate::kDRAExtendedResource, false);
  EXPECT_EQ(write(naming("a")), "");
  Set(Gate::kDRAExtendedResource, true);
  EXPECT_EQ(write(naming("a")), "a");
  EXPECT_EQ(write("{}"), "a");
  Set(Gate::kDRAExtendedResource, false);
  EXPECT_EQ(write(naming("b")), "b") << "a pod that has it keeps it";
}

TEST_F(PodGatesTest, MountOptionsAreThoseOfKubernetes) {
  Set(Gate::kVolumeBindMountOptions, true);
  EXPECT_EQ(Refusal(TryCreate(Pod("p", "", R"(,"bindMountOptions":["ro","nodev","nodev"])"))),
            "Pod \"p\" is invalid: "
            "[spec.containers[0].volumeMounts[0].bindMountOptions[0]: Unsupported value: \"ro\": "
            "supported values: \"nodev\", \"noexec\", \"nosuid\", "
            "spec.containers[0].volumeMounts[0].bindMountOptions[2]: Duplicate value: \"nodev\"]");
}

TEST_F(PodGatesTest, TolerationsCompareWhileTheirGateIsOn) {
  const auto tolerating = [](std::string_view name, std::string_view op, std::string_view value) {
    return Pod(name, StrCat(R"("tolerations":[{"key":"k","operator":")", op, R"(","value":")",
                            value, R"("}],)"));
  };
  EXPECT_EQ(Refusal(TryCreate(tolerating("p", "Gt", "5"))),
            "Pod \"p\" is invalid: spec.tolerations[0].operator: Unsupported value: \"Gt\": "
            "supported values: \"Equal\", \"Exists\", \"Gt\", \"Lt\"");
  Set(Gate::kTaintTolerationComparisonOperators, true);
  EXPECT_EQ(Refusal(TryCreate(tolerating("p", "Gt", "-5"))), "");
  EXPECT_EQ(Refusal(TryCreate(tolerating("q", "Lt", "05"))),
            "Pod \"q\" is invalid: spec.tolerations[0].value: Invalid value: \"05\": must be a "
            "valid decimal integer in canonical form");
  // A pod that has one stays as it is.
  Set(Gate::kTaintTolerationComparisonOperators, false);
  Request request = RequestFor(Verb::kPatch, Pod("p", ""), AdminUser());
  request.object = nullptr;
  request.patch = PatchKind::kMerge;
  request.text = R"({"metadata":{"annotations":{"a":"b"}}})";
  EXPECT_EQ(Refusal(Handle(std::move(request))), "");
}

TEST_F(PodGatesTest, HostNetworkWithAUserNamespaceNeedsItsGate) {
  const std::string both = R"("hostNetwork":true,"hostUsers":false,)";
  EXPECT_EQ(Refusal(TryCreate(Pod("p", both))),
            "Pod \"p\" is invalid: spec.hostNetwork: Forbidden: when `hostUsers` is false");
  Set(Gate::kUserNamespacesHostNetworkSupport, true);
  EXPECT_EQ(Refusal(TryCreate(Pod("p", both))), "");
  EXPECT_EQ(Refusal(TryCreate(Pod("q", R"("hostPID":true,"hostIPC":true,"hostUsers":false,)"))),
            "Pod \"q\" is invalid: [spec.HostPID: Forbidden: when `hostUsers` is false, "
            "spec.HostIPC: Forbidden: when `hostUsers` is false]");
  EXPECT_EQ(Refusal(TryCreate(Pod("r", R"("hostPID":true,"hostUsers":true,)"))), "");
}

TEST_F(PodGatesTest, ADeadlineFitsTheTypeThatNodesUse) {
  for (const char* bad : {"9223372036854775807", "2147483648", "0", "-1"}) {
    EXPECT_EQ(Refusal(TryCreate(Pod("p", StrCat(R"("activeDeadlineSeconds":)", bad, ",")))),
              StrCat("Pod \"p\" is invalid: spec.activeDeadlineSeconds: Invalid value: ", bad,
                     ": must be between 1 and 2147483647, inclusive"));
  }
  EXPECT_EQ(Refusal(TryCreate(Pod("p", R"("activeDeadlineSeconds":2147483647,)"))), "");
  const auto change = [&](std::string_view deadline) {
    Request request = RequestFor(Verb::kPatch, Pod("p", ""), AdminUser());
    request.object = nullptr;
    request.patch = PatchKind::kMerge;
    request.text = StrCat(R"({"spec":{"activeDeadlineSeconds":)", deadline, "}}");
    return Refusal(Handle(std::move(request)));
  };
  EXPECT_EQ(change("60"), "");
  EXPECT_EQ(change("61"),
            "Pod \"p\" is invalid: spec.activeDeadlineSeconds: Invalid value: 61: must be less "
            "than or equal to previous value");
  EXPECT_NE(change("null"), "");
  EXPECT_NE(change("9223372036854775807"), "");
}

}  // namespace
}  // namespace drakkar::apiserver
