#include "controllers/job/index_set.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::controllers {

IndexSet IndexSet::Parse(std::string_view text, std::int64_t completions) {
  IndexSet set;
  if (text.empty()) return set;
  for (std::string_view part : Split(text, ',')) {
    const std::size_t dash = part.find('-');
    const auto first = ParseInt64(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : ParseInt64(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *first >= completions) continue;
    IndexSet one;
    one.intervals_.push_back({*first, std::min(*last, completions - 1)});
    set.AddAll(one);
  }
  return set;
}

void IndexSet::Add(std::int64_t index) {
  // The first interval that ends at `index - 1` or later.
  auto at = std::ranges::lower_bound(intervals_, index - 1, {}, &Interval::last);
  if (at == intervals_.end() || at->first > index + 1) {
    intervals_.insert(at, {index, index});
    return;
  }
  at->first = std::min(at->first, index);
  at->last = std::max(at->last, index);
  const auto next = at + 1;
  if (next != intervals_.end() && next->first <= at->last + 1) {
    at->last = std::max(at->last, next->last);
    intervals_.erase(next);
  }
}

void IndexSet::AddAll(const IndexSet& other) {
  std::vector<Interval> all = std::move(intervals_);
  all.insert(all.end(), other.intervals_.begin(), other.intervals_.end());
  std::ranges::sort(all, {}, &Interval::first);
  intervals_.clear();
  for (const Interval& each : all) {
    if (!intervals_.empty() && each.first <= intervals_.back().last + 1) {
      intervals_.back().last = std::max(intervals_.back().last, each.last);
    } else {
      intervals_.push_back(each);
    }
  }
}

bool IndexSet::Has(std::int64_t index) const {
  const auto at = std::ranges::lower_bound(intervals_, index, {}, &Interval::last);
  return at != intervals_.end() && at->first <= index;
}

std::int64_t IndexSet::size() const {
  std::int64_t count = 0;
  for (const Interval& each : intervals_) count += each.last - each.first + 1;
  return count;
}

std::string IndexSet::ToString() const {
  std::string text;
  for (const Interval& each : intervals_) {
    if (!text.empty()) text += ',';
    text += std::to_string(each.first);
    if (each.last == each.first) continue;
    text += each.last == each.first + 1 ? ',' : '-';
    text += std::to_string(each.last);
  }
  return text;
}

std::int64_t IndexSet::Common(const IndexSet& other) const {
  std::int64_t count = 0;
  for (auto a = intervals_.begin(), b = other.intervals_.begin();
       a != intervals_.end() && b != other.intervals_.end();) {
    count +=
        std::max<std::int64_t>(std::min(a->last, b->last) - std::max(a->first, b->first) + 1, 0);
    if (a->last < b->last) {
      ++a;
    } else {
      ++b;
    }
  }
  return count;
}

std::vector<std::int64_t> IndexSet::FirstMissing(std::size_t count,
                                                 std::int64_t completions) const {
  std::vector<std::int64_t> missing;
  std::int64_t next = 0;
  const auto take_until = [&](std::int64_t end) {
    for (; next < end && next < completions && missing.size() < count; ++next) {
      missing.push_back(next);
    }
  };
  for (const Interval& each : intervals_) {
    take_until(each.first);
    next = std::max(next, each.last + 1);
  }
  take_until(completions);
  return missing;
}

}  // namespace drakkar::controllers
