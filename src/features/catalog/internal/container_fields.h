#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "api/tree/value.h"
#include "base/text/text.h"

namespace drakkar::features {

// Finds the first element of `list` for which `find` returns the rest of a path, and returns the
// whole path: "name[2].rest". Builds no strings unless one is found.
template <typename Find>
std::optional<std::string> FindInList(api::Value list, std::string_view name, Find find) {
  std::size_t index = 0;
  for (api::Value element : list.elements()) {
    if (const std::optional<std::string> rest = find(element)) {
      return StrCat(name, "[", index, "]", *rest);
    }
    ++index;
  }
  return std::nullopt;
}

// The same over several container lists of a pod spec ("containers", "initContainers" ...).
template <typename Find>
std::optional<std::string> FindInContainers(api::Value spec, api::FieldNames lists, Find find) {
  for (const api::FieldName list : lists) {
    if (auto field = FindInList(spec[list], list, find)) return "spec." + *field;
  }
  return std::nullopt;
}

}  // namespace drakkar::features
