#include "client/leader_election.h"

#include <gtest/gtest.h>

#include <map>

#include "api/tree/draft.h"
#include "base/testing/seeded_loop.h"

namespace drakkar::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// One Lease with versions, and watches of it.
class LeaseServer {
 public:
  explicit LeaseServer(EventLoop& loop) : loop_(loop) {}
  api::ObjectPtr lease;
  std::map<int, WatchCallbacks> watches;
  bool may_watch = true;

  Reply Get() const {
    Reply reply;
    reply.object = lease;
    if (lease == nullptr) reply.error = NotFound("no such lease");
    return reply;
  }
  Reply Put(const api::TreePtr& body, bool create) {
    const api::Object proposed(body);
    Reply reply;
    if (create ? lease != nullptr
               : lease == nullptr || lease->resource_version() != proposed.resource_version()) {
      reply.error = Error{ErrorCode::kConflict, "somebody was quicker"};
      return reply;
    }
    api::Draft draft(body);
    draft["metadata"]["resourceVersion"] = std::to_string(++version_);
    lease = reply.object = std::make_shared<const api::Object>(draft.Freeze());
    for (const auto& [id, watch] : watches) {
      loop_.Post([this, id = id, event = WatchEvent{EventType::kModified, lease}] {
        if (const auto found = watches.find(id); found != watches.end()) {
          found->second.on_events({event});
        }
      });
    }
    return reply;
  }
  std::unique_ptr<WatchHandle> Watch(WatchCallbacks callbacks) {
    const int id = ++last_watch_;
    watches.emplace(id, std::move(callbacks));
    if (!may_watch) CloseWatch(id, Error{ErrorCode::kForbidden, "no"});
    return std::make_unique<Handle>(*this, id);
  }
  void CloseWatch(int id, Error error) {
    loop_.Post([this, id, error = std::move(error)] {
      if (const auto found = watches.find(id); found != watches.end()) {
        const WatchCallbacks callbacks = found->second;
        callbacks.on_closed(error);
      }
    });
  }
  int watches_opened() const { return last_watch_; }
  EventLoop& loop() { return loop_; }

 private:
  struct Handle final : WatchHandle {
    Handle(LeaseServer& owner, int number) : server(owner), id(number) {}
    ~Handle() override { server.watches.erase(id); }
    LeaseServer& server;
    const int id;
  };
  EventLoop& loop_;
  int version_ = 0;
  int last_watch_ = 0;
};

class LeaseClient final : public Client {
 public:
  explicit LeaseClient(LeaseServer& server) : server_(server) {}
  enum class Mood { kFine, kFails, kHangs } mood = Mood::kFine;

  void Get(ResourceRef, ReplyCallback done) override {
    Answer([this] { return server_.Get(); }, std::move(done));
  }
  void Create(ResourceRef, api::TreePtr body, WriteOptions, ReplyCallback done) override {
    Answer([this, body] { return server_.Put(body, true); }, std::move(done));
  }
  void Update(ResourceRef, api::TreePtr body, WriteOptions, ReplyCallback done) override {
    Answer([this, body] { return server_.Put(body, false); }, std::move(done));
  }
  void List(ResourceRef, ListOptions, std::function<void(ListReply)>) override { FAIL(); }
  void Patch(ResourceRef, PatchType, std::string, WriteOptions, ReplyCallback) override { FAIL(); }
  void Delete(ResourceRef, DeleteOptions, ReplyCallback) override { FAIL(); }
  void DeleteCollection(ResourceRef, ListOptions, DeleteOptions, ReplyCallback) override { FAIL(); }
  std::unique_ptr<WatchHandle> Watch(ResourceRef ref, WatchOptions options,
                                     WatchCallbacks callbacks) override {
    EXPECT_TRUE(ref.name.empty());
    EXPECT_EQ(options.field_selector, "metadata.name=kube-scheduler");
    return server_.Watch(std::move(callbacks));
  }

 private:
  void Answer(std::function<Reply()> make, ReplyCallback done) {
    if (mood == Mood::kHangs) return;
    const bool fails = mood == Mood::kFails;
    server_.loop().Post([make = std::move(make), done = std::move(done), fails] {
      Reply failure;
      failure.error = Unavailable("connection refused");
      done(fails ? failure : make());
    });
  }
  LeaseServer& server_;
};

class LeaderElection : public ::testing::Test {
 protected:
  struct Candidate {
    Candidate(SeededLoop& loop, LeaseServer& server, std::string name)
        : client(server),
          elector({.loop = loop,
                   .random = loop.random(),
                   .client = client,
                   .config = {.lease_name = "kube-scheduler"},
                   .identity = name,
                   .on_started = [this] { ++started; },
                   .on_lost = [this] { ++lost; }}) {
      elector.Start();
    }
    LeaseClient client;
    int started = 0;
    int lost = 0;
    LeaderElector elector;
  };
  LeaseRecord Record() const { return ReadLease(*server_.lease); }

  SeededLoop loop_;
  LeaseServer server_{loop_};
};

TEST_F(LeaderElection, TheFirstCandidateLeadsAndTheSecondWaits) {
  Candidate a(loop_, server_, "a");
  Candidate b(loop_, server_, "b");
  loop_.Advance(seconds(60));
  EXPECT_TRUE(a.elector.is_leader());
  EXPECT_EQ(a.started, 1);
  EXPECT_EQ(b.started, 0);
  EXPECT_EQ(b.elector.holder(), "a");
  EXPECT_EQ(Record().holder, "a");
  EXPECT_EQ(Record().transitions, 0);
  EXPECT_EQ(Record().acquired, "2027-01-15T08:00:00.000000Z");
  EXPECT_EQ(Record().renewed, "2027-01-15T08:01:00.000000Z") << "renewed every two seconds";
}

TEST_F(LeaderElection, ALeaderThatCannotRenewStopsBeforeAnotherMayStart) {
  Candidate a(loop_, server_, "a");
  Candidate b(loop_, server_, "b");
  loop_.Advance(seconds(4));
  for (const auto mood : {LeaseClient::Mood::kFails}) a.client.mood = mood;
  loop_.Advance(milliseconds(9'900));
  EXPECT_EQ(a.lost, 0);
  loop_.Advance(milliseconds(200));
  EXPECT_EQ(a.lost, 1);
  EXPECT_EQ(b.started, 0) << "the lease is still good for five seconds";
  loop_.Advance(seconds(8));
  EXPECT_EQ(b.started, 1);
  EXPECT_EQ(Record().holder, "b");
  EXPECT_EQ(Record().transitions, 1);
  EXPECT_EQ(a.lost, 1);
}

// The last renewal was at 14 s, and the lease lasts 15 s.
TEST_F(LeaderElection, ACandidateTakesOverWhenTheLeaseExpires) {
  Candidate a(loop_, server_, "a");
  Candidate b(loop_, server_, "b");
  loop_.Advance(milliseconds(14'700));
  a.client.mood = LeaseClient::Mood::kFails;
  loop_.Advance(milliseconds(14'200));
  EXPECT_EQ(b.started, 0);
  loop_.Advance(milliseconds(200));
  EXPECT_EQ(b.started, 1);
}

TEST_F(LeaderElection, AfterTheLeaseHasExpiredACandidateTriesEveryMoment) {
  Candidate a(loop_, server_, "a");
  Candidate b(loop_, server_, "b");
  loop_.Advance(milliseconds(14'700));
  a.client.mood = LeaseClient::Mood::kFails;
  loop_.Advance(milliseconds(14'000));
  b.client.mood = LeaseClient::Mood::kFails;
  loop_.Advance(seconds(2));
  EXPECT_EQ(b.started, 0);
  b.client.mood = LeaseClient::Mood::kFine;
  loop_.Advance(milliseconds(300));
  EXPECT_EQ(b.started, 1);
}

TEST_F(LeaderElection, ACandidateThatMayNotWatchPolls) {
  server_.may_watch = false;
  Candidate a(loop_, server_, "a");
  Candidate b(loop_, server_, "b");
  loop_.Advance(milliseconds(14'700));
  a.client.mood = LeaseClient::Mood::kFails;
  loop_.Advance(seconds(17));
  EXPECT_EQ(b.started, 1);
  EXPECT_EQ(server_.watches_opened(), 1);
}

TEST_F(LeaderElection, AWatchThatEndsIsOpenedAgain) {
  Candidate a(loop_, server_, "a");
  Candidate b(loop_, server_, "b");
  loop_.Advance(seconds(5));
  ASSERT_EQ(server_.watches.size(), 1u) << "only the candidate's";
  server_.CloseWatch(server_.watches.begin()->first, Unavailable("the server ended the watch"));
  loop_.Advance(seconds(5));
  EXPECT_EQ(server_.watches.size(), 1u);
  EXPECT_EQ(server_.watches_opened(), 2);
}

TEST_F(LeaderElection, ARequestThatHangsEndsTheTermToo) {
  Candidate a(loop_, server_, "a");
  loop_.Advance(seconds(4));
  a.client.mood = LeaseClient::Mood::kHangs;
  loop_.Advance(seconds(11));
  EXPECT_EQ(a.lost, 1);
  EXPECT_FALSE(a.elector.is_leader());
}

TEST_F(LeaderElection, SteppingDownReleasesTheLease) {
  Candidate a(loop_, server_, "a");
  loop_.Advance(seconds(4));
  bool stopped = false;
  a.elector.Stop([&] { stopped = true; });
  loop_.RunUntilIdle();
  EXPECT_TRUE(stopped);
  EXPECT_EQ(a.lost, 0) << "it was asked to";
  EXPECT_EQ(Record().holder, "");
  EXPECT_EQ(Record().duration, seconds(1));
}

TEST_F(LeaderElection, SteppingDownLetsTheNextCandidateStartAtOnce) {
  Candidate a(loop_, server_, "a");
  Candidate b(loop_, server_, "b");
  loop_.Advance(seconds(4));
  a.elector.Stop([] {});
  loop_.RunUntilIdle();
  EXPECT_EQ(b.started, 1);
  EXPECT_EQ(Record().holder, "b");
}

TEST_F(LeaderElection, SteppingDownDoesNotWaitForAnUnreachableServer) {
  Candidate a(loop_, server_, "a");
  loop_.Advance(seconds(4));
  a.client.mood = LeaseClient::Mood::kHangs;
  bool stopped = false;
  a.elector.Stop([&] { stopped = true; });
  loop_.Advance(seconds(3));
  EXPECT_TRUE(stopped);
}

TEST_F(LeaderElection, ARestartedHolderContinuesItsTerm) {
  auto a = std::make_unique<Candidate>(loop_, server_, "a");
  loop_.Advance(seconds(4));
  a.reset();
  Candidate again(loop_, server_, "a");
  loop_.RunUntilIdle();
  EXPECT_EQ(again.started, 1);
  EXPECT_EQ(Record().transitions, 0);
  EXPECT_EQ(Record().acquired, "2027-01-15T08:00:00.000000Z");
}

TEST_F(LeaderElection, ClocksNeedNotAgree) {
  Candidate a(loop_, server_, "a");
  loop_.Advance(seconds(1));
  loop_.fake_clock().JumpWall(std::chrono::hours(24));
  Candidate b(loop_, server_, "b");
  loop_.Advance(seconds(30));
  EXPECT_EQ(b.started, 0);
}

TEST_F(LeaderElection, ThereAreNeverTwoLeadersWhateverFails) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SeededLoop loop(seed);
    LeaseServer server(loop);
    SeededRandom random(seed);
    std::vector<std::unique_ptr<Candidate>> candidates;
    for (const char* name : {"a", "b", "c"}) {
      candidates.push_back(std::make_unique<Candidate>(loop, server, name));
    }
    for (int i = 0; i < 400; ++i) {
      Candidate& one = *candidates[random.Below(3)];
      one.client.mood = static_cast<LeaseClient::Mood>(random.Below(3));
      loop.Advance(milliseconds(random.Below(3'000)));
      int leaders = 0;
      for (const auto& candidate : candidates) leaders += candidate->elector.is_leader();
      ASSERT_LE(leaders, 1) << "seed " << seed << " step " << i;
    }
  }
}

TEST(LeaderElectionConfig, RejectsInconsistentDurations) {
  LeaderElectionConfig good{.lease_name = "x"};
  EXPECT_TRUE(CheckLeaderElection(good).ok());
  LeaderElectionConfig bad = good;
  bad.renew_deadline = seconds(15);
  EXPECT_FALSE(CheckLeaderElection(bad).ok());
  bad = good;
  bad.retry_period = seconds(9);
  EXPECT_FALSE(CheckLeaderElection(bad).ok());
  bad = good;
  bad.lease_name = "";
  EXPECT_FALSE(CheckLeaderElection(bad).ok());
}

}  // namespace
}  // namespace drakkar::client
