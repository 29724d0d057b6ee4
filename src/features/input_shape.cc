#include "features/input_shape.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/text/text.h"

namespace drakkar::features {
namespace {

using api::FieldName;
using api::Value;

enum class Shape { kObject, kText, kBool, kQuantity, kSkipNodeOperations };

struct Rule {
  std::string_view path;  // "spec.containers[].name"; [] stands for each element of a list
  Shape shape;
};

constexpr Rule kPod[] = {
    {"metadata", Shape::kObject},
    {"metadata.name", Shape::kText},
    {"metadata.namespace", Shape::kText},
    {"spec", Shape::kObject},
    {"spec.hostNetwork", Shape::kBool},
    {"spec.hostUsers", Shape::kBool},
    {"spec.resources", Shape::kObject},
    {"spec.resources.requests", Shape::kObject},
    {"spec.resources.limits", Shape::kObject},
    {"spec.resources.claims[]", Shape::kObject},
    {"spec.volumes[]", Shape::kObject},
    {"spec.volumes[].name", Shape::kText},
    {"spec.volumes[].emptyDir", Shape::kObject},
    {"spec.volumes[].emptyDir.medium", Shape::kText},
    {"spec.volumes[].emptyDir.sizeLimit", Shape::kQuantity},
    {"status", Shape::kObject},
};
constexpr Rule kContainer[] = {
    {"name", Shape::kText},
    {"restartPolicy", Shape::kText},
    {"restartPolicyRules[]", Shape::kObject},
    {"restartPolicyRules[].action", Shape::kText},
    {"resources", Shape::kObject},
    {"resources.requests", Shape::kObject},
    {"resources.limits", Shape::kObject},
    {"resources.claims[]", Shape::kObject},
    {"volumeMounts[]", Shape::kObject},
    {"volumeMounts[].bindMountOptions[]", Shape::kText},
};
constexpr Rule kClaim[] = {
    {"metadata", Shape::kObject},
    {"metadata.name", Shape::kText},
    {"metadata.namespace", Shape::kText},
    {"spec", Shape::kObject},
    {"status", Shape::kObject},
    {"status.allocation", Shape::kObject},
    {"status.allocation.devices", Shape::kObject},
    {"status.allocation.devices.results[]", Shape::kObject},
    {"status.allocation.devices.results[].skipNodeOperations", Shape::kSkipNodeOperations},
};
constexpr Rule kNode[] = {
    {"metadata", Shape::kObject},
    {"spec", Shape::kObject},
    {"status", Shape::kObject},
    {"status.declaredFeatures[]", Shape::kText},
};

bool IsListOfTexts(Value value) {
  if (!value.is_array()) return false;
  for (Value element : value.elements()) {
    if (!element.is_string()) return false;
  }
  return true;
}

Result<void> CheckValue(Value value, Shape shape, const std::string& path) {
  const auto fail = [&](std::string_view wanted) -> Result<void> {
    return InvalidArgument(StrCat(path, " must be ", wanted));
  };
  switch (shape) {
    case Shape::kObject:
      return value.is_object() ? Ok() : fail("an object");
    case Shape::kText:
      return value.is_string() ? Ok() : fail("a string");
    case Shape::kBool:
      return value.optional_boolean() ? Ok() : fail("true or false");
    case Shape::kQuantity:
      if (value.is_object() || value.is_array() || value.optional_boolean()) {
        return fail("a quantity");
      }
      return Ok();
    case Shape::kSkipNodeOperations:
      if (value.optional_boolean()) return Ok();
      return IsListOfTexts(value) ? Ok() : fail("true, false or a list of operations");
  }
  return Ok();
}

// Checks the rest of a path below `value`, whose own path is `at`. Absent values are allowed.
Result<void> CheckPath(Value value, std::string_view rest, Shape shape, const std::string& at) {
  if (!value.has_value()) return Ok();
  if (rest.empty()) return CheckValue(value, shape, at);
  if (rest.starts_with("[]")) {
    if (!value.is_array()) return InvalidArgument(StrCat(at, " must be a list"));
    rest.remove_prefix(2);
    std::size_t index = 0;
    for (Value element : value.elements()) {
      const std::string path = StrCat(at, "[", index++, "]");
      if (!element.has_value()) return InvalidArgument(StrCat(path, " must not be null"));
      RETURN_IF_ERROR(CheckPath(element, rest, shape, path));
    }
    return Ok();
  }
  if (rest.starts_with('.')) rest.remove_prefix(1);
  const std::string_view name = rest.substr(0, rest.find_first_of(".["));
  return CheckPath(value.Entry(name), rest.substr(name.size()), shape, StrCat(at, ".", name));
}

Result<void> CheckRules(Value value, std::span<const Rule> rules, const std::string& at) {
  for (const Rule& rule : rules) RETURN_IF_ERROR(CheckPath(value, rule.path, rule.shape, at));
  return Ok();
}

Result<void> CheckObject(Value object, std::string_view kind, std::span<const Rule> rules,
                         std::string_view what) {
  if (!object.has_value()) return InvalidArgument(StrCat(what, " is missing"));
  if (!object.is_object()) return InvalidArgument(StrCat(what, " must be an object"));
  const Value given = object["kind"];
  if (given.has_value() && given.str() != kind) {
    return InvalidArgument(StrCat(what, ".kind is ",
                                  given.is_string() ? Quote(given.str()) : "not a string",
                                  ", but must be ", kind));
  }
  return CheckRules(object, rules, std::string(what));
}

}  // namespace

Result<void> CheckKeys(Value object, std::span<const std::string_view> known) {
  for (const api::MemberView member : object.members()) {
    if (std::ranges::find(known, member.name) != known.end()) continue;
    return InvalidArgument(
        StrCat("unknown key ", Quote(member.name),
               "; known keys: ", Join(std::vector<std::string>(known.begin(), known.end()), ", ")));
  }
  return Ok();
}

Result<std::string_view> OptionalText(Value object, FieldName key) {
  const Value value = object[key];
  if (!value.has_value()) return std::string_view();
  if (!value.is_string()) return InvalidArgument(StrCat(key, " must be a string"));
  return value.str();
}

Result<void> CheckPodShape(Value pod, std::string_view what) {
  RETURN_IF_ERROR(CheckObject(pod, "Pod", kPod, what));
  if (!pod["spec"].has_value()) return InvalidArgument(StrCat(what, " has no spec"));
  for (const FieldName list :
       {FieldName("initContainers"), FieldName("containers"), FieldName("ephemeralContainers")}) {
    const Value containers = pod["spec"][list];
    const std::string path = StrCat(what, ".spec.", list);
    if (!containers.has_value()) continue;
    RETURN_IF_ERROR(CheckPath(containers, "[]", Shape::kObject, path));
    std::size_t index = 0;
    for (Value container : containers.elements()) {
      RETURN_IF_ERROR(CheckRules(container, kContainer, StrCat(path, "[", index++, "]")));
    }
  }
  return Ok();
}

Result<void> CheckClaimShape(Value claim, std::string_view what) {
  return CheckObject(claim, "ResourceClaim", kClaim, what);
}

Result<void> CheckNodeShape(Value node, std::string_view what) {
  return CheckObject(node, "Node", kNode, what);
}

}  // namespace drakkar::features
