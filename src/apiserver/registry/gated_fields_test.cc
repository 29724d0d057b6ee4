// Every gated field of resource.k8s.io but skipNodeOperations: with its gate off it is dropped
// silently, unless the stored object already uses it.
#include <gtest/gtest.h>

#include "api/json/writer.h"
#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

struct GatedField {
  Gate gate;
  const char* field;  // the last part of its path, unique in the object
  const char* kind;
  const char* spec;              // contains the field, unless `status` is set
  const char* status = nullptr;  // contains the field, if set
  Gate also_off = Gate::kCount;  // another gate, which depends on this one
};

constexpr char kPool[] =
    R"("driver":"d.example.com","pool":{"name":"p","generation":1,"resourceSliceCount":1},)";
constexpr char kClaimSpec[] =
    R"("devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"x"}}]})";

const GatedField kFields[] = {
    {Gate::kDRADeviceTaints, "taints", "ResourceSlice",
     R"("nodeName":"n","devices":[{"name":"a","taints":[{"key":"k","effect":"NoSchedule"}]}])",
     nullptr, Gate::kDRADeviceTaintRules},
    {Gate::kDRADeviceTaints, "tolerations", "ResourceClaim",
     R"("devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"x",)"
     R"("tolerations":[{"key":"k","operator":"Exists"}]}}]})",
     nullptr, Gate::kDRADeviceTaintRules},
    {Gate::kDRADeviceTaints, "tolerations", "ResourceClaim",
     R"("devices":{"requests":[{"name":"r","firstAvailable":[{"name":"s","deviceClassName":"x",)"
     R"("tolerations":[{"key":"k","operator":"Exists"}]}]}]})",
     nullptr, Gate::kDRADeviceTaintRules},
    {Gate::kDRAPartitionableDevices, "sharedCounters", "ResourceSlice",
     R"("nodeName":"n","sharedCounters":[{"name":"s","counters":{"m":{"value":"1"}}}])"},
    {Gate::kDRAPartitionableDevices, "consumesCounters", "ResourceSlice",
     R"("nodeName":"n","devices":[{"name":"a","consumesCounters":[{"counterSet":"s",)"
     R"("counters":{"m":{"value":"1"}}}]}])"},
    {Gate::kDRADeviceBindingConditions, "bindingConditions", "ResourceSlice",
     R"("nodeName":"n","devices":[{"name":"a","bindingConditions":["c"]}])"},
    {Gate::kDRADeviceBindingConditions, "bindingFailureConditions", "ResourceSlice",
     R"("nodeName":"n","devices":[{"name":"a","bindingFailureConditions":["c"]}])"},
    {Gate::kDRADeviceBindingConditions, "bindsToNode", "ResourceSlice",
     R"("nodeName":"n","devices":[{"name":"a","bindsToNode":true}])"},
    {Gate::kDRAResourceClaimDeviceStatus, "bindsToNode", "ResourceSlice",
     R"("nodeName":"n","devices":[{"name":"a","bindsToNode":true}])"},
    {Gate::kDRADeviceBindingConditions, "bindingConditions", "ResourceClaim", kClaimSpec,
     R"("allocation":{"devices":{"results":[{"request":"r","driver":"d.example.com","pool":"p",)"
     R"("device":"a","bindingConditions":["c"]}]}})"},
    {Gate::kDRADeviceBindingConditions, "bindingFailureConditions", "ResourceClaim", kClaimSpec,
     R"("allocation":{"devices":{"results":[{"request":"r","driver":"d.example.com","pool":"p",)"
     R"("device":"a","bindingFailureConditions":["c"]}]}})"},
    {Gate::kDRAAdminAccess, "adminAccess", "ResourceClaim",
     R"("devices":{"requests":[{"name":"q","exactly":{"deviceClassName":"x"}},)"
     R"({"name":"r","exactly":{"deviceClassName":"x","adminAccess":true}}]})"},
    {Gate::kDRAConsumableCapacity, "allowMultipleAllocations", "ResourceSlice",
     R"("nodeName":"n","devices":[{"name":"a","allowMultipleAllocations":true}])"},
    {Gate::kDRAConsumableCapacity, "requestPolicy", "ResourceSlice",
     R"("nodeName":"n","devices":[{"name":"a","allowMultipleAllocations":true,"capacity":{"m":)"
     R"({"value":"4","requestPolicy":{"default":"1"}}}}])"},
    {Gate::kDRAConsumableCapacity, "capacity", "ResourceClaim",
     R"("devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"x",)"
     R"("capacity":{"requests":{"m":"1"}}}}]})"},
    {Gate::kDRAConsumableCapacity, "distinctAttribute", "ResourceClaim",
     R"("devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"x"}}],)"
     R"("constraints":[{"matchAttribute":"d.example.com/a","distinctAttribute":"d.example.com/b"}]})"},
    {Gate::kDRAConsumableCapacity, "consumedCapacity", "ResourceClaim", kClaimSpec,
     R"("allocation":{"devices":{"results":[{"request":"r","driver":"d.example.com","pool":"p",)"
     R"("device":"a","shareID":"11111111-2222-4333-8444-555555555555",)"
     R"("consumedCapacity":{"m":"1"}}]}})"},
    {Gate::kDRADeviceCompatibilityGroups, "compatibilityGroups", "ResourceSlice",
     R"("nodeName":"n","devices":[{"name":"a","consumesCounters":[{"counterSet":"s",)"
     R"("counters":{"m":{"value":"1"}},"compatibilityGroups":["g"]}]}])"},
    {Gate::kDRANodeAllocatableResources, "nodeAllocatableResources", "ResourceSlice",
     R"("nodeName":"n","devices":[{"name":"a","nodeAllocatableResources":{"cpu":{"mapping":)"
     R"({"deviceMultiplier":"1"}}}}])"},
    {Gate::kDRAListTypeAttributes, "strings", "ResourceSlice",
     R"("nodeName":"n","devices":[{"name":"a","attributes":{"m":{"strings":["x"]}}}])"},
    {Gate::kDRADerivedAttributes, "derivedAttributes", "ResourceClaim",
     R"("devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"x",)"
     R"("derivedAttributes":[{"name":"d.example.com/n","expression":"device.driver"}]}}],)"
     R"("constraints":[{"matchAttribute":"d.example.com/n"}]})"},
    {Gate::kDRAPrioritizedList, "firstAvailable", "ResourceClaimTemplate",
     R"("devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"x"}},)"
     R"({"name":"q","firstAvailable":[{"name":"s","deviceClassName":"x"}]}]})"},
    {Gate::kDRAResourceClaimDeviceStatus, "networkData", "ResourceClaim", kClaimSpec,
     R"("allocation":{"devices":{"results":[{"request":"r","driver":"d.example.com","pool":"p",)"
     R"("device":"a"}]}},"devices":[{"driver":"d.example.com","pool":"p","device":"a",)"
     R"("networkData":{"interfaceName":"eth0"}}])"},
    {Gate::kDRAExtendedResource, "extendedResourceName", "DeviceClass",
     R"("extendedResourceName":"example.com/gpu")"},
    {Gate::kDRAPartitionableDevicesType, "partitionTypeAttribute", "ResourceSlice",
     R"("nodeName":"n","partitionTypeAttribute":"d.example.com/type","devices":[{"name":"a",)"
     R"("attributes":{"d.example.com/type":{"string":"x"}},"consumesCounters":[)"
     R"({"counterSet":"s","counters":{"m":{"value":"1"}}}]}])"},
};

class GatedFields : public CoreFixture, public ::testing::WithParamInterface<int> {
 protected:
  const GatedField& field() const { return kFields[GetParam()]; }

  void SetGate(bool on) {
    // All gates are on, except possibly the tested one.
    FeatureGates gates;
    for (int i = 0; i < static_cast<int>(Gate::kCount); ++i) {
      gates = gates.With(static_cast<Gate>(i), true);
    }
    gates = gates.With(Gate::kDRAResourceClaimGranularStatusAuthorization, false);
    gates = gates.With(field().gate, on);
    if (field().also_off != Gate::kCount) gates = gates.With(field().also_off, on);
    gates_ = gates;
  }

  std::string Json() const {
    const std::string_view kind = field().kind;
    std::string spec = field().spec;
    if (kind == "ResourceSlice") spec = kPool + spec;
    if (kind == "ResourceClaimTemplate") spec = StrCat(R"("spec":{)", spec, "}");
    return StrCat(R"({"apiVersion":"resource.k8s.io/v1","kind":")", kind,
                  R"(","metadata":{"name":"o"},"spec":{)", spec, "}}");
  }

  Response Make() {
    Response response = TryCreate(Json());
    if (response.failure || field().status == nullptr) return response;
    return Merge(StrCat(R"({"status":{)", field().status, "}}"), "status");
  }

  Response Merge(std::string patch, std::string subresource) {
    Request request = RequestFor(Verb::kPatch, Json(), AdminUser());
    request.object = nullptr;
    request.patch = PatchKind::kMerge;
    request.text = std::move(patch);
    request.subresource = std::move(subresource);
    return Handle(std::move(request));
  }

  bool HasField(const Response& response) const {
    return response.object->json()->find(StrCat("\"", field().field, "\":")) != std::string::npos;
  }
};

TEST_P(GatedFields, IsDroppedUnlessTheStoredObjectUsesIt) {
  StartCore(nullptr);
  // adminAccess is allowed only there.
  Handle(RequestFor(Verb::kUpdate, R"({"apiVersion":"v1","kind":"Namespace","metadata":{
      "name":"default","labels":{"resource.kubernetes.io/admin-access":"true"}}})",
                    AdminUser()));
  SetGate(true);
  Response on = Make();
  ASSERT_FALSE(on.failure) << on.failure->message;
  ASSERT_TRUE(HasField(on)) << *on.object->json();

  SetGate(false);
  Response updated = Merge(R"({"metadata":{"labels":{"a":"b"}}})", "");
  ASSERT_FALSE(updated.failure) << updated.failure->message;
  EXPECT_TRUE(HasField(updated)) << "in use: " << *updated.object->json();
  if (field().status != nullptr) {
    updated =
        Merge(R"({"status":{"reservedFor":[{"resource":"pods","name":"p","uid":"u"}]}})", "status");
    ASSERT_FALSE(updated.failure) << updated.failure->message;
    EXPECT_TRUE(HasField(updated)) << "in use: " << *updated.object->json();
  }
  const bool namespaced = on.object->namespace_() == "default";
  ASSERT_FALSE(
      Delete("resource.k8s.io/v1", field().kind, namespaced ? "default" : "", "o").failure);

  Response off = Make();
  // Without the field the object may be invalid; then the error must be about something else.
  if (off.failure) {
    EXPECT_EQ(off.failure->message.find(StrCat(".", field().field, ":")), std::string::npos)
        << off.failure->message;
    return;
  }
  EXPECT_FALSE(HasField(off)) << *off.object->json();
  EXPECT_TRUE(off.warnings.empty());
}

INSTANTIATE_TEST_SUITE_P(Each, GatedFields,
                         ::testing::Range(0, static_cast<int>(std::size(kFields))),
                         [](const ::testing::TestParamInfo<int>& each) {
                           return StrCat(each.param, "_", kFields[each.param].kind, "_",
                                         kFields[each.param].field);
                         });

}  // namespace
}  // namespace drakkar::apiserver
