#include <cstddef>
#include <cstdint>
#include <string_view>

#include "node/runtime/images/byte_source.h"
#include "node/runtime/images/image_name.h"
#include "node/runtime/images/image_store.h"
#include "node/runtime/images/tar_reader.h"
#include "node/runtime/oci/conmon.h"
#include "node/runtime/oci/record.h"

// The first byte chooses the decoder; all of them read what others wrote.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 4) {
    case 0:
    case 1: {
      auto source = node::MakeStringSource(text);
      auto plain = node::MakeDecompressor(*source);
      node::TarReader reader(data[0] % 4 == 0 ? *source : *plain);
      std::uint64_t total = 0;
      while (total < (1u << 24)) {
        auto entry = reader.Next();
        if (!entry.ok() || !entry->has_value()) break;
        static_cast<void>(node::CleanTarPath((*entry)->path).ok());
        char buffer[4096];
        while (true) {
          auto got = reader.Read(buffer, sizeof(buffer));
          if (!got.ok() || *got == 0) break;
          total += *got;
        }
      }
      break;
    }
    case 2:
      static_cast<void>(node::ParseImageConfig(text).ok());
      static_cast<void>(node::ParseContainerRecord(text).ok());
      static_cast<void>(node::ParseConmonReport(text).ok());
      break;
    case 3: {
      auto name = node::NormalizeImageName(text);
      // A full name is its own full name.
      if (name.ok() && *node::NormalizeImageName(*name) != *name) __builtin_trap();
      break;
    }
  }
  return 0;
}
