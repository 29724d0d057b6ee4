// What each function of the C interface sets or reads, and that it rejects null arguments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "api/json/reader.h"
#include "base/env/file_system.h"
#include "base/text/text.h"
#include "sdk/driver/c/callback_plugin.h"
#include "sdk/driver/c/handles.h"

namespace drakkar::driver::c {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kTexts[] = {"x", "y"};
constexpr const char* kWithNull[] = {"x", nullptr};
constexpr std::int64_t kInts[] = {3, 4};
constexpr int kBools[] = {1, 0};

api::ObjectPtr ClaimObject(const std::string& name) {
  auto tree = api::ParseJson(StrCat(
      R"({"metadata":{"name":")", name, R"(","namespace":"ns","uid":"uid-)", name,
      R"("},"status":{"reservedFor":[{"resource":"jobs","apiGroup":"batch","name":"j","uid":"j"},)",
      R"({"resource":"pods","name":"p","uid":"pod-1"},{"resource":"pods","name":"q","uid":"pod-2"}],)",
      R"("allocation":{"devices":{"results":[)",
      R"({"request":"r","driver":"other.example.com","pool":"o","device":"other"},)",
      R"({"request":"r","driver":"c.example.com","pool":"p","device":"d0"},)",
      R"({"request":"s/t","driver":"c.example.com","pool":"p","device":"d1","shareID":"share"}]}}}})"));
  return std::make_shared<const api::Object>(*std::move(tree));
}

TEST(CValues, ResourcesHaveEverythingThatWasSet) {
  drakkar_resources* all = drakkar_resources_new();
  drakkar_error error = {};
  ASSERT_EQ(drakkar_resources_add_device(all, "p", "first"), 0);
  ASSERT_EQ(drakkar_resources_add_device(all, "p", "d"), 0);
  ASSERT_EQ(drakkar_resources_add_device(all, "q", "d"), 0);
  ASSERT_EQ(drakkar_resources_add_device(all, "p", "d"), 0) << "again";
  EXPECT_EQ(drakkar_resources_set_string(all, "p", "d", "string", "x"), 0);
  EXPECT_EQ(drakkar_resources_set_version(all, "p", "d", "version", "1.2.3"), 0);
  EXPECT_EQ(drakkar_resources_set_int(all, "p", "d", "int", 7), 0);
  EXPECT_EQ(drakkar_resources_set_bool(all, "p", "d", "bool", 1), 0);
  EXPECT_EQ(drakkar_resources_set_bool(all, "p", "d", "not", 0), 0);
  EXPECT_EQ(drakkar_resources_set_strings(all, "p", "d", "strings", kTexts, 2), 0);
  EXPECT_EQ(drakkar_resources_set_versions(all, "p", "d", "versions", kTexts, 2), 0);
  EXPECT_EQ(drakkar_resources_set_ints(all, "p", "d", "ints", kInts, 2), 0);
  EXPECT_EQ(drakkar_resources_set_bools(all, "p", "d", "bools", kBools, 2), 0);
  EXPECT_EQ(drakkar_resources_set_capacity(all, "p", "d", "memory", "1Gi"), 0);
  EXPECT_EQ(drakkar_resources_add_taint(all, "p", "d", "k", "v", "NoSchedule"), 0);
  EXPECT_EQ(drakkar_resources_add_taint(all, "p", "d", "k2", nullptr, "NoExecute"), 0);
  EXPECT_EQ(drakkar_resources_set_binding(all, "p", "d", 1, kTexts, 2, kTexts, 1), 0);
  EXPECT_EQ(drakkar_resources_set_json(all, "p", "d", R"({"allNodes":true})", &error), 0);
  EXPECT_EQ(drakkar_resources_set_all_nodes(all, "q"), 0);
  EXPECT_EQ(drakkar_resources_set_node_selector(all, "p", R"({"nodeSelectorTerms":[]})", &error),
            0);
  EXPECT_EQ(drakkar_resources_skip_node_operations(all, "p", kTexts, 2), 0);

  const Pool& pool = all->resources.pools.at("p");
  ASSERT_EQ(pool.slices.size(), 1u);
  ASSERT_EQ(pool.slices[0].devices.size(), 2u);
  EXPECT_TRUE(pool.slices[0].devices[0].attributes.empty()) << "not the device that was named";
  const Device& device = pool.slices[0].devices[1];
  using metadata::AttributeValue;
  using metadata::Version;
  const std::map<std::string, AttributeValue> expected = {
      {"string", std::string("x")},
      {"version", Version{"1.2.3"}},
      {"int", std::int64_t{7}},
      {"bool", true},
      {"not", false},
      {"strings", std::vector<std::string>{"x", "y"}},
      {"versions", std::vector<Version>{{"x"}, {"y"}}},
      {"ints", std::vector<std::int64_t>{3, 4}},
      {"bools", std::vector<bool>{true, false}}};
  for (const auto& [name, value] : expected) {
    ASSERT_TRUE(device.attributes.contains(name)) << name;
    EXPECT_TRUE(device.attributes.at(name) == value) << name;
  }
  EXPECT_EQ(device.attributes.size(), expected.size());
  EXPECT_EQ(device.capacity.at("memory"), "1Gi");
  ASSERT_EQ(device.taints.size(), 2u);
  EXPECT_EQ(device.taints[0].key, "k");
  EXPECT_EQ(device.taints[0].value, "v");
  EXPECT_EQ(device.taints[0].effect, "NoSchedule");
  EXPECT_EQ(device.taints[1].value, "");
  EXPECT_TRUE(device.binds_to_node);
  EXPECT_THAT(device.binding_conditions, ElementsAre("x", "y"));
  EXPECT_THAT(device.binding_failure_conditions, ElementsAre("x"));
  ASSERT_NE(device.more, nullptr);
  EXPECT_TRUE(device.more->root()["allNodes"].boolean());
  EXPECT_FALSE(pool.all_nodes);
  EXPECT_NE(pool.node_selector, nullptr);
  EXPECT_THAT(pool.slices[0].skip_node_operations, ElementsAre("x", "y"));
  EXPECT_TRUE(all->resources.pools.at("q").all_nodes);
  EXPECT_EQ(all->resources.pools.at("q").slices[0].devices.size(), 1u);
  drakkar_resources_free(all);
}

TEST(CValues, ResourcesRejectNullAndUnknownDevices) {
  drakkar_resources* all = drakkar_resources_new();
  drakkar_error error = {};
  EXPECT_NE(drakkar_resources_add_device(nullptr, "p", "d"), 0);
  EXPECT_NE(drakkar_resources_add_device(all, nullptr, "d"), 0);
  EXPECT_NE(drakkar_resources_add_device(all, "p", nullptr), 0);
  EXPECT_NE(drakkar_resources_set_int(all, "p", "d", "a", 1), 0) << "no pool";
  ASSERT_EQ(drakkar_resources_add_device(all, "p", "d"), 0);
  // Each with the handle, the pool, the device and the attribute missing.
  struct Place {
    drakkar_resources* resources;
    const char* pool;
    const char* device;
    const char* name;
  };
  for (const Place& at : {Place{nullptr, "p", "d", "a"}, Place{all, nullptr, "d", "a"},
                          Place{all, "p", nullptr, "a"}, Place{all, "p", "unknown", "a"},
                          Place{all, "unknown", "d", "a"}, Place{all, "p", "d", nullptr}}) {
    const auto [resources, pool, device, name] = at;
    EXPECT_NE(drakkar_resources_set_string(resources, pool, device, name, "x"), 0);
    EXPECT_NE(drakkar_resources_set_version(resources, pool, device, name, "1.0.0"), 0);
    EXPECT_NE(drakkar_resources_set_int(resources, pool, device, name, 1), 0);
    EXPECT_NE(drakkar_resources_set_bool(resources, pool, device, name, 1), 0);
    EXPECT_NE(drakkar_resources_set_strings(resources, pool, device, name, kTexts, 2), 0);
    EXPECT_NE(drakkar_resources_set_versions(resources, pool, device, name, kTexts, 2), 0);
    EXPECT_NE(drakkar_resources_set_ints(resources, pool, device, name, kInts, 2), 0);
    EXPECT_NE(drakkar_resources_set_bools(resources, pool, device, name, kBools, 2), 0);
    EXPECT_NE(drakkar_resources_set_capacity(resources, pool, device, name, "1"), 0);
    EXPECT_NE(drakkar_resources_add_taint(resources, pool, device, name, "v", "NoSchedule"), 0);
    EXPECT_NE(
        drakkar_resources_set_pci(resources, pool, device, name == nullptr ? nullptr : "x", &error),
        0);
    if (name == nullptr) continue;
    EXPECT_NE(drakkar_resources_set_binding(resources, pool, device, 1, kTexts, 2, kTexts, 2), 0);
    EXPECT_NE(drakkar_resources_set_json(resources, pool, device, "{}", &error), 0);
    EXPECT_STREQ(error.message, "no such device");
  }
  EXPECT_NE(drakkar_resources_set_string(all, "p", "d", "a", nullptr), 0);
  EXPECT_NE(drakkar_resources_set_version(all, "p", "d", "a", nullptr), 0);
  EXPECT_NE(drakkar_resources_set_strings(all, "p", "d", "a", nullptr, 1), 0);
  EXPECT_NE(drakkar_resources_set_strings(all, "p", "d", "a", kWithNull, 2), 0);
  EXPECT_NE(drakkar_resources_set_versions(all, "p", "d", "a", kWithNull, 2), 0);
  EXPECT_NE(drakkar_resources_set_ints(all, "p", "d", "a", nullptr, 1), 0);
  EXPECT_NE(drakkar_resources_set_bools(all, "p", "d", "a", nullptr, 1), 0);
  EXPECT_NE(drakkar_resources_set_capacity(all, "p", "d", "a", nullptr), 0);
  EXPECT_NE(drakkar_resources_add_taint(all, "p", "d", "k", "v", nullptr), 0);
  EXPECT_NE(drakkar_resources_set_binding(all, "p", "d", 1, kWithNull, 2, kTexts, 2), 0);
  EXPECT_NE(drakkar_resources_set_binding(all, "p", "d", 1, kTexts, 2, kWithNull, 2), 0);
  EXPECT_NE(drakkar_resources_set_json(all, "p", "d", nullptr, &error), 0);
  EXPECT_STREQ(error.message, "json must not be null");
  EXPECT_NE(drakkar_resources_set_json(all, "p", "d", "{", &error), 0);
  EXPECT_NE(drakkar_resources_set_json(all, "p", "d", "[]", &error), 0);
  EXPECT_STREQ(error.message, "json must be an object");
  EXPECT_NE(drakkar_resources_set_all_nodes(nullptr, "p"), 0);
  EXPECT_NE(drakkar_resources_set_all_nodes(all, nullptr), 0);
  EXPECT_NE(drakkar_resources_set_node_selector(nullptr, "p", "{}", &error), 0);
  EXPECT_NE(drakkar_resources_set_node_selector(all, nullptr, "{}", &error), 0);
  EXPECT_NE(drakkar_resources_set_node_selector(all, "p", "1", &error), 0);
  EXPECT_NE(drakkar_resources_skip_node_operations(nullptr, "p", kTexts, 2), 0);
  EXPECT_NE(drakkar_resources_skip_node_operations(all, nullptr, kTexts, 2), 0);
  EXPECT_NE(drakkar_resources_skip_node_operations(all, "p", kWithNull, 2), 0);
  const Device& device = all->resources.pools.at("p").slices[0].devices[0];
  EXPECT_TRUE(device.attributes.empty() && device.capacity.empty() && device.taints.empty());
  EXPECT_FALSE(device.binds_to_node);
  drakkar_resources_free(all);
}

TEST(CValues, APrepareResultHasEverythingThatWasSet) {
  drakkar_prepare_result* result = drakkar_prepare_result_new();
  EXPECT_NE(drakkar_prepare_result_set_int(result, "a", 1), 0) << "no device yet";
  EXPECT_NE(drakkar_prepare_result_set_nothing(result), 0);
  EXPECT_NE(drakkar_prepare_result_set_network(result, "eth0", kTexts, 2, "m"), 0);
  const drakkar_allocated_device first = {"r", "p", "d0", nullptr};
  const drakkar_allocated_device second = {nullptr, "p", "d1", "share"};
  ASSERT_EQ(drakkar_prepare_result_add_device(result, &first, kTexts, 2), 0);
  ASSERT_EQ(drakkar_prepare_result_set_nothing(result), 0);
  ASSERT_EQ(drakkar_prepare_result_add_device(result, &second, nullptr, 0), 0);
  EXPECT_FALSE(result->devices[1].metadata.has_value());
  EXPECT_EQ(drakkar_prepare_result_set_string(result, "string", "x"), 0);
  EXPECT_EQ(drakkar_prepare_result_set_version(result, "version", "1.2.3"), 0);
  EXPECT_EQ(drakkar_prepare_result_set_int(result, "int", 7), 0);
  EXPECT_EQ(drakkar_prepare_result_set_bool(result, "bool", 1), 0);
  EXPECT_EQ(drakkar_prepare_result_set_strings(result, "strings", kTexts, 2), 0);
  EXPECT_EQ(drakkar_prepare_result_set_versions(result, "versions", kTexts, 2), 0);
  EXPECT_EQ(drakkar_prepare_result_set_ints(result, "ints", kInts, 2), 0);
  EXPECT_EQ(drakkar_prepare_result_set_bools(result, "bools", kBools, 2), 0);
  EXPECT_EQ(drakkar_prepare_result_set_network(result, "eth0", kTexts, 2, "02:00"), 0);
  ASSERT_EQ(result->devices.size(), 2u);
  const PreparedDevice& one = result->devices[0];
  EXPECT_THAT(one.request_names, ElementsAre("r"));
  EXPECT_EQ(one.pool_name, "p");
  EXPECT_EQ(one.device_name, "d0");
  EXPECT_THAT(one.cdi_device_ids, ElementsAre("x", "y"));
  EXPECT_FALSE(one.share_id.has_value());
  ASSERT_TRUE(one.metadata.has_value()) << "set to nothing is not deferred";
  EXPECT_TRUE(one.metadata->attributes.empty());
  const PreparedDevice& two = result->devices[1];
  EXPECT_THAT(two.request_names, IsEmpty());
  EXPECT_EQ(two.share_id, "share");
  ASSERT_TRUE(two.metadata.has_value());
  EXPECT_EQ(two.metadata->attributes.size(), 8u);
  EXPECT_TRUE(two.metadata->attributes.at("bools") ==
              metadata::AttributeValue(std::vector<bool>{true, false}));
  ASSERT_TRUE(two.metadata->network_data.has_value());
  EXPECT_EQ(two.metadata->network_data->interface_name, "eth0");
  EXPECT_EQ(two.metadata->network_data->hardware_address, "02:00");
  EXPECT_THAT(two.metadata->network_data->ips, ElementsAre("x", "y"));

  const drakkar_allocated_device no_pool = {"r", nullptr, "d", nullptr};
  const drakkar_allocated_device no_device = {"r", "p", nullptr, nullptr};
  EXPECT_NE(drakkar_prepare_result_add_device(nullptr, &first, nullptr, 0), 0);
  EXPECT_NE(drakkar_prepare_result_add_device(result, nullptr, nullptr, 0), 0);
  EXPECT_NE(drakkar_prepare_result_add_device(result, &no_pool, nullptr, 0), 0);
  EXPECT_NE(drakkar_prepare_result_add_device(result, &no_device, nullptr, 0), 0);
  EXPECT_NE(drakkar_prepare_result_add_device(result, &first, kWithNull, 2), 0);
  EXPECT_NE(drakkar_prepare_result_set_string(nullptr, "a", "x"), 0);
  EXPECT_NE(drakkar_prepare_result_set_string(result, nullptr, "x"), 0);
  EXPECT_NE(drakkar_prepare_result_set_string(result, "a", nullptr), 0);
  EXPECT_NE(drakkar_prepare_result_set_strings(result, "a", kWithNull, 2), 0);
  EXPECT_NE(drakkar_prepare_result_set_network(result, "eth0", kWithNull, 2, "m"), 0);
  EXPECT_NE(drakkar_prepare_result_set_nothing(nullptr), 0);
  EXPECT_EQ(result->devices.size(), 2u);
  drakkar_prepare_result_free(result);
}

TEST(CValues, AClaimStatusHasEverythingThatWasSet) {
  drakkar_claim_status* status = drakkar_claim_status_new();
  drakkar_error error = {};
  EXPECT_NE(drakkar_claim_status_add_condition(status, "t", "True", "r", "m"), 0) << "no device";
  EXPECT_NE(drakkar_claim_status_set_data(status, "{}", &error), 0);
  EXPECT_NE(drakkar_claim_status_set_network(status, "eth0", kTexts, 2, "m"), 0);
  ASSERT_EQ(drakkar_claim_status_add_device(status, "p", "d0", nullptr), 0);
  ASSERT_EQ(drakkar_claim_status_add_device(status, "p", "d1", "share"), 0);
  EXPECT_EQ(drakkar_claim_status_add_condition(status, "t", "True", "r", "m"), 0);
  EXPECT_EQ(drakkar_claim_status_add_condition(status, "u", "False", "s", nullptr), 0);
  EXPECT_EQ(drakkar_claim_status_set_data(status, R"({"a":1})", &error), 0);
  EXPECT_EQ(drakkar_claim_status_set_network(status, "eth0", kTexts, 2, "02:00"), 0);
  ASSERT_EQ(status->devices.size(), 2u);
  EXPECT_FALSE(status->devices[0].share_id.has_value());
  EXPECT_TRUE(status->devices[0].conditions.empty()) << "not the last one";
  const AllocatedDeviceStatus& device = status->devices[1];
  EXPECT_EQ(device.pool_name, "p");
  EXPECT_EQ(device.device_name, "d1");
  EXPECT_EQ(device.share_id, "share");
  ASSERT_EQ(device.conditions.size(), 2u);
  EXPECT_EQ(device.conditions[0].type, "t");
  EXPECT_EQ(device.conditions[0].status, "True");
  EXPECT_EQ(device.conditions[0].reason, "r");
  EXPECT_EQ(device.conditions[0].message, "m");
  EXPECT_EQ(device.conditions[1].message, "");
  ASSERT_NE(device.data, nullptr);
  EXPECT_EQ(device.data->root().Entry("a").integer(), 1);
  ASSERT_TRUE(device.network.has_value());
  EXPECT_THAT(device.network->ips, ElementsAre("x", "y"));

  EXPECT_NE(drakkar_claim_status_add_device(nullptr, "p", "d", nullptr), 0);
  EXPECT_NE(drakkar_claim_status_add_device(status, nullptr, "d", nullptr), 0);
  EXPECT_NE(drakkar_claim_status_add_device(status, "p", nullptr, nullptr), 0);
  EXPECT_NE(drakkar_claim_status_add_condition(nullptr, "t", "True", "r", "m"), 0);
  EXPECT_NE(drakkar_claim_status_add_condition(status, nullptr, "True", "r", "m"), 0);
  EXPECT_NE(drakkar_claim_status_add_condition(status, "t", nullptr, "r", "m"), 0);
  EXPECT_NE(drakkar_claim_status_add_condition(status, "t", "True", nullptr, "m"), 0);
  EXPECT_NE(drakkar_claim_status_set_data(status, nullptr, &error), 0);
  EXPECT_NE(drakkar_claim_status_set_data(status, "{", &error), 0);
  EXPECT_NE(drakkar_claim_status_set_data(status, "[]", &error), 0);
  EXPECT_STREQ(error.message, "json must be an object");
  EXPECT_NE(drakkar_claim_status_set_network(status, "eth0", kWithNull, 2, "m"), 0);
  EXPECT_EQ(status->devices.size(), 2u);
  EXPECT_EQ(device.conditions.size(), 2u);
  drakkar_claim_status_free(status);
}

TEST(CValues, AClaimShowsTheDriversOwnDevicesAndItsPods) {
  const drakkar_claim claim(*ClaimObject("c"), "c.example.com");
  EXPECT_STREQ(drakkar_claim_namespace(&claim), "ns");
  EXPECT_STREQ(drakkar_claim_name(&claim), "c");
  EXPECT_STREQ(drakkar_claim_uid(&claim), "uid-c");
  EXPECT_THAT(drakkar_claim_json(&claim), HasSubstr("other.example.com"));
  ASSERT_EQ(drakkar_claim_device_count(&claim), 2u);
  EXPECT_STREQ(drakkar_claim_device(&claim, 0).request, "r");
  EXPECT_STREQ(drakkar_claim_device(&claim, 0).pool, "p");
  EXPECT_STREQ(drakkar_claim_device(&claim, 0).device, "d0");
  EXPECT_EQ(drakkar_claim_device(&claim, 0).share_id, nullptr);
  EXPECT_STREQ(drakkar_claim_device(&claim, 1).request, "s/t");
  EXPECT_STREQ(drakkar_claim_device(&claim, 1).share_id, "share");
  EXPECT_EQ(drakkar_claim_device(&claim, 2).device, nullptr);
  ASSERT_EQ(drakkar_claim_pod_count(&claim), 2u);
  EXPECT_STREQ(drakkar_claim_pod_uid(&claim, 0), "pod-1");
  EXPECT_STREQ(drakkar_claim_pod_uid(&claim, 1), "pod-2");
  EXPECT_EQ(drakkar_claim_pod_uid(&claim, 2), nullptr);
}

TEST(CValues, APodShowsItsMembers) {
  const drakkar_pod pod{{.id = "id",
                         .name = "name",
                         .uid = "uid",
                         .namespace_name = "ns",
                         .labels = {{"l", "1"}},
                         .annotations = {{"a", "2"}},
                         .runtime_handler = "",
                         .pid = 0,
                         .ips = {"10.0.0.1", "10.0.0.2"},
                         .linux_namespaces = {{"network", "/proc/1/ns/net"}}}};
  EXPECT_STREQ(drakkar_pod_id(&pod), "id");
  EXPECT_STREQ(drakkar_pod_name(&pod), "name");
  EXPECT_STREQ(drakkar_pod_uid(&pod), "uid");
  EXPECT_STREQ(drakkar_pod_namespace(&pod), "ns");
  ASSERT_EQ(drakkar_pod_ip_count(&pod), 2u);
  EXPECT_STREQ(drakkar_pod_ip(&pod, 1), "10.0.0.2");
  EXPECT_EQ(drakkar_pod_ip(&pod, 2), nullptr);
  EXPECT_STREQ(drakkar_pod_label(&pod, "l"), "1");
  EXPECT_EQ(drakkar_pod_label(&pod, "a"), nullptr);
  EXPECT_EQ(drakkar_pod_label(&pod, nullptr), nullptr);
  EXPECT_STREQ(drakkar_pod_annotation(&pod, "a"), "2");
  EXPECT_STREQ(drakkar_pod_linux_namespace(&pod, "network"), "/proc/1/ns/net");
}

// The callbacks of a driver that fails for the claim "bad" and, as a whole, if `broken` is set.
struct Recorded {
  std::vector<std::string> calls;
  std::vector<std::string> errors;
  bool broken = false;
};

int PrepareOne(void* data, const drakkar_claim* claim, drakkar_prepare_result* result,
               drakkar_error* error) {
  static_cast<Recorded*>(data)->calls.push_back(StrCat("prepare ", claim->name));
  const drakkar_allocated_device device = drakkar_claim_device(claim, 0);
  drakkar_prepare_result_add_device(result, &device, nullptr, 0);
  if (claim->name != "bad") return 0;
  Fail(error, "no power");
  return 1;
}
int UnprepareOne(void* data, const char* space, const char* name, const char* uid,
                 drakkar_error* error) {
  static_cast<Recorded*>(data)->calls.push_back(StrCat("unprepare ", space, "/", name, " ", uid));
  if (std::string_view(name) != "bad") return 0;
  Fail(error, "busy");
  return 1;
}
int PrepareAll(void* data, drakkar_prepare_item* items, size_t count, drakkar_error* error) {
  auto& recorded = *static_cast<Recorded*>(data);
  for (size_t i = 0; i < count; ++i) {
    items[i].failed = PrepareOne(data, items[i].claim, items[i].result, &items[i].error);
  }
  if (!recorded.broken) return 0;
  Fail(error, "everything is broken");
  return 1;
}
int UnprepareAll(void* data, drakkar_unprepare_item* items, size_t count, drakkar_error* error) {
  auto& recorded = *static_cast<Recorded*>(data);
  for (size_t i = 0; i < count; ++i) {
    items[i].failed = UnprepareOne(data, items[i].claim_namespace, items[i].claim_name,
                                   items[i].claim_uid, &items[i].error);
  }
  if (!recorded.broken) return 0;
  Fail(error, "everything is broken");
  return 1;
}
void Handle(void* data, const char* message, int recoverable) {
  static_cast<Recorded*>(data)->errors.push_back(StrCat(message, " ", recoverable));
}

class CallbackPluginTest : public ::testing::TestWithParam<bool> {
 protected:
  drakkar_driver_options Options() {
    drakkar_driver_options options = {};
    options.driver_name = "c.example.com";
    options.user_data = &recorded;
    options.prepare = PrepareOne;
    options.unprepare = UnprepareOne;
    if (GetParam()) {
      options.prepare_all = PrepareAll;
      options.unprepare_all = UnprepareAll;
    }
    options.handle_error = Handle;
    return options;
  }
  Recorded recorded;
};

TEST_P(CallbackPluginTest, EachClaimHasItsOwnResult) {
  CallbackPlugin plugin(Options());
  std::optional<Result<PrepareResults>> prepared;
  plugin.PrepareResourceClaims({ClaimObject("good"), ClaimObject("bad"), ClaimObject("last")},
                               [&](auto results) { prepared = std::move(results); });
  EXPECT_THAT(recorded.calls, ElementsAre("prepare good", "prepare bad", "prepare last"));
  ASSERT_TRUE(prepared && prepared->ok());
  ASSERT_EQ((*prepared)->size(), 3u);
  ASSERT_TRUE((*prepared)->at("uid-good").ok());
  EXPECT_EQ((*prepared)->at("uid-good")->at(0).device_name, "d0");
  EXPECT_TRUE((*prepared)->at("uid-last").ok());
  ASSERT_FALSE((*prepared)->at("uid-bad").ok());
  EXPECT_EQ((*prepared)->at("uid-bad").error().message, "no power");

  recorded.calls.clear();
  std::optional<Result<rpc::UnprepareResults>> unprepared;
  plugin.UnprepareResourceClaims({{"ns", "u1", "good"}, {"ns", "u2", "bad"}},
                                 [&](auto results) { unprepared = std::move(results); });
  EXPECT_THAT(recorded.calls, ElementsAre("unprepare ns/good u1", "unprepare ns/bad u2"));
  ASSERT_TRUE(unprepared && unprepared->ok());
  EXPECT_EQ((*unprepared)->at("u1").error, "");
  EXPECT_EQ((*unprepared)->at("u2").error, "busy");
  plugin.HandleError(Internal("odd"), true);
  plugin.HandleError(Internal("worse"), false);
  EXPECT_THAT(recorded.errors, ElementsAre("odd 1", "worse 0"));
}

TEST_P(CallbackPluginTest, AWholeCallCanFail) {
  if (!GetParam()) return;
  CallbackPlugin plugin(Options());
  recorded.broken = true;
  std::string prepared, unprepared;
  plugin.PrepareResourceClaims({ClaimObject("good")},
                               [&](auto results) { prepared = results.error().message; });
  plugin.UnprepareResourceClaims({{"ns", "u1", "good"}},
                                 [&](auto results) { unprepared = results.error().message; });
  EXPECT_EQ(prepared, "everything is broken");
  EXPECT_EQ(unprepared, "everything is broken");
}

INSTANTIATE_TEST_SUITE_P(OneByOneOrAll, CallbackPluginTest, ::testing::Bool());

TEST(CValues, AValidCdiSpecIsWritten) {
  const std::string path = StrCat(::testing::TempDir(), "drakkar-c-spec-", ::getpid(), ".json");
  const char* spec =
      R"({"cdiVersion":"0.5.0","kind":"c.example.com/gpu","devices":[{"name":"d","containerEdits":{"env":["A=b"]}}]})";
  drakkar_error error = {};
  EXPECT_NE(drakkar_cdi_write_spec(nullptr, spec, &error), 0);
  EXPECT_STREQ(error.message, "path and json must not be null");
  EXPECT_NE(drakkar_cdi_write_spec(path.c_str(), nullptr, &error), 0);
  ASSERT_EQ(drakkar_cdi_write_spec(path.c_str(), spec, &error), 0) << error.message;
  EXPECT_EQ(*RealFileSystem().ReadFile(path), spec);
  EXPECT_TRUE(RealFileSystem().Remove(path).ok());
}

}  // namespace
}  // namespace drakkar::driver::c
