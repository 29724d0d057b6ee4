#pragma once

#include <string>
#include <string_view>

#include "api/schema/schema.h"
#include "api/tree/value.h"

namespace drakkar::api {

// The message of a tree, by the field numbers of the schema: what ReadProtobuf reads. Fields that
// have no number (kind, apiVersion) and what the schema does not know are left out, and so is what
// is absent; skipNodeOperations is written as its list. Values must be as ConvertObject leaves
// them; a text that does not parse (time, base64) is left out.
std::string WriteProtobuf(Value value, const StructSchema& schema);

// Pieces of the wire format, for who puts messages together out of encoded parts.
void AppendVarint(std::string& out, std::uint64_t value);
// The tag and the size of a field whose `size` bytes follow.
void AppendBytesHead(std::string& out, std::uint32_t number, std::size_t size);
void AppendBytes(std::string& out, std::uint32_t number, std::string_view bytes);

// Everything of an object's Kubernetes form that stands before its message of `size` bytes: the
// magic, the type and the message's own head.
std::string ProtobufEnvelopeHead(std::string_view api_version, std::string_view kind,
                                 std::size_t size);

}  // namespace drakkar::api
