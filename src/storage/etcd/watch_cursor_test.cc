#include "storage/etcd/watch_cursor.h"

#include <gmock/gmock.h>

#include "base/env/random.h"

namespace drakkar::storage {
namespace {

namespace etcd = rpc::etcd;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

etcd::Event Put(const std::string& key, std::int64_t revision) {
  etcd::Event event;
  event.kv = {.key = key,
              .value = "v" + std::to_string(revision),
              .create_revision = 2,
              .mod_revision = revision};
  return event;
}

etcd::WatchResponse Events(std::vector<etcd::Event> events, std::int64_t header = 1'000,
                           bool fragment = false) {
  etcd::WatchResponse response;
  response.header.revision = header;
  response.events = std::move(events);
  response.fragment = fragment;
  return response;
}

etcd::WatchResponse Progress(std::int64_t revision) {
  return Events({}, revision);
}

std::vector<std::string> Keys(const WatchCursor::Step& step) {
  std::vector<std::string> keys;
  for (const WatchEvent& event : step.events) {
    keys.push_back(event.key + "@" + std::to_string(event.revision));
  }
  return keys;
}

TEST(WatchCursor, AsksForWhatFollowsTheRevisionReached) {
  WatchCursor cursor("/registry/", 7);
  const etcd::WatchCreate create = cursor.Resume(/*whole_keyspace=*/false);
  EXPECT_EQ(create.key, "/registry/");
  EXPECT_EQ(create.range_end, "/registry0");
  EXPECT_EQ(create.start_revision, 8);
  EXPECT_TRUE(create.prev_kv && create.fragment && create.progress_notify);
  const etcd::WatchCreate whole = cursor.Resume(/*whole_keyspace=*/true);
  EXPECT_EQ(whole.key, std::string(1, '\0'));
  EXPECT_EQ(whole.range_end, std::string(1, '\0'));
  cursor.On(Events({Put("/registry/a", 9)}));
  EXPECT_EQ(cursor.Resume(false).start_revision, 10);
}

TEST(WatchCursor, TheHeaderOfAResponseWithEventsMayBeAheadOfThem) {
  WatchCursor cursor("k", 1);
  const WatchCursor::Step step = cursor.On(Events({Put("k1", 2), Put("k2", 4)}, 500));
  EXPECT_THAT(Keys(step), ElementsAre("k1@2", "k2@4"));
  EXPECT_EQ(step.up_to, 4);
  EXPECT_EQ(cursor.reached(), 4);
}

TEST(WatchCursor, ProgressRaisesTheMarkWithoutEvents) {
  WatchCursor cursor("k", 1);
  etcd::WatchResponse created = Progress(50);
  created.created = true;
  EXPECT_TRUE(cursor.On(created).created);
  EXPECT_EQ(cursor.reached(), 1) << "events between the start and the header may follow";
  EXPECT_EQ(cursor.On(Progress(60)).up_to, 60);
  EXPECT_EQ(cursor.On(Progress(60)).up_to, 0);
  EXPECT_EQ(cursor.On(Progress(55)).up_to, 0);
  EXPECT_EQ(cursor.reached(), 60);
}

TEST(WatchCursor, WhatArrivesTwiceIsDropped) {
  WatchCursor cursor("k", 5);
  EXPECT_THAT(Keys(cursor.On(Events({Put("k1", 4), Put("k2", 5), Put("k3", 6)}))),
              ElementsAre("k3@6"));
  const WatchCursor::Step again = cursor.On(Events({Put("k3", 6)}));
  EXPECT_THAT(again.events, IsEmpty());
  EXPECT_EQ(again.up_to, 0);
}

TEST(WatchCursor, ARevisionThatSpansFragmentsIsDeliveredWhole) {
  WatchCursor cursor("k", 1);
  const WatchCursor::Step first = cursor.On(Events({Put("k1", 2), Put("k1", 3)}, 9, true));
  EXPECT_THAT(Keys(first), ElementsAre("k1@2"));
  EXPECT_EQ(first.up_to, 2);
  const WatchCursor::Step second = cursor.On(Events({Put("k2", 3), Put("k3", 3)}, 9, true));
  EXPECT_THAT(second.events, IsEmpty());
  EXPECT_EQ(second.up_to, 0);
  const WatchCursor::Step last = cursor.On(Events({Put("k4", 3), Put("k1", 4)}, 9));
  EXPECT_THAT(Keys(last), ElementsAre("k1@3", "k2@3", "k3@3", "k4@3", "k1@4"));
  EXPECT_EQ(last.up_to, 4);
}

TEST(WatchCursor, HalfARevisionIsForgottenWithItsStream) {
  WatchCursor cursor("k", 1);
  cursor.On(Events({Put("k1", 2)}, 9, true));
  EXPECT_EQ(cursor.Resume(false).start_revision, 2);
  etcd::WatchResponse created = Progress(9);
  created.created = true;
  EXPECT_EQ(cursor.On(created).up_to, 0) << "the revision is still to come";
  EXPECT_THAT(Keys(cursor.On(Events({Put("k1", 2), Put("k2", 2)}))), ElementsAre("k1@2", "k2@2"));
}

TEST(WatchCursor, OnTheWholeKeyspaceOthersOnlyRaiseTheMark) {
  WatchCursor cursor("k/", 1);
  cursor.Resume(true);
  const WatchCursor::Step step = cursor.On(Events({Put("other", 2), Put("k/a", 3), Put("k", 4)}));
  EXPECT_THAT(Keys(step), ElementsAre("k/a@3"));
  EXPECT_EQ(step.up_to, 4);
}

TEST(WatchCursor, ADeletionKnowsWhatItReplaced) {
  WatchCursor cursor("k", 1);
  etcd::Event event;
  event.is_delete = true;
  event.kv = {.key = "k", .value = {}, .mod_revision = 9};
  event.prev_kv = etcd::KeyValue{
      .key = "k", .value = "old", .create_revision = 3, .mod_revision = 5, .version = 2};
  const WatchCursor::Step step = cursor.On(Events({event}));
  ASSERT_EQ(step.events.size(), 1u);
  EXPECT_TRUE(step.events[0].is_delete());
  EXPECT_EQ(*step.events[0].previous_value, "old");
  EXPECT_EQ(step.events[0].create_revision, 3);
  EXPECT_EQ(step.events[0].revision, 9);
}

TEST(WatchCursor, CompactionEndsAWatchAndAnythingElseOnlyItsStream) {
  WatchCursor cursor("k", 4);
  etcd::WatchResponse canceled = Progress(20);
  canceled.canceled = true;
  canceled.compact_revision = 9;
  const WatchCursor::Step closed = cursor.On(canceled);
  ASSERT_TRUE(closed.closed.has_value());
  EXPECT_EQ(closed.closed->code, ErrorCode::kExpired);
  canceled.compact_revision = 0;
  canceled.cancel_reason = "etcdserver: no leader";
  const WatchCursor::Step lost = cursor.On(canceled);
  EXPECT_FALSE(lost.closed.has_value());
  EXPECT_EQ(lost.lost->message, "etcdserver: no leader");
  EXPECT_EQ(cursor.reached(), 4);
}

// However the responses are cut and the streams broken, every event arrives once and in order.
TEST(WatchCursor, RandomCutsAndResumptionsLoseAndRepeatNothing) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SeededRandom random(seed);
    std::vector<etcd::Event> history;
    for (std::int64_t revision = 2; revision < 60; ++revision) {
      for (std::uint64_t i = random.Below(4); i > 0; --i) {
        history.push_back(Put("k" + std::to_string(random.Below(100)), revision));
      }
    }
    std::vector<std::string> expected;
    for (const etcd::Event& event : history) {
      expected.push_back(event.kv.key + "@" + std::to_string(event.kv.mod_revision));
    }
    WatchCursor cursor("k", 1);
    std::vector<std::string> seen;
    while (cursor.reached() < history.back().kv.mod_revision) {
      const std::int64_t start = cursor.Resume(false).start_revision;
      std::size_t at = 0;
      while (at < history.size() && history[at].kv.mod_revision < start) ++at;
      while (at < history.size() && random.Below(8) != 0) {
        std::size_t end = std::min(history.size(), at + 1 + random.Below(5));
        const bool inside = end < history.size() &&
                            history[end].kv.mod_revision == history[end - 1].kv.mod_revision;
        const WatchCursor::Step step =
            cursor.On(Events({history.begin() + static_cast<std::ptrdiff_t>(at),
                              history.begin() + static_cast<std::ptrdiff_t>(end)},
                             1'000, inside || (end < history.size() && random.Below(2) == 0)));
        for (const std::string& key : Keys(step)) seen.push_back(key);
        at = end;
      }
    }
    ASSERT_EQ(seen, expected);
  }
}

}  // namespace
}  // namespace drakkar::storage
