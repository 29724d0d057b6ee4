#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "device/from_api.h"
#include "device/to_api.h"

namespace drakkar::device {
namespace {

api::TreePtr Tree(std::string_view json) {
  auto tree = api::ParseJson(json);
  EXPECT_TRUE(tree.ok());
  return *tree;
}

Result<Slice> ReadSlice(std::string_view spec) {
  const api::TreePtr tree = Tree(R"({"metadata":{"name":"s"},"spec":)" + std::string(spec) + "}");
  return SliceFromApi(tree->root());
}

TEST(FromApi, ReadsASliceOfACentralController) {
  const auto slice = ReadSlice(R"({"driver":"fabric.example.com",
      "pool":{"name":"fabric","generation":3,"resourceSliceCount":2},"allNodes":true,
      "skipNodeOperations":["*"],
      "devices":[{"name":"gpu-0","attributes":{"model":{"string":"x1"},"v":{"version":"1.2.3"},
        "ints":{"ints":[1,2]}},"capacity":{"memory":{"value":"40Gi","requestPolicy":{"default":"1Gi",
        "validRange":{"min":"1Gi","step":"1Gi"}}}},"bindsToNode":true,
        "bindingConditions":["attached"],"bindingFailureConditions":["failed"]}]})");
  ASSERT_TRUE(slice.ok()) << slice.error().message;
  EXPECT_TRUE(slice->unknown_fields.empty());
  EXPECT_EQ(slice->pool_id(), (PoolId{"fabric.example.com", "fabric"}));
  EXPECT_EQ(slice->generation, 3);
  EXPECT_TRUE(slice->target.all_nodes);
  EXPECT_TRUE(slice->skip_node_operations.SkipsAny());
  const Device& device = slice->devices.at(0);
  EXPECT_EQ(device.attributes[0].name, "ints");
  EXPECT_EQ(device.attributes[0].value, AttributeValue(std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(device.attributes[2].value, AttributeValue(VersionText{"1.2.3"}));
  EXPECT_EQ(device.capacity[0].policy->valid_range->step->ToString(), "1Gi");
  EXPECT_EQ(device.binding_conditions, std::vector<std::string>{"attached"});
}

TEST(FromApi, ReportsFieldsItDoesNotKnow) {
  const auto slice = ReadSlice(
      R"({"driver":"d","future":1,"devices":[{"name":"a","capacity":{"m":{"value":"1","more":2}}}]})");
  ASSERT_TRUE(slice.ok());
  EXPECT_EQ(slice->unknown_fields,
            (std::vector<std::string>{"spec.future", "spec.devices[0].capacity[m].more"}));
}

// Each object has an unknown field "x".
TEST(FromApi, ReportsUnknownFieldsOfEveryObjectInASlice) {
  const auto slice = ReadSlice(R"({"x":1,"pool":{"x":1},
      "nodeSelector":{"x":1,"nodeSelectorTerms":[{"x":1,"matchExpressions":[{"x":1}],
        "matchFields":[{"x":1}]}]},
      "sharedCounters":[{"x":1,"counters":{"c":{"value":"1","x":1}}}],
      "devices":[{"x":1,"attributes":{"a":{"int":1,"x":1}},"taints":[{"x":1}],
        "capacity":{"m":{"value":"1","requestPolicy":{"x":1,"validRange":{"x":1}}}},
        "consumesCounters":[{"x":1}]}]})");
  ASSERT_TRUE(slice.ok()) << slice.error().message;
  EXPECT_THAT(slice->unknown_fields,
              testing::UnorderedElementsAre(
                  "spec.x", "spec.pool.x", "spec.nodeSelector.x",
                  "spec.nodeSelector.nodeSelectorTerms[0].x",
                  "spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].x",
                  "spec.nodeSelector.nodeSelectorTerms[0].matchFields[0].x",
                  "spec.sharedCounters[0].x", "spec.sharedCounters[0].counters[c].x",
                  "spec.devices[0].x", "spec.devices[0].attributes[a].x",
                  "spec.devices[0].taints[0].x", "spec.devices[0].capacity[m].requestPolicy.x",
                  "spec.devices[0].capacity[m].requestPolicy.validRange.x",
                  "spec.devices[0].consumesCounters[0].x"));
}

TEST(FromApi, ReportsUnknownFieldsOfEveryObjectInAClaim) {
  const api::TreePtr tree = Tree(R"({"spec":{"x":1,"devices":{"x":1,
      "requests":[{"x":1,"exactly":{"x":1,"selectors":[{"x":1},{"cel":{"x":1}}],
          "tolerations":[{"x":1}],"capacity":{"x":1},"derivedAttributes":[{"x":1}]}},
        {"firstAvailable":[{"x":1}]}],
      "constraints":[{"x":1}],"config":[{"x":1},{"opaque":{"x":1}}]}}})");
  const auto claim = ClaimFromApi(tree->root());
  ASSERT_TRUE(claim.ok());
  const std::string devices = "spec.devices.";
  const std::string exactly = devices + "requests[0].exactly.";
  EXPECT_THAT(
      claim->unknown_fields,
      testing::UnorderedElementsAre(
          "spec.x", devices + "x", devices + "requests[0].x", exactly + "x",
          exactly + "selectors[0].x", exactly + "selectors[1].cel.x", exactly + "tolerations[0].x",
          exactly + "capacity.x", exactly + "derivedAttributes[0].x",
          devices + "requests[1].firstAvailable[0].x", devices + "constraints[0].x",
          devices + "config[0].x", devices + "config[1].opaque.x"));
}

TEST(FromApi, ReportsUnknownFieldsOfClassesAndTaintRules) {
  const api::TreePtr one = Tree(R"({"spec":{"x":1,"config":[{"x":1}]}})");
  EXPECT_THAT(DeviceClassFromApi(one->root())->unknown_fields,
              testing::UnorderedElementsAre("spec.x", "spec.config[0].x"));
  const api::TreePtr rule = Tree(R"({"spec":{"x":1,"deviceSelector":{"x":1},"taint":{"x":1}}})");
  EXPECT_THAT(TaintRuleFromApi(rule->root())->unknown_fields,
              testing::UnorderedElementsAre("spec.x", "spec.deviceSelector.x", "spec.taint.x"));
}

TEST(FromApi, ReadsEveryFieldOfADevice) {
  const auto slice = ReadSlice(R"({"driver":"d","perDeviceNodeSelection":true,
      "pool":{"name":"p","generation":1,"resourceSliceCount":2},
      "sharedCounters":[{"name":"a"},{"name":"b","counters":{"y":{"value":"2"},"x":{"value":1}}}],
      "devices":[{"name":"first"},{"name":"gpu-0","allowMultipleAllocations":true,
        "bindsToNode":true,"bindingConditions":["c1","c2"],"bindingFailureConditions":["f1","f2"],
        "nodeName":"n","nodeSelector":{"nodeSelectorTerms":[
          {"matchExpressions":[{"key":"k","operator":"In","values":["v","w"]},
                               {"key":"l","operator":"Exists"}]},
          {"matchFields":[{"key":"metadata.name","operator":"In","values":["n"]}]}]},
        "taints":[{"key":"a"},{"key":"k","value":"v","effect":"NoSchedule","timeAdded":"t"}],
        "consumesCounters":[{"counterSet":"a"},{"counterSet":"b","compatibilityGroups":["g","h"],
          "counters":{"x":{"value":"1"}}}]}]})");
  ASSERT_TRUE(slice.ok()) << slice.error().message;
  EXPECT_EQ(slice->unknown_fields, std::vector<std::string>());
  EXPECT_EQ(slice->name, "s");
  EXPECT_EQ(slice->slice_count, 2);
  EXPECT_TRUE(slice->per_device_node_selection);
  EXPECT_FALSE(slice->target.IsSet());
  ASSERT_EQ(slice->shared_counters.size(), 2u);
  EXPECT_EQ(slice->shared_counters[1].name, "b");
  ASSERT_EQ(slice->shared_counters[1].counters.size(), 2u);
  EXPECT_EQ(slice->shared_counters[1].counters[0].name, "x") << "sorted by name";
  EXPECT_EQ(slice->shared_counters[1].counters[1].value, api::Quantity(2));
  ASSERT_EQ(slice->devices.size(), 2u);
  EXPECT_FALSE(slice->devices[0].binds_to_node || slice->devices[0].allow_multiple_allocations);
  const Device& device = slice->devices[1];
  EXPECT_EQ(device.name, "gpu-0");
  EXPECT_TRUE(device.binds_to_node && device.allow_multiple_allocations);
  EXPECT_EQ(device.binding_conditions, (std::vector<std::string>{"c1", "c2"}));
  EXPECT_EQ(device.binding_failure_conditions, (std::vector<std::string>{"f1", "f2"}));
  const NodeSelector selector{{{{{"k", "In", {"v", "w"}}, {"l", "Exists", {}}}, {}},
                               {{}, {{"metadata.name", "In", {"n"}}}}}};
  EXPECT_EQ(device.target, (NodeTarget{"n", false, selector}));
  ASSERT_EQ(device.taints.size(), 2u);
  EXPECT_EQ(device.taints[1], (Taint{"k", "v", "NoSchedule", "t"}));
  ASSERT_EQ(device.consumes_counters.size(), 2u);
  EXPECT_EQ(device.consumes_counters[1].counter_set, "b");
  EXPECT_EQ(device.consumes_counters[1].compatibility_groups, (std::vector<std::string>{"g", "h"}));
  EXPECT_EQ(device.consumes_counters[1].counters.at(0).name, "x");
}

TEST(FromApi, ReadsEveryKindOfAttribute) {
  const auto slice = ReadSlice(R"({"devices":[{"attributes":{
      "a":{"int":7},"b":{"bool":true},"c":{"string":"s"},"d":{"version":"1.0.0"},
      "e":{"ints":[1,2]},"f":{"bools":[true,false]},"g":{"strings":["s","t"]},
      "h":{"versions":["1.0.0","2.0.0"]},"i":{}}}]})");
  ASSERT_TRUE(slice.ok());
  const std::vector<AttributeValue> expected = {std::int64_t{7},
                                                true,
                                                std::string("s"),
                                                VersionText{"1.0.0"},
                                                std::vector<std::int64_t>{1, 2},
                                                std::vector<bool>{true, false},
                                                std::vector<std::string>{"s", "t"},
                                                std::vector<VersionText>{{"1.0.0"}, {"2.0.0"}},
                                                std::monostate()};
  const std::vector<Attribute>& attributes = slice->devices[0].attributes;
  ASSERT_EQ(attributes.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(attributes[i].value, expected[i]) << attributes[i].name;
  }
}

TEST(FromApi, ReadsEveryFieldOfAClaim) {
  const api::TreePtr tree = Tree(R"({"metadata":{"name":"c","uid":"u"},"spec":{"devices":{
      "requests":[{"name":"r","exactly":{"deviceClassName":"x","allocationMode":"All","count":3,
          "adminAccess":true,"selectors":[{},{"cel":{"expression":"true"}}],
          "tolerations":[{"key":"a"},{"key":"k","operator":"Equal","value":"v",
            "effect":"NoExecute","tolerationSeconds":9}],
          "capacity":{"requests":{"b":"2","a":1}},
          "derivedAttributes":[{"name":"m","expression":"1"},{"name":"n","expression":"2"}]}},
        {"name":"s","firstAvailable":[{"name":"t","adminAccess":true},{"name":"v"}]}],
      "constraints":[{"requests":["r","s"],"matchAttribute":"a/b"},{"distinctAttribute":"c/d"}],
      "config":[{},{"requests":["r"],"opaque":{"driver":"d","parameters":{"p":1}}}]}}})");
  const auto claim = ClaimFromApi(tree->root());
  ASSERT_TRUE(claim.ok()) << claim.error().message;
  EXPECT_EQ(claim->ToString(), "c");
  EXPECT_EQ(claim->uid, "u");
  ASSERT_EQ(claim->requests.size(), 2u);
  const RequestSpec& spec = *claim->requests[0].exactly;
  EXPECT_EQ(spec.name, "r");
  EXPECT_EQ(spec.device_class, "x");
  EXPECT_EQ(spec.allocation_mode, "All");
  EXPECT_EQ(spec.count, 3);
  EXPECT_EQ(spec.admin_access, true);
  ASSERT_EQ(spec.selectors.size(), 2u);
  EXPECT_FALSE(spec.selectors[0].cel) << "of an unknown kind";
  EXPECT_EQ(spec.selectors[1].cel, "true");
  ASSERT_EQ(spec.tolerations.size(), 2u);
  EXPECT_EQ(spec.tolerations[1], (Toleration{"k", "Equal", "v", "NoExecute", 9}));
  ASSERT_EQ(spec.capacity->size(), 2u);
  EXPECT_EQ(spec.capacity->at(0).name, "a") << "sorted by name";
  EXPECT_EQ(spec.capacity->at(1).value, api::Quantity(2));
  ASSERT_EQ(spec.derived_attributes.size(), 2u);
  EXPECT_EQ(spec.derived_attributes[1].name, "n");
  EXPECT_EQ(spec.derived_attributes[1].expression, "2");
  ASSERT_EQ(claim->requests[1].first_available.size(), 2u);
  EXPECT_EQ(claim->requests[1].first_available[1].name, "v");
  EXPECT_FALSE(claim->requests[1].first_available[0].admin_access)
      << "subrequests have no admin access";
  ASSERT_EQ(claim->constraints.size(), 2u);
  EXPECT_EQ(claim->constraints[0].requests, (std::vector<std::string>{"r", "s"}));
  EXPECT_EQ(claim->constraints[0].match_attribute, "a/b");
  EXPECT_FALSE(claim->constraints[1].match_attribute);
  EXPECT_EQ(claim->constraints[1].distinct_attribute, "c/d");
  ASSERT_EQ(claim->config.size(), 2u);
  EXPECT_FALSE(claim->config[0].opaque);
  EXPECT_EQ(claim->config[1].requests, std::vector<std::string>{"r"});
  EXPECT_EQ(claim->config[1].opaque, (OpaqueConfig{"d", R"({"p":1})"}));
}

TEST(FromApi, ReadsEveryFieldOfAClass) {
  const api::TreePtr tree = Tree(R"({"metadata":{"name":"gpu"},"spec":{
      "selectors":[{"cel":{"expression":"a"}},{"cel":{"expression":"b"}}],
      "config":[{},{"opaque":{"driver":"d","parameters":{}}}],"extendedResourceName":"e.x/gpu"}})");
  const auto device_class = DeviceClassFromApi(tree->root());
  ASSERT_TRUE(device_class.ok());
  EXPECT_EQ(device_class->unknown_fields, std::vector<std::string>());
  EXPECT_EQ(device_class->name, "gpu");
  ASSERT_EQ(device_class->selectors.size(), 2u);
  EXPECT_EQ(device_class->selectors[1].cel, "b");
  ASSERT_EQ(device_class->config.size(), 2u);
  EXPECT_EQ(device_class->config[1]->driver, "d");
  EXPECT_EQ(device_class->extended_resource_name, "e.x/gpu");
}

TEST(FromApi, AQuantityIsAStringOrANumber) {
  const auto value = [](std::string_view text) {
    const auto slice =
        ReadSlice(R"({"devices":[{"capacity":{"m":{"value":)" + std::string(text) + "}}}]}");
    return slice.ok() ? slice->devices[0].capacity[0].value.ToString() : slice.error().message;
  };
  EXPECT_EQ(value("\"1Gi\""), "1Gi");
  EXPECT_EQ(value("3"), "3");
  EXPECT_EQ(value("1.5"), "1500m");
  EXPECT_EQ(value("true"), "spec.devices[0].capacity[m].value: must be a quantity");
}

// The paths of quantities that are read one by one.
TEST(FromApi, NamesThePathOfEveryQuantityThatDoesNotParse) {
  const auto error = [](std::string_view spec) {
    const auto slice = ReadSlice(spec);
    return slice.ok() ? "" : slice.error().message.substr(0, slice.error().message.find(':'));
  };
  const std::string capacity = "spec.devices[0].capacity[m].requestPolicy.";
  const auto policy = [](std::string_view text) {
    return R"({"devices":[{"capacity":{"m":{"value":"1","requestPolicy":)" + std::string(text) +
           "}}}]}";
  };
  EXPECT_EQ(error(policy(R"({"default":"bad"})")), capacity + "default");
  EXPECT_EQ(error(policy(R"({"validValues":["1","bad"]})")), capacity + "validValues[1]");
  EXPECT_EQ(error(policy(R"({"validRange":{"min":"bad"}})")), capacity + "validRange.min");
  EXPECT_EQ(error(policy(R"({"validRange":{"max":"bad"}})")), capacity + "validRange.max");
  EXPECT_EQ(error(policy(R"({"validRange":{"step":"bad"}})")), capacity + "validRange.step");
  EXPECT_EQ(error(R"({"sharedCounters":[{"counters":{"c":{"value":"bad"}}}]})"),
            "spec.sharedCounters[0].counters[c].value");
  EXPECT_EQ(error(R"({"devices":[{"consumesCounters":[{"counters":{"c":{"value":"bad"}}}]}]})"),
            "spec.devices[0].consumesCounters[0].counters[c].value");
  EXPECT_EQ(error(R"({"skipNodeOperations":"*"})"), "spec.skipNodeOperations");
}

TEST(FromApi, ReadsEveryFieldOfACapacityPolicy) {
  const auto slice = ReadSlice(R"({"devices":[{"capacity":{"m":{"value":"9","requestPolicy":{
      "default":"1","validValues":["1","2"],"validRange":{"min":"3","max":"5","step":"1"}}}}}]})");
  const CapacityPolicy& policy = *slice->devices[0].capacity[0].policy;
  EXPECT_EQ(*policy.default_value, api::Quantity(1));
  ASSERT_EQ(policy.valid_values.size(), 2u);
  EXPECT_EQ(policy.valid_values[1], api::Quantity(2));
  EXPECT_EQ(*policy.valid_range->min, api::Quantity(3));
  EXPECT_EQ(*policy.valid_range->max, api::Quantity(5));
}

TEST(FromApi, NamesThePathOfAQuantityThatDoesNotParse) {
  const auto slice = ReadSlice(R"({"devices":[{"name":"a","capacity":{"m":{"value":"200K"}}}]})");
  ASSERT_FALSE(slice.ok());
  EXPECT_TRUE(slice.error().message.starts_with("spec.devices[0].capacity[m].value: "))
      << slice.error().message;
}

TEST(FromApi, KeepsEveryFormOfSkipNodeOperations) {
  EXPECT_FALSE(ReadSlice("{}")->skip_node_operations.IsSet());
  const auto no = ReadSlice(R"({"skipNodeOperations":false})")->skip_node_operations;
  EXPECT_TRUE(no.IsSet());
  EXPECT_FALSE(no.SkipsAny());
  EXPECT_TRUE(ReadSlice(R"({"skipNodeOperations":true})")->skip_node_operations.SkipsAny());
  EXPECT_FALSE(ReadSlice(R"({"skipNodeOperations":[]})")->skip_node_operations.SkipsAny());
  EXPECT_FALSE(ReadSlice(R"({"skipNodeOperations":"*"})").ok());
}

TEST(FromApi, DistinguishesAMissingCapacityRequestFromAnEmptyOne) {
  const api::TreePtr tree = Tree(R"({"metadata":{"namespace":"ns","name":"c"},"spec":{"devices":{
      "requests":[{"name":"a","exactly":{"deviceClassName":"x"}},
                  {"name":"b","exactly":{"capacity":{}}},
                  {"name":"c","firstAvailable":[{"name":"s","count":2}]}]}}})");
  const auto claim = ClaimFromApi(tree->root());
  ASSERT_TRUE(claim.ok());
  EXPECT_EQ(claim->ToString(), "ns/c");
  EXPECT_FALSE(claim->requests[0].exactly->capacity.has_value());
  EXPECT_TRUE(claim->requests[1].exactly->capacity.has_value());
  EXPECT_FALSE(claim->requests[2].exactly.has_value());
  EXPECT_EQ(claim->requests[2].first_available[0].count, 2);
}

TEST(FromApi, ReadsTaintRulesAndNodes) {
  const api::TreePtr tree = Tree(R"({"metadata":{"name":"r"},"spec":{
      "deviceSelector":{"driver":"d","pool":"p","device":"x"},
      "taint":{"key":"k","effect":"NoExecute"}}})");
  const auto rule = TaintRuleFromApi(tree->root());
  EXPECT_EQ(rule->name, "r");
  EXPECT_EQ(rule->selector->driver, "d");
  EXPECT_EQ(rule->selector->pool, "p");
  EXPECT_EQ(rule->selector->device, "x");
  EXPECT_EQ(rule->taint, (Taint{"k", "", "NoExecute", ""}));
  const api::TreePtr all = Tree(R"({"spec":{"taint":{"key":"k"}}})");
  EXPECT_FALSE(TaintRuleFromApi(all->root())->selector.has_value());
  const api::TreePtr node = Tree(R"({"metadata":{"name":"n","labels":{"a":"b","c":"d"}},
               "status":{"declaredFeatures":["X","Y"]}})");
  EXPECT_EQ(NodeFromApi(node->root()), (Node{"n", {{"a", "b"}, {"c", "d"}}, {"X", "Y"}}));
  EXPECT_FALSE(NodeSelectorFromApi(api::Value()).ok());
  const api::TreePtr term = Tree(R"({"matchExpressions":[{"key":"k","operator":"Exists"}]})");
  EXPECT_EQ(NodeSelectorTermFromApi(term->root()), (NodeSelectorTerm{{{"k", "Exists", {}}}, {}}));
}

TEST(ToApi, WritesEveryElementOfEveryList) {
  const std::string json =
      R"({"devices":{"config":[{"requests":["q","r"],"source":"FromClass"}],"results":[)"
      R"({"bindingConditions":["a","b"],"bindingFailureConditions":["c","d"],)"
      R"("consumedCapacity":{"m":"1Gi","n":"2"},"device":"x","driver":"d","pool":"p",)"
      R"("request":"r","skipNodeOperations":true,"tolerations":[{"effect":"NoSchedule",)"
      R"("key":"k","operator":"Equal","value":"v"},{"operator":"Exists"}]}]},)"
      R"("nodeSelector":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"In",)"
      R"("values":["v","w"]},{"key":"l","operator":"Exists"}]},{"matchFields":[)"
      R"({"key":"metadata.name","operator":"In","values":["n"]}]}]}})";
  const auto allocation = AllocationFromApi(Tree(json)->root());
  ASSERT_TRUE(allocation.ok()) << allocation.error().message;
  EXPECT_EQ(api::WriteJson(AllocationToApi(*allocation).Freeze()->root(), {.sort_members = true}),
            json);
}

TEST(FromApi, AnAllocationWithAnAmountThatDoesNotParseIsAnError) {
  const auto allocation = AllocationFromApi(
      Tree(R"({"devices":{"results":[{"consumedCapacity":{"m":"bad"}}]}})")->root());
  ASSERT_FALSE(allocation.ok());
  EXPECT_TRUE(
      allocation.error().message.starts_with("allocation.devices.results[0].consumedCapacity[m]: "))
      << allocation.error().message;
}

TEST(ToApi, WritesWhatFromApiReads) {
  const std::string json =
      R"({"allocationTimestamp":"2026-08-01T10:00:00Z","devices":{"config":[{"opaque":{"driver":"d",)"
      R"("parameters":{"a":1}},"requests":["r"],"source":"FromClaim"},{"source":"FromClass"}],"results":[)"
      R"({"adminAccess":true,"bindingConditions":["c"],"bindingFailureConditions":["f"],)"
      R"("consumedCapacity":{"m":"1Gi"},"device":"x","driver":"d","pool":"p","request":"r/s",)"
      R"("shareID":"id","skipNodeOperations":false,"tolerations":[{"key":"k","operator":"Exists",)"
      R"("tolerationSeconds":5}]},{"device":"y","driver":"d","pool":"p","request":"r",)"
      R"("skipNodeOperations":["*"]}]},"nodeSelector":{"nodeSelectorTerms":[{"matchFields":[)"
      R"({"key":"metadata.name","operator":"In","values":["n"]}]}]}})";
  const auto allocation = AllocationFromApi(Tree(json)->root());
  ASSERT_TRUE(allocation.ok()) << allocation.error().message;
  EXPECT_EQ(api::WriteJson(AllocationToApi(*allocation).Freeze()->root(), {.sort_members = true}),
            json);
}

}  // namespace
}  // namespace drakkar::device
