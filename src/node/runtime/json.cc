#include "node/runtime/json.h"

#include "api/json/reader.h"
#include "base/text/text.h"

namespace drakkar::node {
namespace {

JsonValue FromTree(api::Value tree) {
  JsonValue value;
  switch (tree.kind()) {
    case api::ValueKind::kAbsent:
    case api::ValueKind::kNull:
      break;
    case api::ValueKind::kBool:
      value.kind = JsonValue::Kind::kBool;
      value.boolean = tree.boolean();
      break;
    case api::ValueKind::kInt:
      value.kind = JsonValue::Kind::kInteger;
      value.integer = tree.integer();
      break;
    case api::ValueKind::kDouble:
      value.kind = JsonValue::Kind::kNumber;
      value.number = tree.number();
      break;
    case api::ValueKind::kString:
    case api::ValueKind::kRaw:
      value.kind = JsonValue::Kind::kString;
      value.text = tree.str();
      break;
    case api::ValueKind::kArray:
      value.kind = JsonValue::Kind::kArray;
      for (api::Value item : tree.elements()) value.items.push_back(FromTree(item));
      break;
    case api::ValueKind::kObject:
      value.kind = JsonValue::Kind::kObject;
      for (const api::MemberView& member : tree.members()) {
        value.members.push_back({std::string(member.name), FromTree(member.value)});
      }
      break;
  }
  return value;
}

}  // namespace

const JsonValue* JsonValue::Find(std::string_view key) const {
  for (const auto& [name, value] : members) {
    if (name == key) return value.kind == Kind::kNull ? nullptr : &value;
  }
  return nullptr;
}

std::string JsonValue::String(std::string_view key) const {
  const JsonValue* value = Find(key);
  return value != nullptr && value->kind == Kind::kString ? value->text : std::string();
}

std::optional<std::int64_t> JsonValue::Integer(std::string_view key) const {
  const JsonValue* value = Find(key);
  if (value == nullptr || value->kind != Kind::kInteger) return std::nullopt;
  return value->integer;
}

bool JsonValue::Bool(std::string_view key) const {
  const JsonValue* value = Find(key);
  return value != nullptr && value->kind == Kind::kBool && value->boolean;
}

std::vector<std::string> JsonValue::Strings(std::string_view key) const {
  std::vector<std::string> strings;
  const JsonValue* value = Find(key);
  if (value == nullptr) return strings;
  for (const JsonValue& item : value->items) {
    if (item.kind == Kind::kString) strings.push_back(item.text);
  }
  return strings;
}

std::vector<std::pair<std::string, std::string>> JsonValue::StringMap(std::string_view key) const {
  std::vector<std::pair<std::string, std::string>> map;
  const JsonValue* value = Find(key);
  if (value == nullptr) return map;
  for (const auto& [name, member] : value->members) {
    if (member.kind == Kind::kString) map.emplace_back(name, member.text);
  }
  return map;
}

Result<JsonValue> ParseJson(std::string_view text) {
  ASSIGN_OR_RETURN(const api::TreePtr tree, api::ParseJson(text, {.max_depth = kMaxJsonDepth,
                                                                  .max_size_bytes = kMaxJsonBytes,
                                                                  .position_in_errors = true}));
  return FromTree(tree->root());
}

void JsonWriter::Separate() {
  if (needs_comma_) text_ += ',';
  needs_comma_ = false;
}
JsonWriter& JsonWriter::BeginObject() {
  Separate();
  text_ += '{';
  return *this;
}
JsonWriter& JsonWriter::EndObject() {
  text_ += '}';
  needs_comma_ = true;
  return *this;
}
JsonWriter& JsonWriter::BeginArray() {
  Separate();
  text_ += '[';
  return *this;
}
JsonWriter& JsonWriter::EndArray() {
  text_ += ']';
  needs_comma_ = true;
  return *this;
}
JsonWriter& JsonWriter::Key(std::string_view key) {
  String(key);
  text_ += ':';
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::String(std::string_view value) {
  Separate();
  text_ += '"';
  const bool clean = IsValidUtf8(value);
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (byte < 0x20) {
      constexpr char kDigits[] = "0123456789abcdef";
      text_ += "\\u00";
      text_ += kDigits[byte >> 4];
      text_ += kDigits[byte & 15];
    } else if (byte >= 0x80 && !clean) {
      text_ += "\\ufffd";
    } else {
      text_ += c;
    }
  }
  text_ += '"';
  needs_comma_ = true;
  return *this;
}
JsonWriter& JsonWriter::Integer(std::int64_t value) {
  Separate();
  text_ += std::to_string(value);
  needs_comma_ = true;
  return *this;
}
JsonWriter& JsonWriter::Unsigned(std::uint64_t value) {
  Separate();
  text_ += std::to_string(value);
  needs_comma_ = true;
  return *this;
}
JsonWriter& JsonWriter::Bool(bool value) {
  Separate();
  text_ += value ? "true" : "false";
  needs_comma_ = true;
  return *this;
}

void CopyJson(const JsonValue& value, JsonWriter& out) {
  switch (value.kind) {
    case JsonValue::Kind::kNull:
      out.String("");
      return;
    case JsonValue::Kind::kBool:
      out.Bool(value.boolean);
      return;
    case JsonValue::Kind::kInteger:
      out.Integer(value.integer);
      return;
    // Of what we copy only limits exceed 63 bits, and they are unsigned.
    case JsonValue::Kind::kNumber:
      out.Unsigned(UINT64_MAX);
      return;
    case JsonValue::Kind::kString:
      out.String(value.text);
      return;
    case JsonValue::Kind::kArray:
      out.BeginArray();
      for (const JsonValue& item : value.items) CopyJson(item, out);
      out.EndArray();
      return;
    case JsonValue::Kind::kObject:
      out.BeginObject();
      for (const auto& [name, member] : value.members) CopyJson(member, out.Key(name));
      out.EndObject();
      return;
  }
}

}  // namespace drakkar::node
