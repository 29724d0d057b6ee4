#include <algorithm>
#include <map>

#include "api/apply/typed_internal.h"
#include "api/apply/typed_value.h"
#include "api/json/writer.h"
#include "api/meta/field_error.h"
#include "api/meta/shown_errors.h"
#include "api/tree/add_member.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::api {
namespace {

using typed::Element;
using typed::ElementOf;

Draft Merge(Value live, Value applied, const TypeSchema& type);

Draft MergeMembers(Value live, Value applied, const TypeSchema& type) {
  Draft out = Draft::Object();
  auto type_of = [&](std::string_view name) -> const TypeSchema* {
    if (type.kind == FieldKind::kMap) return type.element;
    const FieldSchema* field = type.structure->Find(name);
    return field == nullptr ? nullptr : &field->type;
  };
  for (const auto& [key, name, value] : live.members()) {
    const TypeSchema* member = type_of(name);
    const Value other = applied.Entry(name);
    if (!other.exists() || member == nullptr) {
      AddMember(out, name, Draft(other.exists() ? other : value));
    } else {
      AddMember(out, name, Merge(value, other, *member));
    }
  }
  for (const auto& [key, name, value] : applied.members()) {
    if (!live.Entry(name).exists()) AddMember(out, name, Draft(value));
  }
  return out;
}

struct Indexed {
  std::vector<std::string> names;  // identities of the elements, in order
  std::vector<Value> values;
  std::map<std::string_view, std::vector<Value>> by_name;
};

Indexed Index(Value list, const TypeSchema& type) {
  Indexed out;
  for (Value value : list.elements()) {
    auto element = ElementOf(type, value, nullptr);
    if (!element) continue;
    out.names.push_back(std::move(element->text));
    out.values.push_back(value);
  }
  for (std::size_t i = 0; i < out.names.size(); ++i) {
    out.by_name[out.names[i]].push_back(out.values[i]);
  }
  return out;
}

// Applied elements keep their own order. Live elements that are not applied keep their position
// between their neighbours.
Draft MergeList(Value live, Value applied, const TypeSchema& type) {
  const Indexed left = Index(live, type), right = Index(applied, type);
  Draft out = Draft::Array();
  std::vector<std::string_view> shared;
  for (const std::string& name : right.names) {
    if (left.by_name.contains(name)) shared.push_back(name);
  }
  std::size_t next = 0;
  std::map<std::string_view, bool> merged;
  auto merge_one = [&](const std::string& name, Value value) {
    merged[name] = true;
    auto found = left.by_name.find(name);
    // Duplicate elements cannot be merged: the applied one replaces them.
    if (found == left.by_name.end() || found->second.size() != 1) {
      out.Append(Draft(value));
    } else {
      out.Append(Merge(found->second.front(), value, *type.element));
    }
  };
  std::size_t i = 0, j = 0;
  while (i < left.names.size() || j < right.names.size()) {
    if (i < left.names.size() && j < right.names.size()) {
      if (left.names[i] == right.names[j]) {
        merge_one(right.names[j], right.values[j]);
        ++i;
        ++j;
        ++next;
        continue;
      }
      if (right.by_name.contains(left.names[i]) && next < shared.size() &&
          shared[next] != left.names[i]) {
        ++i;
        continue;
      }
    }
    if (i < left.names.size()) {
      if (!right.by_name.contains(left.names[i])) {
        out.Append(Draft(left.values[i]));
        ++i;
        continue;
      }
      if (merged.contains(left.names[i])) ++i;
    }
    if (j < right.names.size()) {
      merge_one(right.names[j], right.values[j]);
      if (next < shared.size() && shared[next] == right.names[j]) ++next;
      ++j;
    }
  }
  return out;
}

Draft Merge(Value live, Value applied, const TypeSchema& type) {
  if (live.empty() && applied.empty()) return Draft(applied);
  if ((typed::IsGranularStruct(type) || typed::IsGranularMap(type)) &&
      (live.is_object() || applied.is_object())) {
    return MergeMembers(live, applied, type);
  }
  if (typed::IsMergedList(type) && (live.is_array() || applied.is_array())) {
    return MergeList(live, applied, type);
  }
  return Draft(applied);
}

Draft Remove(Value value, const FieldNode& set, const TypeSchema& type) {
  if (typed::IsMergedList(type) && value.is_array()) {
    Draft out = Draft::Array();
    for (Value each : value.elements()) {
      auto element = ElementOf(type, each, nullptr);
      const FieldNode* found = element ? FindChild(&set, element->kind, element->text) : nullptr;
      if (found == nullptr) {
        out.Append(Draft(each));
      } else if (found->marks == 0) {
        out.Append(Remove(each, *found, *type.element));
      }
    }
    return out.size() == 0 ? Draft(nullptr) : std::move(out);
  }
  const bool is_struct = typed::IsGranularStruct(type);
  if ((is_struct || typed::IsGranularMap(type)) && value.is_object()) {
    Draft out = Draft::Object();
    for (const auto& [key, name, member] : value.members()) {
      const FieldNode* found = FindChild(&set, 'f', name);
      if (found == nullptr) {
        AddMember(out, name, Draft(member));
        continue;
      }
      if (found->marks != 0) continue;
      const FieldSchema* field = is_struct ? type.structure->Find(name) : nullptr;
      const TypeSchema* member_type =
          is_struct ? (field == nullptr ? nullptr : &field->type) : type.element;
      AddMember(out, name,
                member_type == nullptr ? Draft(member) : Remove(member, *found, *member_type));
    }
    return out.size() == 0 ? Draft(nullptr) : std::move(out);
  }
  // Parts of an atomic value cannot be removed, so the whole value is.
  if (value.is_object() || value.is_array()) return Draft(nullptr);
  return Draft(value);
}

FieldNode AddNamed(const FieldNode& set, const TypeSchema* type, FieldStack& scratch,
                   Arena& arena) {
  FieldNode out = set;
  out.children = nullptr;
  const std::size_t first = scratch.size();
  for (std::uint32_t i = 0; i < set.count; ++i) {
    const TypeSchema* child_type = nullptr;
    bool named = false;
    if (type != nullptr && type->kind == FieldKind::kStruct && set.children[i].kind == 'f') {
      const FieldSchema* field = type->structure->Find(set.children[i].text);
      named = field != nullptr;
      if (named) child_type = &field->type;
    } else if (type != nullptr) {
      child_type = type->element;
    }
    FieldNode child = AddNamed(set.children[i], child_type, scratch, arena);
    if (named) child.marks |= kOwned;
    scratch.push_back(child);
  }
  SetChildren(out, scratch, first, arena);
  return out;
}

class Checker {
 public:
  std::vector<std::string> errors;

  void Check(Value value, const TypeSchema& type) {
    if (!value.has_value()) return;
    switch (type.kind) {
      case FieldKind::kStruct:
        if (!value.is_object()) return Wrong("map", value);
        for (const auto& [key, name, member] : value.members()) {
          const FieldSchema* field = type.structure->Find(name);
          if (field != nullptr) {
            Below(StrCat(".", name), member, field->type);
          } else if (!type.structure->preserve_unknown) {
            Add(StrCat(path_, ".", name, ": field not declared in schema"));
          }
        }
        return;
      case FieldKind::kMap:
        if (!value.is_object()) return Wrong("map", value);
        for (const auto& [key, name, member] : value.members()) {
          Below(StrCat(".", name), member, *type.element);
        }
        return;
      case FieldKind::kList:
        return CheckList(value, type);
      case FieldKind::kString:
      case FieldKind::kTime:
      case FieldKind::kMicroTime:
      case FieldKind::kBytes:
        if (!value.is_string()) Wrong("string", value);
        return;
      case FieldKind::kBool:
        if (value.kind() != ValueKind::kBool) Wrong("boolean", value);
        return;
      case FieldKind::kInt32:
      case FieldKind::kInt64:
      case FieldKind::kDouble:
        if (value.kind() != ValueKind::kInt && value.kind() != ValueKind::kDouble) {
          Wrong("numeric (int or float)", value);
        }
        return;
      default:
        return;
    }
  }

 private:
  void Wrong(std::string_view expected, Value value) {
    std::string got = WriteJson(value, {.escape_html = false});
    if (got.size() > BadValue::kMaxBytes) got.resize(BadValue::kMaxBytes);
    Add(StrCat(path_, ": expected ", expected, ", got ", got));
  }

  // Errors past the limit are dropped. A path contains keys that the client chose, so that each
  // error may be as long as the request.
  void Add(std::string error) {
    WorkBudget::Charge(error.size());
    if (errors.size() < kMaxShownErrors && !WorkBudget::IsExceeded()) {
      errors.push_back(std::move(error));
    }
  }

  void Below(const std::string& element, Value value, const TypeSchema& type) {
    // Nobody sees the errors below.
    if (WorkBudget::IsExceeded() || errors.size() >= kMaxShownErrors) return;
    const std::size_t size = path_.size();
    path_ += element;
    Check(value, type);
    path_.resize(size);
  }

  void CheckList(Value list, const TypeSchema& type) {
    if (!list.is_array()) return Wrong("list", list);
    std::map<std::string, int> seen;
    std::size_t index = 0;
    for (Value each : list.elements()) {
      std::string name = StrCat("[", index, "]");
      if (type.merge != MergeKind::kAtomic) {
        std::string problem;
        auto element = ElementOf(type, each, &problem);
        if (!element) {
          Add(StrCat(path_, ": element ", index, ": ", problem));
          ++index;
          continue;
        }
        name = PathElementText(element->kind, element->text);
        if (++seen[element->text] == 2) {
          Add(StrCat(path_, ": duplicate entries for key ", name));
        }
      }
      Below(name, each, *type.element);
      ++index;
    }
  }

  std::string path_;
};

}  // namespace

Draft MergeTyped(Value live, Value applied, const StructSchema& schema) {
  return MergeMembers(live, applied, typed::RootType(schema));
}

Draft RemovePaths(Value value, const FieldNode* set, const StructSchema& schema, Arena&) {
  if (set == nullptr) return Draft(value);
  return Remove(value, *set, typed::RootType(schema));
}

const FieldNode* WithNamedFields(const FieldNode* set, const StructSchema& schema, Arena& arena) {
  if (set == nullptr) return nullptr;
  const TypeSchema root = typed::RootType(schema);
  FieldStack scratch;
  return new (arena.AllocateArray<FieldNode>(1)) FieldNode(AddNamed(*set, &root, scratch, arena));
}

std::vector<std::string> CheckTyped(Value applied, const StructSchema& schema) {
  Checker checker;
  checker.Check(applied, typed::RootType(schema));
  return std::move(checker.errors);
}

}  // namespace drakkar::api
