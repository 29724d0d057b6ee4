#include "apiserver/custom/schema_value.h"

#include <algorithm>
#include <array>

#include "base/exec/work_budget.h"
#include "base/hash/base64.h"
#include "base/text/text.h"
#include "cel/library/time.h"
#include "cel/object/tree_value.h"

namespace drakkar::apiserver {
namespace {

namespace types = cel::types;
using Type = JsonSchema::Type;

constexpr std::array<std::string_view, 21> kReserved = {
    "true",     "false",   "null",      "in",       "as",  "break",  "const",
    "continue", "else",    "for",       "function", "if",  "import", "let",
    "loop",     "package", "namespace", "return",   "var", "void",   "while"};

struct Escape {
  std::string_view text;
  std::string_view escaped;
};
constexpr std::array<Escape, 4> kEscapes = {
    {{"__", "__underscores__"}, {".", "__dot__"}, {"-", "__dash__"}, {"/", "__slash__"}}};

// An object of a schema. Members are converted when they are first read.
class SchemaMap final : public cel::MapValue {
 public:
  SchemaMap(cel::Arena& arena, api::Value object, const JsonSchema& schema)
      : arena_(arena), object_(object), schema_(schema) {}

  bool Find(const cel::Value& key, std::uint32_t, cel::Value* out) const override {
    const std::uint32_t place = PlaceOf(key);
    if (place == kNowhere) return false;
    *out = ValueAt(place);
    return true;
  }
  bool Contains(const cel::Value& key, std::uint32_t) const override {
    return PlaceOf(key) != kNowhere;
  }
  cel::Value KeyAt(std::uint32_t index) const override {
    return cel::MakeString(MemberAt(index).key->view());
  }
  cel::Value ValueAt(std::uint32_t index) const override {
    if (values_ == nullptr) {
      values_ = arena_.AllocateArray<cel::Value>(object_.size());
      converted_ = arena_.AllocateArray<bool>(object_.size());
      std::fill(converted_, converted_ + object_.size(), false);
    }
    if (!converted_[index]) {
      const api::Value member(&MemberAt(index).value);
      const std::string_view name = MemberAt(index).key->view();
      const JsonSchema* below = schema_.Find(name);
      if (below == nullptr) below = schema_.additional.get();
      values_[index] =
          below == nullptr ? cel::TreeValue(arena_, member) : SchemaValue(arena_, member, *below);
      converted_[index] = true;
    }
    return values_[index];
  }

 private:
  static constexpr std::uint32_t kNowhere = 0xffff'ffff;
  const api::Member& MemberAt(std::uint32_t index) const { return object_.node()->members[index]; }

  std::uint32_t PlaceOf(const cel::Value& key) const {
    if (key.kind != cel::Kind::kString) return kNowhere;
    std::string name;
    std::string_view wanted = key.text();
    if (!schema_.is_map() && wanted.find("__") != std::string_view::npos) {
      name = UnescapeProperty(wanted);
      wanted = name;
    }
    const std::size_t size = object_.size();
    WorkBudget::Charge(size / 8);
    for (std::uint32_t i = 0; i < size; ++i) {
      if (MemberAt(i).key->view() == wanted) return i;
    }
    return kNowhere;
  }

  cel::Arena& arena_;
  const api::Value object_;
  const JsonSchema& schema_;
  mutable cel::Value* values_ = nullptr;
  mutable bool* converted_ = nullptr;
};

}  // namespace

std::string EscapeProperty(std::string_view name) {
  if (std::ranges::find(kReserved, name) != kReserved.end()) return StrCat("__", name, "__");
  std::string escaped;
  for (std::size_t at = 0; at < name.size();) {
    const auto escape = std::ranges::find_if(
        kEscapes, [&](const Escape& each) { return name.substr(at).starts_with(each.text); });
    if (escape != kEscapes.end()) {
      escaped += escape->escaped;
      at += escape->text.size();
      continue;
    }
    const char c = name[at++];
    const bool is_letter = c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_letter && !(is_digit && !escaped.empty())) return {};
    escaped += c;
  }
  return escaped;
}

std::string UnescapeProperty(std::string_view identifier) {
  if (identifier.size() > 4 && identifier.starts_with("__") && identifier.ends_with("__")) {
    const std::string_view inner = identifier.substr(2, identifier.size() - 4);
    if (std::ranges::find(kReserved, inner) != kReserved.end()) return std::string(inner);
  }
  std::string name;
  for (std::size_t at = 0; at < identifier.size();) {
    const auto escape = std::ranges::find_if(kEscapes, [&](const Escape& each) {
      return identifier.substr(at).starts_with(each.escaped);
    });
    if (escape != kEscapes.end()) {
      name += escape->text;
      at += escape->escaped.size();
    } else {
      name += identifier[at++];
    }
  }
  return name;
}

cel::TypeRef DeclareSchemaType(cel::Declarations& declarations, const JsonSchema& schema,
                               const std::string& name) {
  if (schema.int_or_string) return types::Dyn();
  switch (schema.type) {
    case Type::kNone:
      return types::Dyn();
    case Type::kString:
      if (schema.format == "byte") return types::Bytes();
      if (schema.format == "duration") return types::Duration();
      if (schema.format == "date" || schema.format == "date-time") return types::Timestamp();
      return types::String();
    case Type::kInteger:
      return types::Int();
    case Type::kNumber:
      return types::Double();
    case Type::kBoolean:
      return types::Bool();
    case Type::kArray:
      return types::List(schema.items == nullptr
                             ? types::Dyn()
                             : DeclareSchemaType(declarations, *schema.items, name + ".@idx"));
    case Type::kObject:
      break;
  }
  if (schema.additional != nullptr) {
    return types::Map(types::String(),
                      DeclareSchemaType(declarations, *schema.additional, name + ".@elem"));
  }
  if (schema.allows_any) return types::Map(types::String(), types::Dyn());
  cel::StructType fields;
  for (const auto& [property, below] : schema.properties) {
    const std::string identifier = EscapeProperty(property);
    if (identifier.empty()) continue;
    fields.fields[identifier] =
        DeclareSchemaType(declarations, *below, StrCat(name, ".", property));
  }
  if (schema.is_embedded) {
    const std::string metadata = name + ".metadata";
    declarations.AddStruct(metadata,
                           {{{"name", types::String()}, {"generateName", types::String()}}});
    fields.fields["apiVersion"] = types::String();
    fields.fields["kind"] = types::String();
    fields.fields["metadata"] = types::Struct(metadata);
  }
  declarations.AddStruct(name, std::move(fields));
  return types::Struct(name);
}

cel::Value SchemaValue(cel::Arena& arena, api::Value value, const JsonSchema& schema) {
  switch (value.kind()) {
    case api::ValueKind::kObject:
      return cel::MakeMap(arena.New<SchemaMap>(arena, value, schema),
                          static_cast<std::uint32_t>(value.size()));
    case api::ValueKind::kArray: {
      if (schema.items == nullptr) break;
      const std::size_t size = value.size();
      WorkBudget::Charge(10 * size);
      cel::Value* items = arena.AllocateArray<cel::Value>(size);
      std::size_t i = 0;
      for (api::Value element : value.elements()) {
        items[i++] = SchemaValue(arena, element, *schema.items);
      }
      return cel::NewListView(arena, items, size);
    }
    case api::ValueKind::kInt:
      if (schema.type == Type::kNumber) return cel::MakeDouble(value.number());
      break;
    case api::ValueKind::kDouble:
      if (schema.type == Type::kInteger) {
        return cel::MakeInt(static_cast<std::int64_t>(value.number()));
      }
      break;
    case api::ValueKind::kString: {
      const std::string_view text = value.str();
      if (schema.format == "byte") {
        const Result<std::string> bytes = Base64Decode(text);
        if (!bytes.ok()) return cel::NewError(arena, bytes.error().message);
        return cel::MakeBytes(cel::CopyText(arena, *bytes));
      }
      if (schema.format == "duration") {
        if (const auto duration = cel::ParseDuration(text)) return cel::MakeDuration(*duration);
        return cel::NewError(arena, StrCat("Invalid duration ", Quote(text)));
      }
      if (schema.format == "date" || schema.format == "date-time") {
        const auto instant = cel::ParseTimestamp(
            schema.format == "date" ? StrCat(text, "T00:00:00Z") : std::string(text));
        if (instant) return cel::MakeTimestamp(instant->seconds, instant->nanoseconds);
        return cel::NewError(arena,
                             StrCat("Invalid ", schema.format, " formatted string ", Quote(text)));
      }
      break;
    }
    default:
      break;
  }
  return cel::TreeValue(arena, value);
}

}  // namespace drakkar::apiserver
