#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/codec/yaml_reader.h"
#include "api/codec/yaml_writer.h"

// Parsing terminates within its bounds, and writing the result gives valid YAML.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar::api;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto documents = ParseYaml(text, {.max_expanded_bytes = 1 << 20});
  if (!documents.ok()) return 0;
  for (const TreePtr& document : *documents) (void)WriteYaml(document->root());
  return 0;
}
