#include "dashboard/board/board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "answers/testing/snapshots.h"
#include "api/json/reader.h"
#include "base/testing/seeded_loop.h"
#include "dashboard/board/replies.h"
#include "device/cel_expressions.h"

namespace drakkar::dashboard {
namespace {

using answers::testing::FromYaml;
using answers::testing::HeldClaim;
using answers::testing::Node;
using answers::testing::RunningPod;
using answers::testing::Slice;
using ::testing::HasSubstr;
using ::testing::Not;

class FakeSource final : public Source {
 public:
  explicit FakeSource(EventLoop& loop) : loop_(loop) {}
  void Take(std::function<void(answers::Snapshot)> done) override {
    ++takes;
    loop_.Post([this, done] { done(snapshot); });
  }
  void ReadCircumstances(answers::WhySubject, std::function<void(Circumstances)> done) override {
    Circumstances read;
    read.answer = scheduler_answer;
    if (read.answer.empty()) read.notes = {"assuming the defaults"};
    loop_.Post([done, read] { done(read); });
  }
  void ReadEvents(std::string, std::string, std::function<void(answers::Objects)> done) override {
    loop_.Post([this, done] { done(events); });
  }
  void SetNodes(std::vector<std::string> names) override { nodes = std::move(names); }
  void SetWatched(bool value) override { watched = value; }

  answers::Snapshot snapshot;
  answers::Objects events;
  std::string scheduler_answer;
  std::vector<std::string> nodes;
  bool watched = false;
  int takes = 0;

 private:
  EventLoop& loop_;
};

const std::string kCluster =
    "---\nkind: DeviceClass\nmetadata: {name: gpu.example.com}\nspec: {}\n" + Node("n1") +
    Node("n2") +
    Slice("n1",
          "[{name: gpu-0, attributes: {model: {string: a100}}, capacity: {memory: {value: "
          "40Gi}}}, {name: gpu-1}]") +
    Slice("n2", "[{name: gpu-0}]");
const std::string kHeld =
    kCluster + HeldClaim("train", "n1", {"gpu-0"}, "train-0") + RunningPod("train-0", "n1");
const std::string kPending =
    kHeld + HeldClaim("other", "n1", {"gpu-1"}, "p1") + RunningPod("p1", "n1") +
    HeldClaim("third", "n2", {"gpu-0"}, "p2") + RunningPod("p2", "n2") +
    "---\nkind: ResourceClaim\nmetadata: {name: wanted, creationTimestamp: "
    "'2026-01-01T11:00:00Z'}\nspec: {devices: {requests: [{name: gpu, "
    "exactly: {deviceClassName: gpu.example.com, allocationMode: "
    "ExactCount, count: 1}}]}}\n"
    "---\nkind: Pod\nmetadata: {name: hungry, creationTimestamp: "
    "'2026-01-01T11:00:00Z'}\nspec: {schedulerName: default-scheduler, "
    "resourceClaims: [{name: c, resourceClaimName: wanted}]}\nstatus: "
    "{phase: Pending, conditions: [{type: PodScheduled, status: 'False', "
    "reason: Unschedulable, message: 0/2 nodes}]}\n";

class BoardTest : public ::testing::Test {
 protected:
  void Open(std::string_view yaml) {
    board_ = std::make_unique<Board>(
        Board::Options{
            .loop = loop_,
            .random = loop_.random(),
            .compiler = compiler_,
            .source = source_,
            .server = "https://server:6443",
            .on_update = [this](Update update) { updates_.push_back(std::move(update)); }},
        FromYaml(yaml));
  }
  void Become(std::string_view yaml) {
    source_.snapshot = FromYaml(yaml);
    board_->Changed(true);
  }
  Board::Reply Ask(std::string_view path, std::string_view query = {}) {
    std::optional<Board::Reply> got;
    board_->Ask(path, query, [&got](Board::Reply reply) { got = std::move(reply); });
    loop_.RunUntilIdle();
    EXPECT_TRUE(got) << path;
    EXPECT_TRUE(api::ParseJson(got->json).ok()) << got->json;
    return *got;
  }

  SeededLoop loop_;
  device::CelExpressions compiler_;
  FakeSource source_{loop_};
  std::vector<Update> updates_;
  std::unique_ptr<Board> board_;
};

TEST_F(BoardTest, TheWholeStateHasEveryDeviceAndOneLinePerMessage) {
  Open(kHeld);
  const Update full = board_->Full();
  EXPECT_EQ(full.version, 1u);
  EXPECT_TRUE(full.change->starts_with("event: full\ndata: {\"server\":\"https://server:6443\""));
  EXPECT_TRUE(full.change->ends_with("}\n\n"));
  EXPECT_EQ(full.change->find('\n', sizeof("event: full\ndata: ")), full.change->size() - 2);
  EXPECT_THAT(*full.change, HasSubstr(R"("states":"HF")"));
  EXPECT_EQ(source_.nodes, (std::vector<std::string>{"n1", "n2"}));
}

TEST_F(BoardTest, SendsOnlyWhatChanged) {
  Open(kCluster);
  board_->SetViewers(1);
  Become(kHeld);
  loop_.Advance(Board::kMinPause);
  ASSERT_EQ(updates_.size(), 1u);
  EXPECT_EQ(updates_[0].version, 2u);
  EXPECT_THAT(*updates_[0].change, HasSubstr(R"("changed":[[0,"HF",""]])"));
}

TEST_F(BoardTest, NewDevicesAskForTheWholeState) {
  Open(Node("n1"));
  board_->SetViewers(1);
  Become(kCluster);
  loop_.Advance(Board::kMinPause);
  ASSERT_EQ(updates_.size(), 1u);
  EXPECT_EQ(updates_[0].change, nullptr);
}

TEST_F(BoardTest, CollectsChangesIntoOneRefresh) {
  Open(kCluster);
  board_->SetViewers(1);
  for (int i = 0; i < 100; ++i) Become(kHeld);
  loop_.Advance(Board::kMinPause);
  EXPECT_EQ(source_.takes, 1);
  loop_.Advance(std::chrono::minutes(1));
  EXPECT_EQ(source_.takes, 1) << "nothing changed since";
}

TEST_F(BoardTest, RefreshesSeldomIfNobodyLooksOrOnlyLeasesChange) {
  Open(kCluster);
  source_.snapshot = FromYaml(kHeld);
  board_->Changed(true);
  loop_.Advance(std::chrono::seconds(10));
  EXPECT_EQ(source_.takes, 0);
  board_->SetViewers(1);
  EXPECT_TRUE(source_.watched);
  loop_.RunUntilIdle();
  loop_.Advance(Board::kMinPause);
  EXPECT_EQ(source_.takes, 1);
  board_->Changed(false);
  loop_.Advance(std::chrono::seconds(10));
  EXPECT_EQ(source_.takes, 1);
  loop_.Advance(std::chrono::seconds(10));
  EXPECT_EQ(source_.takes, 2);
}

TEST_F(BoardTest, SaysAtOnceWhyItIsNotCurrent) {
  Open(kCluster);
  board_->SetProblem("connection refused");
  ASSERT_EQ(updates_.size(), 1u);
  EXPECT_EQ(updates_[0].version, 2u);
  EXPECT_THAT(*updates_[0].change, HasSubstr(R"("problem":"connection refused")"));
  EXPECT_THAT(*board_->Full().change, HasSubstr(R"("problem":"connection refused")"));
  board_->SetProblem("connection refused");
  EXPECT_EQ(updates_.size(), 1u);
  board_->SetProblem("");
  EXPECT_THAT(*updates_.at(1).change, Not(HasSubstr("problem")));
  EXPECT_EQ(source_.takes, 0);
}

TEST_F(BoardTest, ListsAtMostSoManyEntries) {
  std::string claims = kCluster;
  for (int i = 0; i < 600; ++i) {
    claims += StrCat("---\nkind: ResourceClaim\nmetadata: {name: c", i, "}\n");
  }
  Open(claims);
  const std::string json = Ask("/api/claims", "limit=100000").json;
  const api::TreePtr tree = api::ParseJson(json).value();
  EXPECT_EQ(tree->root()["items"].size(), kMaxListed);
}

TEST_F(BoardTest, DescribesADevice) {
  Open(kHeld);
  const Board::Reply reply = Ask("/api/device", "driver=gpu.example.com&pool=n1&device=gpu-0");
  EXPECT_EQ(reply.status, 200);
  for (const char* part :
       {R"("state":"Held")", R"("node":"n1")", R"(["model","a100"])", R"("value":"40Gi")",
        R"("claim":"train")", R"("name":"train-0")", R"("classes":["gpu.example.com"])"}) {
    EXPECT_THAT(reply.json, HasSubstr(part));
  }
  EXPECT_EQ(Ask("/api/device", "driver=x&pool=y&device=z").status, 404);
}

TEST_F(BoardTest, ListsPendingPodsAndSaysWhy) {
  Open(kPending);
  EXPECT_THAT(
      Ask("/api/pending").json,
      HasSubstr(
          R"("total":1,"items":[{"namespace":"default","name":"hungry","stage":"Unschedulable")"));
  EXPECT_THAT(Ask("/api/pending", "filter=nobody").json, HasSubstr(R"("total":0)"));
  const Board::Reply why = Ask("/api/why", "kind=pod&namespace=default&name=hungry");
  EXPECT_EQ(why.status, 200);
  EXPECT_THAT(why.json, HasSubstr("0 of 2 nodes"));
  EXPECT_THAT(why.json, HasSubstr("assuming the defaults"));
  EXPECT_EQ(Ask("/api/why", "kind=pod&namespace=default&name=nobody").status, 404);
  EXPECT_EQ(Ask("/api/why", "kind=shoe&namespace=a&name=b").status, 400);
  source_.scheduler_answer = R"({"sentence":"tried twice"})";
  EXPECT_EQ(Ask("/api/why", "kind=pod&namespace=default&name=hungry").json,
            source_.scheduler_answer)
      << "the scheduler knows best";
}

TEST_F(BoardTest, ListsClaimsInPartsAndByState) {
  Open(kPending);
  EXPECT_THAT(Ask("/api/claims").json, HasSubstr(R"("total":4)"));
  const std::string one = Ask("/api/claims", "offset=1&limit=1").json;
  EXPECT_THAT(one, HasSubstr(R"("name":"third")"));
  EXPECT_THAT(one, Not(HasSubstr(R"("name":"train")")));
  EXPECT_THAT(Ask("/api/claims", "state=Pending").json, HasSubstr(R"("total":1)"));
  EXPECT_THAT(Ask("/api/claims", "offset=99").json, HasSubstr(R"("items":[])"));
  EXPECT_EQ(Ask("/api/claims", "limit=-1").status, 400);
  EXPECT_EQ(Ask("/api/claims", "limit=many").status, 400);
}

TEST_F(BoardTest, ShowsTheTimelineOfAClaim) {
  Open(kPending);
  const Board::Reply reply = Ask("/api/claim", "namespace=default&name=train");
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.json, HasSubstr(R"("what":"created")"));
  EXPECT_THAT(reply.json, HasSubstr(R"("what":"allocated")"));
  EXPECT_EQ(Ask("/api/claim", "namespace=default&name=nobody").status, 404);
}

TEST_F(BoardTest, AnswersTheOtherQuestions) {
  Open(kPending);
  EXPECT_THAT(Ask("/api/health").json, HasSubstr(R"("unknown":3)"));
  EXPECT_THAT(Ask("/api/scheduler").json, HasSubstr(R"(["Unschedulable",1])"));
  EXPECT_THAT(Ask("/api/free", "by=class").json, HasSubstr("gpu.example.com"));
  EXPECT_EQ(Ask("/api/nothing").status, 404);
  EXPECT_EQ(Ask("/api/claims", "a=%zz").status, 400);
}

}  // namespace
}  // namespace drakkar::dashboard
