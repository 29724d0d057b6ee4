#include "api/codec/json_schema_protobuf.h"

#include <span>
#include <utility>
#include <vector>

#include "api/codec/protobuf_writer.h"
#include "api/codec/wire_reader.h"
#include "api/json/json_writer.h"
#include "api/json/writer.h"

namespace drakkar::api {
namespace {

constexpr int kMaxDepth = 100;

enum class Form : std::uint8_t {
  kText,          // Go writes an empty one if it is absent
  kOptionalText,  // absent if it was not set
  kBool,
  kOptionalBool,
  kInt,
  kDouble,
  kJson,  // JSON {raw = 1}
  kJsonList,
  kTextList,
  kSchema,
  kSchemaList,
  kSchemaMap,
  kSchemaOrList,   // {schema = 1, list = 2}
  kSchemaOrBool,   // {allows = 1, schema = 2}
  kDependencies,   // map to {schema = 1, texts = 2}
  kDocumentation,  // ExternalDocumentation
  kRules,          // list of ValidationRule
};

struct Member {
  std::uint32_t number;
  std::string_view name;
  Form form;
};

constexpr Member kSchemaMembers[] = {
    {1, "id", Form::kText},
    {2, "$schema", Form::kText},
    {3, "$ref", Form::kOptionalText},
    {4, "description", Form::kText},
    {5, "type", Form::kText},
    {6, "format", Form::kText},
    {7, "title", Form::kText},
    {8, "default", Form::kJson},
    {9, "maximum", Form::kDouble},
    {10, "exclusiveMaximum", Form::kBool},
    {11, "minimum", Form::kDouble},
    {12, "exclusiveMinimum", Form::kBool},
    {13, "maxLength", Form::kInt},
    {14, "minLength", Form::kInt},
    {15, "pattern", Form::kText},
    {16, "maxItems", Form::kInt},
    {17, "minItems", Form::kInt},
    {18, "uniqueItems", Form::kBool},
    {19, "multipleOf", Form::kDouble},
    {20, "enum", Form::kJsonList},
    {21, "maxProperties", Form::kInt},
    {22, "minProperties", Form::kInt},
    {23, "required", Form::kTextList},
    {24, "items", Form::kSchemaOrList},
    {25, "allOf", Form::kSchemaList},
    {26, "oneOf", Form::kSchemaList},
    {27, "anyOf", Form::kSchemaList},
    {28, "not", Form::kSchema},
    {29, "properties", Form::kSchemaMap},
    {30, "additionalProperties", Form::kSchemaOrBool},
    {31, "patternProperties", Form::kSchemaMap},
    {32, "dependencies", Form::kDependencies},
    {33, "additionalItems", Form::kSchemaOrBool},
    {34, "definitions", Form::kSchemaMap},
    {35, "externalDocs", Form::kDocumentation},
    {36, "example", Form::kJson},
    {37, "nullable", Form::kBool},
    {38, "x-kubernetes-preserve-unknown-fields", Form::kOptionalBool},
    {39, "x-kubernetes-embedded-resource", Form::kBool},
    {40, "x-kubernetes-int-or-string", Form::kBool},
    {41, "x-kubernetes-list-map-keys", Form::kTextList},
    {42, "x-kubernetes-list-type", Form::kOptionalText},
    {43, "x-kubernetes-map-type", Form::kOptionalText},
    {44, "x-kubernetes-validations", Form::kRules},
};
constexpr Member kDocumentationMembers[] = {
    {1, "description", Form::kText},
    {2, "url", Form::kText},
};
constexpr Member kRuleMembers[] = {
    {1, "rule", Form::kText},
    {2, "message", Form::kText},
    {3, "messageExpression", Form::kText},
    {4, "reason", Form::kOptionalText},
    {5, "fieldPath", Form::kText},
    {6, "optionalOldSelf", Form::kOptionalBool},
};
using Members = std::span<const Member>;

using Fields = std::vector<WireField>;

Result<Fields> ReadAll(std::string_view message) {
  Fields fields;
  WireReader reader(message);
  while (!reader.done()) {
    ASSIGN_OR_RETURN(fields.emplace_back(), reader.Next());
  }
  return fields;
}

// The last field with the number, which wins as in protobuf; null if there is none.
const WireField* FindField(const Fields& fields, std::uint32_t number) {
  for (std::size_t i = fields.size(); i-- > 0;) {
    if (fields[i].number == number) return &fields[i];
  }
  return nullptr;
}

bool IsBytes(const WireField& field) {
  return field.type == WireType::kBytes;
}

class Reader {
 public:
  Result<std::string> Run(std::string_view message) {
    RETURN_IF_ERROR(Object(message, kSchemaMembers));
    return json_.Take();
  }

 private:
  static Error Wrong(const Member& member) {
    return InvalidArgument(
        StrCat("the protobuf message is malformed: field ", member.name, " has another type"));
  }

  Result<void> Object(std::string_view message, Members members) {
    if (++depth_ > kMaxDepth) {
      return InvalidArgument("the protobuf message is nested too deeply");
    }
    ASSIGN_OR_RETURN(const Fields fields, ReadAll(message));
    json_.BeginObject();
    for (const Member& member : members) {
      const WireField* last = FindField(fields, member.number);
      if (last == nullptr) continue;
      RETURN_IF_ERROR(One(member, fields, *last));
    }
    json_.EndObject();
    --depth_;
    return Ok();
  }
  Result<void> Schema(std::string_view message) { return Object(message, kSchemaMembers); }

  Result<void> One(const Member& member, const Fields& fields, const WireField& last) {
    const bool is_number = member.form == Form::kBool || member.form == Form::kOptionalBool ||
                           member.form == Form::kInt;
    const WireType type = is_number                      ? WireType::kVarint
                          : member.form == Form::kDouble ? WireType::kFixed64
                                                         : WireType::kBytes;
    for (const WireField& field : fields) {
      if (field.number == member.number && field.type != type) return Wrong(member);
    }
    // Go writes the zero values of members that are not pointers.
    const bool is_zero = (member.form == Form::kText && last.bytes.empty()) ||
                         (member.form == Form::kBool && last.scalar == 0);
    if (is_zero) return Ok();
    json_.Key(member.name);
    switch (member.form) {
      case Form::kText:
      case Form::kOptionalText:
        json_.String(last.bytes);
        return Ok();
      case Form::kBool:
      case Form::kOptionalBool:
        json_.Bool(last.scalar != 0);
        return Ok();
      case Form::kInt:
        json_.Integer(static_cast<std::int64_t>(last.scalar));
        return Ok();
      case Form::kDouble: {
        std::string text;
        AppendJsonDouble(text, std::bit_cast<double>(last.scalar));
        json_.Raw(text);
        return Ok();
      }
      case Form::kJson:
        return Json(last.bytes);
      case Form::kSchema:
        return Schema(last.bytes);
      case Form::kSchemaOrList:
      case Form::kSchemaOrBool:
        return Either(member.form, last.bytes);
      case Form::kDocumentation:
        return Object(last.bytes, kDocumentationMembers);
      case Form::kSchemaMap:
      case Form::kDependencies:
        return Map(member, fields);
      case Form::kJsonList:
      case Form::kTextList:
      case Form::kSchemaList:
      case Form::kRules:
        return List(member.form, member.number, fields);
    }
    return Ok();
  }

  Result<void> Json(std::string_view message) {
    ASSIGN_OR_RETURN(const Fields fields, ReadAll(message));
    const WireField* raw = FindField(fields, 1);
    json_.Raw(raw == nullptr || raw->bytes.empty() ? "null" : raw->bytes);
    return Ok();
  }

  Result<void> List(Form form, std::uint32_t number, const Fields& fields) {
    json_.BeginArray();
    for (const WireField& field : fields) {
      if (field.number != number) continue;
      switch (form) {
        case Form::kJsonList:
          RETURN_IF_ERROR(Json(field.bytes));
          break;
        case Form::kTextList:
          json_.String(field.bytes);
          break;
        case Form::kRules:
          RETURN_IF_ERROR(Object(field.bytes, kRuleMembers));
          break;
        default:
          RETURN_IF_ERROR(Schema(field.bytes));
      }
    }
    json_.EndArray();
    return Ok();
  }

  Result<void> Map(const Member& member, const Fields& fields) {
    json_.BeginObject();
    for (const WireField& field : fields) {
      if (field.number != member.number) continue;
      ASSIGN_OR_RETURN(const Fields entry, ReadAll(field.bytes));
      const WireField* key = FindField(entry, 1);
      const WireField* value = FindField(entry, 2);
      if ((key != nullptr && !IsBytes(*key)) || (value != nullptr && !IsBytes(*value))) {
        return Wrong(member);
      }
      json_.Key(key == nullptr ? "" : key->bytes);
      const std::string_view content = value == nullptr ? "" : value->bytes;
      RETURN_IF_ERROR(member.form == Form::kDependencies ? Either(member.form, content)
                                                         : Schema(content));
    }
    json_.EndObject();
    return Ok();
  }

  Result<void> Either(Form form, std::string_view message) {
    ASSIGN_OR_RETURN(const Fields fields, ReadAll(message));
    const std::uint32_t schema_number = form == Form::kSchemaOrBool ? 2 : 1;
    const WireField* schema = FindField(fields, schema_number);
    if (form == Form::kSchemaOrBool) {
      if (schema != nullptr) return Schema(schema->bytes);
      const WireField* allows = FindField(fields, 1);
      json_.Bool(allows != nullptr && allows->scalar != 0);
      return Ok();
    }
    if (FindField(fields, 2) != nullptr) {
      return List(form == Form::kDependencies ? Form::kTextList : Form::kSchemaList, 2, fields);
    }
    if (schema != nullptr) return Schema(schema->bytes);
    json_.Raw("null");
    return Ok();
  }

  JsonWriter json_;
  int depth_ = 0;
};

void AppendScalar(std::string& out, std::uint32_t number, std::uint64_t value) {
  AppendVarint(out, std::uint64_t{number} << 3);
  AppendVarint(out, value);
}

std::string WriteMembers(Value value, Members members);

std::string WriteEither(Form form, Value value) {
  std::string out;
  if (form == Form::kSchemaOrBool) {
    AppendScalar(out, 1, value.is_object() || value.boolean() ? 1 : 0);
    if (value.is_object()) AppendBytes(out, 2, WriteJsonSchema(value));
    return out;
  }
  if (value.is_object()) AppendBytes(out, 1, WriteJsonSchema(value));
  for (Value each : value.elements()) {
    if (form == Form::kDependencies) {
      AppendBytes(out, 2, each.str());
    } else {
      AppendBytes(out, 2, WriteJsonSchema(each));
    }
  }
  return out;
}

void AppendRawJson(std::string& out, std::uint32_t number, Value value) {
  std::string message;
  AppendBytes(message, 1, WriteJson(value));
  AppendBytes(out, number, message);
}

void AppendMember(std::string& out, const Member& member, Value value) {
  switch (member.form) {
    case Form::kText:
    case Form::kOptionalText:
      return AppendBytes(out, member.number, value.str());
    case Form::kBool:
    case Form::kOptionalBool:
      return AppendScalar(out, member.number, value.boolean() ? 1 : 0);
    case Form::kInt:
      return AppendScalar(out, member.number, static_cast<std::uint64_t>(value.integer()));
    case Form::kDouble: {
      AppendVarint(out, std::uint64_t{member.number} << 3 | 1);
      const auto bits = std::bit_cast<std::uint64_t>(value.number());
      char bytes[sizeof(bits)];
      std::memcpy(bytes, &bits, sizeof(bits));  // little endian, as we are
      out.append(bytes, sizeof(bytes));
      return;
    }
    case Form::kJson:
      return AppendRawJson(out, member.number, value);
    case Form::kJsonList:
      for (Value each : value.elements()) AppendRawJson(out, member.number, each);
      return;
    case Form::kTextList:
      for (Value each : value.elements()) AppendBytes(out, member.number, each.str());
      return;
    case Form::kSchema:
      return AppendBytes(out, member.number, WriteJsonSchema(value));
    case Form::kSchemaList:
      for (Value each : value.elements()) {
        AppendBytes(out, member.number, WriteJsonSchema(each));
      }
      return;
    case Form::kRules:
      for (Value each : value.elements()) {
        AppendBytes(out, member.number, WriteMembers(each, kRuleMembers));
      }
      return;
    case Form::kSchemaOrList:
    case Form::kSchemaOrBool:
      return AppendBytes(out, member.number, WriteEither(member.form, value));
    case Form::kDocumentation:
      return AppendBytes(out, member.number, WriteMembers(value, kDocumentationMembers));
    case Form::kSchemaMap:
    case Form::kDependencies:
      for (const auto& [key, name, entry] : value.members()) {
        std::string message;
        AppendBytes(message, 1, name);
        AppendBytes(message, 2,
                    member.form == Form::kDependencies ? WriteEither(member.form, entry)
                                                       : WriteJsonSchema(entry));
        AppendBytes(out, member.number, message);
      }
      return;
  }
}

std::string WriteMembers(Value value, Members members) {
  std::string out;
  for (const Member& member : members) {
    const Value each = value.Entry(member.name);
    // Only a default or an example may be null.
    if (member.form == Form::kJson ? each.exists() : each.has_value()) {
      AppendMember(out, member, each);
    }
  }
  return out;
}

}  // namespace

bool IsJsonSchema(const FieldSchema& field) {
  return field.type.kind == FieldKind::kJson && field.key->view() == "openAPIV3Schema";
}

Result<std::string> ReadJsonSchema(std::string_view message) {
  return Reader().Run(message);
}

std::string WriteJsonSchema(Value schema) {
  return WriteMembers(schema, kSchemaMembers);
}

}  // namespace drakkar::api
