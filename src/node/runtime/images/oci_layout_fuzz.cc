// An image layout: index.json and blobs, separated by zero bytes. "@N" in a part is replaced by the
// digest of part N if that follows later.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/hash/sha256.h"
#include "base/result/check.h"
#include "base/testing/memory_file_system.h"
#include "base/text/text.h"
#include "node/runtime/images/image_name.h"
#include "node/runtime/images/image_store.h"
#include "node/runtime/images/oci_layout.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  std::vector<std::string> parts;
  for (const std::string_view part : Split({reinterpret_cast<const char*>(data), size}, '\0'))
    parts.emplace_back(part);
  if (parts.size() > 10) return 0;
  MemoryFileSystem files;
  CHECK(files.MakeDirectories("/l/blobs/sha256", 0755).ok());
  CHECK(files.WriteFile("/l/oci-layout", "{\"imageLayoutVersion\":\"1.0.0\"}", 0644).ok());
  std::vector<std::string> digests(parts.size());
  for (std::size_t i = parts.size(); i-- > 0;) {
    for (std::size_t at = 0; (at = parts[i].find('@', at)) != std::string::npos; ++at) {
      const std::size_t other =
          at + 1 < parts[i].size() ? static_cast<std::size_t>(parts[i][at + 1] - '0') : 0;
      if (other > i && other < parts.size()) parts[i].replace(at, 2, digests[other]);
    }
    digests[i] = "sha256:" + Sha256Hex(parts[i]);
    CHECK(files.WriteFile("/l/blobs/sha256/" + digests[i].substr(7), parts[i], 0644).ok());
  }
  CHECK(files.WriteFile("/l/index.json", parts[0], 0644).ok());
  for (const char* name : {"", "example.com/app:1"}) {
    const auto image = node::ReadOciLayout(files, "/l", name, node::LayoutOrigin::kArchive);
    if (!image.ok()) continue;
    CHECK(image->layers.size() <= node::kMaxImageLayers);
    CHECK("sha256:" + Sha256Hex(image->config_json) == image->config_digest);
    // No digest may resolve to a path outside blobs/.
    for (const auto& layer : image->layers)
      CHECK(layer.path == "/l/blobs/sha256/" + layer.digest.substr(7));
    static_cast<void>(node::ParseImageConfig(image->config_json).ok());
  }
  return 0;
}
