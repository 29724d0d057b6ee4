#include "apiserver/http/device_usage.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"

namespace drakkar::apiserver {
namespace {

api::ObjectPtr Parse(std::string_view json) {
  return std::make_shared<const api::Object>(api::ParseJson(json).value());
}

TEST(DeviceUsageTest, AllocatedDevicesAreCountedOnce) {
  const api::ObjectPtr slice = Parse(
      R"({"spec":{"driver":"d","pool":{"name":"n/1"},
          "devices":[{"name":"a"},{"name":"b"},{"name":"c"}]}})");
  DeviceUsage::Objects claims;
  DeviceUsage usage;
  usage.Update(claims, 1);
  EXPECT_EQ(usage.AllocatedIn(*slice), 0);
  claims["ns/x"] = Parse(R"({"status":{"allocation":{"devices":{"results":[
      {"driver":"d","pool":"n/1","device":"a"},{"driver":"other","pool":"n/1","device":"b"},
      {"driver":"d","pool":"n/1","device":"c","adminAccess":true}]}}}})");
  claims["ns/y"] = Parse(R"({"status":{"allocation":{"devices":{"results":[
      {"driver":"d","pool":"n/1","device":"a"}]}}}})");
  claims["ns/z"] = Parse(R"({"spec":{}})");
  usage.Update(claims, 1);
  EXPECT_EQ(usage.AllocatedIn(*slice), 0) << "nothing new at the same revision";
  usage.Update(claims, 2);
  EXPECT_EQ(usage.AllocatedIn(*slice), 1);
}

}  // namespace
}  // namespace drakkar::apiserver
