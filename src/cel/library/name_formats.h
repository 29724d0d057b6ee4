#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace drakkar::cel {

// A syntax that Kubernetes has a name for. `validate` returns the problems in the API's words.
struct NameFormat {
  std::string_view name;
  std::uint64_t pattern_size;  // length of the pattern it stands for, which costs depend on
  std::vector<std::string> (*validate)(std::string_view text);
};

inline constexpr std::size_t kNameFormatCount = 13;
const std::array<NameFormat, kNameFormatCount>& NameFormats();

}  // namespace drakkar::cel
