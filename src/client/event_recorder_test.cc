#include "client/event_recorder.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"

namespace drakkar::client {
namespace {

// Accepts writes and returns what was written.
class EchoClient final : public Client {
 public:
  explicit EchoClient(EventLoop& loop) : loop_(loop) {}
  void Get(ResourceRef, ReplyCallback) override {}
  void List(ResourceRef, ListOptions, std::function<void(ListReply)>) override {}
  void Create(ResourceRef, api::TreePtr body, WriteOptions, ReplyCallback done) override {
    created.push_back(body);
    Answer(std::move(body), std::move(done));
  }
  void Update(ResourceRef, api::TreePtr body, WriteOptions, ReplyCallback done) override {
    updated.push_back(body);
    Answer(std::move(body), std::move(done));
  }
  void Patch(ResourceRef, PatchType, std::string, WriteOptions, ReplyCallback) override {}
  void Delete(ResourceRef, DeleteOptions, ReplyCallback) override {}
  void DeleteCollection(ResourceRef, ListOptions, DeleteOptions, ReplyCallback) override {}
  std::unique_ptr<WatchHandle> Watch(ResourceRef, WatchOptions, WatchCallbacks) override {
    return nullptr;
  }
  std::vector<api::TreePtr> created, updated;
  bool fail = false;

 private:
  void Answer(api::TreePtr body, ReplyCallback done) {
    Reply reply;
    if (fail) {
      reply.error = Unavailable("down");
    } else {
      reply.object = std::make_shared<const api::Object>(std::move(body));
    }
    loop_.Post([reply, done] { done(reply); });
  }
  EventLoop& loop_;
};

class EventRecorderTest : public ::testing::Test {
 protected:
  api::ObjectPtr Pod(std::string uid) {
    return std::make_shared<const api::Object>(*api::ParseJson(
        StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"n","uid":")",
               uid, R"(","resourceVersion":"7"}})")));
  }
  void Record(std::string message) {
    recorder_.Record(Pod("u"), EventKind::kWarning, "FailedScheduling", std::move(message));
    loop_.RunUntilIdle();
  }
  SeededLoop loop_;
  EchoClient client_{loop_};
  EventRecorder recorder_{{.loop = loop_, .client = client_, .component = "s", .instance = "s-1"}};
};

TEST_F(EventRecorderTest, WritesTheFieldsThatKubectlShows) {
  Record("no room");
  ASSERT_EQ(client_.created.size(), 1u);
  const api::Value event = client_.created[0]->root();
  EXPECT_EQ(event["involvedObject"]["kind"].str(), "Pod");
  EXPECT_EQ(event["involvedObject"]["uid"].str(), "u");
  EXPECT_EQ(event["involvedObject"]["resourceVersion"].str(), "7");
  EXPECT_EQ(event["type"].str(), "Warning");
  EXPECT_EQ(event["message"].str(), "no room");
  EXPECT_EQ(event["count"].integer(), 1);
  EXPECT_EQ(event["source"]["component"].str(), "s");
  EXPECT_TRUE(event["metadata"]["name"].str().starts_with("p."));
}

TEST_F(EventRecorderTest, ARepeatedEventRaisesTheCount) {
  Record("no room");
  Record("no room");
  Record("no room");
  EXPECT_EQ(client_.created.size(), 1u);
  ASSERT_EQ(client_.updated.size(), 2u);
  EXPECT_EQ(client_.updated.back()->root()["count"].integer(), 3);
}

TEST_F(EventRecorderTest, ManyDifferentMessagesAreAggregated) {
  for (int i = 0; i < 20; ++i) Record(StrCat("reason ", i));
  EXPECT_EQ(client_.created.size(), 11u);
  EXPECT_TRUE(client_.created.back()->root()["message"].str().starts_with(
      "(combined from similar events): "));
}

TEST_F(EventRecorderTest, OneObjectCannotFloodTheApi) {
  for (int i = 0; i < 100; ++i) Record("again");
  EXPECT_EQ(client_.created.size() + client_.updated.size(),
            static_cast<std::size_t>(EventRecorder::kBurst));
  EXPECT_EQ(recorder_.dropped(), 75u);
  loop_.Advance(EventRecorder::kRefill);
  Record("again");
  EXPECT_EQ(client_.updated.back()->root()["count"].integer(), EventRecorder::kBurst + 1);
}

TEST_F(EventRecorderTest, AnEventIsWrittenWithoutDelay) {
  Record("no room");
  EXPECT_EQ(client_.created.size(), 1u);
}

TEST_F(EventRecorderTest, AFailedWriteIsNotRetried) {
  client_.fail = true;
  Record("no room");
  EXPECT_EQ(recorder_.dropped(), 1u);
  client_.fail = false;
  Record("no room");
  EXPECT_EQ(client_.created.size(), 2u);
}

}  // namespace
}  // namespace drakkar::client
