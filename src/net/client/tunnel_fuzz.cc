// Feeds what a proxy answers at once and byte by byte; the outcome must be the same.
#include "net/client/tunnel.h"

#include <cstddef>
#include <cstdint>

#include "base/result/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  using net::client::TunnelAnswer;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  TunnelAnswer whole;
  const Result<bool> at_once = whole.Add(text);
  TunnelAnswer split;
  for (std::size_t i = 0; i < size; ++i) {
    const Result<bool> one = split.Add(text.substr(i, 1));
    if (!one.ok()) {
      CHECK(!at_once.ok());
      return 0;
    }
    if (*one) {
      // More bytes after the answer are refused only if they arrive with it.
      CHECK(at_once.ok() ? *at_once : i + 1 < size);
      return 0;
    }
  }
  CHECK(at_once.ok() && !*at_once);
  return 0;
}
