#include "api/codec/protobuf_writer.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "api/codec/json_schema_protobuf.h"
#include "api/codec/protobuf_outer.h"
#include "api/json/compact.h"
#include "api/json/writer.h"
#include "api/meta/time.h"
#include "base/hash/base64.h"
#include "base/text/text.h"

namespace drakkar::api {
namespace {

constexpr std::string_view kMagic("k8s\0", 4);

enum WireType : std::uint64_t { kVarint = 0, kFixed64 = 1, kLengthPrefixed = 2 };

void AppendTag(std::string& out, std::uint32_t number, WireType type) {
  AppendVarint(out, std::uint64_t{number} << 3 | type);
}

void AppendNumber(std::string& out, std::uint32_t number, std::int64_t value) {
  AppendTag(out, number, kVarint);
  AppendVarint(out, static_cast<std::uint64_t>(value));
}

// Go compares opaque JSON byte by byte, and JSON that it has read and written again is compact. If
// the client's spaces were kept, an unchanged field would count as changed.
std::string RawBytes(std::string_view text) {
  const bool has_spaces = text.find(' ') != std::string_view::npos ||
                          text.find('\n') != std::string_view::npos ||
                          text.find('\t') != std::string_view::npos;
  return has_spaces ? CompactJson(text) : std::string(text);
}

void WriteFields(std::string& out, Value value, const StructSchema& schema, std::uint32_t outer);

// Appends a field whose content `write` appends; its size is inserted in front afterwards.
template <typename Write>
void AppendMessage(std::string& out, std::uint32_t number, const Write& write) {
  AppendTag(out, number, kLengthPrefixed);
  const std::size_t start = out.size();
  write();
  const std::size_t size = out.size() - start;
  std::string head;
  AppendVarint(head, size);
  out.insert(start, head);
}

void AppendTime(std::string& out, std::uint32_t number, std::string_view text, bool micro) {
  const Result<WallTime> time = micro ? ParseMicroTime(text) : ParseTime(text);
  if (!time.ok()) return;
  const auto since = time->time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  const auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(since - seconds);
  AppendMessage(out, number, [&] {
    AppendNumber(out, 1, seconds.count());
    AppendNumber(out, 2, nanos.count());
  });
}

// `operations` in the list form that every reader knows.
void AppendSkipOperations(std::string& out, std::uint32_t number, Value operations) {
  if (operations.boolean()) AppendBytes(out, number, "*");
  for (Value operation : operations.elements()) AppendBytes(out, number, operation.str());
}

// One value that is neither list nor map.
void AppendValue(std::string& out, std::uint32_t number, Value value, const TypeSchema& type) {
  switch (type.kind) {
    case FieldKind::kString:
      return AppendBytes(out, number, value.str());
    case FieldKind::kBytes: {
      const Result<std::string> bytes = Base64Decode(value.str());
      if (bytes.ok()) AppendBytes(out, number, *bytes);
      return;
    }
    case FieldKind::kBool:
      return AppendNumber(out, number, value.boolean() ? 1 : 0);
    case FieldKind::kInt32:
    case FieldKind::kInt64:
      return AppendNumber(out, number, value.integer());
    case FieldKind::kDouble: {
      AppendTag(out, number, kFixed64);
      const auto bits = std::bit_cast<std::uint64_t>(value.number());
      char bytes[sizeof(bits)];
      std::memcpy(bytes, &bits, sizeof(bits));  // little endian, as we are
      out.append(bytes, sizeof(bytes));
      return;
    }
    case FieldKind::kQuantity:
      return AppendMessage(out, number, [&] { AppendBytes(out, 1, value.str()); });
    case FieldKind::kTime:
      return AppendTime(out, number, value.str(), false);
    case FieldKind::kMicroTime:
      return AppendTime(out, number, value.str(), true);
    case FieldKind::kDuration: {
      const Result<Duration> duration = ParseDuration(value.str());
      if (!duration.ok()) return;
      return AppendMessage(out, number, [&] { AppendNumber(out, 1, duration->count()); });
    }
    case FieldKind::kIntOrString:
      return AppendMessage(out, number, [&] {
        AppendNumber(out, 1, value.is_string() ? 1 : 0);
        AppendNumber(out, 2, value.integer());
        AppendBytes(out, 3, value.is_string() ? value.str() : "");
      });
    case FieldKind::kRaw:
    case FieldKind::kJson:
      return AppendMessage(out, number, [&] {
        AppendBytes(out, 1,
                    value.kind() == ValueKind::kRaw ? RawBytes(value.str()) : WriteJson(value));
      });
    case FieldKind::kStruct:
      return AppendMessage(out, number, [&] { WriteFields(out, value, *type.structure, 0); });
    case FieldKind::kSkipNodeOperations:
      return AppendSkipOperations(out, number, value);
    case FieldKind::kList:
    case FieldKind::kMap:
      return;  // no message holds them directly
  }
}

void AppendField(std::string& out, Value value, const FieldSchema& field) {
  const TypeSchema& type = field.type;
  const std::uint32_t number = field.protobuf_number;
  if (IsJsonSchema(field)) return AppendBytes(out, number, WriteJsonSchema(value));
  if (type.kind == FieldKind::kList) {
    for (Value element : value.elements()) AppendValue(out, number, element, *type.element);
    return;
  }
  if (type.kind != FieldKind::kMap) return AppendValue(out, number, value, type);
  for (const auto& [key, name, entry] : value.members()) {
    AppendMessage(out, number, [&, name = name, entry = entry] {
      AppendBytes(out, 1, name);
      if (type.element->kind != FieldKind::kList) return AppendValue(out, 2, entry, *type.element);
      // A list as a map's value is wrapped in a message of its own: items = 1.
      AppendMessage(out, 2, [&] {
        for (Value item : entry.elements()) AppendValue(out, 1, item, *type.element->element);
      });
    });
  }
}

// The fields that lie in the message `outer` (0: the struct's own).
void WriteFields(std::string& out, Value value, const StructSchema& schema, std::uint32_t outer) {
  std::uint32_t written_outers[4] = {};
  std::size_t outers = 0;
  for (const FieldSchema& field : schema.fields) {
    if (field.protobuf_number == 0) continue;
    const Value member = value.Entry(*field.key);
    if (!member.has_value()) continue;
    if (field.protobuf_outer == outer) {
      AppendField(out, member, field);
      continue;
    }
    // Inlined in Go, a separate message here: all its fields together, once.
    const std::uint32_t next = NextOuter(field, outer);
    if (next == 0) continue;
    const auto end = written_outers + outers;
    if (std::find(written_outers, end, next) != end) continue;
    if (outers == std::size(written_outers)) continue;
    written_outers[outers++] = next;
    AppendMessage(out, OuterNumber(next), [&] { WriteFields(out, value, schema, next); });
  }
}

}  // namespace

void AppendVarint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

void AppendBytesHead(std::string& out, std::uint32_t number, std::size_t size) {
  AppendTag(out, number, kLengthPrefixed);
  AppendVarint(out, size);
}

void AppendBytes(std::string& out, std::uint32_t number, std::string_view bytes) {
  AppendBytesHead(out, number, bytes.size());
  out += bytes;
}

std::string WriteProtobuf(Value value, const StructSchema& schema) {
  std::string out;
  WriteFields(out, value, schema, 0);
  return out;
}

std::string ProtobufEnvelopeHead(std::string_view api_version, std::string_view kind,
                                 std::size_t size) {
  std::string out(kMagic);
  AppendMessage(out, 1, [&] {
    AppendBytes(out, 1, api_version);
    AppendBytes(out, 2, kind);
  });
  AppendBytesHead(out, 2, size);
  return out;
}

}  // namespace drakkar::api
