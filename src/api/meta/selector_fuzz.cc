#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/meta/field_selector.h"
#include "api/meta/label_selector.h"
#include "base/result/check.h"

// The canonical text of accepted input is accepted too, and is canonical.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar::api;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto labels = LabelSelector::Parse(text); labels.ok()) {
    const auto again = LabelSelector::Parse(labels->ToString());
    CHECK(again.ok() && again->ToString() == labels->ToString());
  }
  if (const auto fields = FieldSelector::Parse(text); fields.ok()) {
    (void)fields->Matches([](std::string_view field) { return field; });
    const auto again = FieldSelector::Parse(fields->ToString());
    CHECK(again.ok() && again->requirements().size() == fields->requirements().size());
  }
  return 0;
}
