// What each plan writes for each state of a claim, and how the writer handles errors.
#include "scheduler/binding/claim_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "client/silent_client.h"

namespace drakkar::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kFinalizer[] =
    R"("finalizers":["other/finalizer","resource.kubernetes.io/delete-protection"])";
constexpr char kAllocation[] = R"("allocation":{"devices":{"results":[
    {"request":"r","driver":"d","pool":"p","device":"a","bindingConditions":["Ready"]},
    {"request":"r","driver":"d","pool":"p","device":"b"}]},
    "allocationTimestamp":"2026-01-01T00:00:00Z"})";

struct Parts {
  std::string metadata = kFinalizer;
  std::string status = "";
  int version = 1;
  std::string uid = "u";
};

api::ObjectPtr Claim(const Parts& parts) {
  auto tree = api::ParseJson(StrCat(
      R"({"metadata":{"namespace":"d","name":"c","uid":")", parts.uid, R"(","resourceVersion":")",
      parts.version, "\"", parts.metadata.empty() ? "" : ",", parts.metadata,
      R"(},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"x",)",
      R"("allocationMode":"ExactCount","count":1}}]}},"status":{)", parts.status, "}}"));
  EXPECT_TRUE(tree.ok());
  return std::make_shared<const api::Object>(*tree);
}

std::string Reserved(std::vector<std::string> uids) {
  std::vector<std::string> entries;
  for (const std::string& uid : uids) {
    entries.push_back(
        uid.starts_with("vm")
            ? StrCat(R"({"apiGroup":"x","resource":"vms","name":"n","uid":")", uid, "\"}")
            : StrCat(R"({"resource":"pods","name":"n","uid":")", uid, "\"}"));
  }
  return StrCat(R"("reservedFor":[)", Join(entries, ","), "]");
}

AllocationPtr Allocation(std::vector<std::string> devices,
                         std::string timestamp = "2026-01-01T00:00:00Z") {
  auto allocation = std::make_shared<device::AllocationResult>();
  for (const std::string& device : devices) {
    allocation->results.push_back({.request = "r", .id = {"d", "p", device}});
  }
  allocation->allocation_timestamp = std::move(timestamp);
  return allocation;
}

// "finished", "refused: WHY", or what is written.
std::string Show(const ClaimWriter::Step& step) {
  if (std::holds_alternative<ClaimWriter::Finished>(step)) return "finished";
  if (const auto* refused = std::get_if<ClaimWriter::Refused>(&step)) {
    return StrCat("refused: ", refused->why);
  }
  const auto* object = std::get_if<ClaimWriter::WriteObject>(&step);
  const api::TreePtr body =
      object != nullptr ? object->body : std::get<ClaimWriter::WriteStatus>(step).body;
  std::string text = object != nullptr ? "object:" : "status:";
  for (api::Value finalizer : body->root()["metadata"]["finalizers"].elements()) {
    if (object != nullptr) text += StrCat(" ", finalizer.str());
  }
  if (object != nullptr) return text;
  EXPECT_TRUE(std::get<ClaimWriter::WriteStatus>(step).last);
  const api::Value status = body->root()["status"];
  for (api::Value result : status["allocation"]["devices"]["results"].elements()) {
    text += StrCat(" ", result["device"].str());
  }
  text += StrCat(" @", status["allocation"]["allocationTimestamp"].str(), " for");
  for (api::Value pod : status["reservedFor"].elements()) {
    text += StrCat(" ", pod["name"].str(), "/", pod["uid"].str());
  }
  if (status["devices"].has_value()) text += " with device status";
  return text;
}

TEST(PlanAllocateAndReserve, WritesTheFinalizerThenAllocationAndReservationTogether) {
  const ClaimWriter::Plan plan =
      PlanAllocateAndReserve(Allocation({"a", "b"}, ""), "now", {"pod", "p1"});
  EXPECT_EQ(Show(plan(*Claim({.metadata = R"("finalizers":["other/finalizer"])"}))),
            "object: other/finalizer resource.kubernetes.io/delete-protection");
  EXPECT_EQ(Show(plan(*Claim({}))), "status: a b @now for pod/p1");
  EXPECT_EQ(Show(PlanAllocateAndReserve(Allocation({"a"}, ""), "", {"pod", "p1"})(*Claim({}))),
            "status: a @ for pod/p1")
      << "without a timestamp";
}

TEST(PlanAllocateAndReserve, RecognizesItsOwnWriteAndNothingElse) {
  const ClaimWriter::Plan plan =
      PlanAllocateAndReserve(Allocation({"a", "b"}), "now", {"pod", "p1"});
  const auto show = [&](std::string reserved) {
    return Show(plan(*Claim({.status = StrCat(kAllocation, ",", reserved)})));
  };
  constexpr char kElsewhere[] = "refused: claim d/c got allocated elsewhere in the meantime";
  EXPECT_EQ(show(Reserved({"p0", "p1"})), "finished");
  EXPECT_EQ(show(Reserved({"p0"})), kElsewhere) << "the same devices, but for somebody else";
  EXPECT_EQ(Show(PlanAllocateAndReserve(Allocation({"a", "c"}), "now", {"pod", "p1"})(
                *Claim({.status = StrCat(kAllocation, ",", Reserved({"p1"}))}))),
            kElsewhere);
  EXPECT_EQ(Show(plan(*Claim({.metadata = StrCat(
                                  kFinalizer, R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")")}))),
            "refused: claim d/c got deleted in the meantime");
}

TEST(PlanAllocateAndReserve, AnAllocatedClaimIsOnlyReserved) {
  const ClaimWriter::Plan plan = PlanAllocateAndReserve(nullptr, "now", {"pod", "p1"});
  EXPECT_EQ(Show(plan(*Claim({.status = StrCat(kAllocation, ",", Reserved({"p0"}))}))),
            "status: a b @2026-01-01T00:00:00Z for n/p0 pod/p1");
  EXPECT_EQ(Show(plan(*Claim({.metadata = "", .status = kAllocation}))),
            "status: a b @2026-01-01T00:00:00Z for pod/p1")
      << "the finalizer is the business of whoever allocated it";
  EXPECT_EQ(Show(plan(*Claim({.status = StrCat(kAllocation, ",", Reserved({"p0", "p1"}))}))),
            "finished");
  EXPECT_EQ(Show(plan(*Claim({}))), "refused: claim d/c got deallocated elsewhere in the meantime");
}

TEST(PlanRelease, RemovesTheAllocationUnlessABoundPodUsesIt) {
  const ClaimWriter::Plan plan = PlanRelease(
      "p1", Allocation({"a", "b"}), [](std::string_view uid) { return uid.starts_with("bound"); });
  const auto show = [&](std::vector<std::string> uids, std::string more = "") {
    return Show(plan(*Claim({.status = StrCat(kAllocation, ",", Reserved(uids), more)})));
  };
  EXPECT_EQ(show({"p1"}), "status: @ for");
  EXPECT_EQ(show({"p0", "p1", "p2"}), "status: @ for") << "other waiters lose it too";
  EXPECT_EQ(show({"p0", "p1", "bound"}), "status: a b @2026-01-01T00:00:00Z for n/p0 n/bound")
      << "only the own reservation is removed";
  EXPECT_EQ(show({"p0", "bound"}), "finished");
  EXPECT_EQ(show({"vm1", "p1"}), "status: a b @2026-01-01T00:00:00Z for n/vm1")
      << "a consumer that is not a pod may be using it";
  EXPECT_EQ(show({"p1"}, R"(,"devices":[{"driver":"d","pool":"p","device":"b"}])"),
            "status: @ for");
}

TEST(PlanRelease, LeavesAnAllocationThatIsNotTheReleasedOneOrIsReadyAfterAll) {
  const auto is_bound = [](std::string_view) { return false; };
  const auto show = [&](const AllocationPtr& released, const Parts& claim) {
    return Show(PlanRelease("p1", released, is_bound)(*Claim(claim)));
  };
  const std::string held = StrCat(kAllocation, ",", Reserved({"p1"}));
  EXPECT_EQ(show(Allocation({"a", "b"}), {.status = held}), "status: @ for");
  EXPECT_EQ(show(Allocation({"a", "b"}), {}), "finished") << "no longer allocated";
  EXPECT_EQ(show(Allocation({"a", "c"}), {.status = held}), "finished") << "other devices";
  EXPECT_EQ(show(Allocation({"a", "b"}, "2026-01-01T00:00:09Z"), {.status = held}), "finished")
      << "the same devices, allocated again";
  EXPECT_EQ(show(Allocation({"a"}), {.status = R"("allocation":{"devices":{"results":[{"request":
      "r","driver":"d","pool":"p","device":"a","consumedCapacity":{"x":"a lot"}}]},
      "allocationTimestamp":"2026-01-01T00:00:00Z"})"}),
            "finished")
      << "it cannot be read";
  const std::string ready = StrCat(held, R"(,"devices":[{"driver":"d","pool":"p","device":"a",
      "conditions":[{"type":"Ready","status":"True"}]}])");
  EXPECT_EQ(show(Allocation({"a", "b"}), {.status = ready}), "finished");
  EXPECT_EQ(show(Allocation({"a", "b"}),
                 {.metadata = StrCat(kFinalizer, R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")"),
                  .status = ready}),
            "status: @ for")
      << "nobody can use a claim that is being deleted";
}

TEST(PlanDeallocate, IsForTheOnlyUser) {
  const ClaimWriter::Plan plan = PlanDeallocate("p1");
  const auto show = [&](std::string status) {
    return Show(plan(*Claim({.status = std::move(status)})));
  };
  EXPECT_EQ(show(StrCat(kAllocation, ",", Reserved({"p1"}))), "status: @ for");
  EXPECT_EQ(show(kAllocation), "status: @ for") << "nobody uses it";
  EXPECT_EQ(show(StrCat(kAllocation, ",", Reserved({"p1", "p2"}))), "finished");
  EXPECT_EQ(show(""), "finished");
}

// Answers each call with what the test queued, and records it.
class ScriptedClient final : public client::SilentClient {
 public:
  explicit ScriptedClient(EventLoop& loop) : loop_(loop) {}
  void Get(client::ResourceRef ref, client::ReplyCallback done) override {
    Answer("get", ref, std::move(done));
  }
  void Update(client::ResourceRef ref, api::TreePtr, client::WriteOptions,
              client::ReplyCallback done) override {
    Answer("update", ref, std::move(done));
  }
  void Says(api::ObjectPtr object) {
    client::Reply reply;
    reply.object = std::move(object);
    answers_.push_back(std::move(reply));
  }
  void Says(Error error) {
    client::Reply reply;
    reply.error = std::move(error);
    answers_.push_back(std::move(reply));
  }
  std::vector<std::string> calls;

 private:
  void Answer(std::string verb, const client::ResourceRef& ref, client::ReplyCallback done) {
    calls.push_back(StrCat(verb, ref.subresource.empty() ? "" : "/", ref.subresource));
    EXPECT_EQ(ref.namespace_, "d");
    EXPECT_EQ(ref.name, "c");
    if (answers_.empty()) return;
    loop_.Post([done = std::move(done), reply = std::move(answers_.front())] { done(reply); });
    answers_.pop_front();
  }
  EventLoop& loop_;
  std::deque<client::Reply> answers_;
};

class ClaimWriterTest : public ::testing::Test {
 protected:
  ClaimWriterTest() { claims_.Observe(Claim({})); }

  void Run(std::string uid = "u") {
    answers_.clear();
    writer_.Run("d/c", uid, PlanAllocateAndReserve(Allocation({"a", "b"}), "now", {"pod", "p1"}),
                [this](std::string error) { answers_.push_back(error.empty() ? "ok" : error); });
    loop_.Advance(std::chrono::minutes(1));
  }
  static api::ObjectPtr Written(int version) {
    return Claim({.status = StrCat(kAllocation, ",", Reserved({"p1"})), .version = version});
  }

  SeededLoop loop_;
  device::AllocatedState allocated_;
  ClaimCache claims_{allocated_};
  ScriptedClient client_{loop_};
  ClaimWriter writer_{loop_, loop_.random(), client_, claims_};
  std::vector<std::string> answers_;
};

TEST_F(ClaimWriterTest, OneWriteIsEnoughAndItsAnswerIsInTheCache) {
  client_.Says(Written(2));
  Run();
  EXPECT_THAT(answers_, ElementsAre("ok"));
  EXPECT_THAT(client_.calls, ElementsAre("update/status"));
  EXPECT_EQ(claims_.Find("d/c")->latest->resource_version(), 2);
}

TEST_F(ClaimWriterTest, TheFinalizerIsWrittenFirst) {
  claims_.Remove(Claim({}));
  claims_.Observe(Claim({.metadata = ""}));
  client_.Says(Claim({.version = 2}));
  client_.Says(Written(3));
  Run();
  EXPECT_THAT(answers_, ElementsAre("ok"));
  EXPECT_THAT(client_.calls, ElementsAre("update", "update/status"));
}

TEST_F(ClaimWriterTest, AnotherClaimOfTheNameIsNotWritten) {
  Run("another uid");
  EXPECT_THAT(answers_, ElementsAre("claim d/c got deleted in the meantime"));
  claims_.Remove(Claim({}));
  Run();
  EXPECT_THAT(answers_, ElementsAre("claim d/c got deleted in the meantime"));
  EXPECT_THAT(client_.calls, IsEmpty());
}

TEST_F(ClaimWriterTest, AConflictCostsAReadAndARetry) {
  client_.Says(Error{ErrorCode::kConflict, "changed"});
  client_.Says(Claim({.version = 5}));
  client_.Says(Written(6));
  Run();
  EXPECT_THAT(answers_, ElementsAre("ok"));
  EXPECT_THAT(client_.calls, ElementsAre("update/status", "get", "update/status"));
}

TEST_F(ClaimWriterTest, ConflictsEndAfterFiveTries) {
  for (int i = 0; i < 10; ++i) {
    client_.Says(Error{ErrorCode::kConflict, "changed"});
    client_.Says(Claim({.version = 2 + i}));
  }
  Run();
  EXPECT_THAT(answers_, ElementsAre("changed"));
  EXPECT_EQ(std::count(client_.calls.begin(), client_.calls.end(), "update/status"),
            ClaimWriter::kMaxTries);
}

TEST_F(ClaimWriterTest, AnUnknownOutcomeIsResolvedByReading) {
  for (const ErrorCode code : {ErrorCode::kUnavailable, ErrorCode::kDeadlineExceeded,
                               ErrorCode::kCancelled, ErrorCode::kInternal}) {
    client_.calls.clear();
    client_.Says(Error{code, "lost"});
    client_.Says(Unavailable("still down"));
    client_.Says(Written(100));
    Run();
    EXPECT_THAT(answers_, ElementsAre("ok")) << static_cast<int>(code);
    EXPECT_THAT(client_.calls, ElementsAre("update/status", "get", "get"));
    claims_.Remove(Claim({}));
    claims_.Observe(Claim({}));
  }
}

TEST_F(ClaimWriterTest, AfterFiveLostWritesTheClaimIsReadOnceMoreBeforeGivingUp) {
  for (int i = 0; i < ClaimWriter::kMaxTries; ++i) {
    client_.Says(Unavailable("lost"));
    client_.Says(i + 1 < ClaimWriter::kMaxTries ? Claim({.version = 2 + i}) : Written(9));
  }
  Run();
  EXPECT_THAT(answers_, ElementsAre("ok")) << "the last write was applied after all";
  claims_.Remove(Claim({}));
  claims_.Observe(Claim({}));
  client_.calls.clear();
  for (int i = 0; i < ClaimWriter::kMaxTries; ++i) {
    client_.Says(Unavailable("lost"));
    client_.Says(Claim({.version = 2 + i}));
  }
  Run();
  EXPECT_THAT(answers_, ElementsAre("lost"));
  EXPECT_EQ(client_.calls.size(), 10u);
}

TEST_F(ClaimWriterTest, OtherErrorsAreReportedAtOnce) {
  client_.Says(InvalidArgument("bad"));
  Run();
  EXPECT_THAT(answers_, ElementsAre("bad"));
  client_.Says(Error{ErrorCode::kConflict, "changed"});
  client_.Says(NotFound("gone"));
  Run();
  EXPECT_THAT(answers_, ElementsAre("gone"));
  client_.Says(Error{ErrorCode::kConflict, "changed"});
  client_.Says(Claim({.uid = "another"}));
  Run();
  EXPECT_THAT(answers_, ElementsAre("claim d/c got deleted in the meantime"));
}

TEST_F(ClaimWriterTest, ReadsThatFailAreSpacedOut) {
  client_.Says(Unavailable("lost"));
  for (int i = 0; i < 100; ++i) client_.Says(Unavailable("down"));
  Run();
  EXPECT_THAT(answers_, IsEmpty()) << "the outcome is still unknown";
  EXPECT_GT(client_.calls.size(), 10u);
  EXPECT_LT(client_.calls.size(), 40u) << "in one minute";
}

}  // namespace
}  // namespace drakkar::scheduler
