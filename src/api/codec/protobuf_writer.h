#pragma once

#include <string>
#include <string_view>

#include "api/schema/schema.h"
#include "api/tree/value.h"

namespace drakkar::api {

// Encodes a tree as a message, using the schema's field numbers; ReadProtobuf reads it. Fields
// without a number (kind, apiVersion), unknown fields and absent ones are omitted.
// skipNodeOperations is written as a list. Values must be as ConvertObject leaves them; a text that
// does not parse (time, base64) is omitted.
std::string WriteProtobuf(Value value, const StructSchema& schema);

// Building blocks of the wire format, for callers that assemble messages from encoded parts.
void AppendVarint(std::string& out, std::uint64_t value);
// The tag and the size of a field whose `size` bytes follow.
void AppendBytesHead(std::string& out, std::uint32_t number, std::size_t size);
void AppendBytes(std::string& out, std::uint32_t number, std::string_view bytes);

// Everything that precedes the message of `size` bytes in an object's Kubernetes form: the magic,
// the type and the message's header.
std::string ProtobufEnvelopeHead(std::string_view api_version, std::string_view kind,
                                 std::size_t size);

}  // namespace drakkar::api
