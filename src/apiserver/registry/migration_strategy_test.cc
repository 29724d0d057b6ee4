#include "apiserver/registry/migration_strategy.h"

#include <gtest/gtest.h>

#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

class MigrationStrategyTest : public CoreFixture {
 protected:
  MigrationStrategyTest() { StartCore(nullptr); }

  static std::string Text(std::string_view name, std::string_view resource,
                          std::string_view status = "{}", std::string_view version = "") {
    return StrCat(R"({"apiVersion":"storagemigration.k8s.io/v1","kind":"StorageVersionMigration",)",
                  R"("metadata":{"name":")", name, "\"",
                  version.empty() ? "" : StrCat(R"(,"resourceVersion":")", version, "\""),
                  R"(},"spec":{"resource":)", resource, R"(},"status":)", status, "}");
  }
  std::string Created(std::string_view resource) {
    const Response response = TryCreate(Text(StrCat("m", count_++), resource));
    return response.failure ? response.failure->message : "";
  }
  std::string StatusSet(std::string_view status) {
    const api::ObjectPtr now = Current();
    Request request = RequestFor(Verb::kUpdate,
                                 Text("m", R"({"group":"apps","resource":"deployments"})", status,
                                      std::to_string(now->resource_version())),
                                 AdminUser());
    request.subresource = "status";
    const Response response = Handle(std::move(request));
    return response.failure ? response.failure->message : "";
  }
  api::ObjectPtr Current() {
    return core_->Find("storagemigration.k8s.io", "storageversionmigrations", "m");
  }
  static std::string Condition(std::string_view type, std::string_view status) {
    return StrCat(R"({"type":")", type, R"(","status":")", status,
                  R"(","reason":"R","message":"","lastTransitionTime":"2025-06-07T08:09:10Z"})");
  }

  int count_ = 0;
};

TEST_F(MigrationStrategyTest, AMigrationNamesAResource) {
  EXPECT_EQ(Created(R"({"group":"","resource":"pods"})"), "");
  EXPECT_NE(Created(R"({"group":"apps","resource":""})")
                .find("spec.resource.resource: Required value: resource is required to be set"),
            std::string::npos);
  EXPECT_NE(Created(R"({"group":"apps","resource":"Pods"})")
                .find("spec.resource.resource: Invalid value: \"Pods\""),
            std::string::npos);
  EXPECT_NE(Created(R"({"group":"a_b","resource":"pods"})")
                .find("spec.resource.group: Invalid value: \"a_b\""),
            std::string::npos);
}

TEST_F(MigrationStrategyTest, TheSpecStaysAndAnUpdateNamesTheVersionItChanges) {
  Create(Text("m", R"({"group":"apps","resource":"deployments"})"));
  const std::string version = std::to_string(Current()->resource_version());
  const auto update = [&](std::string_view resource, std::string_view of) {
    const Response response =
        Handle(RequestFor(Verb::kUpdate, Text("m", resource, "{}", of), AdminUser()));
    return response.failure ? response.failure->message : "";
  };
  EXPECT_NE(update(R"({"group":"","resource":"pods"})", version).find("field is immutable"),
            std::string::npos);
  EXPECT_NE(update(R"({"group":"apps","resource":"deployments"})", "")
                .find("must be specified for an update"),
            std::string::npos);
  EXPECT_EQ(update(R"({"group":"apps","resource":"deployments"})", version), "");
}

TEST_F(MigrationStrategyTest, TheStatusKeepsItsVersionAndHowTheMigrationEnded) {
  Create(Text("m", R"({"group":"apps","resource":"deployments"})"));
  EXPECT_NE(
      StatusSet(R"({"resourceVersion":"01"})").find("resource version is not well formed: 01"),
      std::string::npos);
  EXPECT_EQ(StatusSet(R"({"resourceVersion":"12"})"), "");
  EXPECT_NE(StatusSet(R"({"resourceVersion":"13"})").find("field is immutable"), std::string::npos);
  const auto with = [](std::string_view conditions) {
    return StrCat(R"({"resourceVersion":"12","conditions":[)", conditions, "]}");
  };
  EXPECT_NE(
      StatusSet(with(StrCat(Condition("Succeeded", "True"), ",", Condition("Failed", "True"))))
          .find("Both success and failed conditions cannot be true at the same time"),
      std::string::npos);
  EXPECT_EQ(StatusSet(with(Condition("Succeeded", "True"))), "");
  EXPECT_NE(StatusSet(with(Condition("Succeeded", "False")))
                .find("Success condition cannot be set to false once it is true"),
            std::string::npos);
}

}  // namespace
}  // namespace drakkar::apiserver
