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
  const api::TreePtr rule = Tree(
      R"({"metadata":{"name":"r"},"spec":{"deviceSelector":{"pool":"p"},"taint":{"key":"k","effect":"NoExecute"}}})");
  EXPECT_EQ(*TaintRuleFromApi(rule->root())->selector->pool, "p");
  const api::TreePtr all = Tree(R"({"spec":{"taint":{"key":"k"}}})");
  EXPECT_FALSE(TaintRuleFromApi(all->root())->selector.has_value());
  const api::TreePtr node =
      Tree(R"({"metadata":{"name":"n","labels":{"a":"b"}},"status":{"declaredFeatures":["X"]}})");
  EXPECT_EQ(NodeFromApi(node->root()), (Node{"n", {{"a", "b"}}, {"X"}}));
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
