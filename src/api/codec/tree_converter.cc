#include "api/codec/tree_converter.h"

#include <algorithm>
#include <bitset>
#include <cstring>
#include <vector>

#include "api/json/cursor.h"
#include "api/meta/quantity.h"
#include "api/meta/time.h"
#include "base/hash/base64.h"

namespace drakkar::api {
namespace {

constexpr std::size_t kMaxFields = 256;

bool IsZero(const Node& node) {
  switch (node.kind) {
    case ValueKind::kBool:
      return !node.boolean;
    case ValueKind::kInt:
      return node.integer == 0;
    case ValueKind::kDouble:
      return node.number == 0;
    case ValueKind::kString:
    case ValueKind::kArray:
    case ValueKind::kObject:
      return node.size == 0;
    default:
      return false;
  }
}

bool IsAscii(std::string_view text) {
  std::uint64_t high = 0;
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left >= 8; at += 8, left -= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    high |= word;
  }
  for (; left > 0; ++at, --left) high |= static_cast<unsigned char>(*at);
  return (high & 0x8080808080808080u) == 0;
}

std::string_view TextOf(const Node& node) {
  return {node.text, node.size};
}

class Converter {
 public:
  Converter(Arena& arena, int max_depth) : arena_(arena), depth_left_(max_depth) {}

  // Leaves `out` absent for null.
  Conversion Convert(const TypeSchema& type, const Node& node, Node& out) {
    out = node;
    if (node.kind == ValueKind::kAbsent) return Conversion::kUnsure;
    if (node.kind == ValueKind::kNull) {
      if (type.kind == FieldKind::kJson) return Conversion::kUnsure;
      out = Node{};
      return Conversion::kChanged;
    }
    switch (type.kind) {
      case FieldKind::kString:
        return SureIf(IsPlainText(node));
      case FieldKind::kBool:
        return SureIf(node.kind == ValueKind::kBool);
      case FieldKind::kInt32:
        return SureIf(IsInt32(node));
      case FieldKind::kInt64:
      case FieldKind::kDouble:  // a whole double is read as an integer
        return SureIf(node.kind == ValueKind::kInt);
      case FieldKind::kIntOrString:
        return SureIf(IsPlainText(node) || IsInt32(node));
      case FieldKind::kQuantity:
      case FieldKind::kTime:
      case FieldKind::kMicroTime:
      case FieldKind::kDuration:
      case FieldKind::kBytes:
        return SureIf(IsPlainText(node) && IsNormal(type.kind, TextOf(node)));
      case FieldKind::kRaw:
        return SureIf(IsWholeJson(node));
      case FieldKind::kJson:
        return Conversion::kUnsure;
      case FieldKind::kStruct:
        return node.kind == ValueKind::kObject ? ConvertStruct(*type.structure, node, out)
                                               : Conversion::kUnsure;
      case FieldKind::kList:
        return node.kind == ValueKind::kArray ? ConvertList(*type.element, node, out)
                                              : Conversion::kUnsure;
      case FieldKind::kMap:
        return node.kind == ValueKind::kObject ? ConvertMap(*type.element, node, out)
                                               : Conversion::kUnsure;
      case FieldKind::kSkipNodeOperations:
        if (node.kind == ValueKind::kArray) return ConvertList(kStringType, node, out);
        return SureIf(node.kind == ValueKind::kBool);
    }
    return Conversion::kUnsure;
  }

 private:
  static Conversion SureIf(bool sure) {
    return sure ? Conversion::kUnchanged : Conversion::kUnsure;
  }
  static bool IsPlainText(const Node& node) {
    return node.kind == ValueKind::kString && IsAscii(TextOf(node));
  }
  static bool IsInt32(const Node& node) {
    return node.kind == ValueKind::kInt && node.integer >= INT32_MIN && node.integer <= INT32_MAX;
  }

  static bool IsNormal(FieldKind kind, std::string_view text) {
    switch (kind) {
      case FieldKind::kQuantity: {
        const auto quantity = Quantity::Parse(text);
        return quantity.ok() && quantity->ToString() == text;
      }
      case FieldKind::kTime:
        return IsNormalTime(text);
      case FieldKind::kMicroTime: {
        const auto normal = NormalizeMicroTime(text);
        return normal.ok() && !normal->empty() && *normal == text;
      }
      case FieldKind::kDuration: {
        const auto duration = ParseDuration(text);
        return duration.ok() && FormatDuration(*duration) == text;
      }
      case FieldKind::kBytes:
        return Base64Decode(text).ok();
      default:
        return false;
    }
  }

  // Raw JSON may have been assembled by hand.
  bool IsWholeJson(const Node& node) {
    if (node.kind != ValueKind::kRaw || node.size == 0) return false;
    JsonCursor cursor(TextOf(node), arena_, depth_left_);
    std::string_view read;
    return cursor.ReadRaw(read) && read.size() == node.size && TextOf(node) != "null";
  }

  Conversion ConvertStruct(const StructSchema& schema, const Node& node, Node& out) {
    if (schema.index == nullptr || schema.preserve_unknown || schema.fields.size() > kMaxFields ||
        depth_left_ <= 0) {
      return Conversion::kUnsure;
    }
    --depth_left_;
    const std::size_t first = members_.size();
    std::bitset<kMaxFields> seen;
    std::size_t expected = 0, last = 0;
    bool changed = false, ordered = true;
    for (std::uint32_t i = 0; i < node.size; ++i) {
      const Member& member = node.members[i];
      const FieldSchema* field = nullptr;
      if (expected < schema.fields.size() && schema.fields[expected].key == member.key) {
        field = &schema.fields[expected];
      } else if (member.key->id != 0) {
        field = schema.Find(*member.key);
      }
      if (field == nullptr) return Conversion::kUnsure;
      const auto index = static_cast<std::size_t>(field - schema.fields.data());
      expected = index + 1;
      if (seen[index]) return Conversion::kUnsure;
      seen[index] = true;
      Node value;
      const Conversion converted = Convert(field->type, member.value, value);
      if (converted == Conversion::kUnsure) return converted;
      if (value.kind == ValueKind::kAbsent || IsLeftOut(*field, value)) {
        changed = true;
        continue;
      }
      changed = changed || converted == Conversion::kChanged;
      if (index < last) ordered = false;
      last = index;
      members_.push_back({field->key, value});
    }
    ++depth_left_;
    if (!ordered) {
      std::sort(members_.begin() + static_cast<std::ptrdiff_t>(first), members_.end(),
                [&](const Member& a, const Member& b) {
                  return schema.Find(*a.key) < schema.Find(*b.key);
                });
    }
    return CloseObject(first, changed || !ordered, out);
  }

  Conversion ConvertList(const TypeSchema& element, const Node& node, Node& out) {
    if (depth_left_ <= 0) return Conversion::kUnsure;
    --depth_left_;
    const std::size_t first = elements_.size();
    bool changed = false;
    for (std::uint32_t i = 0; i < node.size; ++i) {
      Node value;
      const Conversion converted = Convert(element, node.elements[i], value);
      // Null stands for the zero value of the type.
      if (converted == Conversion::kUnsure || value.kind == ValueKind::kAbsent) {
        return Conversion::kUnsure;
      }
      changed = changed || converted == Conversion::kChanged;
      elements_.push_back(value);
    }
    ++depth_left_;
    if (changed) {
      const std::size_t count = elements_.size() - first;
      Node* elements = arena_.AllocateArray<Node>(count);
      std::copy(elements_.begin() + static_cast<std::ptrdiff_t>(first), elements_.end(), elements);
      out = ArrayNode(elements, count);
    }
    elements_.resize(first);
    return changed ? Conversion::kChanged : Conversion::kUnchanged;
  }

  Conversion ConvertMap(const TypeSchema& element, const Node& node, Node& out) {
    if (depth_left_ <= 0) return Conversion::kUnsure;
    --depth_left_;
    const std::size_t first = members_.size();
    bool changed = false, ordered = true;
    for (std::uint32_t i = 0; i < node.size; ++i) {
      const Member& member = node.members[i];
      if (!IsAscii(member.key->view())) return Conversion::kUnsure;
      Node value;
      const Conversion converted = Convert(element, member.value, value);
      if (converted == Conversion::kUnsure || value.kind == ValueKind::kAbsent) {
        return Conversion::kUnsure;
      }
      changed = changed || converted == Conversion::kChanged;
      if (i > 0 && member.key->view() <= members_.back().key->view()) ordered = false;
      members_.push_back({member.key, value});
    }
    ++depth_left_;
    if (!ordered) {
      const auto begin = members_.begin() + static_cast<std::ptrdiff_t>(first);
      std::sort(begin, members_.end(),
                [](const Member& a, const Member& b) { return a.key->view() < b.key->view(); });
      const auto twice = std::adjacent_find(
          begin, members_.end(),
          [](const Member& a, const Member& b) { return a.key->view() == b.key->view(); });
      if (twice != members_.end()) return Conversion::kUnsure;
    }
    return CloseObject(first, changed || !ordered, out);
  }

  Conversion CloseObject(std::size_t first, bool changed, Node& out) {
    if (changed) {
      const std::size_t count = members_.size() - first;
      Member* members = arena_.AllocateArray<Member>(count);
      std::copy(members_.begin() + static_cast<std::ptrdiff_t>(first), members_.end(), members);
      out = ObjectNode(members, count);
    }
    members_.resize(first);
    return changed ? Conversion::kChanged : Conversion::kUnchanged;
  }

  static constexpr TypeSchema kStringType{.kind = FieldKind::kString};

  Arena& arena_;
  int depth_left_;
  // The contents of the open containers.
  std::vector<Member> members_;
  std::vector<Node> elements_;
};

}  // namespace

bool IsLeftOut(const FieldSchema& field, const Node& value) {
  if (!field.omit_empty || !IsZero(value)) return false;
  switch (field.type.kind) {
    case FieldKind::kList:
    case FieldKind::kMap:
    case FieldKind::kString:
    case FieldKind::kBool:
    case FieldKind::kInt32:
    case FieldKind::kInt64:
    case FieldKind::kDouble:
    case FieldKind::kBytes:
      return !field.pointer;
    default:
      return false;
  }
}

Conversion ConvertWellTyped(Value value, const StructSchema& schema,
                            const ObjectReadOptions& options, Arena& arena, Node& out) {
  if (options.zero_values || !value.is_object()) return Conversion::kUnsure;
  TypeSchema type;
  type.kind = FieldKind::kStruct;
  type.structure = &schema;
  return Converter(arena, options.max_depth).Convert(type, *value.node(), out);
}

}  // namespace drakkar::api
