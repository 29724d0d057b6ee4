#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace drakkar::controllers {

// A set of completion indexes in the form of a Job's status: "0,2-5,7". Kept as ordered intervals,
// so that a Job with a hundred thousand indexes costs what its gaps cost.
class IndexSet {
 public:
  IndexSet() = default;
  // What cannot be read is left out, and so is everything from `completions` on.
  static IndexSet Parse(std::string_view text, std::int64_t completions);

  void Add(std::int64_t index);
  void AddAll(const IndexSet& other);
  bool Has(std::int64_t index) const;
  std::int64_t size() const;
  bool empty() const { return intervals_.empty(); }
  // Two neighbours are "4,5", more are "4-6".
  std::string ToString() const;

  // How many indexes both have.
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
