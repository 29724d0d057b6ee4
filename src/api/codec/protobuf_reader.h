#pragma once

#include <string>
#include <string_view>

#include "api/schema/schema.h"
#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::api {

// Kubernetes' protobuf form of an object: four bytes of magic, then an envelope that names the type
// and holds the message.
struct ProtobufEnvelope {
  std::string_view api_version;
  std::string_view kind;
  std::string_view message;  // borrowed from the input
};
bool HasProtobufMagic(std::string_view bytes);
Result<ProtobufEnvelope> OpenProtobufEnvelope(std::string_view bytes);

// Reads a message of a type into a tree, using the schema's field numbers. Unknown fields are
// skipped, as protobuf requires. The tree is not normalized: pass it to ConvertObject. Nesting is
// limited to 100 levels.
Result<TreePtr> ReadProtobuf(std::string_view message, const StructSchema& schema);

}  // namespace drakkar::api
