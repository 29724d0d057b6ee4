#include "storage/etcd/server_version.h"

#include <array>
#include <tuple>

#include "base/text/text.h"

namespace drakkar::storage {

bool HasReliableProgress(std::string_view version) {
  std::array<std::int64_t, 3> numbers{};
  // "3.6.0-rc.1" is not 3.6.0 yet, but has what 3.5 has.
  version = version.substr(0, version.find_first_of("-+"));
  for (std::int64_t& number : numbers) {
    const std::size_t dot = version.find('.');
    const std::optional<std::int64_t> parsed = ParseInt64(version.substr(0, dot));
    if (!parsed) return false;
    number = *parsed;
    version = dot == std::string_view::npos ? std::string_view() : version.substr(dot + 1);
  }
  const auto [major, minor, patch] = std::tuple(numbers[0], numbers[1], numbers[2]);
  if (major != 3) return major > 3;
  if (minor == 4) return patch >= 31;
  if (minor == 5) return patch >= 13;
  return minor > 5;
}

}  // namespace drakkar::storage
