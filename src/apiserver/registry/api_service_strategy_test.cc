#include "apiserver/registry/api_service_strategy.h"

#include <gmock/gmock.h>

#include "api/json/writer.h"
#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using ::testing::HasSubstr;

class ApiServiceStrategyTest : public CoreFixture {
 protected:
  ApiServiceStrategyTest() { StartCore(nullptr); }

  // What creating it says. `more` are further members of the spec.
  std::string Made(std::string_view more, std::string_view name = "v1.example.com",
                   std::string_view group = "example.com", std::string_view version = "v1",
                   int group_priority = 1'000, int version_priority = 10) {
    const Response response = TryCreate(StrCat(
        R"({"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":")",
        name, R"("},"spec":{"group":")", group, R"(","version":")", version,
        R"(","groupPriorityMinimum":)", group_priority, R"(,"versionPriority":)", version_priority,
        more.empty() ? "" : ",", more, "}}"));
    if (!response.failure) return "accepted";
    const std::string& message = response.failure->message;
    const std::size_t at = message.find("is invalid: ");
    return at == message.npos ? message : message.substr(at + 12);
  }
  Response Change(std::string subresource, const std::function<void(api::Draft&)>& change) {
    api::Draft draft(
        core_->Find("apiregistration.k8s.io", "apiservices", "v1.example.com")->tree());
    change(draft);
    Request request =
        RequestFor(Verb::kUpdate, api::WriteJson(draft.Freeze()->root()), AdminUser());
    request.subresource = std::move(subresource);
    return Handle(std::move(request));
  }
};

constexpr char kService[] = R"("service":{"namespace":"default","name":"s"})";

TEST_F(ApiServiceStrategyTest, ALocalOneIsAvailableAtOnce) {
  ASSERT_EQ(Made(""), "accepted");
  const api::Value status =
      (*core_->Find("apiregistration.k8s.io", "apiservices", "v1.example.com"))["status"];
  ASSERT_EQ(status["conditions"].size(), 1u);
  EXPECT_EQ(status["conditions"].at(0)["type"].str(), "Available");
  EXPECT_EQ(status["conditions"].at(0)["status"].str(), "True");
  EXPECT_EQ(status["conditions"].at(0)["reason"].str(), "Local");
  EXPECT_FALSE(status["conditions"].at(0)["lastTransitionTime"].str().empty());
}

TEST_F(ApiServiceStrategyTest, ARemoteOneIsNotAvailableUntilItAnswers) {
  ASSERT_EQ(Made(kService), "accepted");
  EXPECT_TRUE((*core_->Find("apiregistration.k8s.io", "apiservices",
                            "v1.example.com"))["status"]["conditions"]
                  .empty());
}

TEST_F(ApiServiceStrategyTest, ALocalOneNeedsNoCertificate) {
  EXPECT_EQ(Made(R"("caBundle":"QUFBQUFB")"),
            "spec.caBundle: Invalid value: \"6 bytes\": local APIServices may not have a caBundle");
  EXPECT_EQ(Made(R"("insecureSkipTLSVerify":true)"),
            "spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have "
            "insecureSkipTLSVerify");
  EXPECT_EQ(Made(R"("insecureSkipTLSVerify":false)"), "accepted");
}

TEST_F(ApiServiceStrategyTest, ARemoteOneNamesItsService) {
  EXPECT_EQ(Made(R"("service":{})"),
            "[spec.service.namespace: Required value, spec.service.name: Required value]");
  const auto port = [&](int number) {
    return Made(StrCat(R"("service":{"namespace":"default","name":"s","port":)", number, "}"));
  };
  EXPECT_THAT(port(0), HasSubstr("port is not valid: must be between 1 and 65535, inclusive"));
  EXPECT_THAT(port(65'536), HasSubstr("spec.service.port: Invalid value: 65536"));
  EXPECT_EQ(port(65'535), "accepted");
  Delete("apiregistration.k8s.io/v1", "APIService", "", "v1.example.com");
  EXPECT_EQ(port(1), "accepted");
}

TEST_F(ApiServiceStrategyTest, TheCertificateIsEitherCheckedOrNot) {
  EXPECT_EQ(Made(StrCat(kService, R"(,"caBundle":"QUFB","insecureSkipTLSVerify":true)")),
            "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is "
            "present");
  EXPECT_EQ(Made(StrCat(kService, R"(,"insecureSkipTLSVerify":true)")), "accepted");
  Delete("apiregistration.k8s.io/v1", "APIService", "", "v1.example.com");
  EXPECT_EQ(Made(StrCat(kService, R"(,"caBundle":"QUFB")")), "accepted");
}

TEST_F(ApiServiceStrategyTest, TheNameIsTheVersionAndTheGroup) {
  EXPECT_EQ(Made("", "example.com"),
            "metadata.name: Invalid value: \"example.com\": must be "
            "`spec.version+\".\"+spec.group`: \"v1.example.com\"");
  EXPECT_EQ(Made("", "v2.", "", "v2"),
            "spec.group: Required value: only v1 may have an empty group and it better be legacy "
            "kube");
  EXPECT_EQ(Made("", "v1.", ""), "accepted");
  EXPECT_THAT(Made("", "v1.Example", "Example"), HasSubstr("spec.group: Invalid value"));
  EXPECT_THAT(Made("", "1.example.com", "example.com", "1"),
              HasSubstr("spec.version: Invalid value: \"1\""));
  EXPECT_THAT(Made("", "v1.a/b", "a/b"), HasSubstr("may not contain '/'"));
}

TEST_F(ApiServiceStrategyTest, PrioritiesHaveBounds) {
  const auto priorities = [&](int group, int version) {
    return Made("", "v1.example.com", "example.com", "v1", group, version);
  };
  EXPECT_THAT(priorities(0, 1), HasSubstr("spec.groupPriorityMinimum: Invalid value: 0: must be "
                                          "positive and less than 20000"));
  EXPECT_THAT(priorities(20'001, 1), HasSubstr("spec.groupPriorityMinimum: Invalid value: 20001"));
  EXPECT_THAT(priorities(1, 0), HasSubstr("spec.versionPriority: Invalid value: 0: must be "
                                          "positive and less than 1000"));
  EXPECT_THAT(priorities(1, 1'001), HasSubstr("spec.versionPriority: Invalid value: 1001"));
  EXPECT_EQ(priorities(20'000, 1'000), "accepted");
  Delete("apiregistration.k8s.io/v1", "APIService", "", "v1.example.com");
  EXPECT_EQ(priorities(1, 1), "accepted");
}

TEST_F(ApiServiceStrategyTest, AnUpdateIsCheckedAndItsStatusByItself) {
  ASSERT_EQ(Made(""), "accepted");
  EXPECT_TRUE(Change("", [](api::Draft& o) { o["spec"]["versionPriority"] = 0; }).failure);
  EXPECT_FALSE(Change("", [](api::Draft& o) { o["spec"]["versionPriority"] = 2; }).failure);
  const auto with = [&](std::string_view first, std::string_view second) {
    const Response response = Change("status", [&](api::Draft& o) {
      api::Draft& conditions = o["status"]["conditions"];
      conditions = api::Draft::Array();
      conditions.Append({{"type", "Available"}, {"status", first}});
      conditions.Append({{"type", "Other"}, {"status", second}});
    });
    return response.failure ? response.failure->message : "accepted";
  };
  EXPECT_EQ(with("True", "False"), "accepted");
  EXPECT_EQ(with("Unknown", "True"), "accepted");
  EXPECT_EQ(with("True", "Maybe"),
            "APIService.apiregistration.k8s.io \"v1.example.com\" is invalid: "
            "status.conditions[1].status: Unsupported value: \"Maybe\": supported values: "
            "\"False\", \"True\", \"Unknown\"");
}

}  // namespace
}  // namespace drakkar::apiserver
