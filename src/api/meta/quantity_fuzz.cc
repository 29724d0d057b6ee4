// Quantities and versions: accepted input prints as something that parses to the same value.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/meta/quantity.h"
#include "api/meta/semver.h"
#include "base/result/check.h"

using drakkar::api::Quantity;
using drakkar::api::Semver;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto quantity = Quantity::Parse(text); quantity.ok()) {
    (void)quantity->Value();
    (void)quantity->AsApproximateFloat();
    // Exponents beyond the largest suffix print without one, so only smaller values survive a round
    // trip.
    if (quantity->format() == Quantity::Format::kDecimalExponent) {
      const auto again = Quantity::Parse(quantity->ToString());
      CHECK(!again.ok() || again->Compare(*quantity) == 0);
    }
    Quantity sum = *quantity;
    sum.Add(*quantity);
    sum.Subtract(*quantity);
    (void)sum.ToString();
  }
  if (const auto version = Semver::Parse(text); version.ok()) {
    const auto again = Semver::Parse(version->ToString());
    CHECK(again.ok() && again->Compare(*version) == 0);
  }
  (void)Semver::ParseNormalized(text);
  return 0;
}
