#include "api/patch/json_patch.h"

#include <algorithm>
#include <optional>
#include <string>

#include "api/json/reader.h"
#include "api/tree/draft.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::api {
namespace {

// What an operation costs at least, in steps of the work budget.
constexpr std::size_t kStepsPerOperation = 500;

// A step of a JSON pointer: ~1 is '/', ~0 is '~'.
std::string DecodeStep(std::string_view step) {
  std::string text;
  for (std::size_t i = 0; i < step.size(); ++i) {
    if (step[i] == '~' && i + 1 < step.size() && (step[i + 1] == '0' || step[i + 1] == '1')) {
      text += step[++i] == '0' ? '~' : '/';
    } else {
      text += step[i];
    }
  }
  return text;
}

Error BadIndex(std::string_view index) {
  return InvalidArgument(
      StrCat("Unable to access invalid index: ", index, ": invalid index referenced"));
}

// The index that `text` denotes in an array of `size` elements; negative ones count from the end.
Result<std::size_t> ParseIndex(std::string_view text, std::size_t size) {
  const auto index = ParseInt64(text);
  if (!index) {
    return InvalidArgument(StrCat("strconv.Atoi: parsing ", Quote(text), ": invalid syntax"));
  }
  const auto count = static_cast<std::int64_t>(size);
  const std::int64_t at = *index < 0 ? *index + count : *index;
  if (at < 0 || at >= count) return BadIndex(text);
  return static_cast<std::size_t>(at);
}

void ExpandRaw(Draft& draft) {
  if (draft.kind() != ValueKind::kRaw) return;
  if (auto tree = ParseJson(draft.str(), {.refuse_duplicates = false}); tree.ok()) {
    draft = Draft(*tree);
  }
}

// The object or array that a pointer leads to, and its last step.
struct Place {
  Draft* container = nullptr;  // null if there is none
  std::string step;
};

Place FindPlace(Draft& root, std::string_view pointer) {
  const std::vector<std::string_view> steps = Split(pointer, '/');
  if (steps.size() < 2) return {};
  Draft* at = &root;
  for (std::size_t i = 1; i + 1 < steps.size(); ++i) {
    ExpandRaw(*at);
    const std::string step = DecodeStep(steps[i]);
    if (at->is_object()) {
      at = at->FindEntry(step);
    } else if (at->is_array()) {
      const auto index = ParseIndex(step, at->size());
      at = index.ok() ? &at->at(*index) : nullptr;
    } else {
      at = nullptr;
    }
    if (at == nullptr) return {};
  }
  ExpandRaw(*at);
  if (!at->is_object() && !at->is_array()) return {};
  return {at, DecodeStep(steps.back())};
}

Result<void> Add(const Place& place, Draft value) {
  Draft& container = *place.container;
  if (container.is_object()) {
    container.Entry(place.step) = std::move(value);
    return Ok();
  }
  if (place.step == "-") {
    container.Append(std::move(value));
    return Ok();
  }
  ASSIGN_OR_RETURN(const std::size_t index, ParseIndex(place.step, container.size() + 1));
  container.Insert(index, std::move(value));
  return Ok();
}

Result<void> Remove(const Place& place) {
  Draft& container = *place.container;
  if (container.is_object()) {
    if (container.RemoveEntry(place.step)) return Ok();
    return InvalidArgument(
        StrCat("Unable to remove nonexistent key: ", place.step, ": missing value"));
  }
  ASSIGN_OR_RETURN(const std::size_t index, ParseIndex(place.step, container.size()));
  container.RemoveAt(index);
  return Ok();
}

// Null without an error if an object has no such member.
Result<Draft*> Get(const Place& place) {
  Draft& container = *place.container;
  if (container.is_object()) return container.FindEntry(place.step);
  ASSIGN_OR_RETURN(const std::size_t index, ParseIndex(place.step, container.size()));
  return &container.at(index);
}

// Whether two values are equal, including the spelling of numbers.
bool SameJson(Value a, Value b) {
  if (a.kind() != b.kind()) return false;
  if (a.size() != b.size()) return false;
  if (a.is_array()) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!SameJson(a.at(i), b.at(i))) return false;
    }
    return true;
  }
  if (a.is_object()) {
    for (const MemberView member : a.members()) {
      if (!SameJson(member.value, b.Entry(member.name))) return false;
    }
    return true;
  }
  return Equal(a, b);
}

class Patcher {
 public:
  Patcher(Value original, const JsonPatchLimits& limits) : root_(original), limits_(limits) {}

  Result<void> Apply(Value operation) {
    const std::string_view op = operation["op"].str();
    const std::string_view path = operation["path"].str();
    if (op == "add") return ApplyAdd(path, operation["value"]);
    if (op == "remove") return ApplyRemove(path);
    if (op == "replace") return ApplyReplace(path, operation["value"]);
    if (op == "move") return ApplyMove(operation["from"].str(), path);
    if (op == "copy") return ApplyCopy(operation["from"].str(), path);
    if (op == "test") return ApplyTest(path, operation["value"]);
    return InvalidArgument(StrCat("Unexpected kind: ", op.empty() ? "unknown" : op));
  }

  TreePtr Freeze() const { return root_.Freeze(); }

 private:
  // A member missing from an operation counts as null.
  static Draft ValueOf(Value value) { return value.exists() ? Draft(value) : Draft(nullptr); }

  static Error InOperation(const Error& error, std::string_view op, std::string_view path) {
    return error.Prefixed(StrCat("error in ", op, " for path: '", path, "'"));
  }

  Result<void> ApplyAdd(std::string_view path, Value value) {
    const Place place = FindPlace(root_, path);
    if (place.container == nullptr) {
      return InvalidArgument(StrCat(
          "add operation does not apply: doc is missing path: ", Quote(path), ": missing value"));
    }
    const auto added = Add(place, ValueOf(value));
    return added.ok() ? added : InOperation(added.error(), "add", path);
  }

  Result<void> ApplyRemove(std::string_view path) {
    const Place place = FindPlace(root_, path);
    if (place.container == nullptr) {
      return InvalidArgument(StrCat("remove operation does not apply: doc is missing path: ",
                                    Quote(path), ": missing value"));
    }
    const auto removed = Remove(place);
    return removed.ok() ? removed : InOperation(removed.error(), "remove", path);
  }

  Result<void> ApplyReplace(std::string_view path, Value value) {
    if (path.empty()) {
      if (!value.is_object() && !value.is_array()) {
        return InvalidArgument("replace operation value must be object or array");
      }
      root_ = Draft(value);
      return Ok();
    }
    const Place place = FindPlace(root_, path);
    if (place.container == nullptr) {
      return InvalidArgument(StrCat("replace operation does not apply: doc is missing path: ", path,
                                    ": missing value"));
    }
    const auto found = Get(place);
    if (!found.ok()) {
      return InvalidArgument(StrCat("replace operation does not apply: doc is missing key: ", path,
                                    ": missing value"));
    }
    if (*found != nullptr) {
      **found = ValueOf(value);
      return Ok();
    }
    return Add(place, ValueOf(value));
  }

  Result<void> ApplyMove(std::string_view from, std::string_view path) {
    const Place source = FindPlace(root_, from);
    if (source.container == nullptr) {
      return InvalidArgument(StrCat(
          "move operation does not apply: doc is missing from path: ", from, ": missing value"));
    }
    const auto found = Get(source);
    if (!found.ok()) return InOperation(found.error(), "move", from);
    Draft value = *found == nullptr ? Draft(nullptr) : **found;
    if (const auto removed = Remove(source); !removed.ok()) {
      return InOperation(removed.error(), "move", from);
    }
    const Place target = FindPlace(root_, path);
    if (target.container == nullptr) {
      return InvalidArgument(
          StrCat("move operation does not apply: doc is missing destination path: ", path,
                 ": missing value"));
    }
    const auto added = Add(target, std::move(value));
    return added.ok() ? added : InOperation(added.error(), "move", path);
  }

  Result<void> ApplyCopy(std::string_view from, std::string_view path) {
    const Place source = FindPlace(root_, from);
    if (source.container == nullptr) {
      return InvalidArgument(StrCat(
          "copy operation does not apply: doc is missing from path: ", from, ": missing value"));
    }
    const auto found = Get(source);
    if (!found.ok()) return InOperation(found.error(), "copy", from);
    Draft value = *found == nullptr ? Draft(nullptr) : **found;
    copied_bytes_ += value.Freeze()->size_bytes();
    if (copied_bytes_ > limits_.max_copied_bytes) {
      return InvalidArgument(
          StrCat("Unable to complete the copy, the accumulated size increase of copy is ",
                 copied_bytes_, ", exceeding the limit ", limits_.max_copied_bytes));
    }
    const Place target = FindPlace(root_, path);
    if (target.container == nullptr) {
      return InvalidArgument(
          StrCat("copy operation does not apply: doc is missing destination path: ", path,
                 ": missing value"));
    }
    const auto added = Add(target, std::move(value));
    return added.ok() ? added : InOperation(added.error(), "copy", path);
  }

  Result<void> ApplyTest(std::string_view path, Value value) {
    const auto failed = [&] {
      return InvalidArgument(StrCat("testing value ", path, " failed: test failed"));
    };
    const TreePtr wanted = ValueOf(value).Freeze();
    if (path.empty()) {
      if (SameJson(root_.Freeze()->root(), wanted->root())) return Ok();
      return failed();
    }
    const Place place = FindPlace(root_, path);
    if (place.container == nullptr) {
      return InvalidArgument(
          StrCat("test operation does not apply: is missing path: ", path, ": missing value"));
    }
    const auto found = Get(place);
    if (!found.ok()) return InOperation(found.error(), "test", path);
    const TreePtr actual = (*found == nullptr ? Draft(nullptr) : **found).Freeze();
    if (SameJson(actual->root(), wanted->root())) return Ok();
    return failed();
  }

  Draft root_;
  const JsonPatchLimits& limits_;
  std::size_t copied_bytes_ = 0;
};

}  // namespace

Result<TreePtr> ApplyJsonPatch(Value original, Value patch, const JsonPatchLimits& limits) {
  if (!patch.is_array()) {
    const std::string_view what = patch.is_object()   ? "object"
                                  : patch.is_string() ? "string"
                                                      : "value";
    return InvalidArgument(
        StrCat("json: cannot unmarshal ", what, " into Go value of type jsonpatch.Patch"));
  }
  if (patch.size() > limits.max_operations) {
    return InvalidArgument(StrCat("The allowed maximum operations in a JSON patch is ",
                                  limits.max_operations, ", got ", patch.size()));
  }
  Patcher patcher(original, limits);
  for (const Value operation : patch.elements()) {
    WorkBudget::Charge(kStepsPerOperation);
    if (WorkBudget::IsExceeded()) {
      return Error{ErrorCode::kResourceExhausted, "applying the patch takes too long"};
    }
    RETURN_IF_ERROR(patcher.Apply(operation));
  }
  return patcher.Freeze();
}

}  // namespace drakkar::api
