// Any template or manifest yields a result or an error, never a crash.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/json/reader.h"
#include "cli/jsonpath.h"
#include "cli/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const api::TreePtr kTree =
      api::ParseJson(R"({"a":[{"b":1,"c":"x"},{"b":2,"d":{"e":[1,2,3]}}],"f":{"g.h":true}})")
          .value();
  if (Result<cli::JsonPath> path = cli::JsonPath::Parse(text); path.ok()) {
    path->Print(kTree->root());
  }
  cli::ParseManifests(text, "f", api::Strictness::kStrict);
  return 0;
}
