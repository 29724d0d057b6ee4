#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result/result.h"
#include "net/http/headers.h"

namespace drakkar::net::spdy {

// Header blocks of SPDY/3: name and value pairs, compressed with zlib and SPDY's dictionary. Each
// direction of a connection is one compressed stream, so one codec belongs to one session and sees
// all its blocks in order.
class HeaderCodec {
 public:
  // Maximum size of an expanded block; larger ones are rejected.
  static constexpr std::size_t kMaxBlockBytes = 64 << 10;

  HeaderCodec();
  ~HeaderCodec();

  std::string Compress(const Headers& headers);
  // Names in lower case. Several values of one name become several fields.
  Result<Headers> Decompress(std::string_view block);

 private:
  struct Streams;
  std::unique_ptr<Streams> streams_;
};

}  // namespace drakkar::net::spdy
