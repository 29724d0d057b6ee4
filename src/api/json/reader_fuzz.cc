#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "base/result/check.h"

// Accepted input survives a round trip through the writer.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar::api;
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  const auto tree = ParseJson(json, {.refuse_duplicates = false, .position_in_errors = true});
  if (!tree.ok()) return 0;
  for (const int indent : {0, 1}) {
    const auto back = ParseJson(WriteJson((*tree)->root(), {.indent = indent}));
    CHECK(back.ok());
    CHECK(Equal((*back)->root(), (*tree)->root()));
  }
  return 0;
}
