#include "apiserver/watch/layout_change.h"

#include <gmock/gmock.h>

#include "api/json/reader.h"
#include "apiserver/watch/stored_object.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr Duration kTtl = std::chrono::hours(1);
const StoreLayout kKubernetes{.is_kubernetes = true, .root = "/other"};

storage::Entry Own(std::string key, const std::string& json) {
  return {std::move(key), std::make_shared<const std::string>(json), 5, 7};
}

// Through the other layout and back, at another revision.
storage::Entry ThereAndBack(const LayoutChange& change, const storage::Entry& entry) {
  const Result<storage::Operation> write = change.FromOwn(entry, kTtl);
  EXPECT_TRUE(write.ok()) << write.error().message;
  const Result<std::optional<storage::Entry>> back =
      change.ToOwn({write->key, write->value, 20, 21});
  EXPECT_TRUE(back.ok()) << back.error().message;
  EXPECT_TRUE(back->has_value());
  return **back;
}

TEST(LayoutChangeTest, BuiltInKindsGetTheOtherKeyAndEncoding) {
  const LayoutChange change(kKubernetes);
  const storage::Entry node =
      Own("/registry/core/nodes/n1",
          R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n1","resourceVersion":"7"}})");
  const Result<storage::Operation> write = change.FromOwn(node, kTtl);
  ASSERT_TRUE(write.ok()) << write.error().message;
  EXPECT_EQ(write->key, "/other/minions/n1");
  EXPECT_THAT(*write->value, StartsWith(std::string_view("k8s\0", 4)));
  EXPECT_EQ(write->time_to_live, Duration(0));
  // Its version is that of the store, not one that the value claims.
  const storage::Entry back = ThereAndBack(change, node);
  EXPECT_EQ(back.key, node.key);
  EXPECT_THAT(*back.value, HasSubstr(R"("resourceVersion":"21")"));
  EXPECT_EQ(back.mod_revision, 21);
}

TEST(LayoutChangeTest, StoredJsonHasNoVersionOnASharedStore) {
  const LayoutChange change({.is_kubernetes = true, .media_type = StoreLayout::MediaType::kJson});
  const Result<storage::Operation> write = change.FromOwn(
      Own("/registry/core/configmaps/a/b",
          R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b","namespace":"a","resourceVersion":"7"}})"),
      kTtl);
  ASSERT_TRUE(write.ok()) << write.error().message;
  EXPECT_EQ(write->key, "/registry/configmaps/a/b");
  EXPECT_THAT(*write->value, Not(HasSubstr("resourceVersion")));
}

TEST(LayoutChangeTest, EventsExpire) {
  const LayoutChange change(kKubernetes);
  const Result<storage::Operation> write = change.FromOwn(
      Own("/registry/core/events/default/e",
          R"({"apiVersion":"v1","kind":"Event","metadata":{"name":"e","namespace":"default"}})"),
      kTtl);
  ASSERT_TRUE(write.ok()) << write.error().message;
  EXPECT_EQ(write->key, "/other/events/default/e");
  EXPECT_EQ(write->time_to_live, kTtl);
}

TEST(LayoutChangeTest, CustomResourcesKeepTheirKeyAndJson) {
  const LayoutChange change(kKubernetes);
  const storage::Entry widget = Own(
      "/registry/example.com/widgets/a/w",
      R"({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"a","resourceVersion":"7"},"spec":{"n":1}})");
  const Result<storage::Operation> write = change.FromOwn(widget, kTtl);
  ASSERT_TRUE(write.ok()) << write.error().message;
  EXPECT_EQ(write->key, "/other/example.com/widgets/a/w");
  EXPECT_THAT(*write->value, StartsWith("{"));
  const storage::Entry back = ThereAndBack(change, widget);
  EXPECT_EQ(back.key, widget.key);
  EXPECT_THAT(*back.value, HasSubstr(R"("spec":{"n":1})"));
  EXPECT_THAT(*back.value, HasSubstr(R"("resourceVersion":"21")"));
}

TEST(LayoutChangeTest, WhatIsNotAnObjectIsLeftAsItIs) {
  const LayoutChange change(kKubernetes);
  for (const std::string& value :
       {std::string("k8s\0\x0a\x03odd", 9), std::string("plain"), std::string(R"({"keys":1})")}) {
    const storage::Entry entry = {"/other/drakkar.io/cluster-keys",
                                  std::make_shared<const std::string>(value), 1, 2};
    const Result<std::optional<storage::Entry>> own = change.ToOwn(entry);
    ASSERT_TRUE(own.ok() && *own);
    EXPECT_EQ((*own)->key, "/registry/drakkar.io/cluster-keys");
    EXPECT_EQ(*(*own)->value, value);
  }
  const storage::Entry unknown = {"/other/oddities/a/b",
                                  std::make_shared<const std::string>("k8s\0\x0a\x03odd", 9), 1, 2};
  const Result<std::optional<storage::Entry>> own = change.ToOwn(unknown);
  ASSERT_TRUE(own.ok() && *own);
  EXPECT_EQ((*own)->key, "/registry/oddities/a/b");
  EXPECT_EQ(*(*own)->value, *unknown.value);
}

TEST(LayoutChangeTest, RecordsOfAllocatedDevicesAreDerived) {
  const LayoutChange change(kKubernetes);
  const Result<std::optional<storage::Entry>> own = change.ToOwn(
      {"/other/drakkar.io/allocated/devices/x", std::make_shared<const std::string>("{}"), 1, 2});
  ASSERT_TRUE(own.ok());
  EXPECT_FALSE(own->has_value());
}

TEST(LayoutChangeTest, ReportsWhatItCannotRead) {
  const LayoutChange change(kKubernetes);
  const auto read = [&](const std::string& key, const std::string& value) {
    return change.ToOwn({key, std::make_shared<const std::string>(value), 1, 2});
  };
  EXPECT_THAT(read("/other/pods/a/b", "k8s:enc:aescbc:v1:x").error().message,
              HasSubstr("encrypted"));
  EXPECT_FALSE(read("/other/pods/a/b", "{").ok());
  EXPECT_THAT(read("/elsewhere/x", "{}").error().message, HasSubstr("is not below /other/"));
}

}  // namespace
}  // namespace drakkar::apiserver
