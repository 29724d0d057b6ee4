// Any kubeconfig yields usable access or an error with a reason.
#include <cstddef>
#include <cstdint>

#include "base/result/check.h"
#include "base/testing/memory_file_system.h"
#include "client/kubeconfig.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  MemoryFileSystem files;
  CHECK(files.MakeDirectories("/home", 0700).ok());
  CHECK(files.WriteFile("/home/config", {reinterpret_cast<const char*>(data), size}, 0600).ok());
  CHECK(files.WriteFile("/home/file", "content\n", 0600).ok());
  for (const char* context : {"", "c"}) {
    const auto access = client::LoadKubeconfig(files, "/home/config", context);
    if (access.ok()) {
      CHECK(!access->server.ends_with('/') && !access->namespace_.empty());
    } else {
      CHECK(!access.error().message.empty());
    }
  }
  return 0;
}
