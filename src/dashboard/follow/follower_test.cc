#include "dashboard/follow/follower.h"

#include <set>

#include <gtest/gtest.h>

#include "answers/cluster/snapshot_reader.h"
#include "api/json/reader.h"
#include "api/scheme/scheme.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"

namespace drakkar::dashboard {
namespace {

// Answers reads; any write fails the test.
class FakeClient final : public client::Client {
 public:
  explicit FakeClient(EventLoop& loop) : loop_(loop) {}

  void Get(client::ResourceRef ref, client::ReplyCallback done) override {
    if (ref.kind->kind == "Namespace") return CheckServer(std::move(done));
    gets.push_back(StrCat(ref.kind->kind, " ", ref.name, " ", ref.subresource));
    client::Reply reply;
    if (refuse) {
      reply.error = Error{*refuse, "refused"};
    } else {
      reply.http_status = 200;
      reply.object = std::make_shared<const api::Object>(
          api::ParseJson(StrCat(R"({"items":[{"driver":"d","pool":"p","device":"x","health":")",
                                health, R"("}]})"))
              .value());
    }
    loop_.Post([done, reply] { done(reply); });
  }
  void List(client::ResourceRef ref, client::ListOptions options,
            std::function<void(client::ListReply)> done) override {
    selectors.push_back(options.field_selector);
    client::ListReply reply{.resource_version = 1};
    if (ref.kind->kind == missing) reply.error = Error{ErrorCode::kNotFound, "no such kind"};
    if (ref.kind->kind == "Pod") reply.items = pods;
    loop_.Post([done, reply] { done(reply); });
  }
  void CheckServer(client::ReplyCallback done) {
    if (is_silent) return;
    client::Reply reply;
    reply.http_status = is_down ? 0 : 403;
    reply.error = is_down ? Error{ErrorCode::kUnavailable, "down"}
                          : Error{ErrorCode::kForbidden, "you may not read this"};
    loop_.Post([done = std::move(done), reply] { done(reply); });
  }
  std::unique_ptr<client::WatchHandle> Watch(client::ResourceRef, client::WatchOptions,
                                             client::WatchCallbacks) override {
    return std::make_unique<client::WatchHandle>();
  }
  void Create(client::ResourceRef, api::TreePtr, client::WriteOptions,
              client::ReplyCallback) override {
    ADD_FAILURE();
  }
  void Update(client::ResourceRef, api::TreePtr, client::WriteOptions,
              client::ReplyCallback) override {
    ADD_FAILURE();
  }
  void Patch(client::ResourceRef, client::PatchType, std::string, client::WriteOptions,
             client::ReplyCallback) override {
    ADD_FAILURE();
  }
  void Delete(client::ResourceRef, client::DeleteOptions, client::ReplyCallback) override {
    ADD_FAILURE();
  }
  void DeleteCollection(client::ResourceRef, client::ListOptions, client::DeleteOptions,
                        client::ReplyCallback) override {
    ADD_FAILURE();
  }

  std::vector<std::string> gets;
  std::vector<std::string> selectors;
  std::optional<ErrorCode> refuse;
  std::string health = "Healthy";
  bool is_down = false;
  bool is_silent = false;
  std::string missing;  // a kind that the server does not serve
  answers::Objects pods;

 private:
  EventLoop& loop_;
};

class FollowerTest : public ::testing::Test {
 protected:
  SeededLoop loop_;
  FakeClient client_{loop_};
  int changes_ = 0;
  std::string problem_;
  Follower follower_{
      loop_,
      loop_.random(),
      client_,
      {},
      {.on_change = [this](bool) { ++changes_; },
       .on_problem = [this](std::string problem) { problem_ = std::move(problem); }}};
};

TEST_F(FollowerTest, FollowsServersThatDoNotServeDeviceTaintRules) {
  client_.missing = "DeviceTaintRule";
  client_.pods.push_back(std::make_shared<const api::Object>(
      api::ParseJson(R"({"metadata":{"name":"p","namespace":"n","resourceVersion":"1"}})")
          .value()));
  follower_.Start();
  loop_.RunUntilIdle();
  EXPECT_EQ(follower_.Take().pods.size(), 1u);
}

TEST_F(FollowerTest, AsksNodesForDeviceHealthOnlyWhileSomebodyLooks) {
  follower_.SetNodes({"a", "b"});
  loop_.Advance(std::chrono::minutes(1));
  EXPECT_TRUE(client_.gets.empty());
  follower_.SetWatched(true);
  loop_.RunUntilIdle();
  EXPECT_EQ(client_.gets,
            (std::vector<std::string>{"Node a proxy/devices", "Node b proxy/devices"}));
  EXPECT_EQ(follower_.Take().node_health["a"].begin()->second.health, "Healthy");
  client_.gets.clear();
  loop_.Advance(Follower::kAskInterval);
  EXPECT_EQ(client_.gets.size(), 2u);
  follower_.SetWatched(false);
  client_.gets.clear();
  loop_.Advance(std::chrono::minutes(1));
  EXPECT_TRUE(client_.gets.empty());
}

TEST_F(FollowerTest, ReportsAChangeOfHealthOnce) {
  follower_.SetNodes({"a"});
  follower_.SetWatched(true);
  loop_.RunUntilIdle();
  const int before = changes_;
  loop_.Advance(Follower::kAskInterval);
  EXPECT_EQ(changes_, before);
  client_.health = "Unhealthy";
  loop_.Advance(Follower::kAskInterval);
  EXPECT_EQ(changes_, before + 1);
}

TEST_F(FollowerTest, LimitsHowManyNodesItAsksAtATime) {
  std::vector<std::string> nodes;
  for (std::size_t i = 0; i < 3 * Follower::kMaxAsks; ++i) nodes.push_back(StrCat("n", i));
  follower_.SetNodes(nodes);
  follower_.SetWatched(true);
  loop_.RunUntilIdle();
  EXPECT_EQ(client_.gets.size(), Follower::kMaxAsks);
  loop_.Advance(2 * Follower::kAskInterval);
  const std::set<std::string> asked(client_.gets.begin(), client_.gets.end());
  EXPECT_EQ(asked.size(), nodes.size()) << "each node is asked before the first is asked again";
}

TEST_F(FollowerTest, LeavesNodesAloneThatDoNotReportHealth) {
  client_.refuse = ErrorCode::kNotFound;
  follower_.SetNodes({"kubelet"});
  follower_.SetWatched(true);
  loop_.Advance(std::chrono::minutes(1));
  EXPECT_EQ(client_.gets.size(), 1u);
  loop_.Advance(Follower::kSilentPause);
  EXPECT_EQ(client_.gets.size(), 2u);
}

TEST_F(FollowerTest, StopsAskingIfTheCallerMayNot) {
  client_.refuse = ErrorCode::kForbidden;
  follower_.SetNodes({"a"});
  follower_.SetWatched(true);
  loop_.Advance(std::chrono::minutes(30));
  EXPECT_EQ(client_.gets.size(), 1u);
  EXPECT_EQ(follower_.Take().notes.size(), 1u);
}

TEST_F(FollowerTest, SaysThatTheServerDoesNotAnswer) {
  follower_.SetWatched(true);
  loop_.RunUntilIdle();
  EXPECT_EQ(problem_, "");
  client_.is_down = true;
  loop_.Advance(Follower::kAskInterval);
  EXPECT_EQ(problem_, "down");
  client_.is_down = false;
  loop_.Advance(Follower::kAskInterval);
  EXPECT_EQ(problem_, "") << "a refusal is an answer";
  client_.is_silent = true;
  loop_.Advance(Follower::kAskInterval);
  EXPECT_EQ(problem_, "");
  loop_.Advance(Follower::kSilentServer);
  EXPECT_EQ(problem_, "the API server does not answer");
}

TEST_F(FollowerTest, ReadsSettingsAndEventsForAnExplanation) {
  std::optional<Circumstances> read;
  follower_.ReadCircumstances({answers::WhySubject::Kind::kPod, "team", "train-0"},
                              [&](Circumstances got) { read = std::move(got); });
  loop_.RunUntilIdle();
  ASSERT_TRUE(read);
  EXPECT_EQ(client_.gets,
            (std::vector<std::string>{"Pod train-0 why", "ConfigMap drakkar-scheduler "}))
      << "the scheduler is asked first";
  EXPECT_EQ(read->answer, "");
  EXPECT_EQ(client_.selectors.back(), "involvedObject.name=train-0");
  EXPECT_EQ(read->notes.size(), 1u);
}

}  // namespace
}  // namespace drakkar::dashboard
