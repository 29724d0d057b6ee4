// Any template and any path yield a result or an error, and what they find is part of the tree.
#include "api/json/jsonpath.h"

#include <cstddef>
#include <cstdint>

#include "api/json/reader.h"
#include "base/result/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar::api;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const TreePtr kTree =
      ParseJson(
          R"({"metadata":{"name":"n","labels":{"a.b/c":"x"}},"items":[{"b":1,"c":"x"},{"b":2.5,)"
          R"("d":{"e":[1,2,[3,null]]}}],"f":{"g.h":true,"i":""},"last":"é"})")
          .value();
  if (const auto path = JsonPath::Parse(text); path.ok()) {
    static_cast<void>(path->Print(kTree->root()));
    for (const Value each : path->Find(kTree->root())) static_cast<void>(PlainText(each));
  }
  if (const auto path = JsonPath::ParsePath(text); path.ok()) {
    for (const Value each : path->Find(kTree->root())) CHECK(each.exists());
  }
  return 0;
}
