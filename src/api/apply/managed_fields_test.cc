#include "api/apply/managed_fields.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "base/text/text.h"

namespace drakkar::api {
namespace {

class ManagedFieldsTest : public ::testing::Test {
 protected:
  static TreePtr Json(std::string_view text) {
    Result<TreePtr> tree = ParseJson(text);
    EXPECT_TRUE(tree.ok()) << text;
    return *tree;
  }
  FieldManager By(std::string_view manager, std::string_view now = "2025-01-02T00:00:00Z") {
    FieldManager by;
    by.manager = manager;
    by.api_version = "v1";
    by.schema = FindKindByApiVersion("v1", "ConfigMap")->schema;
    by.now = now;
    return by;
  }
  static std::string Map(std::string_view data) {
    return StrCat(
        R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m","namespace":"n"},)",
        R"("data":)", data, "}");
  }
  // `text` as an object, with the entries that result from `by` writing it.
  TreePtr Update(const TreePtr& before, std::string_view text, const FieldManager& by) {
    const TreePtr after = Json(text);
    Draft out(after);
    Draft entries = TrackUpdate(before == nullptr ? Value() : before->root(), after->root(), by);
    if (entries.exists()) out["metadata"]["managedFields"] = std::move(entries);
    return out.Freeze();
  }
  TreePtr Apply(const TreePtr& live, std::string_view text, const FieldManager& by,
                bool force = false) {
    const TreePtr config = Json(text);
    auto result =
        ApplyConfiguration(live == nullptr ? Value() : live->root(), config->root(), force, by);
    if (auto* status = std::get_if<Status>(&result)) {
      failure = *status;
      return nullptr;
    }
    return std::get<Applied>(result).object;
  }
  static std::string Entries(const TreePtr& object) {
    std::string out;
    for (Value entry : object->root()["metadata"]["managedFields"].elements()) {
      out += StrCat(entry["manager"].str(), " ", entry["operation"].str(), " ",
                    entry["time"].str().substr(0, 10), " ", entry["fieldsV1"].str(), "\n");
    }
    return out;
  }
  Status failure;
};

TEST_F(ManagedFieldsTest, AnUpdateTakesExactlyWhatItChanged) {
  TreePtr object = Update(nullptr, Map(R"({"a":"1","b":"1"})"), By("one", "2025-01-01T00:00:00Z"));
  EXPECT_EQ(Entries(object),
            "one Update 2025-01-01 {\"f:data\":{\".\":{},\"f:a\":{},\"f:b\":{}}}\n");
  object = Update(object, Map(R"({"a":"1","b":"2","c":"3"})"), By("two"));
  EXPECT_EQ(Entries(object),
            "one Update 2025-01-01 {\"f:data\":{\".\":{},\"f:a\":{}}}\n"
            "two Update 2025-01-02 {\"f:data\":{\"f:b\":{},\"f:c\":{}}}\n");
  object = Update(object, Map(R"({"b":"2","c":"3"})"), By("two"));
  EXPECT_EQ(Entries(object),
            "one Update 2025-01-01 {\"f:data\":{}}\n"
            "two Update 2025-01-02 {\"f:data\":{\"f:b\":{},\"f:c\":{}}}\n")
      << "a field that is gone belongs to nobody";
}

TEST_F(ManagedFieldsTest, OneEmptyEntryStopsTrackingUntilTheNextApply) {
  TreePtr object = Update(nullptr, Map(R"({"a":"1"})"), By("one"));
  const TreePtr asked =
      Json(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m","namespace":"n",)"
           R"("managedFields":[{}]},"data":{"a":"1"}})");
  EXPECT_FALSE(TrackUpdate(object->root(), asked->root(), By("one")).exists());
  object = Update(Json(Map(R"({"a":"1"})")), Map(R"({"a":"2"})"), By("one"));
  EXPECT_EQ(Entries(object), "");
  object = Apply(object, Map(R"({"b":"1"})"), By("applier"));
  ASSERT_NE(object, nullptr);
  EXPECT_EQ(Entries(object),
            "applier Apply 2025-01-02 {\"f:data\":{\"f:b\":{}}}\n"
            "before-first-apply Update 2025-01-02 {\"f:data\":{\".\":{},\"f:a\":{}}}\n");
}

TEST_F(ManagedFieldsTest, AConflictNamesEveryManagerAndFieldAndForceTakesThem) {
  TreePtr object = Apply(nullptr, Map(R"({"a":"1","b":"1"})"), By("one"));
  EXPECT_EQ(Apply(object, Map(R"({"a":"2","b":"2"})"), By("two")), nullptr);
  EXPECT_EQ(failure.code, 409);
  EXPECT_EQ(failure.message,
            "Apply failed with 2 conflicts: conflicts with \"one\":\n- .data.a\n- .data.b");
  ASSERT_EQ(failure.causes.size(), 2u);
  EXPECT_EQ(failure.causes[0].field, ".data.a");
  object = Apply(object, Map(R"({"a":"2","b":"2"})"), By("two"), /*force=*/true);
  ASSERT_NE(object, nullptr);
  EXPECT_EQ(Entries(object), "two Apply 2025-01-02 {\"f:data\":{\"f:a\":{},\"f:b\":{}}}\n");
}

TEST_F(ManagedFieldsTest, WhatIsNoLongerAppliedGoesUnlessAnotherHasIt) {
  TreePtr object = Apply(nullptr, Map(R"({"a":"1","b":"1","c":"1"})"), By("one"));
  object = Apply(object, Map(R"({"b":"1"})"), By("two"));
  object = Apply(object, Map(R"({"c":"1"})"), By("one"));
  ASSERT_NE(object, nullptr);
  EXPECT_EQ(WriteJson(object->root()["data"], {.sort_members = true}), R"({"b":"1","c":"1"})");
}

TEST_F(ManagedFieldsTest, ClientSideApplyBecomesServerSideWithoutAConflict) {
  const std::string annotated =
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m","namespace":"n",)"
      R"("annotations":{"kubectl.kubernetes.io/last-applied-configuration":)"
      R"("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"data\":{\"a\":\"1\"}}"}},"data":{"a":"1"}})";
  const TreePtr object = Update(nullptr, annotated, By("kubectl-client-side-apply"));
  EXPECT_EQ(Apply(object, Map(R"({"a":"2"})"), By("other")), nullptr);
  const TreePtr applied = Apply(object, Map(R"({"a":"2"})"), By("kubectl"));
  ASSERT_NE(applied, nullptr) << failure.message;
  EXPECT_EQ(applied->root()["data"].Entry("a").str(), "2");
}

TEST_F(ManagedFieldsTest, OldUpdatesShareAnEntryBeyondTen) {
  TreePtr object = Update(nullptr, Map(R"({"k0":"v"})"), By("m0", "2025-01-01T00:00:00Z"));
  std::string data = R"({"k0":"v")";
  for (int i = 1; i < 14; ++i) {
    data += StrCat(",\"k", i, "\":\"v\"");
    const std::string name = StrCat("m", i);
    const std::string now = StrCat("2025-01-01T00:00:", i < 10 ? "0" : "", i, "Z");
    object = Update(object, Map(data + "}"), By(name, now));
  }
  const Value entries = object->root()["metadata"]["managedFields"];
  EXPECT_EQ(entries.size(), kMaxUpdateManagers);
  EXPECT_EQ(entries.at(0)["manager"].str(), "ancient-changes");
}

TEST_F(ManagedFieldsTest, AConfigurationWithUnknownOrDuplicateFieldsIsRefused) {
  FieldManager by = By("one");
  EXPECT_EQ(
      Apply(nullptr, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"x":1})", by),
      nullptr);
  EXPECT_NE(failure.message.find(".x: field not declared in schema"), std::string::npos);
  EXPECT_EQ(Apply(nullptr, R"({"apiVersion":"v2","kind":"ConfigMap"})", by), nullptr);
  EXPECT_EQ(failure.code, 400);
}

}  // namespace
}  // namespace drakkar::api
