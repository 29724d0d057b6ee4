// An archive of `docker save`: manifest.json, the configuration "c", and a file outside of the
// directory that no answer may contain.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/env/file_system.h"
#include "base/result/check.h"
#include "base/text/text.h"
#include "node/runtime/images/image_store.h"
#include "node/runtime/images/oci_layout.h"
#include "node/runtime/images/unpack.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  FileSystem& files = RealFileSystem();
  static const std::string* const kRoot = [] {
    char path[] = "/tmp/drakkar-docker-archive-XXXXXX";
    CHECK(::mkdtemp(path) != nullptr);
    return new std::string(path);
  }();
  const std::string directory = *kRoot + "/archive";
  CHECK(files.MakeDirectories(directory, 0755).ok());
  CHECK(files.WriteFile(*kRoot + "/outside", "{\"secret\":1}", 0644).ok());
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(text.find('\0'), text.size());
  CHECK(files.WriteFile(directory + "/manifest.json", text.substr(0, end), 0644).ok());
  CHECK(files
            .WriteFile(directory + "/c",
                       end < text.size() ? text.substr(end + 1) : std::string_view(), 0644)
            .ok());
  for (const char* name : {"", "example.com/app:1"}) {
    const auto image = node::ReadDockerArchive(directory, name);
    if (!image.ok()) continue;
    CHECK(image->layers.size() <= node::kMaxImageLayers);
    CHECK(image->layers.size() == image->diff_ids.size());
    CHECK(image->config_json.find("secret") == std::string::npos);
    for (const std::string& layer : image->layers) {
      const auto resolved = node::ResolveInRoot(directory, layer);
      if (resolved.ok()) CHECK(resolved->starts_with(directory + "/"));
    }
    static_cast<void>(node::ParseImageConfig(image->config_json).ok());
  }
  CHECK(files.RemoveTree(*kRoot + "/archive").ok());
  return 0;
}
