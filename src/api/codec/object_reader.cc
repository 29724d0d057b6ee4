#include "api/codec/object_reader.h"

#include <algorithm>
#include <bitset>
#include <optional>
#include <unordered_map>

#include "api/codec/tree_converter.h"
#include "api/json/cursor.h"
#include "api/json/writer.h"
#include "api/meta/quantity.h"
#include "api/meta/time.h"
#include "base/hash/base64.h"
#include "base/result/check.h"
#include "base/text/text.h"

namespace drakkar::api {
namespace {

constexpr std::size_t kMaxStrictErrors = 100;
constexpr std::size_t kMaxStrictErrorsFound = 10'000;  // further ones are not even compared
constexpr std::size_t kMaxShownBytes = 4'096;          // of a path or name in an error
constexpr std::size_t kMaxFields = 256;        // fields of one struct; the schema has far fewer
constexpr std::size_t kMaxLinearMembers = 32;  // larger maps look up their keys by hash

// The last part of a dotted name.
std::string_view LastPart(std::string_view name) {
  return name.substr(name.rfind('.') + 1);
}

// "v1.PodSpec" of "io.k8s.api.core.v1.PodSpec".
std::string GoStructName(std::string_view name) {
  const std::string_view type = LastPart(name);
  if (type.size() == name.size()) return std::string(type);
  const std::string_view package = name.substr(0, name.size() - type.size() - 1);
  return StrCat(LastPart(package), ".", type);
}

std::string GoTypeName(const TypeSchema& type) {
  switch (type.kind) {
    case FieldKind::kString:
      return "string";
    case FieldKind::kBool:
      return "bool";
    case FieldKind::kInt32:
      return "int32";
    case FieldKind::kInt64:
      return "int64";
    case FieldKind::kDouble:
      return "float64";
    case FieldKind::kQuantity:
      return "resource.Quantity";
    case FieldKind::kTime:
      return "v1.Time";
    case FieldKind::kMicroTime:
      return "v1.MicroTime";
    case FieldKind::kDuration:
      return "v1.Duration";
    case FieldKind::kIntOrString:
      return "intstr.IntOrString";
    case FieldKind::kBytes:
      return "[]uint8";
    case FieldKind::kRaw:
    case FieldKind::kJson:
      return "runtime.RawExtension";
    case FieldKind::kStruct:
      return GoStructName(type.structure->name);
    case FieldKind::kList:
      return "[]" + GoTypeName(*type.element);
    case FieldKind::kMap:
      return "map[string]" + GoTypeName(*type.element);
    case FieldKind::kSkipNodeOperations:
      return "[]v1.NodeOperation";
  }
  return "";
}

// A handmade schema may contain names that are not in the key table.
const FieldSchema* FindByText(const StructSchema& schema, std::string_view name) {
  const auto found = std::ranges::find_if(
      schema.fields, [&](const FieldSchema& field) { return field.key->view() == name; });
  return found == schema.fields.end() ? nullptr : &*found;
}

class Reader {
 public:
  Reader(std::string_view json, Arena& arena, const ObjectReadOptions& options)
      : cursor_(json, arena, options.max_depth), arena_(arena), options_(options) {}

  Result<ObjectReadResult> Read(const StructSchema& schema) {
    TypeSchema type;
    type.kind = FieldKind::kStruct;
    type.structure = &schema;
    Node root;
    if (!ReadTyped(type, root) || !cursor_.ExpectEnd()) return InvalidArgument(cursor_.error());
    if (!type_error_.empty()) return InvalidArgument(type_error_);
    if (!strict_errors_.empty() && options_.strictness == Strictness::kStrict) {
      return InvalidArgument("strict decoding error: " + Join(strict_errors_, ", "));
    }
    if (root.kind == ValueKind::kAbsent) root = ObjectNode(nullptr, 0);
    return ObjectReadResult{FreezeNode(root), std::move(strict_errors_)};
  }

 private:
  // A step of the path to the current value: a field of a struct, a key of a map or an index.
  struct Step {
    const StructSchema* owner = nullptr;
    std::string_view name;
    std::size_t index = 0;
    bool is_index = false;
  };

  // "spec.devices[0].name", as strict errors print fields.
  // Cut if it is long: it contains the keys of maps, and every error repeats it.
  std::string PathText() const {
    std::string text;
    for (const Step& step : path_) {
      if (text.size() + step.name.size() > kMaxShownBytes) return text + "...";
      if (step.is_index) {
        text += StrCat("[", step.index, "]");
      } else {
        if (!text.empty()) text += '.';
        text += step.name;
      }
    }
    return text;
  }

  // The field being read, or the one whose list or map is being read.
  const FieldSchema* InnermostField() const {
    for (auto step = path_.rbegin(); step != path_.rend(); ++step) {
      if (step->owner != nullptr) return FindByText(*step->owner, step->name);
    }
    return nullptr;
  }

  // Remembers the first value of a wrong type. Reading continues, because a syntax error further
  // down takes precedence.
  bool WrongType(const TypeSchema& type, std::string_view what) {
    if (!type_error_.empty()) return true;
    std::string fields;
    const StructSchema* owner = nullptr;
    for (const Step& step : path_) {
      if (step.owner == nullptr) continue;
      owner = step.owner;
      if (!fields.empty()) fields += '.';
      fields += step.name;
    }
    if (const FieldSchema* field = InnermostField();
        field != nullptr && field->type.kind == FieldKind::kSkipNodeOperations) {
      // This field has no Go type: KEP-5945 makes it a boolean, Kubernetes a list.
      type_error_ = StrCat(
          PathText(), ": must be ",
          type.kind == FieldKind::kSkipNodeOperations ? "true, false or a list of " : "one of ",
          "NodePrepareResources, NodeUnprepareResources and *, not ",
          what.starts_with('a') || what.starts_with('o') ? "an " : "a ", what);
      return true;
    }
    type_error_ = StrCat("json: cannot unmarshal ", what, " into Go ");
    if (owner == nullptr) {
      type_error_ += "value";
    } else {
      type_error_ += StrCat("struct field ", LastPart(owner->name), ".", fields);
    }
    type_error_ += " of type " + GoTypeName(type);
    return true;
  }

  bool BadText(std::string message) {
    if (type_error_.empty()) type_error_ = std::move(message);
    return true;
  }

  // Skips a value that is not needed.
  bool Skip() {
    std::string_view ignored;
    return cursor_.ReadRaw(ignored);
  }

  bool SkipWrongType(const TypeSchema& type) {
    std::string_view what;
    switch (cursor_.Peek()) {
      case '"':
        what = "string";
        break;
      case '{':
        what = "object";
        break;
      case '[':
        what = "array";
        break;
      case 't':
      case 'f':
        what = "bool";
        break;
      default:
        what = "number";
        break;
    }
    return Skip() && WrongType(type, what);
  }

  void StrictError(std::string_view what) {
    if (options_.strictness == Strictness::kIgnore || strict_errors_.size() >= kMaxStrictErrors) {
      return;
    }
    // The same error may repeat as often as the text has members.
    if (++strict_errors_found_ > kMaxStrictErrorsFound) return;
    std::string text = StrCat(what, " field ", Quote(PathText()));
    if (std::ranges::find(strict_errors_, text) == strict_errors_.end()) {
      strict_errors_.push_back(std::move(text));
    }
  }

  Node CopyText(std::string_view text) { return TextNode(arena_.CopyText(text)); }

  // Leaves `out` absent for null and for values of a wrong type. Returns false only for invalid
  // JSON.
  bool ReadTyped(const TypeSchema& type, Node& out) {
    out = Node{};
    const char next = cursor_.Peek();
    if (next == 'n' && type.kind != FieldKind::kJson) return SkipNull();
    switch (type.kind) {
      case FieldKind::kString:
        return next == '"' ? ReadText(out) : SkipWrongType(type);
      case FieldKind::kBool:
        return next == 't' || next == 'f' ? cursor_.ReadLiteral(out) : SkipWrongType(type);
      case FieldKind::kInt32:
      case FieldKind::kInt64:
        return ReadInteger(type, out);
      case FieldKind::kDouble:
        return next == '-' || (next >= '0' && next <= '9') ? cursor_.ReadNumber(out)
                                                           : SkipWrongType(type);
      case FieldKind::kQuantity:
        return ReadQuantity(out);
      case FieldKind::kTime:
      case FieldKind::kMicroTime:
      case FieldKind::kDuration:
      case FieldKind::kBytes:
        return ReadFormattedText(type, out);
      case FieldKind::kIntOrString:
        if (next == '"') return ReadText(out);
        return ReadInteger(kInt32Type, out);
      case FieldKind::kRaw: {
        std::string_view raw;
        if (!cursor_.ReadRaw(raw)) return false;
        out = TextNode(raw, ValueKind::kRaw);
        return true;
      }
      case FieldKind::kJson:
        return cursor_.ReadValue(out, JsonCursor::Duplicates::kLastWins);
      case FieldKind::kStruct:
        return next == '{' ? ReadStruct(*type.structure, out) : SkipWrongType(type);
      case FieldKind::kList:
        return next == '[' ? ReadList(*type.element, out) : SkipWrongType(type);
      case FieldKind::kMap:
        return next == '{' ? ReadMap(*type.element, out) : SkipWrongType(type);
      case FieldKind::kSkipNodeOperations:
        if (next == 't' || next == 'f') return cursor_.ReadLiteral(out);
        return next == '[' ? ReadList(kStringType, out) : SkipWrongType(type);
    }
    return false;
  }

  bool SkipNull() {
    Node ignored;
    return cursor_.ReadLiteral(ignored);
  }

  bool ReadText(Node& out) {
    std::string_view text;
    if (!cursor_.ReadString(text)) return false;
    out = TextNode(text);
    return true;
  }

  bool ReadInteger(const TypeSchema& type, Node& out) {
    const char next = cursor_.Peek();
    if (next != '-' && (next < '0' || next > '9')) return SkipWrongType(type);
    const char* start = cursor_.at();
    std::string_view literal;
    if (!cursor_.ReadRaw(literal)) return false;
    const auto value = ParseInt64(literal);
    const bool fits =
        value && (type.kind == FieldKind::kInt64 || (*value >= INT32_MIN && *value <= INT32_MAX));
    if (!fits) return WrongType(type, StrCat("number ", std::string_view(start, literal.size())));
    out = IntNode(*value);
    return true;
  }

  bool ReadQuantity(Node& out) {
    std::string_view raw;
    if (!cursor_.ReadRaw(raw)) return false;
    auto quantity = Quantity::ParseJson(raw);
    if (!quantity.ok()) return BadText(quantity.error().message);
    out = CopyText(quantity->ToString());
    return true;
  }

  bool ReadFormattedText(const TypeSchema& type, Node& out) {
    if (cursor_.Peek() != '"') return SkipWrongType(type);
    std::string_view text;
    if (!cursor_.ReadString(text)) return false;
    if (type.kind == FieldKind::kBytes) {
      const auto bytes = Base64Decode(text);
      if (!bytes.ok()) return BadText(bytes.error().message);
      out = TextNode(text);
      return true;
    }
    if (type.kind == FieldKind::kTime && IsNormalTime(text)) {
      out = TextNode(text);
      return true;
    }
    Result<std::string> normal = std::string();
    if (type.kind == FieldKind::kDuration) {
      auto duration = ParseDuration(text);
      if (!duration.ok()) return BadText(duration.error().message);
      normal = FormatDuration(*duration);
    } else {
      normal = type.kind == FieldKind::kTime ? NormalizeTime(text) : NormalizeMicroTime(text);
    }
    if (!normal.ok()) return BadText(normal.error().message);
    if (normal->empty()) return true;  // Go's zero time is null
    out = *normal == text ? TextNode(text) : CopyText(*normal);
    return true;
  }

  bool ReadStruct(const StructSchema& schema, Node& out) {
    CHECK(schema.fields.size() <= kMaxFields);
    if (!cursor_.EnterObject()) return false;
    const std::size_t first_member = cursor_.open_members.size();
    std::bitset<kMaxFields> seen;
    std::size_t expected = 0;  // fields usually come in schema order
    std::size_t last = 0;
    bool ordered = true;
    path_.push_back({&schema, {}, 0, false});
    for (bool first = true;; first = false) {
      std::string_view name;
      bool more = false;
      if (!cursor_.NextKey(name, more, first)) return false;
      if (!more) break;
      path_.back().name = name;
      const FieldSchema* field = nullptr;
      if (expected < schema.fields.size() && schema.fields[expected].key->view() == name) {
        field = &schema.fields[expected];
      } else if (const Key* key = FindKey(name)) {
        field = schema.Find(*key);
      } else if (schema.index == nullptr) {
        field = FindByText(schema, name);
      }
      if (field == nullptr) {
        if (!ReadUnknown(schema, name, first_member)) return false;
        continue;
      }
      const auto index = static_cast<std::size_t>(field - schema.fields.data());
      expected = index + 1;
      Node value;
      if (seen[index]) StrictError("duplicate");
      if (!ReadTyped(field->type, value)) return false;
      const bool wanted = value.kind != ValueKind::kAbsent && !IsLeftOut(*field, value);
      if (seen[index]) {
        Member* member = cursor_.FindOpenMember(first_member, field->key);
        if (member != nullptr) {
          member->value = wanted ? value : Node{};  // absent members are dropped at the end
          continue;
        }
      }
      seen[index] = true;
      if (!wanted) continue;
      if (index < last) ordered = false;
      last = index;
      cursor_.open_members.push_back({field->key, value});
    }
    path_.pop_back();
    if (options_.zero_values) ordered = AddZeroValues(schema, first_member) && ordered;
    if (!ordered && !schema.preserve_unknown) SortFields(schema, first_member);
    out = cursor_.CloseObject(first_member);
    return true;
  }

  bool ReadUnknown(const StructSchema& schema, std::string_view name, std::size_t first_member) {
    if (!schema.preserve_unknown) {
      StrictError("unknown");
      return Skip();
    }
    Node value;
    if (!cursor_.ReadValue(value, JsonCursor::Duplicates::kLastWins)) return false;
    const Key* key = arena_.MakeKey(name);
    if (Member* member = cursor_.FindOpenMember(first_member, key)) {
      StrictError("duplicate");
      member->value = value;
    } else {
      cursor_.open_members.push_back({key, value});
    }
    return true;
  }

  void SortFields(const StructSchema& schema, std::size_t first_member) {
    std::sort(cursor_.open_members.begin() + static_cast<std::ptrdiff_t>(first_member),
              cursor_.open_members.end(), [&](const Member& a, const Member& b) {
                return schema.Find(*a.key) < schema.Find(*b.key);
              });
  }

  // Returns true if there was nothing to add.
  bool AddZeroValues(const StructSchema& schema, std::size_t first_member) {
    bool complete = true;
    for (const FieldSchema& field : schema.fields) {
      if (field.omit_empty || cursor_.FindOpenMember(first_member, field.key) != nullptr) continue;
      complete = false;
      cursor_.open_members.push_back(
          {field.key, field.pointer ? NullNode() : ZeroValue(field.type)});
    }
    return complete;
  }

  // How Go writes the zero value of the type.
  Node ZeroValue(const TypeSchema& type) {
    switch (type.kind) {
      case FieldKind::kString:
      case FieldKind::kBytes:
        return TextNode("");
      case FieldKind::kBool:
        return BoolNode(false);
      case FieldKind::kInt32:
      case FieldKind::kInt64:
      case FieldKind::kDouble:
      case FieldKind::kIntOrString:
        return IntNode(0);
      case FieldKind::kQuantity:
        return TextNode("0");
      case FieldKind::kDuration:
        return TextNode("0s");
      case FieldKind::kStruct: {
        const std::size_t first_member = cursor_.open_members.size();
        if (options_.zero_values) AddZeroValues(*type.structure, first_member);
        return cursor_.CloseObject(first_member);
      }
      default:
        return NullNode();
    }
  }

  bool ReadList(const TypeSchema& element, Node& out) {
    if (!cursor_.EnterArray()) return false;
    const std::size_t first_element = cursor_.open_elements.size();
    path_.push_back({nullptr, {}, 0, true});
    for (bool first = true;; first = false) {
      bool more = false;
      if (!cursor_.NextElement(more, first)) return false;
      if (!more) break;
      Node value;
      if (!ReadTyped(element, value)) return false;
      if (value.kind == ValueKind::kAbsent) value = ZeroValue(element);
      cursor_.open_elements.push_back(value);
      ++path_.back().index;
    }
    path_.pop_back();
    out = cursor_.CloseArray(first_element);
    return true;
  }

  bool ReadMap(const TypeSchema& element, Node& out) {
    if (!cursor_.EnterObject()) return false;
    const std::size_t first_member = cursor_.open_members.size();
    std::optional<std::unordered_map<std::string_view, std::size_t>> by_name;
    bool ordered = true;
    path_.push_back({nullptr, {}, 0, false});
    for (bool first = true;; first = false) {
      std::string_view name;
      bool more = false;
      if (!cursor_.NextKey(name, more, first)) return false;
      if (!more) break;
      path_.back().name = name;
      auto& members = cursor_.open_members;
      const Key* key = arena_.MakeKey(name);
      std::size_t index = members.size();
      if (index - first_member <= kMaxLinearMembers) {
        if (const Member* same = cursor_.FindOpenMember(first_member, key)) {
          index = static_cast<std::size_t>(same - members.data());
        }
      } else {
        if (!by_name) {
          by_name.emplace();
          for (std::size_t i = first_member; i < members.size(); ++i) {
            by_name->emplace(members[i].key->view(), i);
          }
        }
        index = by_name->emplace(name, index).first->second;
      }
      const bool duplicate = index != members.size();
      if (duplicate) StrictError("duplicate");
      Node value;
      if (!ReadTyped(element, value)) return false;
      if (value.kind == ValueKind::kAbsent) value = ZeroValue(element);
      if (duplicate) {
        cursor_.open_members[index].value = value;
        continue;
      }
      if (index > first_member && name < cursor_.open_members.back().key->view()) ordered = false;
      cursor_.open_members.push_back({key, value});
    }
    path_.pop_back();
    if (!ordered) {
      std::sort(cursor_.open_members.begin() + static_cast<std::ptrdiff_t>(first_member),
                cursor_.open_members.end(),
                [](const Member& a, const Member& b) { return a.key->view() < b.key->view(); });
    }
    out = cursor_.CloseObject(first_member);
    return true;
  }

  static constexpr TypeSchema kInt32Type{.kind = FieldKind::kInt32};
  static constexpr TypeSchema kStringType{.kind = FieldKind::kString};

  JsonCursor cursor_;
  Arena& arena_;
  const ObjectReadOptions& options_;
  std::vector<Step> path_;
  std::string type_error_;
  std::vector<std::string> strict_errors_;
  std::size_t strict_errors_found_ = 0;
};

}  // namespace

Result<ObjectReadResult> ReadObject(std::string_view json, const StructSchema& schema,
                                    const ObjectReadOptions& options) {
  if (json.size() > options.max_size_bytes) {
    return InvalidArgument(StrCat("the JSON text has ", json.size(),
                                  " bytes, more than the limit of ", options.max_size_bytes));
  }
  Arena arena;
  return Reader(json, arena, options).Read(schema);
}

namespace {

Result<ObjectReadResult> ReadAsJson(Value value, const StructSchema& schema,
                                    const ObjectReadOptions& options) {
  return ReadObject(WriteJson(value, {.escape_html = false}), schema, options);
}

// JSON is at most this many times larger than its tree.
constexpr std::size_t kMaxJsonGrowth = 8;

}  // namespace

Result<ObjectReadResult> ConvertObject(Value value, const StructSchema& schema,
                                       const ObjectReadOptions& options) {
  Arena arena;
  Node converted;
  if (ConvertWellTyped(value, schema, options, arena, converted) != Conversion::kUnsure) {
    TreePtr tree = FreezeNode(converted);
    if (tree->size_bytes() <= options.max_size_bytes / kMaxJsonGrowth) {
      return ObjectReadResult{std::move(tree), {}};
    }
  }
  return ReadAsJson(value, schema, options);
}

Result<ObjectReadResult> ConvertObject(const TreePtr& tree, const StructSchema& schema,
                                       const ObjectReadOptions& options) {
  if (tree->size_bytes() <= options.max_size_bytes / kMaxJsonGrowth) {
    Arena arena;
    Node converted;
    switch (ConvertWellTyped(tree->root(), schema, options, arena, converted)) {
      case Conversion::kUnchanged:
        return ObjectReadResult{tree, {}};
      case Conversion::kChanged:
        return ObjectReadResult{FreezeNode(converted), {}};
      case Conversion::kUnsure:
        break;
    }
  }
  return ReadAsJson(tree->root(), schema, options);
}

}  // namespace drakkar::api
