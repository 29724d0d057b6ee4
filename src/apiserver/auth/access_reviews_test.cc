#include "apiserver/auth/access_reviews.h"

#include "api/json/writer.h"
#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

class AccessReviewsTest : public CoreFixture {
 protected:
  AccessReviewsTest() : reviews_(rbac_, rbac_, nullptr) {
    StartCore(&rbac_);
    rbac_.Attach(*core_);
    Create(R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole",)"
           R"("metadata":{"name":"r"},"rules":[{"apiGroups":[""],"resources":["pods"],)"
           R"("verbs":["get","list"]},{"nonResourceURLs":["/logs"],"verbs":["get"]}]})");
    Create(R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding",)"
           R"("metadata":{"name":"r"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",)"
           R"("kind":"ClusterRole","name":"r"},"subjects":[{"kind":"User","name":"ann"}]})");
  }
  ~AccessReviewsTest() override { rbac_.Detach(); }

  Response Ask(std::string_view kind, std::string_view spec, UserInfo user) {
    const std::string_view group = kind == "SelfSubjectReview" || kind == "TokenReview"
                                       ? "authentication.k8s.io"
                                       : "authorization.k8s.io";
    Request request = RequestFor(
        Verb::kCreate,
        StrCat(R"({"apiVersion":")", group, R"(/v1","kind":")", kind, R"(","spec":)", spec, "}"),
        std::move(user));
    if (kind == "SelfSubjectReview") {
      request.object =
          api::Draft{{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "SelfSubjectReview"}}
              .Freeze();
    }
    Response response;
    EXPECT_TRUE(reviews_.Answer(request, response));
    return response;
  }
  static std::string Status(const Response& response) {
    if (response.failure) return response.failure->message;
    return api::WriteJson((*response.object)["status"]);
  }

  RbacAuthorizer rbac_;
  AccessReviews reviews_;
};

TEST_F(AccessReviewsTest, AnswersForTheCaller) {
  EXPECT_EQ(Status(Ask("SelfSubjectAccessReview",
                       R"({"resourceAttributes":{"verb":"get","resource":"pods","namespace":"x"}})",
                       PlainUser("ann"))),
            R"({"allowed":true})");
  EXPECT_EQ(Status(Ask("SelfSubjectAccessReview",
                       R"({"resourceAttributes":{"verb":"delete","resource":"pods"}})",
                       PlainUser("ann"))),
            R"({"allowed":false})");
  EXPECT_EQ(
      Status(Ask("SelfSubjectAccessReview",
                 R"({"nonResourceAttributes":{"verb":"get","path":"/logs"}})", PlainUser("ann"))),
      R"({"allowed":true})");
}

TEST_F(AccessReviewsTest, AnswersForOtherUsersAndRejectsIncompleteReviews) {
  EXPECT_EQ(Status(Ask("SubjectAccessReview",
                       R"({"user":"ann","resourceAttributes":{"verb":"list","resource":"pods"}})",
                       AdminUser())),
            R"({"allowed":true})");
  EXPECT_EQ(Ask("SubjectAccessReview", R"({"user":"ann"})", AdminUser()).http_status, 422);
  EXPECT_EQ(Ask("SubjectAccessReview", R"({"resourceAttributes":{"verb":"get"}})", AdminUser())
                .http_status,
            422);
}

TEST_F(AccessReviewsTest, ListsTheRulesAndTheName) {
  EXPECT_EQ(Status(Ask("SelfSubjectRulesReview", R"({"namespace":"default"})", PlainUser("ann"))),
            R"({"resourceRules":[{"verbs":["get","list"],"apiGroups":[""],"resources":["pods"]}],)"
            R"("nonResourceRules":[{"verbs":["get"],"nonResourceURLs":["/logs"]}],)"
            R"("incomplete":false})");
  EXPECT_EQ(Status(Ask("SelfSubjectReview", "{}", PlainUser("ann"))),
            R"({"userInfo":{"username":"ann","groups":["system:authenticated"]}})");
}

TEST_F(AccessReviewsTest, AnUnknownTokenIsNotAuthenticated) {
  const Response response = Ask("TokenReview", R"({"token":"x"})", AdminUser());
  ASSERT_FALSE(response.failure);
  EXPECT_FALSE((*response.object)["status"]["authenticated"].boolean());
}

TEST_F(AccessReviewsTest, TheUserOfATokenIsAuthenticated) {
  AccessReviews reviews(
      rbac_, rbac_,
      [](std::string_view token, const std::vector<std::string>&, std::vector<std::string>&) {
        return token == "x" ? std::optional(UserInfo{.name = "ann", .groups = {"dev"}})
                            : std::nullopt;
      });
  Request request = RequestFor(
      Verb::kCreate,
      R"({"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"x"}})",
      AdminUser());
  Response response;
  ASSERT_TRUE(reviews.Answer(request, response));
  EXPECT_EQ(
      Status(response),
      R"({"authenticated":true,"user":{"username":"ann","groups":["dev","system:authenticated"]}})");
}

}  // namespace
}  // namespace drakkar::apiserver
