#include "api/codec/protobuf_reader.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "api/codec/json_schema_protobuf.h"
#include "api/codec/protobuf_outer.h"
#include "api/codec/wire_reader.h"
#include "api/meta/time.h"
#include "api/tree/draft.h"
#include "base/hash/base64.h"
#include "base/text/text.h"

namespace drakkar::api {
namespace {

constexpr std::string_view kMagic("k8s\0", 4);
constexpr int kMaxDepth = 100;

// The first two fields of small messages: times, quantities, durations, numbers or texts.
struct SmallMessage {
  std::uint64_t scalar[4] = {};
  std::string_view bytes[4];
  bool has[4] = {};
};

Result<SmallMessage> ReadSmall(std::string_view message) {
  SmallMessage small;
  WireReader reader(message);
  while (!reader.done()) {
    ASSIGN_OR_RETURN(const WireField field, reader.Next());
    if (field.number > 3) continue;
    small.scalar[field.number] = field.scalar;
    small.bytes[field.number] = field.bytes;
    small.has[field.number] = true;
  }
  return small;
}

Result<Draft> ReadStruct(std::string_view message, const StructSchema& schema, int depth);

Error WrongType(const FieldSchema& field) {
  return InvalidArgument(
      StrCat("the protobuf message is malformed: field ", field.key->view(), " has another type"));
}

// Reads one value of a type; the caller assembles lists and maps.
Result<Draft> ReadValue(const FieldSchema& field, const TypeSchema& type, const WireField& wire,
                        int depth) {
  const bool is_bytes = wire.type == WireType::kBytes;
  switch (type.kind) {
    case FieldKind::kString:
      if (!is_bytes) return WrongType(field);
      return Draft(std::string(wire.bytes));
    case FieldKind::kBytes:
      if (!is_bytes) return WrongType(field);
      return Draft(Base64Encode(wire.bytes));
    case FieldKind::kBool:
      if (is_bytes) return WrongType(field);
      return Draft(wire.scalar != 0);
    case FieldKind::kInt32:
    case FieldKind::kInt64:
      if (is_bytes) return WrongType(field);
      return Draft(static_cast<std::int64_t>(wire.scalar));
    case FieldKind::kDouble:
      if (wire.type != WireType::kFixed64) return WrongType(field);
      return Draft(std::bit_cast<double>(wire.scalar));
    default:
      break;
  }
  if (!is_bytes) return WrongType(field);
  switch (type.kind) {
    case FieldKind::kQuantity: {
      ASSIGN_OR_RETURN(const SmallMessage small, ReadSmall(wire.bytes));
      return Draft(small.has[1] ? std::string(small.bytes[1]) : std::string("0"));
    }
    case FieldKind::kTime:
    case FieldKind::kMicroTime: {
      ASSIGN_OR_RETURN(const SmallMessage small, ReadSmall(wire.bytes));
      const auto seconds = static_cast<std::int64_t>(small.scalar[1]);
      // An empty message is the zero time, which stands for "not set".
      if (!small.has[1] && !small.has[2]) return Draft(nullptr);
      if (seconds < -62'135'596'800 || seconds > 253'402'300'799) return WrongType(field);
      // Years out of our clock's range lose their fraction.
      const WallTime time = WallTime(std::chrono::seconds(
                                std::clamp<std::int64_t>(seconds, -9'000'000'000, 9'000'000'000))) +
                            std::chrono::nanoseconds(static_cast<std::int32_t>(small.scalar[2]));
      return Draft(type.kind == FieldKind::kTime ? FormatTime(time) : FormatMicroTime(time));
    }
    case FieldKind::kDuration: {
      ASSIGN_OR_RETURN(const SmallMessage small, ReadSmall(wire.bytes));
      return Draft(FormatDuration(Duration(static_cast<std::int64_t>(small.scalar[1]))));
    }
    case FieldKind::kIntOrString: {
      ASSIGN_OR_RETURN(const SmallMessage small, ReadSmall(wire.bytes));
      if (small.scalar[1] == 1) return Draft(std::string(small.bytes[3]));
      return Draft(static_cast<std::int64_t>(static_cast<std::int32_t>(small.scalar[2])));
    }
    case FieldKind::kJson:
      if (IsJsonSchema(field)) {
        ASSIGN_OR_RETURN(std::string json, ReadJsonSchema(wire.bytes));
        return Draft::Raw(std::move(json));
      }
      [[fallthrough]];
    case FieldKind::kRaw: {
      ASSIGN_OR_RETURN(const SmallMessage small, ReadSmall(wire.bytes));
      return Draft::Raw(std::string(small.bytes[1]));
    }
    case FieldKind::kStruct:
      return ReadStruct(wire.bytes, *type.structure, depth + 1);
    default:
      return WrongType(field);
  }
}

Result<void> ReadMapEntry(const FieldSchema& field, const WireField& wire, Draft& map, int depth) {
  if (wire.type != WireType::kBytes) return WrongType(field);
  std::string key;
  std::optional<WireField> value;
  WireReader reader(wire.bytes);
  while (!reader.done()) {
    ASSIGN_OR_RETURN(const WireField part, reader.Next());
    if (part.number == 1) key = part.bytes;
    if (part.number == 2) value = part;
  }
  if (!value) {
    // Zero values are omitted on the wire.
    value.emplace();
    value->type = WireType::kBytes;
  }
  if (field.type.element->kind == FieldKind::kList) {
    // A list as a map's value is wrapped in a message of its own: items = 1.
    Draft list = Draft::Array();
    WireReader items(value->bytes);
    while (!items.done()) {
      ASSIGN_OR_RETURN(const WireField item, items.Next());
      if (item.number != 1) continue;
      ASSIGN_OR_RETURN(Draft one, ReadValue(field, *field.type.element->element, item, depth));
      list.Append(std::move(one));
    }
    map.Entry(key) = std::move(list);
    return Ok();
  }
  ASSIGN_OR_RETURN(Draft read, ReadValue(field, *field.type.element, *value, depth));
  map.Entry(key) = std::move(read);
  return Ok();
}

Result<void> ReadList(const FieldSchema& field, const TypeSchema& element, const WireField& wire,
                      Draft& list, int depth) {
  const bool is_number = element.kind == FieldKind::kInt32 || element.kind == FieldKind::kInt64 ||
                         element.kind == FieldKind::kBool;
  if (is_number && wire.type == WireType::kBytes) {
    WireReader packed(wire.bytes);
    while (!packed.done()) {
      WireField one;
      ASSIGN_OR_RETURN(one.scalar, packed.Varint());
      ASSIGN_OR_RETURN(Draft value, ReadValue(field, element, one, depth));
      list.Append(std::move(value));
    }
    return Ok();
  }
  ASSIGN_OR_RETURN(Draft value, ReadValue(field, element, wire, depth));
  list.Append(std::move(value));
  return Ok();
}

Result<void> ReadFields(std::string_view message, const StructSchema& schema, std::uint32_t outer,
                        Draft& object, int depth) {
  static const TypeSchema kText{.kind = FieldKind::kString};
  WireReader reader(message);
  while (!reader.done()) {
    ASSIGN_OR_RETURN(const WireField wire, reader.Next());
    std::uint32_t inlined = 0;
    for (const FieldSchema& field : schema.fields) {
      if (const std::uint32_t next = NextOuter(field, outer);
          next != 0 && OuterNumber(next) == wire.number) {
        inlined = next;
        continue;
      }
      if (field.protobuf_outer != outer || field.protobuf_number != wire.number) continue;
      Draft& slot = object.Entry(*field.key);
      switch (field.type.kind) {
        case FieldKind::kList:
          if (!slot.is_array()) slot = Draft::Array();
          RETURN_IF_ERROR(ReadList(field, *field.type.element, wire, slot, depth));
          break;
        case FieldKind::kSkipNodeOperations:
          if (!slot.is_array()) slot = Draft::Array();
          RETURN_IF_ERROR(ReadList(field, kText, wire, slot, depth));
          break;
        case FieldKind::kMap:
          if (!slot.is_object()) slot = Draft::Object();
          RETURN_IF_ERROR(ReadMapEntry(field, wire, slot, depth));
          break;
        default: {
          ASSIGN_OR_RETURN(slot, ReadValue(field, field.type, wire, depth));
        }
      }
      break;
    }
    if (inlined != 0 && wire.type == WireType::kBytes) {
      RETURN_IF_ERROR(ReadFields(wire.bytes, schema, inlined, object, depth + 1));
    }
  }
  return Ok();
}

Result<Draft> ReadStruct(std::string_view message, const StructSchema& schema, int depth) {
  if (depth > kMaxDepth) return InvalidArgument("the protobuf message is nested too deeply");
  Draft object = Draft::Object();
  RETURN_IF_ERROR(ReadFields(message, schema, 0, object, depth));
  return object;
}

}  // namespace

bool HasProtobufMagic(std::string_view bytes) {
  return bytes.substr(0, kMagic.size()) == kMagic;
}

Result<ProtobufEnvelope> OpenProtobufEnvelope(std::string_view bytes) {
  if (!HasProtobufMagic(bytes)) {
    return InvalidArgument(
        "provided data does not appear to be a protobuf message, expected prefix "
        "[107 56 115 0]");
  }
  ProtobufEnvelope envelope;
  WireReader reader(bytes.substr(kMagic.size()));
  while (!reader.done()) {
    ASSIGN_OR_RETURN(const WireField field, reader.Next());
    if (field.number == 1) {
      ASSIGN_OR_RETURN(const SmallMessage type, ReadSmall(field.bytes));
      envelope.api_version = type.bytes[1];
      envelope.kind = type.bytes[2];
    }
    if (field.number == 2) envelope.message = field.bytes;
  }
  return envelope;
}

Result<TreePtr> ReadProtobuf(std::string_view message, const StructSchema& schema) {
  ASSIGN_OR_RETURN(const Draft draft, ReadStruct(message, schema, 0));
  return draft.Freeze();
}

}  // namespace drakkar::api
