#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drakkar::api {

struct YamlPosition {
  int line = 0;    // from 1
  int column = 0;  // from 1

  bool operator==(const YamlPosition&) const = default;
};

// The position of the part of the first document that `path` names: the key for a member, the first
// character for an element ("2" is the third). An empty path is the document. Nothing if there is
// no such part (for example behind an alias) or the text is not YAML. For error messages: it parses
// the text again.
std::optional<YamlPosition> LocateYaml(std::string_view text, const std::vector<std::string>& path);

}  // namespace drakkar::api
