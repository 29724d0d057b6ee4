#include "client/account_client.h"

#include <gtest/gtest.h>

#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "client/silent_client.h"

namespace drakkar::client {
namespace {

using namespace std::chrono_literals;

// Creates tokens t1, t2 ... that live for an hour.
class TokenServer final : public SilentClient {
 public:
  explicit TokenServer(EventLoop& loop) : loop_(loop) {}

  void Create(ResourceRef ref, api::TreePtr body, WriteOptions, ReplyCallback done) override {
    calls.push_back(StrCat(ref.kind->kind, " ", ref.namespace_, "/", ref.name, " ", ref.subresource,
                           body->root()["metadata"]["name"].str()));
    Reply reply;
    const bool is_token = ref.subresource == "token";
    if (fails) {
      reply.error = Unavailable("connection closed");
    } else if (ref.kind->kind == "Namespace") {
      has_namespace = true;
    } else if (!is_token && has_namespace) {
      has_account = true;
    } else if (!has_account || !has_namespace) {
      reply.error = NotFound("not found");
    } else {
      EXPECT_EQ(body->root()["spec"]["expirationSeconds"].integer(), 3600);
      const api::Draft answer = {
          {"status",
           {{"token", StrCat("t", ++tokens)},
            {"expirationTimestamp", api::FormatTime(loop_.clock().Now() + 1h)}}}};
      reply.object = std::make_shared<const api::Object>(answer.Freeze());
    }
    loop_.Post([reply = std::move(reply), done = std::move(done)] { done(reply); });
  }

  bool fails = false;
  bool has_namespace = true;
  bool has_account = true;
  int tokens = 0;
  std::vector<std::string> calls;

 private:
  EventLoop& loop_;
};

// Answers every get with the token that it was sent with, or rejects it.
class Echo final : public SilentClient {
 public:
  Echo(EventLoop& loop, std::shared_ptr<const std::string> token, const std::string& rejected)
      : loop_(loop), token_(std::move(token)), rejected_(rejected) {}

  void Get(ResourceRef, ReplyCallback done) override {
    Reply reply;
    if (*token_ == rejected_) {
      reply.error = Error{ErrorCode::kUnauthenticated, "Unauthorized"};
    } else {
      const api::Draft answer = {{"status", {{"token", *token_}}}};
      reply.object = std::make_shared<const api::Object>(answer.Freeze());
    }
    loop_.Post([reply = std::move(reply), done = std::move(done)] { done(reply); });
  }

 private:
  EventLoop& loop_;
  const std::shared_ptr<const std::string> token_;
  const std::string& rejected_;
};

class AccountClientTest : public ::testing::Test {
 protected:
  // The token that a get was sent with, or the error.
  std::string Get() {
    std::string text = "no answer";
    client_->Get({api::FindKind("", "v1", "Pod"), "default", "p", ""}, [&](const Reply& reply) {
      text =
          reply.ok() ? std::string((*reply.object)["status"]["token"].str()) : reply.error->message;
    });
    EXPECT_EQ(text, "no answer") << "inside the call";
    loop_.RunUntilIdle();
    return text;
  }

  SeededLoop loop_;
  TokenServer server_{loop_};
  std::string rejected_;
  int connections_ = 0;
  std::unique_ptr<AccountClient> client_ = std::make_unique<AccountClient>(
      loop_, server_, "job-controller", [this](std::shared_ptr<const std::string> token) {
        ++connections_;
        return std::make_unique<Echo>(loop_, std::move(token), rejected_);
      });
};

TEST_F(AccountClientTest, CallsWaitForATokenAndShareIt) {
  EXPECT_TRUE(server_.calls.empty()) << "none before there is a call";
  int answers = 0;
  for (int i = 0; i < 3; ++i) {
    client_->Get({api::FindKind("", "v1", "Pod"), "default", "p", ""},
                 [&](const Reply& reply) { answers += reply.ok() ? 1 : 0; });
  }
  loop_.RunUntilIdle();
  EXPECT_EQ(answers, 3);
  EXPECT_EQ(server_.calls,
            std::vector<std::string>{"ServiceAccount kube-system/job-controller token"});
  EXPECT_EQ(connections_, 1);
}

TEST_F(AccountClientTest, ATokenIsRenewedAfterFourFifthsOfItsLife) {
  EXPECT_EQ(Get(), "t1");
  loop_.Advance(47min);
  EXPECT_EQ(Get(), "t1");
  EXPECT_EQ(server_.tokens, 1);
  loop_.Advance(2min);
  EXPECT_EQ(Get(), "t1") << "which still works, while the next one is requested";
  EXPECT_EQ(Get(), "t2");
  EXPECT_EQ(connections_, 1);
}

TEST_F(AccountClientTest, WithoutAValidTokenCallsWaitAgain) {
  EXPECT_EQ(Get(), "t1");
  loop_.Advance(61min);
  EXPECT_EQ(Get(), "t2");
}

TEST_F(AccountClientTest, ARejectedTokenIsReplaced) {
  EXPECT_EQ(Get(), "t1");
  rejected_ = "t1";
  EXPECT_EQ(Get(), "Unauthorized");
  EXPECT_EQ(Get(), "Unauthorized") << "not for each rejected call";
  EXPECT_EQ(server_.tokens, 1);
  loop_.Advance(AccountClient::kRejectedPause);
  EXPECT_EQ(Get(), "Unauthorized");
  EXPECT_EQ(Get(), "t2");
}

TEST_F(AccountClientTest, AMissingAccountIsCreatedWithItsNamespace) {
  server_.has_account = false;
  server_.has_namespace = false;
  EXPECT_EQ(Get(), "t1");
  const std::vector<std::string> calls = {"ServiceAccount kube-system/job-controller token",
                                          "ServiceAccount kube-system/ job-controller",
                                          "Namespace / kube-system",
                                          "ServiceAccount kube-system/ job-controller",
                                          "ServiceAccount kube-system/job-controller token"};
  EXPECT_EQ(server_.calls, calls);
}

TEST_F(AccountClientTest, WithoutATokenCallsFailAndTheNextOneTriesAgain) {
  server_.fails = true;
  EXPECT_EQ(Get(),
            "service account kube-system/job-controller: request a token: connection closed");
  std::string closed;
  auto watch = client_->Watch(
      {api::FindKind("", "v1", "Pod"), "", "", ""}, {},
      {.on_events = {}, .on_closed = [&](const Error& error) { closed = error.message; }});
  EXPECT_TRUE(closed.empty());
  loop_.RunUntilIdle();
  EXPECT_EQ(closed, "there is no token for the service account yet");
  server_.fails = false;
  EXPECT_EQ(Get(), "t1");
}

TEST_F(AccountClientTest, NothingIsCalledOnceItIsGone) {
  bool is_called = false;
  client_->Get({api::FindKind("", "v1", "Pod"), "default", "p", ""},
               [&](const Reply&) { is_called = true; });
  client_.reset();
  loop_.RunUntilIdle();
  EXPECT_FALSE(is_called);
}

}  // namespace
}  // namespace drakkar::client
