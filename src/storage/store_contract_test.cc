#include "storage/store_contract.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "base/env/random.h"

namespace drakkar::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_P(StoreContract, AnEmptyStoreIsAtRevisionOne) {
  EXPECT_EQ(ReadRevision().value(), 1);
  Result<RangeResult> all = Range({});
  ASSERT_TRUE(all.ok());
  EXPECT_THAT(all->entries, IsEmpty());
  EXPECT_EQ(all->revision, 1);
  EXPECT_FALSE(all->more);
}

TEST_P(StoreContract, EverySuccessfulTransactionGetsTheNextRevision) {
  EXPECT_EQ(Write({Put("a", "1")}), 2);
  EXPECT_EQ(Write({Put("a", "2"), Put("b", "1")}), 3);
  EXPECT_EQ(Write({Delete("a")}), 4);
  harness_->Do([&] {
    EXPECT_EQ(harness_->store().applied_revision(), 4);
    EXPECT_EQ(harness_->store().durable_revision(), 4);
  });
}

TEST_P(StoreContract, CreationNeedsTheKeyToBeAbsent) {
  Result<TransactionResult> created = Commit({{{"a", 0}}, {Put("a", "1")}});
  ASSERT_TRUE(created.ok() && created->succeeded);
  Result<TransactionResult> again = Commit({{{"a", 0}}, {Put("a", "2")}});
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(again->succeeded);
  EXPECT_EQ(again->revision, created->revision);
  ASSERT_EQ(again->failed.size(), 1u);
  EXPECT_EQ(again->failed[0].first, "a");
  ASSERT_TRUE(again->failed[0].second.has_value());
  EXPECT_EQ(*again->failed[0].second->value, "1");
  EXPECT_EQ(again->failed[0].second->mod_revision, created->revision);
  EXPECT_THAT(List({}), ElementsAre("a=1"));
}

TEST_P(StoreContract, AnUpdateNeedsTheRevisionItWasBasedOn) {
  const Revision first = Write({Put("a", "1")});
  Result<TransactionResult> updated = Commit({{{"a", first}}, {Put("a", "2")}});
  ASSERT_TRUE(updated.ok() && updated->succeeded);
  Result<TransactionResult> stale = Commit({{{"a", first}}, {Put("a", "3")}});
  ASSERT_TRUE(stale.ok());
  EXPECT_FALSE(stale->succeeded);
  EXPECT_THAT(List({}), ElementsAre("a=2"));
}

TEST_P(StoreContract, OnlyTheConditionsThatFailedAreReportedInTheirOrder) {
  const Revision a = Write({Put("a", "1")});
  Write({Put("c", "1")});
  Result<TransactionResult> result =
      Commit({{{"z", 7}, {"a", a}, {"c", 0}}, {Put("a", "2"), Put("d", "1")}});
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->succeeded);
  ASSERT_EQ(result->failed.size(), 2u);
  EXPECT_EQ(result->failed[0].first, "z");
  EXPECT_FALSE(result->failed[0].second.has_value());
  EXPECT_EQ(result->failed[1].first, "c");
  EXPECT_TRUE(result->failed[1].second.has_value());
  EXPECT_THAT(List({}), ElementsAre("a=1", "c=1"));
}

TEST_P(StoreContract, ARecreatedKeyStartsANewLife) {
  const Revision created = Write({Put("a", "1")});
  const Revision updated = Write({Put("a", "2")});
  Result<RangeResult> now = Range({.prefix = "a"});
  ASSERT_TRUE(now.ok());
  EXPECT_EQ(now->entries[0].create_revision, created);
  EXPECT_EQ(now->entries[0].mod_revision, updated);
  Write({Delete("a")});
  EXPECT_THAT(List({}), IsEmpty());
  Result<TransactionResult> again = Commit({{{"a", 0}}, {Put("a", "3")}});
  ASSERT_TRUE(again.ok() && again->succeeded);
  now = Range({.prefix = "a"});
  EXPECT_EQ(now->entries[0].create_revision, again->revision);
}

TEST_P(StoreContract, DeletingAnAbsentKeyChangesNothing) {
  Write({Put("a", "1")});
  const Revision before = ReadRevision().value();
  Result<TransactionResult> result = Commit({{}, {Delete("b")}});
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->succeeded);
  EXPECT_EQ(result->revision, before);
  EXPECT_EQ(ReadRevision().value(), before);
}

TEST_P(StoreContract, ATransactionNamesAKeyOnceAndNoEmptyKey) {
  Result<TransactionResult> twice = Commit({{}, {Put("a", "1"), Put("a", "2")}});
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(twice.error().code, ErrorCode::kInvalidArgument);
  Result<TransactionResult> empty = Commit({{}, {Put("", "1")}});
  ASSERT_FALSE(empty.ok());
  EXPECT_EQ(ReadRevision().value(), 1);
}

TEST_P(StoreContract, AnEmptyValueIsAValue) {
  Write({Put("a", "")});
  EXPECT_THAT(List({}), ElementsAre("a="));
  if (!GetParam().survives_reopen) return;
  harness_->Reopen();
  EXPECT_THAT(List({}), ElementsAre("a="));
}

TEST_P(StoreContract, RangesAreSortedAndKeepToTheirPrefix) {
  Write({Put("b/2", "x"), Put("b/10", "x"), Put("a/1", "x"), Put("b", "x"), Put("c", "x")});
  EXPECT_THAT(List({.prefix = "b/"}), ElementsAre("b/10=x", "b/2=x"));
  EXPECT_THAT(List({}), ElementsAre("a/1=x", "b=x", "b/10=x", "b/2=x", "c=x"));
  EXPECT_THAT(List({.prefix = "d"}), IsEmpty());
}

TEST_P(StoreContract, APaginatedListIsOneConsistentState) {
  for (int i = 0; i < 7; ++i) Write({Put("k/" + std::to_string(i), "old")});
  Result<RangeResult> first = Range({.prefix = "k/", .limit = 3});
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->entries.size(), 3u);
  EXPECT_TRUE(first->more);
  EXPECT_EQ(first->remaining, 4u);
  Write({Put("k/5", "new"), Delete("k/3"), Put("k/35", "new")});
  Write({Put("k/5", "newer"), Put("k/0", "newer")});
  const RangeOptions rest = {
      .prefix = "k/", .start_after = first->entries.back().key, .revision = first->revision};
  EXPECT_THAT(List(rest), ElementsAre("k/3=old", "k/4=old", "k/5=old", "k/6=old"));
  RangeOptions next = rest;
  next.limit = 4;
  Result<RangeResult> exact = Range(next);
  ASSERT_TRUE(exact.ok());
  EXPECT_FALSE(exact->more);
  EXPECT_EQ(exact->remaining, 0u);
  EXPECT_EQ(exact->revision, first->revision);
  EXPECT_THAT(List({.prefix = "k/", .start_after = "k/3"}),
              ElementsAre("k/35=new", "k/4=old", "k/5=newer", "k/6=old"));
}

TEST_P(StoreContract, ARangeInTheFutureIsRefused) {
  Result<RangeResult> result = Range({.revision = 100});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
}

TEST_P(StoreContract, AWatchFromNowSeesOnlyWhatComes) {
  Write({Put("k/a", "1")});
  auto watch = StartWatch({.prefix = "k/"});
  const Revision second = Write({Put("k/a", "2"), Put("other", "x")});
  const Revision third = Write({Delete("k/a")});
  EXPECT_THAT(EventsUpTo(watch, third), ElementsAre("k/a=2@3", "k/a-@4"));
  harness_->Do([&] {
    EXPECT_EQ(*watch->events[0].previous_value, "1");
    EXPECT_EQ(watch->events[0].create_revision, second - 1);
    EXPECT_EQ(*watch->events[1].previous_value, "2");
  });
  EndWatch(watch);
}

TEST_P(StoreContract, AWatchFromARevisionSeesWhatCameAfterIt) {
  Write({Put("a", "1")});
  const Revision second = Write({Put("a", "2")});
  Write({Put("b", "1")});
  const Revision last = Write({Delete("a")});
  auto watch = StartWatch({.after = second});
  EXPECT_THAT(EventsUpTo(watch, last), ElementsAre("b=1@4", "a-@5"));
  harness_->Do([&] {
    EXPECT_EQ(watch->events[0].previous_value, nullptr);
    EXPECT_EQ(watch->events[0].create_revision, 4);
  });
  const Revision more = Write({Put("c", "1")});
  EXPECT_THAT(EventsUpTo(watch, more), ElementsAre("b=1@4", "a-@5", "c=1@6"));
  EndWatch(watch);
}

TEST_P(StoreContract, AWatchHearsOfRevisionsThatDoNotConcernIt) {
  auto watch = StartWatch({.prefix = "k/"});
  const Revision other = Write({Put("other", "1")});
  EXPECT_THAT(EventsUpTo(watch, other), IsEmpty());
  EXPECT_EQ(watch->reached(), other);
  EndWatch(watch);
}

TEST_P(StoreContract, AWatchFromTheFutureWaitsForIt) {
  auto watch = StartWatch({.after = 3});
  Write({Put("a", "1")});
  Write({Put("a", "2")});
  const Revision last = Write({Put("a", "3")});
  EXPECT_THAT(EventsUpTo(watch, last), ElementsAre("a=3@4"));
  EndWatch(watch);
}

TEST_P(StoreContract, AnEndedWatchHearsNothing) {
  auto watch = StartWatch({});
  auto other = StartWatch({});
  harness_->Do([&] {
    harness_->store().Commit({{}, {Put("a", "1")}}, nullptr, nullptr);
    watch->handle.reset();
  });
  EventsUpTo(other, 2);
  EXPECT_THAT(watch->events, IsEmpty());
  EndWatch(other);
}

TEST_P(StoreContract, AWatchMayEndItselfInItsCallback) {
  struct State {
    std::unique_ptr<Watch> watch;
    int calls = 0;
  };
  auto state = std::make_shared<State>();
  harness_->Do([&] {
    state->watch = harness_->store().StartWatch(
        {}, {.on_events =
                 [raw = state.get()](std::vector<WatchEvent>, Revision) {
                   ++raw->calls;
                   raw->watch.reset();
                 },
             .on_closed = nullptr});
  });
  Write({Put("a", "1")});
  auto other = StartWatch({});
  EventsUpTo(other, Write({Put("a", "2")}));
  harness_->Do([&] { EXPECT_EQ(state->calls, 1); });
  EndWatch(other);
}

TEST_P(StoreContract, ConcurrentCommitsReachEveryWatcherInOrderOnce) {
  auto applied = StartWatch({.mark = Mark::kApplied});
  auto durable = StartWatch({.mark = Mark::kDurable});
  auto order = std::make_shared<std::vector<Revision>>();
  constexpr int kCount = 200;
  harness_->Do([&] {
    for (int i = 0; i < kCount; ++i) {
      harness_->store().Commit({{}, {Put("k/" + std::to_string(i % 7), std::to_string(i))}},
                               nullptr, [order](Result<Revision> revision) {
                                 ASSERT_TRUE(revision.ok());
                                 order->push_back(*revision);
                               });
    }
  });
  harness_->WaitUntil([&] { return order->size() == kCount; });
  auto first = EventsUpTo(applied, 1 + kCount);
  auto second = EventsUpTo(durable, 1 + kCount);
  ASSERT_EQ(first.size(), static_cast<std::size_t>(kCount));
  EXPECT_EQ(first, second);
  std::set<std::string> values;
  for (int i = 0; i < kCount; ++i) {
    EXPECT_EQ(applied->events[i].revision, i + 2);
    values.insert(*applied->events[i].value);
    if (GetParam().is_remote) continue;  // transactions in flight have no order there
    EXPECT_EQ(first[i],
              "k/" + std::to_string(i % 7) + "=" + std::to_string(i) + "@" + std::to_string(i + 2));
    EXPECT_EQ((*order)[i], i + 2);
  }
  EXPECT_EQ(values.size(), static_cast<std::size_t>(kCount));
  EndWatch(applied);
  EndWatch(durable);
}

TEST_P(StoreContract, ADurableWatcherNeverRunsAheadOfTheDurableMark) {
  auto ahead = std::make_shared<int>(0);
  auto seen = std::make_shared<Revision>(0);
  std::unique_ptr<Watch> watch;
  harness_->Do([&] {
    Store* store = &harness_->store();
    const auto on_events = [store, ahead, seen](std::vector<WatchEvent>, Revision up_to) {
      if (up_to > store->durable_revision()) ++*ahead;
      *seen = up_to;
    };
    watch = store->StartWatch({}, {.on_events = on_events, .on_closed = nullptr});
    for (int i = 0; i < 50; ++i) {
      store->Commit({{}, {Put("a", std::to_string(i))}}, nullptr, nullptr);
    }
  });
  harness_->WaitUntil([&] { return *seen == 51; });
  harness_->Do([&] {
    EXPECT_EQ(*ahead, 0);
    watch.reset();
  });
}

TEST_P(StoreContract, ManyEventsArriveCompleteForALateWatcher) {
  constexpr int kCount = 3'000;
  auto done = std::make_shared<int>(0);
  harness_->Do([&] {
    for (int i = 0; i < kCount; ++i) {
      harness_->store().Commit({{}, {Put("a", std::to_string(i)), Put("b", std::to_string(i))}},
                               nullptr, [done](Result<Revision>) { ++*done; });
    }
  });
  harness_->WaitUntil([&] { return *done == kCount; });
  auto watch = StartWatch({.prefix = "a", .after = 1});
  EXPECT_EQ(EventsUpTo(watch, 1 + kCount).size(), static_cast<std::size_t>(kCount));
  harness_->Do([&] {
    for (int i = 0; i < kCount; ++i) {
      ASSERT_NE(watch->events[i].value, nullptr);
      if (!GetParam().is_remote) {
        EXPECT_EQ(*watch->events[i].value, std::to_string(i));
      }
      if (i == 0) continue;
      ASSERT_NE(watch->events[i].previous_value, nullptr);
      EXPECT_EQ(*watch->events[i].previous_value, *watch->events[i - 1].value);
    }
  });
  EndWatch(watch);
}

TEST_P(StoreContract, CompactionForgetsWhatWasReplaced) {
  Write({Put("a", "1"), Put("b", "1")});
  const Revision second = Write({Put("a", "2")});
  const Revision third = Write({Delete("b")});
  Write({Put("a", "3")});
  ASSERT_TRUE(Compact(third).ok());
  harness_->Do([&] { EXPECT_EQ(harness_->store().compacted_revision(), third); });
  Result<RangeResult> before = Range({.revision = second});
  ASSERT_FALSE(before.ok());
  EXPECT_EQ(before.error().code, ErrorCode::kExpired);
  EXPECT_THAT(List({.revision = third}), ElementsAre("a=2"));
  EXPECT_THAT(List({}), ElementsAre("a=3"));
  EXPECT_TRUE(Compact(second).ok()) << "compacting again changes nothing";
  EXPECT_FALSE(Compact(100).ok());
}

TEST_P(StoreContract, AWatchFromACompactedRevisionIsExpired) {
  Write({Put("a", "1")});
  Write({Put("a", "2")});
  const Revision third = Write({Put("a", "3")});
  const Revision last = Write({Put("a", "4")});
  ASSERT_TRUE(Compact(third).ok());
  auto old = StartWatch({.after = third - 1});
  harness_->WaitUntil([&] { return old->closed.has_value(); });
  EXPECT_EQ(old->closed->code, ErrorCode::kExpired);
  EXPECT_THAT(old->events, IsEmpty());
  auto edge = StartWatch({.after = third});
  EXPECT_THAT(EventsUpTo(edge, last), ElementsAre("a=4@5"));
  EndWatch(old);
  EndWatch(edge);
}

TEST_P(StoreContract, RevisionsDoNotGoBackWhenTheLastDeletionIsCompacted) {
  if (!GetParam().survives_reopen) GTEST_SKIP() << "needs an engine that can be reopened";
  Write({Put("a", "1")});
  const Revision last = Write({Delete("a")});
  ASSERT_TRUE(Compact(last).ok());
  harness_->Reopen();
  EXPECT_EQ(ReadRevision().value(), last);
  EXPECT_THAT(List({}), IsEmpty());
  EXPECT_EQ(Write({Put("a", "2")}), last + 1);
}

TEST_P(StoreContract, EverythingIsThereAfterReopening) {
  if (!GetParam().survives_reopen) GTEST_SKIP() << "needs an engine that can be reopened";
  Write({Put("a", "1"), Put("b", "1")});
  const Revision second = Write({Put("a", "2")});
  const Revision third = Write({Delete("b"), Put("c", std::string("nul\0byte", 8))});
  harness_->Reopen();
  EXPECT_EQ(ReadRevision().value(), third);
  EXPECT_THAT(List({}), ElementsAre("a=2", "c=" + std::string("nul\0byte", 8)));
  EXPECT_THAT(List({.revision = second}), ElementsAre("a=2", "b=1"));
  Result<RangeResult> a = Range({.prefix = "a"});
  EXPECT_EQ(a->entries[0].create_revision, 2);
  EXPECT_EQ(a->entries[0].mod_revision, second);
  auto watch = StartWatch({.prefix = "b", .after = 2});
  EXPECT_THAT(EventsUpTo(watch, third), ElementsAre("b-@4"));
  harness_->Do([&] { EXPECT_EQ(*watch->events[0].previous_value, "1"); });
  EndWatch(watch);
  EXPECT_EQ(Write({Put("d", "1")}), third + 1);
}

TEST_P(StoreContract, StatisticsCountTransactionsAndBytes) {
  StoreStatistics before;
  harness_->Do([&] { before = harness_->store().statistics(); });
  Write({Put("a", std::string(1000, 'x'))});
  EXPECT_FALSE(Commit({{{"a", 0}}, {Put("a", "y")}})->succeeded);
  harness_->Do([&] {
    const StoreStatistics after = harness_->store().statistics();
    EXPECT_EQ(after.transactions, before.transactions + 2);
    EXPECT_GE(after.commits, before.commits + 1);
    EXPECT_GE(after.syncs, before.syncs + 1);
    EXPECT_GE(after.bytes_written, before.bytes_written + 1000);
    if (!GetParam().is_remote) {
      EXPECT_GE(after.history_bytes, before.history_bytes + 1000);
    }
  });
}

TEST_P(StoreContract, StopMakesEverythingDurableAndRefusesTheRest) {
  auto watch = StartWatch({});
  struct State {
    int durable = 0;
    bool stopped = false;
    bool stopped_again = false;
    std::optional<ErrorCode> refused;
  };
  auto state = std::make_shared<State>();
  harness_->Do([&] {
    Store& store = harness_->store();
    for (int i = 0; i < 20; ++i) {
      store.Commit({{}, {Put("k/" + std::to_string(i), "x")}}, nullptr,
                   [state](Result<Revision> result) {
                     EXPECT_FALSE(state->stopped);
                     if (result.ok()) ++state->durable;
                   });
    }
    store.Stop([state] { state->stopped = true; });
    store.Stop([state] { state->stopped_again = true; });
    store.Commit(
        {{}, {Put("late", "x")}},
        [state](Result<TransactionResult> result) {
          if (!result.ok()) state->refused = result.error().code;
        },
        nullptr);
  });
  harness_->WaitUntil([&] { return state->stopped && state->stopped_again; });
  harness_->Do([&] {
    EXPECT_EQ(state->durable, 20);
    EXPECT_EQ(state->refused, ErrorCode::kUnavailable);
    ASSERT_TRUE(watch->closed.has_value());
    EXPECT_EQ(watch->closed->code, ErrorCode::kUnavailable);
    EXPECT_EQ(watch->events.size(), 20u);
  });
  EndWatch(watch);
  if (!GetParam().survives_reopen) return;
  harness_->Reopen();
  EXPECT_EQ(List({}).size(), 20u);
}

TEST_P(StoreContract, AnEncodedValueGetsTheRevisionItIsStoredAtIfTheEngineKnowsIt) {
  auto watch = StartWatch({.mark = Mark::kApplied});
  auto object = std::make_shared<const std::string>("what was encoded");
  std::vector<Revision> asked;
  const auto encode = [&](Revision revision) -> EncodedValue {
    asked.push_back(revision);
    return {Value("at " + std::to_string(revision)), object};
  };
  Result<TransactionResult> created =
      Commit({{{"a", 0}}, {Operation{.key = "a", .value = nullptr, .encode = encode}}});
  ASSERT_TRUE(created.ok() && created->succeeded);
  const Revision numbered = GetParam().is_remote ? 0 : created->revision;
  EXPECT_THAT(asked, ElementsAre(numbered));
  EXPECT_THAT(List({}), ElementsAre("a=at " + std::to_string(numbered)));
  EXPECT_EQ(EventsUpTo(watch, created->revision).size(), 1u);
  harness_->Do([&] {
    EXPECT_EQ(watch->events[0].object, GetParam().is_remote ? nullptr : object)
        << "in the same process the watcher gets the very object";
  });
  EndWatch(watch);
}

TEST_P(StoreContract, AWatchReachesWhateverTheStoreSaysItIsAt) {
  auto watch = StartWatch({.prefix = "k/"});
  auto applied = StartWatch({.prefix = "k/", .mark = Mark::kApplied});
  for (int i = 0; i < 5; ++i) Write({Put("other", std::to_string(i))});
  Result<Revision> newest = ReadRevision();
  ASSERT_TRUE(newest.ok());
  EXPECT_EQ(*newest, 6);
  harness_->WaitUntil([&] { return watch->reached() >= *newest; });
  harness_->WaitUntil([&] { return applied->reached() >= *newest; });
  EXPECT_THAT(watch->events, IsEmpty());
  EXPECT_THAT(applied->events, IsEmpty());
  EndWatch(watch);
  EndWatch(applied);
}

TEST_P(StoreContract, TheRevisionReadIsNoOlderThanWhatAnotherWriterWasTold) {
  for (int i = 0; i < 20; ++i) {
    auto told = std::make_shared<Revision>(0);
    harness_->Do([&] {
      harness_->other().Commit(
          {{}, {Put("k", std::to_string(i))}}, nullptr,
          [told](Result<Revision> revision) { *told = revision.ok() ? *revision : -1; });
    });
    harness_->WaitUntil([&] { return *told != 0; });
    Result<Revision> newest = ReadRevision();
    ASSERT_TRUE(newest.ok());
    EXPECT_GE(*newest, *told);
  }
}

TEST_P(StoreContract, TheDurableMarkFollowsWhatAWatcherWasTold) {
  auto watch = StartWatch({.mark = Mark::kApplied});  // the record checks that it never runs ahead
  harness_->Do([&] {
    for (int i = 0; i < 50; ++i) {
      harness_->store().Commit({{}, {Put("a", std::to_string(i))}}, nullptr, nullptr);
    }
  });
  harness_->WaitUntil([&] { return watch->durable == 51; });
  EndWatch(watch);
}

TEST_P(StoreContract, AWatchThatCatchesUpHearsThatWhatItSeesIsDurable) {
  for (int i = 0; i < 20; ++i) Write({Put("a", std::to_string(i))});
  const Revision last = Write({Put("b", "x")});
  auto watch = StartWatch({.after = 1, .mark = Mark::kApplied});
  EXPECT_EQ(EventsUpTo(watch, last).size(), 21u);
  // Nothing is written any more that would be a reason to tell it.
  harness_->WaitUntil([&] { return watch->durable == last; });
  EndWatch(watch);
}

TEST_P(StoreContract, WhatAWatcherCommitsIsToldToAllInTheSameOrder) {
  // The first watcher answers every event of "a" with one of "b", inside its callback.
  auto answered = std::make_shared<std::vector<std::string>>();
  auto second = std::make_shared<std::shared_ptr<WatchRecord>>();
  std::unique_ptr<Watch> answering;
  harness_->Do([&] {
    Store& store = harness_->store();
    answering = store.StartWatch(
        {.mark = Mark::kApplied},
        {.on_events = [&store, answered, second](const std::vector<WatchEvent>& events,
                                                 Revision up_to) {
          for (const WatchEvent& event : events) {
            if (event.key != "a") continue;
            store.Commit(
                {{}, {Put("b", *event.value)}},
                [answered, second, up_to](Result<TransactionResult> result) {
                  ASSERT_TRUE(result.ok());
                  EXPECT_GT(result->revision, up_to);
                  if (!GetParam().is_remote) {
                    EXPECT_GE((*second)->reached(), result->revision) << "told after the writer";
                  }
                  answered->push_back(std::to_string(result->revision));
                },
                nullptr);
          }
        }});
  });
  *second = StartWatch({.mark = Mark::kApplied});
  Write({Put("a", "1")});
  Write({Put("a", "2")});
  harness_->WaitUntil([&] { return answered->size() == 2; });
  EXPECT_EQ(EventsUpTo(*second, 5).size(), 4u);
  harness_->Do([&] { answering.reset(); });
  EndWatch(*second);
}

TEST_P(StoreContract, AnUpToDateWatcherDoesNotNoticeCompaction) {
  auto watch = StartWatch({.prefix = "a"});
  auto applied = StartWatch({.prefix = "a", .mark = Mark::kApplied});
  std::vector<std::string> expected;
  for (int i = 0; i < 10; ++i) {
    const Revision revision = Write({Put("a", std::to_string(i))});
    expected.push_back("a=" + std::to_string(i) + "@" + std::to_string(revision));
    EventsUpTo(watch, revision);
    EventsUpTo(applied, revision);
    ASSERT_TRUE(Compact(revision).ok());
  }
  const Revision last = Write({Delete("a")});
  expected.push_back("a-@" + std::to_string(last));
  EXPECT_EQ(EventsUpTo(watch, last), expected);
  EXPECT_EQ(EventsUpTo(applied, last), expected);
  EndWatch(watch);
  EndWatch(applied);
}

TEST_P(StoreContract, AWatcherOvertakenByCompactionSeesEverythingOrIsExpired) {
  constexpr int kCount = 2'000;
  auto done = std::make_shared<int>(0);
  harness_->Do([&] {
    for (int i = 0; i < kCount; ++i) {
      harness_->store().Commit({{}, {Put("a", std::to_string(i))}}, nullptr,
                               [done](Result<Revision>) { ++*done; });
    }
  });
  harness_->WaitUntil([&] { return *done == kCount; });
  auto watch = StartWatch({.after = 1});
  ASSERT_TRUE(Compact(kCount).ok());
  harness_->WaitUntil([&] { return watch->closed.has_value() || watch->reached() > kCount; });
  harness_->Do([&] {
    for (std::size_t i = 0; i < watch->events.size(); ++i) {
      EXPECT_EQ(watch->events[i].revision, static_cast<Revision>(i) + 2) << "a gap";
    }
    if (watch->closed.has_value()) {
      EXPECT_EQ(watch->closed->code, ErrorCode::kExpired);
    } else {
      EXPECT_EQ(watch->events.size(), static_cast<std::size_t>(kCount));
    }
  });
  EndWatch(watch);
}

TEST_P(StoreContract, TwoWritersNeverOverwriteEachOther) {
  // Without a revision the other store may write before this one has begun to watch.
  auto watch = StartWatch({.prefix = "n", .after = 1, .mark = Mark::kApplied});
  constexpr int kEach = 40;
  auto left = std::make_shared<int>(kEach);
  auto other_left = std::make_shared<int>(kEach);
  harness_->Do([&] {
    Count(harness_->store(), "n", left);
    Count(harness_->other(), "n", other_left);
  });
  harness_->WaitUntil([&] { return *left == 0 && *other_left == 0; });
  EXPECT_THAT(List({}), ElementsAre("n=" + std::to_string(2 * kEach)));
  std::vector<std::string> events = EventsUpTo(watch, *ReadRevision());
  ASSERT_EQ(events.size(), 2u * kEach);
  for (int i = 0; i < 2 * kEach; ++i) {
    EXPECT_EQ(events[i], "n=" + std::to_string(i + 1) + "@" + std::to_string(i + 2));
  }
  EndWatch(watch);
}

TEST_P(StoreContract, AWatchGoesOnWhereItWasWhenTheConnectionComesBack) {
  if (!GetParam().is_remote) GTEST_SKIP() << "has no connection to lose";
  auto watch = StartWatch({.prefix = "k", .after = 1});
  Write({Put("k", "1")});
  harness_->Do([&] { harness_->Disconnect(); });
  for (int i = 2; i <= 4; ++i) {
    auto told = std::make_shared<int>(0);
    harness_->Do([&] {
      harness_->other().Commit({{}, {Put("k", std::to_string(i))}}, nullptr,
                               [told](Result<Revision>) { ++*told; });
    });
    harness_->WaitUntil([&] { return *told == 1; });
  }
  harness_->Do([&] { harness_->Reconnect(); });
  EXPECT_THAT(EventsUpTo(watch, 5), ElementsAre("k=1@2", "k=2@3", "k=3@4", "k=4@5"));
  EndWatch(watch);
}

TEST_P(StoreContract, AWatchIsExpiredWhenWhatItMissedWasCompacted) {
  if (!GetParam().is_remote) GTEST_SKIP() << "has no connection to lose";
  auto watch = StartWatch({.prefix = "k"});
  EventsUpTo(watch, Write({Put("k", "1")}));
  harness_->Do([&] { harness_->Disconnect(); });
  auto compactions = std::make_shared<int>(0);
  harness_->Do([&] {
    Store& other = harness_->other();
    other.Commit({{}, {Put("k", "2")}}, nullptr, nullptr);
    other.Commit({{}, {Put("k", "3")}}, nullptr, [&other, compactions](Result<Revision> revision) {
      other.Compact(*revision,
                    [compactions](Result<void> result) { *compactions += result.ok() ? 1 : 0; });
    });
  });
  harness_->WaitUntil([&] { return *compactions == 1; });
  harness_->Do([&] { harness_->Reconnect(); });
  harness_->WaitUntil([&] { return watch->closed.has_value(); });
  EXPECT_EQ(watch->closed->code, ErrorCode::kExpired);
  EXPECT_EQ(watch->events.size(), 1u);
  EndWatch(watch);
}

TEST_P(StoreContract, ARequestUnderWayWhenTheConnectionIsLostFailsAndMayHaveHappened) {
  if (!GetParam().is_remote) GTEST_SKIP() << "has no connection to lose";
  struct State {
    std::vector<ErrorCode> errors;
    int answers = 0;
  };
  auto state = std::make_shared<State>();
  const auto note = [state](const auto& result) {
    ++state->answers;
    if (!result.ok()) state->errors.push_back(result.error().code);
  };
  harness_->Do([&] {
    Store& store = harness_->store();
    store.Commit({{{"a", 0}}, {Put("a", "1")}}, note, note);
    store.Range({}, note);
    store.ReadRevision(note);
    store.Compact(1, note);
    harness_->Disconnect();
    store.Range({}, note);
  });
  harness_->WaitUntil([&] { return state->answers == 6; });
  harness_->Do([&] {
    EXPECT_EQ(state->errors, std::vector<ErrorCode>(6, ErrorCode::kUnavailable));
    harness_->Reconnect();
  });
  // The condition makes a retry safe: the write happens only once.
  Result<TransactionResult> again = Commit({{{"a", 0}}, {Put("a", "1")}});
  ASSERT_TRUE(again.ok());
  EXPECT_THAT(List({}), ElementsAre("a=1"));
  EXPECT_EQ(*ReadRevision(), 2);
}

// Compares the store with a model that keeps every past state.
TEST_P(StoreContract, RandomOperationsAgreeWithANaiveModel) {
  struct Item {
    std::string value;
    Revision created;
    Revision modified;
    bool operator==(const Item&) const = default;
  };
  using State = std::map<std::string, Item>;
  const std::uint64_t seed = 20'261'115;
  SCOPED_TRACE("seed " + std::to_string(seed));
  SeededRandom random(seed);
  std::vector<State> states(2);  // by revision
  std::vector<std::string> expected_events;
  Revision compacted = 0;
  auto watch = StartWatch({.prefix = "k"});
  Revision watched_after = 1;
  const auto key = [&] { return "k" + std::to_string(random.Below(12)); };

  for (int step = 0; step < 600; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    const std::uint64_t kind = random.Below(100);
    const Revision newest = static_cast<Revision>(states.size()) - 1;
    if (kind < 60) {
      Transaction transaction;
      State next = states.back();
      bool holds = true;
      bool changes = false;
      for (std::uint64_t i = random.Below(3); i > 0; --i) {
        const std::string name = key();
        const auto found = next.find(name);
        const Revision actual = found == next.end() ? 0 : found->second.modified;
        const Revision wanted = random.Below(4) == 0 ? random.Below(20) : actual;
        holds = holds && wanted == actual;
        transaction.conditions.push_back({name, wanted});
      }
      std::map<std::string, Operation> operations;
      for (std::uint64_t i = random.Below(4); i > 0; --i) {
        const std::string name = key();
        operations[name] = random.Below(3) == 0 ? Delete(name) : Put(name, std::to_string(step));
      }
      std::vector<std::string> events;
      for (const auto& [name, operation] : operations) {
        transaction.operations.push_back(operation);
        const auto found = next.find(name);
        const std::string at = "@" + std::to_string(newest + 1);
        if (operation.value == nullptr) {
          if (found == next.end()) continue;
          next.erase(found);
          events.push_back(name + "-" + at);
        } else {
          const Revision created = found == next.end() ? newest + 1 : found->second.created;
          next[name] = {*operation.value, created, newest + 1};
          events.push_back(name + "=" + *operation.value + at);
        }
        changes = true;
      }
      Result<TransactionResult> result = Commit(std::move(transaction));
      ASSERT_TRUE(result.ok());
      ASSERT_EQ(result->succeeded, holds);
      if (holds && changes) {
        ASSERT_EQ(result->revision, newest + 1);
        states.push_back(std::move(next));
        expected_events.insert(expected_events.end(), events.begin(), events.end());
      } else {
        ASSERT_EQ(result->revision, newest);
      }
    } else if (kind < 90) {
      const Revision at =
          random.Below(2) == 0 ? 0 : 1 + static_cast<Revision>(random.Below(states.size() - 1));
      RangeOptions options{.prefix = random.Below(2) == 0 ? "k" : "k1", .revision = at};
      if (random.Below(2) == 0) options.limit = 1 + random.Below(5);
      if (random.Below(3) == 0) options.start_after = key();
      Result<RangeResult> result = Range(options);
      if (at != 0 && at < compacted) {
        ASSERT_FALSE(result.ok());
        ASSERT_EQ(result.error().code, ErrorCode::kExpired);
        continue;
      }
      ASSERT_TRUE(result.ok()) << result.error().message;
      const State& state = states[at == 0 ? newest : at];
      std::vector<std::pair<std::string, Item>> expected;
      for (const auto& [name, item] : state) {
        if (name.starts_with(options.prefix) && name > options.start_after) {
          expected.emplace_back(name, item);
        }
      }
      const std::size_t all = expected.size();
      if (options.limit != 0 && all > options.limit) expected.resize(options.limit);
      std::vector<std::pair<std::string, Item>> actual;
      for (const Entry& entry : result->entries) {
        ASSERT_NE(entry.value, nullptr);
        actual.emplace_back(entry.key,
                            Item{*entry.value, entry.create_revision, entry.mod_revision});
      }
      ASSERT_EQ(actual, expected);
      ASSERT_EQ(result->remaining, all - expected.size());
    } else if (kind < 95) {
      const Revision to = 1 + static_cast<Revision>(random.Below(states.size() - 1));
      // A watcher that has not caught up would be expired.
      if (newest > watched_after) EventsUpTo(watch, newest);
      ASSERT_TRUE(Compact(to).ok());
      compacted = std::max(compacted, to);
    } else if (kind < 97 && GetParam().survives_reopen) {
      if (newest > watched_after) EventsUpTo(watch, newest);
      ASSERT_FALSE(watch->closed.has_value());
      harness_->Reopen();
      harness_->Do([&] { EXPECT_TRUE(watch->closed.has_value()); });
      watched_after = newest;
      auto next = StartWatch({.prefix = "k", .after = newest});
      harness_->Do([&] {
        watch->handle.reset();
        next->events = std::move(watch->events);
      });
      watch = next;
    }
  }
  const Revision last = Write({Put("not watched", "")});
  const std::vector<std::string> events = EventsUpTo(watch, last);
  for (std::size_t i = 0; i < std::min(events.size(), expected_events.size()); ++i) {
    ASSERT_EQ(events[i], expected_events[i]) << "the first of " << events.size() << " that differs";
  }
  EXPECT_EQ(events.size(), expected_events.size());
  EndWatch(watch);
}

}  // namespace
}  // namespace drakkar::storage
