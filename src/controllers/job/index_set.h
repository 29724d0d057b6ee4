#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace drakkar::controllers {

// A set of completion indexes in the format of a Job's status: "0,2-5,7". Stored as sorted
// intervals, so that the cost of a Job with a hundred thousand indexes depends on its gaps.
class IndexSet {
 public:
  IndexSet() = default;
  // Ignores parts that cannot be read, and indexes from `completions` on.
  static IndexSet Parse(std::string_view text, std::int64_t completions);

  void Add(std::int64_t index);
  void AddAll(const IndexSet& other);
  bool Has(std::int64_t index) const;
  std::int64_t size() const;
  bool empty() const { return intervals_.empty(); }
  // Two adjacent indexes are written as "4,5", more as "4-6".
  std::string ToString() const;

  // Number of indexes in both sets.
  std::int64_t Common(const IndexSet& other) const;
  // The first `count` indexes below `completions` that are not in the set.
  std::vector<std::int64_t> FirstMissing(std::size_t count, std::int64_t completions) const;

 private:
  struct Interval {
    std::int64_t first;
    std::int64_t last;
  };
  std::vector<Interval> intervals_;  // in order, with gaps between them
};

}  // namespace drakkar::controllers
