#include "client/access_reviewer.h"

#include <gtest/gtest.h>

#include "api/meta/object.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"

namespace drakkar::client {
namespace {

// A server that knows two tokens and lets "reader" see /metrics.
class Reviews final : public Client {
 public:
  explicit Reviews(SeededLoop& loop) : loop_(loop) {}
  void Create(ResourceRef ref, api::TreePtr body, WriteOptions, ReplyCallback done) override {
    ++calls;
    Reply reply;
    if (down) {
      reply.error = Unavailable("connection refused");
    } else {
      api::Draft answer(body);
      const api::Value spec = body->root()["spec"];
      if (ref.kind->kind == "TokenReview") {
        const std::string_view token = spec["token"].str();
        answer["status"]["authenticated"] = token == "good" || token == "other";
        answer["status"]["user"]["username"] = token == "good" ? "reader" : "stranger";
        answer["status"]["user"]["groups"].Append("readers");
        answer["status"]["user"]["extra"]["node"].Append("n1");
      } else {
        groups = spec["groups"].size();
        const api::Value node = spec["resourceAttributes"];
        answer["status"]["allowed"] =
            spec["user"].str() == "reader" &&
            (spec["nonResourceAttributes"]["path"].str() == "/metrics" ||
             (node["resource"].str() == "nodes" && node["name"].str() == "n1" &&
              node["subresource"].str() == "proxy")) &&
            (node.has_value() ? node : spec["nonResourceAttributes"])["verb"].str() == "get";
        if (spec["user"].str() == "ann") {
          answer["status"]["allowed"] = node["resource"].str() == "pods" &&
                                        node["namespace"].str() == "team-a" &&
                                        node["verb"].str() == "list";
        }
        extra = spec["extra"]["node"].at(0).str();
      }
      reply.object = std::make_shared<const api::Object>(answer.Freeze());
    }
    loop_.Post([done, reply] { done(reply); });
  }
  void Get(ResourceRef, ReplyCallback) override {}
  void List(ResourceRef, ListOptions, std::function<void(ListReply)>) override {}
  void Update(ResourceRef, api::TreePtr, WriteOptions, ReplyCallback) override {}
  void Patch(ResourceRef, PatchType, std::string, WriteOptions, ReplyCallback) override {}
  void Delete(ResourceRef, DeleteOptions, ReplyCallback) override {}
  void DeleteCollection(ResourceRef, ListOptions, DeleteOptions, ReplyCallback) override {}
  std::unique_ptr<WatchHandle> Watch(ResourceRef, WatchOptions, WatchCallbacks) override {
    return nullptr;
  }

  int calls = 0;
  std::size_t groups = 0;
  std::string extra;
  bool down = false;

 private:
  SeededLoop& loop_;
};

class AccessReviewerTest : public ::testing::Test {
 protected:
  std::string Ask(std::string token, std::optional<AccessReviewer::User> certificate = std::nullopt,
                  std::string path = "/metrics") {
    return Ask(AccessReviewer::Credentials{std::move(certificate), std::move(token)},
               {{.path = std::move(path)}});
  }
  std::string Ask(AccessReviewer::Credentials credentials,
                  std::vector<AccessReviewer::Access> any_of) {
    std::string answer = "nothing";
    reviewer_.Review(std::move(credentials), std::move(any_of),
                     [&](std::optional<AccessReviewer::Refusal> refusal) {
                       answer = refusal ? StrCat(refusal->status, " ", refusal->reason) : "allowed";
                     });
    loop_.RunUntilIdle();
    return answer;
  }

  SeededLoop loop_{1};
  Reviews server_{loop_};
  AccessReviewer reviewer_{loop_, server_};
};

TEST_F(AccessReviewerTest, ATokenIsResolvedAndItsUserMustBeAllowed) {
  EXPECT_EQ(Ask("good"), "allowed");
  EXPECT_EQ(Ask("other"), R"(403 forbidden: User "stranger" cannot get path "/metrics")");
  EXPECT_EQ(Ask("good", std::nullopt, "/configz"),
            R"(403 forbidden: User "reader" cannot get path "/configz")");
  EXPECT_EQ(Ask("bad"), "401 Unauthorized");
}

TEST_F(AccessReviewerTest, ACertificateIsEnough) {
  EXPECT_EQ(Ask("", AccessReviewer::User{"reader", {"a"}}), "allowed");
  EXPECT_EQ(server_.groups, 2u) << "its own and system:authenticated";
  EXPECT_EQ(Ask("", AccessReviewer::User{"admin", {"system:masters"}}, "/configz"), "allowed");
}

TEST_F(AccessReviewerTest, ACallerWithoutCredentialsIsAnonymous) {
  EXPECT_EQ(Ask(""), R"(403 forbidden: User "system:anonymous" cannot get path "/metrics")");
}

TEST_F(AccessReviewerTest, AnyOneOfTheNodePermissionsIsEnough) {
  const auto node = [](std::string verb, std::vector<std::string> subresources,
                       std::string name = "n1") {
    std::vector<AccessReviewer::Access> any_of;
    for (std::string& each : subresources) {
      any_of.push_back({.verb = verb, .path = {}, .node = name, .subresource = std::move(each)});
    }
    return any_of;
  };
  const AccessReviewer::Credentials reader{AccessReviewer::User{"reader", {}}, ""};
  EXPECT_EQ(Ask(reader, node("get", {"pods", "proxy"})), "allowed");
  EXPECT_EQ(Ask(reader, node("get", {"metrics"})),
            "403 Forbidden (user=reader, verb=get, resource=nodes, subresource(s)=[metrics])");
  EXPECT_EQ(
      Ask(reader, node("create", {"pods", "proxy"})),
      "403 Forbidden (user=reader, verb=create, resource=nodes, subresource(s)=[pods proxy])");
  EXPECT_EQ(Ask(reader, node("get", {"proxy"}, "n2")),
            "403 Forbidden (user=reader, verb=get, resource=nodes, subresource(s)=[proxy])");
}

TEST_F(AccessReviewerTest, GroupsAndExtrasOfATokensUserAreForwarded) {
  EXPECT_EQ(Ask("good"), "allowed");
  EXPECT_EQ(server_.extra, "n1");
}

TEST_F(AccessReviewerTest, BadCredentialsAreRejectedRatherThanIgnored) {
  EXPECT_EQ(Ask({std::nullopt, "", true}, {{.path = "/metrics"}}), "401 Unauthorized");
  EXPECT_EQ(Ask(std::string(AccessReviewer::kMaxTokenBytes + 1, 'x')), "401 Unauthorized");
  EXPECT_EQ(server_.calls, 0);
  net::ServerRequest request;
  request.headers = {{"Authorization", "Basic YTpi"}};
  EXPECT_TRUE(AccessReviewer::CredentialsOf(request).invalid);
  request.headers = {{"Authorization", "bearer abc"}};
  EXPECT_EQ(AccessReviewer::CredentialsOf(request).token, "abc");
  auto connection = std::make_shared<net::ConnectionInfo>();
  connection->peer_error = "certificate has expired";
  request.connection = connection;
  EXPECT_TRUE(AccessReviewer::CredentialsOf(request).invalid);
}

TEST_F(AccessReviewerTest, APortThatRequiresCredentialsDeniesAnonymousWithoutAskingTheServer) {
  AccessReviewer strict(loop_, server_, AccessReviewer::Nobody::kIsRefused);
  int status = 0;
  strict.Review({}, {{.path = "/metrics"}},
                [&](std::optional<AccessReviewer::Refusal> refusal) { status = refusal->status; });
  EXPECT_EQ(status, 401);
  EXPECT_EQ(server_.calls, 0);
}

TEST_F(AccessReviewerTest, UserNamesThatLookLikeOthersShareNoCacheEntries) {
  EXPECT_EQ(Ask("", AccessReviewer::User{"reader", {"a"}}), "allowed");
  const int before = server_.calls;
  Ask("", AccessReviewer::User{"reader", {"a\nb"}});
  Ask("", AccessReviewer::User{"reader", {"a", "b"}});
  EXPECT_EQ(server_.calls, before + 2);
}

TEST_F(AccessReviewerTest, AnswersAreCachedForALimitedTime) {
  EXPECT_EQ(Ask("good"), "allowed");
  EXPECT_EQ(server_.calls, 2);
  EXPECT_EQ(Ask("good"), "allowed");
  EXPECT_EQ(server_.calls, 2);
  loop_.Advance(AccessReviewer::kKept);
  EXPECT_EQ(Ask("good"), "allowed");
  EXPECT_EQ(server_.calls, 4);
}

TEST_F(AccessReviewerTest, AccessIsDeniedAndNotCachedIfTheServerDoesNotAnswer) {
  server_.down = true;
  EXPECT_EQ(Ask("good"), "500 could not check access: connection refused");
  server_.down = false;
  EXPECT_EQ(Ask("good"), "allowed");
}

TEST_F(AccessReviewerTest, TheNumberOfCachedAnswersIsBounded) {
  for (std::size_t i = 0; i <= AccessReviewer::kMaxKept; ++i) Ask(StrCat("token-", i));
  const int before = server_.calls;
  Ask("token-0");
  EXPECT_EQ(server_.calls, before + 1) << "dropped and asked for again";
}

TEST_F(AccessReviewerTest, ReviewsObjectsOfANamespaceForAnAuthenticatedUser) {
  const auto ask = [&](std::string ns) {
    bool allowed = false;
    reviewer_.ReviewUser(
        {"ann", {}}, {{.verb = "list", .resource = "pods", .namespace_ = ns}},
        [&](std::optional<AccessReviewer::Refusal> refusal) { allowed = !refusal; });
    loop_.RunUntilIdle();
    return allowed;
  };
  EXPECT_TRUE(ask("team-a"));
  EXPECT_FALSE(ask("team-b")) << "the answer for another namespace does not count";
}

}  // namespace
}  // namespace drakkar::client
