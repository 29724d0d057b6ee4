#include "controllers/device_taint_eviction/tainted_devices.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/meta/time.h"
#include "base/text/text.h"

namespace drakkar::controllers {
namespace {

api::ObjectPtr MakeObject(std::string_view json) {
  return std::make_shared<const api::Object>(api::ParseJson(json).value());
}

constexpr std::string_view kAdded = "2026-01-01T00:00:00Z";

WallTime After(int seconds) {
  return api::ParseTime(kAdded).value() + std::chrono::seconds(seconds);
}

std::string Taint(std::string_view key, std::string_view effect = "NoExecute") {
  return StrCat(R"({"key":")", key, R"(","value":"v","effect":")", effect, R"(","timeAdded":")",
                kAdded, R"("})");
}

api::ObjectPtr Slice(std::string_view name, int generation, std::string_view taints,
                     std::string_view device = "d0") {
  return MakeObject(StrCat(
      R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":")", name,
      R"("},"spec":{"driver":"gpu","pool":{"name":"p","generation":)", std::to_string(generation),
      R"(,"resourceSliceCount":1},"nodeName":"n","devices":[{"name":")", device, R"(","taints":[)",
      taints, "]}]}}"));
}

api::ObjectPtr Rule(std::string_view name, std::string_view selector,
                    std::string_view effect = "NoExecute") {
  return MakeObject(
      StrCat(R"({"apiVersion":"resource.k8s.io/v1","kind":"DeviceTaintRule","metadata":{"name":")",
             name, R"("},"spec":{)", selector, R"("taint":)", Taint("k", effect), "}}"));
}

api::ObjectPtr Claim(std::string_view tolerations, std::string_view device = "d0") {
  return MakeObject(StrCat(
      R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim",
          "metadata":{"name":"c","namespace":"default"},
          "status":{"allocation":{"devices":{"results":[{"request":"r","driver":"gpu","pool":"p",
          "device":")",
      device, R"(","tolerations":[)", tolerations, "]}]}}}}"));
}

TEST(TaintedDevices, ATaintInASliceEvictsAtTheTimeItWasAdded) {
  TaintedDevices taints;
  EXPECT_FALSE(taints.any());
  EXPECT_TRUE(taints.SetSlice(*Slice("s", 1, Taint("k"))));
  EXPECT_TRUE(taints.any());
  EXPECT_EQ(taints.EvictionOf(Claim("")->root()), (DeviceEviction{After(0), {}}));
  EXPECT_EQ(taints.EvictionOf(Claim("", "d1")->root()), std::nullopt);
  EXPECT_TRUE(taints.RemoveSlice("s"));
  EXPECT_FALSE(taints.any());
  EXPECT_EQ(taints.EvictionOf(Claim("")->root()), std::nullopt);
}

TEST(TaintedDevices, OtherEffectsDoNotEvict) {
  TaintedDevices taints;
  EXPECT_FALSE(taints.SetSlice(*Slice("s", 1, Taint("k", "NoSchedule"))));
  EXPECT_FALSE(taints.SetRule(*Rule("r", R"("deviceSelector":{},)", "None")));
  EXPECT_FALSE(taints.any());
}

TEST(TaintedDevices, OnlyTheNewestGenerationOfAPoolCounts) {
  TaintedDevices taints;
  taints.SetSlice(*Slice("old", 1, Taint("k")));
  EXPECT_TRUE(taints.SetSlice(*Slice("new", 2, "")));
  EXPECT_EQ(taints.EvictionOf(Claim("")->root()), std::nullopt);
  EXPECT_TRUE(taints.RemoveSlice("new"));
  EXPECT_TRUE(taints.EvictionOf(Claim("")->root()).has_value());
}

TEST(TaintedDevices, AllSlicesOfTheNewestGenerationCount) {
  TaintedDevices taints;
  taints.SetSlice(*Slice("a", 3, Taint("k"), "d0"));
  taints.SetSlice(*Slice("b", 3, Taint("k"), "d1"));
  EXPECT_TRUE(taints.EvictionOf(Claim("", "d0")->root()).has_value());
  EXPECT_TRUE(taints.EvictionOf(Claim("", "d1")->root()).has_value());
}

TEST(TaintedDevices, TolerationsDelayOrPreventEviction) {
  TaintedDevices taints;
  taints.SetSlice(*Slice("s", 1, StrCat(Taint("k"), ",", Taint("l"))));
  const auto end = [&](std::string_view tolerations) -> std::optional<WallTime> {
    const auto eviction = taints.EvictionOf(Claim(tolerations)->root());
    return eviction ? std::optional(eviction->at) : std::nullopt;
  };
  EXPECT_EQ(end(R"({"operator":"Exists","effect":"NoExecute"})"), std::nullopt);
  EXPECT_EQ(end(R"({"operator":"Exists"})"), After(0)) << "a toleration for every effect";
  EXPECT_EQ(end(R"({"key":"k","operator":"Exists","effect":"NoExecute"})"), After(0))
      << "the second taint is not tolerated";
  EXPECT_EQ(end(R"({"operator":"Exists","effect":"NoExecute","tolerationSeconds":60},
                   {"key":"l","operator":"Exists","effect":"NoExecute","tolerationSeconds":20})"),
            After(20));
  EXPECT_EQ(end(R"({"operator":"Exists","effect":"NoExecute","tolerationSeconds":-5})"), After(0));
  EXPECT_EQ(end(R"({"operator":"Exists","effect":"NoExecute","tolerationSeconds":60},
                   {"operator":"Exists","effect":"NoExecute"})"),
            After(60))
      << "as in Kubernetes, the shortest time wins over forever";
  EXPECT_EQ(end(R"({"key":"k","value":"w","effect":"NoExecute"})"), After(0)) << "another value";
}

TEST(TaintedDevices, ARuleTaintsTheDevicesItSelectsAndNoOthers) {
  const auto evicts = [](std::string_view selector) {
    TaintedDevices taints;
    EXPECT_TRUE(taints.SetRule(*Rule("r", selector)));
    return taints.EvictionOf(Claim("")->root()).has_value();
  };
  EXPECT_TRUE(evicts(R"("deviceSelector":{},)"));
  EXPECT_TRUE(evicts(R"("deviceSelector":{"driver":"gpu","pool":"p","device":"d0"},)"));
  EXPECT_FALSE(evicts(R"("deviceSelector":{"driver":"nic"},)"));
  EXPECT_FALSE(evicts(R"("deviceSelector":{"driver":"gpu","pool":"q"},)"));
  EXPECT_FALSE(evicts(R"("deviceSelector":{"driver":"gpu","pool":"p","device":"d1"},)"));
  EXPECT_FALSE(evicts("")) << "no selector selects nothing";
}

TEST(TaintedDevices, AnEvictionNamesEveryRuleThatDemandsIt) {
  TaintedDevices taints;
  taints.SetRule(*Rule("b", R"("deviceSelector":{},)"));
  taints.SetRule(*Rule("a", R"("deviceSelector":{"driver":"gpu"},)"));
  taints.SetRule(*Rule("c", R"("deviceSelector":{"driver":"nic"},)"));
  EXPECT_EQ(taints.EvictionOf(Claim("")->root()), (DeviceEviction{After(0), {"a", "b"}}));
  EXPECT_TRUE(taints.RemoveRule("a"));
  EXPECT_FALSE(taints.RemoveRule("a"));
  EXPECT_TRUE(taints.SetRule(*Rule("b", R"("deviceSelector":{},)", "NoSchedule")));
  EXPECT_EQ(taints.EvictionOf(Claim("")->root()), std::nullopt);
}

TEST(TaintedDevices, CountsTheDevicesThatARuleSelects) {
  const auto rule = device::TaintRule{.name = "r", .selector = device::TaintRule::DeviceSelector{}};
  EXPECT_EQ(TaintedDevices::CountSelected(rule, Claim("")->root()), 1u);
  EXPECT_EQ(TaintedDevices::CountSelected(device::TaintRule{.name = "n"}, Claim("")->root()), 0u);
}

}  // namespace
}  // namespace drakkar::controllers
