#include "apiserver/registry/workload_api_strategies.h"

#include "api/json/writer.h"
#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

class WorkloadApiTest : public CoreFixture {
 protected:
  WorkloadApiTest() { StartCore(nullptr); }

  static std::string Group(std::string_view spec) {
    return StrCat(R"({"apiVersion":"scheduling.k8s.io/v1beta1","kind":"PodGroup",
        "metadata":{"name":"g"},"spec":)",
                  spec, "}");
  }
  static std::string Workload(std::string_view templates) {
    return StrCat(R"({"apiVersion":"scheduling.k8s.io/v1beta1","kind":"Workload",
        "metadata":{"name":"w"},"spec":{"podGroupTemplates":)",
                  templates, "}}");
  }
  std::string MessageOf(const std::string& json) {
    const Response response = TryCreate(json);
    return response.failure ? response.failure->message : "accepted";
  }
  std::string MessageOfUpdate(std::string_view plural, std::string_view key,
                              const std::function<void(api::Draft&)>& change) {
    const api::ObjectPtr now = core_->Find("scheduling.k8s.io", plural, std::string(key));
    api::Draft changed(now->tree());
    change(changed);
    const Response response =
        Handle(RequestFor(Verb::kUpdate, api::WriteJson(changed.Freeze()->root()), AdminUser()));
    return response.failure ? response.failure->message : "accepted";
  }
};

TEST_F(WorkloadApiTest, AGroupHasOnePolicyAndADisruptionMode) {
  EXPECT_NE(MessageOf(Group(R"({"schedulingPolicy":{}})")).find("must specify one of"),
            std::string::npos);
  EXPECT_NE(MessageOf(Group(R"({"schedulingPolicy":{"basic":{},"gang":{"minCount":1}}})"))
                .find("must specify exactly one of"),
            std::string::npos);
  EXPECT_NE(MessageOf(Group(R"({"schedulingPolicy":{"gang":{"minCount":0}}})"))
                .find("must be greater than or equal to 1"),
            std::string::npos);
  EXPECT_EQ(MessageOf(Group(R"({"schedulingPolicy":{"gang":{"minCount":2}}})")), "accepted");
  const api::ObjectPtr made = core_->Find("scheduling.k8s.io", "podgroups", "default/g");
  EXPECT_TRUE((*made)["spec"]["disruptionMode"]["single"].has_value());
}

TEST_F(WorkloadApiTest, AGangMayGrowButStaysOne) {
  ASSERT_EQ(MessageOf(Group(R"({"schedulingPolicy":{"gang":{"minCount":2}}})")), "accepted");
  EXPECT_EQ(MessageOfUpdate("podgroups", "default/g",
                            [](api::Draft& group) {
                              group["spec"]["schedulingPolicy"]["gang"]["minCount"] = 3;
                            }),
            "accepted");
  EXPECT_NE(MessageOfUpdate(
                "podgroups", "default/g",
                [](api::Draft& group) {
                  group["spec"]["schedulingPolicy"] = api::Draft({{"basic", api::Draft::Object()}});
                })
                .find("field is immutable"),
            std::string::npos);
}

TEST_F(WorkloadApiTest, ClaimsAreDroppedWithoutTheirGate) {
  ASSERT_EQ(MessageOf(Group(R"({"schedulingPolicy":{"basic":{}},
      "resourceClaims":[{"name":"c","resourceClaimName":"x"}]})")),
            "accepted");
  const api::ObjectPtr made = core_->Find("scheduling.k8s.io", "podgroups", "default/g");
  EXPECT_FALSE((*made)["spec"]["resourceClaims"].exists());
}

TEST_F(WorkloadApiTest, TheTemplatesOfAWorkloadStay) {
  constexpr char kOne[] = R"([{"name":"a","schedulingPolicy":{"basic":{}}}])";
  EXPECT_NE(MessageOf(Workload("[]")).find("must specify one of"), std::string::npos);
  EXPECT_NE(MessageOf(Workload(R"([{"name":"a","schedulingPolicy":{"basic":{}}},
                                   {"name":"a","schedulingPolicy":{"basic":{}}}])"))
                .find("Duplicate value"),
            std::string::npos);
  ASSERT_EQ(MessageOf(Workload(kOne)), "accepted");
  EXPECT_NE(MessageOfUpdate(
                "workloads", "default/w",
                [](api::Draft& workload) {
                  workload["spec"]["podGroupTemplates"].Append(api::Draft(
                      {{"name", "b"}, {"schedulingPolicy", {{"basic", api::Draft::Object()}}}}));
                })
                .find("items may not be added or removed"),
            std::string::npos);
}

TEST_F(WorkloadApiTest, ClaimsStayWithTheirGate) {
  gates_ = gates_.With(Gate::kGenericWorkload, true).With(Gate::kDRAWorkloadResourceClaims, true);
  constexpr char kGroup[] = R"({"schedulingPolicy":{"basic":{}},
      "resourceClaims":[{"name":"c","resourceClaimName":"x"},{"name":"d","resourceClaimName":"y"}]})";
  ASSERT_EQ(MessageOf(Group(kGroup)), "accepted");
  const auto with = [&](std::string_view name) {
    api::Draft changed(core_->Find("scheduling.k8s.io", "podgroups", "default/g")->tree());
    changed["status"]["resourceClaimStatuses"].Append({{"name", "c"}});
    changed["status"]["resourceClaimStatuses"].Append({{"name", std::string(name)}});
    Request request =
        RequestFor(Verb::kUpdate, api::WriteJson(changed.Freeze()->root()), AdminUser());
    request.subresource = "status";
    request.dry_run = true;
    const Response response = Handle(std::move(request));
    return response.failure ? response.failure->message : "accepted";
  };
  EXPECT_EQ(with("d"), "accepted");
  EXPECT_NE(with("e").find("status.resourceClaimStatuses[1].name: Invalid value: \"e\": must match "
                           "the name of an entry in `spec.resourceClaims`"),
            std::string::npos)
      << with("e");
}

TEST_F(WorkloadApiTest, ClaimsOfTemplatesAreDroppedWithoutTheirGate) {
  ASSERT_EQ(MessageOf(Workload(R"([{"name":"a","schedulingPolicy":{"basic":{}},
      "resourceClaims":[{"name":"c","resourceClaimName":"x"}]}])")),
            "accepted");
  const api::ObjectPtr made = core_->Find("scheduling.k8s.io", "workloads", "default/w");
  EXPECT_FALSE((*made)["spec"]["podGroupTemplates"].at(0)["resourceClaims"].exists());
}

}  // namespace
}  // namespace drakkar::apiserver
