#include "node/dra/skip_operations.h"

#include <algorithm>
#include <map>
#include <set>

namespace drakkar::node {

std::vector<std::string> ReadSkipField(api::Value field) {
  if (field.kind() == api::ValueKind::kBool) {
    return field.boolean() ? std::vector<std::string>{std::string(kSkipAll)}
                           : std::vector<std::string>{};
  }
  std::vector<std::string> operations;
  for (api::Value each : field.elements()) operations.emplace_back(each.str());
  return operations;
}

std::vector<std::string> AggregateSkips(const std::vector<std::vector<std::string>>& devices) {
  std::size_t all = 0;
  std::map<std::string, std::size_t> counts;
  for (const auto& operations : devices) {
    if (std::find(operations.begin(), operations.end(), kSkipAll) != operations.end()) {
      ++all;
      continue;
    }
    for (const std::string& each : std::set<std::string>(operations.begin(), operations.end())) {
      ++counts[each];
    }
  }
  if (devices.empty()) return {};
  if (all == devices.size()) return {std::string(kSkipAll)};
  std::vector<std::string> skipped;
  for (const auto& [operation, count] : counts) {
    if (count + all == devices.size()) skipped.push_back(operation);
  }
  return skipped;
}

bool Skips(const std::vector<std::string>& aggregate, std::string_view operation) {
  return std::any_of(aggregate.begin(), aggregate.end(), [&](const std::string& each) {
    return each == operation || each == kSkipAll;
  });
}

}  // namespace drakkar::node
