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
  bool equals = true;  // otherwise it must differ
};

// Required field values: "spec.nodeName=a,metadata.name!=b". Does not know which fields a kind
// supports. Immutable.
class FieldSelector {
 public:
  FieldSelector() = default;  // matches everything
  // Errors are Kubernetes'. In values, ',', '=' and '\' are escaped with '\'.
  static Result<FieldSelector> Parse(std::string_view text);

  // `lookup` returns the text of a field, "" if it is absent.
  bool Matches(const std::function<std::string_view(std::string_view)>& lookup) const;
  bool empty() const { return requirements_.empty(); }
  const std::vector<FieldRequirement>& requirements() const { return requirements_; }
  // The value the selector requires of `field`, if any: lets a watch or a list go straight to one
  // name or one node.
  std::optional<std::string_view> RequiresExactMatch(std::string_view field) const;
  std::string ToString() const;  // canonical

 private:
  std::vector<FieldRequirement> requirements_;
};

// Escapes '\', ',' and '=' with '\'.
std::string EscapeFieldValue(std::string_view value);

}  // namespace drakkar::api
