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

// Where the part of the first document that `path` names stands: the key for a member, the first
// character for an element ("2" is the third). An empty path is the document. Nothing if there is
// no such part (as behind an alias), or the text is no YAML. For error messages: it reads the text
// anew.
std::optional<YamlPosition> LocateYaml(std::string_view text, const std::vector<std::string>& path);

}  // namespace drakkar::api
