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

}  // namespace
}  // namespace drakkar::storage
