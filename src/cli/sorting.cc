#include "cli/sorting.h"

#include <algorithm>

#include "cli/jsonpath.h"

namespace drakkar::cli {

bool SortsBefore(api::Value a, api::Value b) {
  if (!a.exists() || !b.exists()) return !a.exists() && b.exists();
  if (a.is_string() && b.is_string()) return a.str() < b.str();
  return a.number() < b.number();
}

std::vector<std::size_t> SortedBy(const std::string& path, const std::vector<api::Value>& objects) {
  std::vector<std::size_t> order(objects.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const Result<JsonPath> parsed = JsonPath::ParsePath(path);
  if (!parsed.ok()) return order;
  std::vector<api::Value> keys;
  for (api::Value object : objects) {
    const std::vector<api::Value> found = parsed->Find(object);
    keys.push_back(found.empty() ? api::Value() : found.front());
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return SortsBefore(keys[a], keys[b]); });
  return order;
}

std::vector<std::size_t> SortedBy(const std::string& path,
                                  const std::vector<api::TreePtr>& objects) {
  std::vector<api::Value> values;
  for (const api::TreePtr& object : objects) values.push_back(object->root());
  return SortedBy(path, values);
}

}  // namespace drakkar::cli
