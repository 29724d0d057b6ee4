#include "api/meta/skipped_operations.h"

#include <algorithm>

namespace drakkar::api {

std::vector<std::string_view> SkippedOperations(Value field) {
  std::vector<std::string_view> operations;
  if (field.boolean()) operations.push_back("*");
  for (const Value operation : field.elements()) operations.push_back(operation.str());
  std::ranges::sort(operations);
  operations.erase(std::unique(operations.begin(), operations.end()), operations.end());
  return operations;
}

}  // namespace drakkar::api
