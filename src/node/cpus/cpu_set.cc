#include "node/cpus/cpu_set.h"

#include <algorithm>
#include <iterator>

#include "base/text/text.h"

namespace drakkar::node {

Result<CpuSet> CpuSet::Parse(std::string_view list) {
  CpuSet cpus;
  const auto invalid = [&] {
    return InvalidArgument(StrCat("invalid list of CPUs ", Quote(list)));
  };
  if (Trim(list).empty()) return cpus;
  for (const std::string_view part : Split(Trim(list), ',')) {
    const std::size_t dash = part.find('-');
    const auto first = ParseInt64(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : ParseInt64(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last > kMaxCpu) return invalid();
    for (std::int64_t cpu = *first; cpu <= *last; ++cpu) cpus.Add(static_cast<int>(cpu));
  }
  return cpus;
}

std::string CpuSet::ToString() const {
  std::string list;
  for (auto each = cpus_.begin(); each != cpus_.end();) {
    const int first = *each;
    int last = first;
    while (++each != cpus_.end() && *each == last + 1) last = *each;
    if (!list.empty()) list += ',';
    list += first == last ? std::to_string(first) : StrCat(first, "-", last);
  }
  return list;
}

CpuSet CpuSet::Without(const CpuSet& others) const {
  CpuSet rest;
  std::ranges::set_difference(cpus_, others.cpus_, std::inserter(rest.cpus_, rest.cpus_.end()));
  return rest;
}

CpuSet CpuSet::And(const CpuSet& others) const {
  CpuSet both;
  std::ranges::set_intersection(cpus_, others.cpus_, std::inserter(both.cpus_, both.cpus_.end()));
  return both;
}

}  // namespace drakkar::node
