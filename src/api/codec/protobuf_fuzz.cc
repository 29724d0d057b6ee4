#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/codec/object_reader.h"
#include "api/codec/protobuf_reader.h"
#include "api/codec/protobuf_writer.h"
#include "api/json/compact.h"
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "base/result/check.h"

// Messages in the envelope that names their kind, or bare messages of a kind that the first byte
// selects. Accepted objects survive a round trip.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar::api;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const KindSchema* kind = nullptr;
  std::string_view message;
  if (HasProtobufMagic(input)) {
    const auto envelope = OpenProtobufEnvelope(input);
    if (!envelope.ok()) return 0;
    kind = FindKindByApiVersion(envelope->api_version, envelope->kind);
    message = envelope->message;
  } else if (size > 0) {
    kind = &AllKinds()[data[0] % AllKinds().size()];
    message = input.substr(1);
  }
  if (kind == nullptr) return 0;
  const auto tree = ReadProtobuf(message, *kind->schema);
  if (!tree.ok()) return 0;
  const auto object = ConvertObject((*tree)->root(), *kind->schema);
  if (!object.ok()) return 0;
  const auto again =
      ReadProtobuf(WriteProtobuf(object->tree->root(), *kind->schema), *kind->schema);
  CHECK(again.ok());
  const auto same = ConvertObject((*again)->root(), *kind->schema);
  // The writer drops the spaces of opaque JSON.
  CHECK(same.ok() &&
        CompactJson(WriteJson(same->tree->root())) == CompactJson(WriteJson(object->tree->root())));
  return 0;
}
