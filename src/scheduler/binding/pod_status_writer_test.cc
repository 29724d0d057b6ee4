#include "scheduler/binding/pod_status_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "api/json/reader.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "client/silent_client.h"

namespace drakkar::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

api::ObjectPtr Pod(std::string status, std::string node = "", std::string uid = "u") {
  auto tree =
      api::ParseJson(StrCat(R"({"metadata":{"namespace":"d","name":"p","uid":")", uid,
                            R"("},"spec":{"nodeName":")", node, R"("},"status":{)", status, "}}"));
  EXPECT_TRUE(tree.ok());
  return std::make_shared<const api::Object>(*tree);
}

// "nominated node | type=status reason message since TIME ...", or "unchanged".
std::string Show(const api::TreePtr& tree) {
  if (tree == nullptr) return "unchanged";
  const api::Value status = tree->root()["status"];
  std::string text = StrCat(status["nominatedNodeName"].str(), " |");
  for (api::Value condition : status["conditions"].elements()) {
    text += StrCat(" ", condition["type"].str(), "=", condition["status"].str(), " ",
                   condition["reason"].str(), " ", condition["message"].str(), " since ",
                   condition["lastTransitionTime"].str());
  }
  return text;
}

std::string Applied(std::string status, const PodStatusWriter::Change& change) {
  return Show(ApplyPodStatus(*Pod(std::move(status)), change, "now"));
}

TEST(ApplyPodStatus, WritesOnlyWhatChanges) {
  constexpr char kCondition[] = R"("conditions":[{"type":"Other","status":"True"},
      {"type":"PodScheduled","status":"False","reason":"R","message":"M",
       "lastTransitionTime":"then"}])";
  const PodStatusWriter::Change refusal{.reason = "R", .message = "M", .nominated_node = ""};
  EXPECT_EQ(Applied("", {}), "unchanged");
  EXPECT_EQ(Applied("", refusal), " | PodScheduled=False R M since now");
  EXPECT_EQ(Applied(kCondition, refusal), "unchanged");
  EXPECT_EQ(Applied(kCondition, {.reason = "R2", .message = "M", .nominated_node = ""}),
            " | Other=True   since  PodScheduled=False R2 M since then")
      << "the status is the same, so the time is";
  EXPECT_EQ(Applied(kCondition, {.reason = "R", .message = "M2", .nominated_node = ""}),
            " | Other=True   since  PodScheduled=False R M2 since then");
  EXPECT_EQ(Applied(R"("conditions":[{"type":"PodScheduled","status":"True","reason":"R",
      "message":"M","lastTransitionTime":"then"}])",
                    refusal),
            " | PodScheduled=False R M since now");
  EXPECT_EQ(Applied(R"("conditions":[{"type":"PodScheduled","status":"False"}])", refusal),
            " | PodScheduled=False R M since now")
      << "without a time";
}

TEST(ApplyPodStatus, WritesTheNominatedNode) {
  const PodStatusWriter::Change nomination{.reason = "", .message = "", .nominated_node = "n"};
  EXPECT_EQ(Applied("", nomination), "n |");
  EXPECT_EQ(Applied(R"("nominatedNodeName":"m")", nomination), "n |");
  EXPECT_EQ(Applied(R"("nominatedNodeName":"n")", nomination), "unchanged");
  EXPECT_EQ(
      Applied(R"("nominatedNodeName":"m")", {.reason = "R", .message = "M", .nominated_node = ""}),
      "m | PodScheduled=False R M since now")
      << "an empty node does not remove it";
}

// Records writes and answers them when the test says so.
class HeldClient final : public client::SilentClient {
 public:
  void Get(client::ResourceRef, client::ReplyCallback done) override {
    calls.push_back("get");
    waiting.push_back(std::move(done));
  }
  void Update(client::ResourceRef ref, api::TreePtr body, client::WriteOptions,
              client::ReplyCallback done) override {
    EXPECT_EQ(StrCat(ref.namespace_, "/", ref.name, "/", ref.subresource), "d/p/status");
    calls.push_back(Show(body));
    written = std::make_shared<const api::Object>(body);
    waiting.push_back(std::move(done));
  }
  void Answer(api::ObjectPtr object) {
    client::Reply reply;
    reply.object = std::move(object);
    Send(std::move(reply));
  }
  void Fail(ErrorCode code) {
    client::Reply reply;
    reply.error = Error{code, "failed"};
    Send(std::move(reply));
  }
  std::vector<std::string> calls;
  std::deque<client::ReplyCallback> waiting;
  api::ObjectPtr written;

 private:
  void Send(client::Reply reply) {
    ASSERT_FALSE(waiting.empty());
    client::ReplyCallback done = std::move(waiting.front());
    waiting.pop_front();
    done(std::move(reply));
  }
};

class PodStatusWriterTest : public ::testing::Test {
 protected:
  void Nominate(std::string node) {
    writer_.Write(Pod(""), {.reason = "", .message = "", .nominated_node = std::move(node)});
  }
  SeededLoop loop_;
  HeldClient client_;
  PodStatusWriter writer_{loop_, client_};
};

TEST_F(PodStatusWriterTest, OneWriteIsInFlightAndTheLastChangeWins) {
  Nominate("n1");
  Nominate("n2");
  Nominate("n3");
  EXPECT_THAT(client_.calls, ElementsAre("n1 |"));
  client_.Answer(client_.written);
  EXPECT_THAT(client_.calls, ElementsAre("n1 |", "n3 |"));
  client_.Answer(client_.written);
  EXPECT_THAT(client_.waiting, IsEmpty());
  Nominate("n4");
  EXPECT_EQ(client_.calls.back(), "n4 |") << "the next change is a new write";
}

TEST_F(PodStatusWriterTest, ANominationAndARefusalAreBothKept) {
  Nominate("n1");
  writer_.Write(Pod(""), {.reason = "R", .message = "M", .nominated_node = ""});
  client_.Answer(client_.written);
  ASSERT_EQ(client_.calls.size(), 2u);
  EXPECT_TRUE(client_.calls[1].starts_with("n1 | PodScheduled=False R M")) << client_.calls[1];
}

TEST_F(PodStatusWriterTest, AConflictIsRetriedWithTheNewVersionUpToABound) {
  Nominate("n1");
  for (int i = 1; i < PodStatusWriter::kMaxTries; ++i) {
    client_.Fail(ErrorCode::kConflict);
    EXPECT_EQ(client_.calls.back(), "get");
    client_.Answer(Pod(R"("nominatedNodeName":"other")"));
    EXPECT_EQ(client_.calls.back(), "n1 |");
  }
  client_.Fail(ErrorCode::kConflict);
  EXPECT_THAT(client_.waiting, IsEmpty());
  Nominate("n2");
  EXPECT_EQ(client_.calls.back(), "n2 |");
}

TEST_F(PodStatusWriterTest, APodThatWasBoundOrReplacedIsLeftAlone) {
  for (const api::ObjectPtr& now : {Pod("", "node"), Pod("", "", "another")}) {
    Nominate("n1");
    client_.Fail(ErrorCode::kConflict);
    client_.Answer(now);
    EXPECT_THAT(client_.waiting, IsEmpty());
  }
}

TEST_F(PodStatusWriterTest, ServerErrorsAreRetriedAndOthersAreNot) {
  for (const ErrorCode code : {ErrorCode::kUnavailable, ErrorCode::kResourceExhausted}) {
    Nominate("n1");
    client_.Fail(code);
    EXPECT_THAT(client_.waiting, IsEmpty()) << "not at once";
    loop_.Advance(std::chrono::seconds(1));
    ASSERT_EQ(client_.calls.back(), "get");
    client_.Answer(Pod(""));
    client_.Answer(client_.written);
    EXPECT_THAT(client_.waiting, IsEmpty());
  }
  Nominate("n1");
  client_.Fail(ErrorCode::kForbidden);
  loop_.Advance(std::chrono::minutes(1));
  EXPECT_THAT(client_.waiting, IsEmpty());
  Nominate("n2");
  EXPECT_EQ(client_.calls.back(), "n2 |") << "the next change is written";
}

TEST_F(PodStatusWriterTest, ServerErrorsEndAfterABound) {
  Nominate("n1");
  client_.Fail(ErrorCode::kUnavailable);
  int reads = 0;
  for (; reads < 100; ++reads) {
    loop_.Advance(std::chrono::minutes(1));
    if (client_.waiting.empty()) break;
    client_.Fail(ErrorCode::kUnavailable);
  }
  EXPECT_EQ(reads, PodStatusWriter::kMaxFailures);
  Nominate("n2");
  EXPECT_EQ(client_.calls.back(), "n2 |");
}

TEST_F(PodStatusWriterTest, ASuccessForgetsEarlierConflicts) {
  Nominate("n1");
  for (int round = 0; round < 3; ++round) {
    Nominate(StrCat("m", round));
    for (int i = 1; i < PodStatusWriter::kMaxTries; ++i) {
      client_.Fail(ErrorCode::kConflict);
      client_.Answer(Pod(""));
    }
    Nominate(StrCat("x", round));
    client_.Answer(client_.written);
    EXPECT_EQ(client_.waiting.size(), 1u) << round;
  }
}

}  // namespace
}  // namespace drakkar::scheduler
