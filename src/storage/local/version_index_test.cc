#include "storage/local/version_index.h"

#include <gtest/gtest.h>

namespace drakkar::storage {
namespace {

Row MakeRow(Revision revision, std::string key, const char* value, Revision created) {
  return {MakeRowId(revision, 0), created, std::move(key),
          value == nullptr ? nullptr : std::make_shared<const std::string>(value)};
}

TEST(VersionIndex, TrimReportsExactlyTheRowsNobodyNeeds) {
  VersionIndex index;
  index.Apply(MakeRow(2, "a", "1", 2));
  index.Apply(MakeRow(3, "a", "2", 2));
  index.Apply(MakeRow(4, "a", nullptr, 2));
  index.Apply(MakeRow(5, "a", "3", 5));
  index.Apply(MakeRow(6, "b", "1", 6));
  std::vector<RowId> removed;
  EXPECT_FALSE(index.Trim(3, 100, &removed));
  EXPECT_EQ(removed, (std::vector<RowId>{MakeRowId(2, 0)}));
  removed.clear();
  EXPECT_FALSE(index.Trim(6, 100, &removed));
  EXPECT_EQ(removed, (std::vector<RowId>{MakeRowId(3, 0), MakeRowId(4, 0)}));
  EXPECT_EQ(index.history_versions(), 0u);
  EXPECT_EQ(index.history_bytes(), 0u);
  EXPECT_EQ(index.superseded_resident_bytes(), 0u);
  EXPECT_EQ(*index.Find("a")->value, "3");
}

TEST(VersionIndex, ADeletedKeyLeavesMemoryOnceCompacted) {
  VersionIndex index;
  index.Apply(MakeRow(2, "a", "1", 2));
  index.Apply(MakeRow(3, "a", nullptr, 2));
  EXPECT_EQ(index.Find("a"), nullptr);
  EXPECT_EQ(index.keys(), 1u);
  std::vector<RowId> removed;
  index.Trim(3, 100, &removed);
  EXPECT_EQ(index.keys(), 0u);
  EXPECT_EQ(removed.size(), 2u);
}

TEST(VersionIndex, TrimStopsAtItsBudgetAndGoesOn) {
  VersionIndex index;
  for (Revision i = 2; i < 12; ++i) index.Apply(MakeRow(i, "a", "x", 2));
  std::vector<RowId> removed;
  EXPECT_TRUE(index.Trim(11, 4, &removed));
  EXPECT_EQ(removed.size(), 3u);
  EXPECT_FALSE(index.Trim(11, 100, &removed));
  EXPECT_EQ(removed.size(), 9u);
}

TEST(VersionIndex, EvictionSparesTheNewestAndWhatIsNotDurable) {
  VersionIndex index;
  for (Revision i = 2; i < 12; ++i) index.Apply(MakeRow(i, "a", "0123456789", 2));
  EXPECT_EQ(index.superseded_resident_bytes(), 90u);
  index.EvictSuperseded(0, 5);
  EXPECT_EQ(index.superseded_resident_bytes(), 60u);
  index.EvictSuperseded(20, 11);
  EXPECT_EQ(index.superseded_resident_bytes(), 20u);
  EXPECT_NE(index.Find("a")->value, nullptr);
  RangeResult range;
  std::vector<VersionIndex::Missing> missing;
  index.Range({}, 4, &range, &missing);
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_EQ(missing[0].row, MakeRowId(4, 0));
  EXPECT_EQ(missing[0].place, &range.entries[0].value);
}

TEST(VersionIndex, EventsComeInWholeRevisions) {
  VersionIndex index;
  for (Revision revision = 2; revision < 6; ++revision) {
    for (std::size_t i = 0; i < 3; ++i) {
      index.Apply({MakeRowId(revision, i), 2, "k" + std::to_string(i),
                   std::make_shared<const std::string>("x")});
    }
  }
  std::vector<WatchEvent> events;
  std::vector<VersionIndex::Missing> missing;
  EXPECT_EQ(index.Events("k", 1, 5, 4, &events, &missing), 3);
  EXPECT_EQ(events.size(), 6u);
  events.clear();
  EXPECT_EQ(index.Events("k", 3, 5, 100, &events, &missing), 5);
  EXPECT_EQ(events.size(), 6u);
}

TEST(VersionIndex, AHotKeyWithManyVersionsIsDestroyedWithoutRecursion) {
  VersionIndex index;
  for (Revision i = 2; i < 300'000; ++i) index.Apply(MakeRow(i, "a", "x", 2));
  EXPECT_EQ(index.keys(), 1u);
}

TEST(VersionIndex, EventsStopAtTheirLimitButNeverWithinARevision) {
  VersionIndex index;
  index.Apply(MakeRow(2, "a", "1", 2));
  index.Apply(MakeRow(3, "a", "2", 2));
  index.Apply({MakeRowId(3, 1), 3, "b", std::make_shared<const std::string>("x")});
  index.Apply(MakeRow(4, "a", "3", 2));
  const auto read = [&](std::size_t limit, Revision after) {
    std::vector<WatchEvent> events;
    std::vector<VersionIndex::Missing> missing;
    const Revision reached = index.Events("", after, 4, limit, &events, &missing);
    return std::pair(reached, events.size());
  };
  EXPECT_EQ(read(1, 1), std::pair(Revision{2}, std::size_t{1}));
  EXPECT_EQ(read(2, 1), std::pair(Revision{3}, std::size_t{3})) << "revision 3 is whole";
  EXPECT_EQ(read(3, 1), std::pair(Revision{3}, std::size_t{3}));
  EXPECT_EQ(read(4, 1), std::pair(Revision{4}, std::size_t{4}));
  EXPECT_EQ(read(1, 3), std::pair(Revision{4}, std::size_t{1}));
  EXPECT_EQ(read(1, 4), std::pair(Revision{4}, std::size_t{0}));
}

TEST(VersionIndex, ADamagedRowHidesTheKeysItMayHaveChanged) {
  VersionIndex index;
  index.Apply(MakeRow(2, "changed", "value", 2));
  index.Apply(MakeRow(3, "other", "value", 3));
  index.Apply(MakeRow(4, "deleted", "value", 4));
  index.Apply(MakeRow(5, "deleted", nullptr, 2));
  index.Apply(MakeRow(9, "later", "value", 2));
  const std::size_t before = index.history_bytes();
  index.MarkDamaged(2, MakeRowId(7, 0));
  EXPECT_EQ(before - index.history_bytes(), 5u) << "of the value that is not kept";
  EXPECT_TRUE(index.Find("changed")->damaged);
  EXPECT_EQ(index.Find("changed")->value, nullptr);
  EXPECT_FALSE(index.Find("other")->damaged) << "created at another revision";
  EXPECT_EQ(index.Find("deleted"), nullptr);
  EXPECT_FALSE(index.Find("later")->damaged) << "changed after the damaged row";
  RangeResult range;
  std::vector<VersionIndex::Missing> missing;
  index.Range({}, 9, &range, &missing);
  ASSERT_EQ(range.unreadable.size(), 1u);
  EXPECT_EQ(range.unreadable[0].key, "changed");
  EXPECT_EQ(range.unreadable[0].mod_revision, 2);
  EXPECT_EQ(range.entries.size(), 2u);
}

TEST(VersionIndex, DeletionsHaveNothingToReadBack) {
  VersionIndex index;
  index.Apply(MakeRow(2, "a", "1", 2));
  index.Apply(MakeRow(3, "a", nullptr, 2));
  index.Apply(MakeRow(4, "a", "2", 4));
  index.Apply(MakeRow(5, "a", "3", 4));
  index.EvictSuperseded(0, 5);
  EXPECT_EQ(index.superseded_resident_bytes(), 0u);
  std::vector<WatchEvent> events;
  std::vector<VersionIndex::Missing> missing;
  EXPECT_EQ(index.Events("", 1, 5, 100, &events, &missing), 5);
  ASSERT_EQ(events.size(), 4u);
  ASSERT_EQ(missing.size(), 4u) << "two values, each also replaced by the next event";
  EXPECT_EQ(missing[0].row, MakeRowId(2, 0));
  EXPECT_EQ(missing[0].place, &events[0].value);
  EXPECT_EQ(missing[1].row, MakeRowId(2, 0));
  EXPECT_EQ(missing[1].place, &events[1].previous_value);
  EXPECT_EQ(missing[2].place, &events[2].value);
  EXPECT_EQ(missing[3].place, &events[3].previous_value);
  EXPECT_EQ(events[2].previous_value, nullptr) << "it was deleted before";
}

TEST(VersionIndex, ManyVersionsOfOtherKeysEndAScan) {
  VersionIndex index;
  for (Revision i = 2; i < 202; ++i) index.Apply(MakeRow(i, "other", "x", 2));
  index.Apply(MakeRow(202, "k", "x", 202));
  std::vector<WatchEvent> events;
  std::vector<VersionIndex::Missing> missing;
  EXPECT_EQ(index.Events("k", 1, 202, 1, &events, &missing), 65) << "64 versions were scanned";
  EXPECT_TRUE(events.empty());
  EXPECT_EQ(index.Events("k", 129, 202, 2, &events, &missing), 202);
  EXPECT_EQ(events.size(), 1u);
}

TEST(VersionIndex, TheOldestRevisionOverALimitOfBytes) {
  VersionIndex index;
  EXPECT_EQ(index.RevisionOverBytes(0), 0);
  for (Revision i = 2; i < 6; ++i) index.Apply(MakeRow(i, "a", "0123456789", 2));
  const std::size_t each = index.history_bytes() / 4;
  EXPECT_EQ(index.RevisionOverBytes(4 * each), 0);
  EXPECT_EQ(index.RevisionOverBytes(4 * each - 1), 2);
  EXPECT_EQ(index.RevisionOverBytes(2 * each), 3);
  EXPECT_EQ(index.RevisionOverBytes(0), 5);
}

TEST(VersionIndex, KeysThatARangeHasSortedCanBeRemovedLikeNewOnes) {
  VersionIndex index;
  RangeResult range;
  std::vector<VersionIndex::Missing> missing;
  std::vector<RowId> removed;
  for (Revision i = 2; i < 8; ++i) {
    index.Apply(MakeRow(i, "k" + std::to_string(i), "x", i));
    if (i == 4) index.Range({}, i, &range, &missing);
  }
  // One that is sorted, and the first, a middle and the last of those that are not.
  Revision revision = 8;
  for (const char* key : {"k3", "k5", "k6", "k7"}) {
    index.Apply(MakeRow(revision, key, nullptr, revision));
    index.Trim(revision, 100, &removed);
    ++revision;
  }
  EXPECT_EQ(index.keys(), 2u);
  range = {};
  index.Range({}, revision, &range, &missing);
  ASSERT_EQ(range.entries.size(), 2u);
  EXPECT_EQ(range.entries[0].key, "k2");
  EXPECT_EQ(range.entries[1].key, "k4");
}

}  // namespace
}  // namespace drakkar::storage
