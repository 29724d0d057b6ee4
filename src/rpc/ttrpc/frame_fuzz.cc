#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result/check.h"
#include "rpc/ttrpc/frame.h"

// Any bytes, split anywhere: no crash, at most one message buffered, and re-encoding the decoded
// messages gives the bytes that were read.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  if (size == 0) return 0;
  const std::size_t cut = data[0] % size;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::string again;
  rpc::TtrpcDecoder messages;
  rpc::MuxDecoder pieces;
  for (const std::string_view part :
       {bytes.substr(0, cut), bytes.substr(std::min(cut, bytes.size()))}) {
    auto decoded = messages.Feed(part);
    if (!decoded.ok()) break;
    for (const rpc::TtrpcMessage& message : *decoded) again += rpc::EncodeTtrpc(message);
  }
  CHECK(again.size() <= bytes.size() && bytes.substr(0, again.size()) == again);
  for (const std::string_view part :
       {bytes.substr(0, cut), bytes.substr(std::min(cut, bytes.size()))}) {
    if (!pieces.Feed(part).ok()) break;
  }
  return 0;
}
