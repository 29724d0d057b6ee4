#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"

namespace drakkar::api {

struct FieldRequirement {
  std::string field;
  std::string value;
  bool equals = true;  // else it must differ
};

// Which fields an object must have: "spec.nodeName=a,metadata.name!=b". Which fields a kind has is
// not known here. Immutable.
class FieldSelector {
 public:
  FieldSelector() = default;  // everything matches
  // Errors are Kubernetes'. In values, ',', '=' and '\' are written with a '\' before them.
  static Result<FieldSelector> Parse(std::string_view text);

  // `lookup` gives the text of a field, "" for one that is not there.
  bool Matches(const std::function<std::string_view(std::string_view)>& lookup) const;
  bool empty() const { return requirements_.empty(); }
  const std::vector<FieldRequirement>& requirements() const { return requirements_; }
  // The value that `field` must have, if the selector says so: lets a watch or a list go straight
  // to one name or one node.
  std::optional<std::string_view> RequiresExactMatch(std::string_view field) const;
  std::string ToString() const;  // canonical

 private:
  std::vector<FieldRequirement> requirements_;
};

// With a '\' before '\', ',' and '='.
std::string EscapeFieldValue(std::string_view value);

}  // namespace drakkar::api
