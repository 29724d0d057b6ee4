#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/codec/object_reader.h"
#include "api/codec/protobuf_reader.h"
#include "api/scheme/scheme.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar::api;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  static_cast<void>(OpenProtobufEnvelope(input).ok());
  const auto tree = ReadProtobuf(input, *FindKind("", "v1", "Pod")->schema);
  if (tree.ok()) {
    static_cast<void>(ConvertObject((*tree)->root(), *FindKind("", "v1", "Pod")->schema).ok());
  }
  return 0;
}
