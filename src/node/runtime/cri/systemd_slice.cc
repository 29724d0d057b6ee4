#include "node/runtime/cri/systemd_slice.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::node {

std::string SystemdSlice(std::string_view path) {
  std::string slices;
  std::string name;
  for (const std::string_view part : Split(path, '/')) {
    if (part.empty()) continue;
    // A hyphen separates the levels of a slice.
    std::string plain(part);
    std::replace(plain.begin(), plain.end(), '-', '_');
    name = name.empty() ? plain : StrCat(name, "-", plain);
    slices += StrCat("/", name, ".slice");
  }
  return slices;
}

}  // namespace drakkar::node
