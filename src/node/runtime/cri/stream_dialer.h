#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "base/result/result.h"
#include "net/http/message.h"
#include "net/http/raw_stream.h"

namespace drakkar::node {

// A dial in progress; destroying it cancels.
class PendingDial {
 public:
  virtual ~PendingDial() = default;
};

// Upgrades an HTTP connection to `url` with these headers to a stream of bytes. `done` is called
// once, never from within the call.
using StreamDialer = std::function<std::unique_ptr<PendingDial>(
    const std::string& url, net::Headers headers,
    absl::AnyInvocable<void(Result<std::unique_ptr<net::RawStream>>)> done)>;

// The headers that upgrade to SPDY with one of the streaming protocols.
inline net::Headers SpdyHeaders(std::string_view protocol) {
  return {{"Connection", "Upgrade"},
          {"Upgrade", "SPDY/3.1"},
          {"X-Stream-Protocol-Version", std::string(protocol)}};
}

}  // namespace drakkar::node
