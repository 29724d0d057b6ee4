#include "scheduler/plugins/default_binder/default_binder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "base/text/text.h"
#include "client/silent_client.h"
#include "scheduler/testing/test_context.h"

namespace drakkar::scheduler {
namespace {

using ::testing::ElementsAre;

api::ObjectPtr Pod(std::string node, std::string uid = "u") {
  auto tree = api::ParseJson(StrCat(R"({"metadata":{"namespace":"d","name":"p","uid":")", uid,
                                    R"("},"spec":{"nodeName":")", node, R"("}})"));
  return std::make_shared<const api::Object>(*tree);
}

class BindingClient final : public client::SilentClient {
 public:
  explicit BindingClient(EventLoop& loop) : loop_(loop) {}
  void Create(client::ResourceRef ref, api::TreePtr body, client::WriteOptions,
              client::ReplyCallback done) override {
    calls.push_back(StrCat("create ", ref.namespace_, "/", ref.name, "/", ref.subresource));
    written = std::move(body);
    Answer(std::move(done));
  }
  void Get(client::ResourceRef ref, client::ReplyCallback done) override {
    calls.push_back(StrCat("get ", ref.namespace_, "/", ref.name));
    Answer(std::move(done));
  }
  void Says(api::ObjectPtr object) {
    client::Reply reply;
    reply.object = std::move(object);
    answers_.push_back(std::move(reply));
  }
  void Says(ErrorCode code) {
    client::Reply reply;
    reply.error = Error{code, "failed"};
    answers_.push_back(std::move(reply));
  }
  std::vector<std::string> calls;
  api::TreePtr written;

 private:
  void Answer(client::ReplyCallback done) {
    loop_.Post([done = std::move(done), reply = std::move(answers_.front())] { done(reply); });
    answers_.pop_front();
  }
  EventLoop& loop_;
  std::deque<client::Reply> answers_;
};

class DefaultBinderTest : public ::testing::Test {
 protected:
  // The answer to binding the pod to node n: "ok" or the reason.
  std::string Bind() {
    const PluginContext context{.loop = world_.loop,
                                .random = world_.loop.random(),
                                .client = client_,
                                .events = world_.events,
                                .nodes = world_.nodes,
                                .placements = world_.placements,
                                .namespaces = world_.namespaces,
                                .pod_groups = world_.pod_groups,
                                .claims = world_.claims,
                                .devices = world_.devices,
                                .gates = world_.gates,
                                .declared_features = features::DefaultFramework(),
                                .metrics = world_.metrics,
                                .notify = [](const ClusterEvent&) {},
                                .nominate = [](const PodInfo&, const std::string&) {},
                                .on_wait_began = [] {},
                                .is_bound = [](std::string_view) { return false; }};
    DefaultBinder binder(context);
    auto cycle = std::make_shared<Cycle>();
    cycle->pod = MakePodInfo(Pod(""));
    cycle->node_name = "n";
    std::string answer = "none";
    client_.calls.clear();
    binder.Bind(cycle, [&](Status status) { answer = status.ok() ? "ok" : status.Message(); });
    world_.loop.Advance(std::chrono::seconds(10));
    return answer;
  }
  TestContext world_;
  BindingClient client_{world_.loop};
};

TEST_F(DefaultBinderTest, WritesABindingOfThePodToTheNode) {
  client_.Says(Pod("n"));
  EXPECT_EQ(Bind(), "ok");
  EXPECT_THAT(client_.calls, ElementsAre("create d/p/binding"));
  EXPECT_EQ(api::WriteJson(client_.written->root(), {.sort_members = true}),
            R"({"apiVersion":"v1","kind":"Binding","metadata":{"name":"p","namespace":"d","uid":)"
            R"("u"},"target":{"kind":"Node","name":"n"}})");
}

TEST_F(DefaultBinderTest, ARefusalIsReportedAtOnce) {
  client_.Says(ErrorCode::kConflict);
  EXPECT_EQ(Bind(), "failed");
  EXPECT_EQ(client_.calls.size(), 1u);
}

TEST_F(DefaultBinderTest, AnUnknownOutcomeIsFoundOutByReadingThePod) {
  const std::pair<api::ObjectPtr, const char*> cases[] = {
      {Pod("n"), "ok"},
      {Pod(""), "failed"},
      {Pod("another node"), "failed"},
      {Pod("n", "another pod"), "failed"},
  };
  for (const auto& [pod, answer] : cases) {
    client_.Says(ErrorCode::kUnavailable);
    client_.Says(ErrorCode::kUnavailable);
    client_.Says(ErrorCode::kDeadlineExceeded);
    client_.Says(pod);
    EXPECT_EQ(Bind(), answer);
    EXPECT_THAT(client_.calls, ElementsAre("create d/p/binding", "get d/p", "get d/p", "get d/p"));
  }
  client_.Says(ErrorCode::kUnavailable);
  client_.Says(ErrorCode::kNotFound);
  EXPECT_EQ(Bind(), "failed") << "the pod is gone";
}

}  // namespace
}  // namespace drakkar::scheduler
