#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/env/clock.h"
#include "base/env/file_system.h"

namespace drakkar::client {

// The bearer token of a client: fixed, or read from a file that is rotated, as a node rotates the
// tokens of service accounts about once an hour, or kept current by somebody else in this process.
//
// The file is read again once the token is older than kTokenAge, and at once if the server rejected
// the token. If it cannot be read or is empty, the last good token is kept.
// Loop-bound; a call blocks while it reads one small file.
class BearerToken {
 public:
  // The same as in Kubernetes' clients.
  static constexpr Duration kTokenAge = std::chrono::minutes(1);

  // If `file` is empty, `token` never changes. `live` counts instead of both, unless it is null.
  BearerToken(std::string token, std::string file, FileSystem& files, const Clock& clock,
              std::shared_ptr<const std::string> live = nullptr)
      : token_(std::move(token)),
        file_(std::move(file)),
        files_(files),
        clock_(clock),
        live_(std::move(live)) {}

  // For the next request; "" if there is none.
  const std::string& Get();
  // The server rejected `used`. True if there is another token to try.
  bool Replace(const std::string& used);

 private:
  void Read();

  std::string token_;
  const std::string file_;
  FileSystem& files_;
  const Clock& clock_;
  const std::shared_ptr<const std::string> live_;  // may be null
  std::optional<MonotonicTime> read_;              // last tried
};

}  // namespace drakkar::client
