#pragma once

#include <optional>
#include <string>

#include "base/env/clock.h"
#include "base/env/file_system.h"

namespace drakkar::client {

// The token a client proves itself with: a fixed one, or that of a file which somebody replaces
// from time to time, as a node does with the tokens of service accounts (they live for an hour or
// so).
//
// The file is read again when what is known of it is older than kTokenAge, and at once when the
// server refused the token. While it cannot be read, or is empty, the last good one stays.
// Loop-bound; a call blocks for the time of one small file.
class BearerToken {
 public:
  // As old as Kubernetes' own clients let it become.
  static constexpr Duration kTokenAge = std::chrono::minutes(1);

  // `token` is what is known now; `file` may be empty: the token never changes.
  BearerToken(std::string token, std::string file, FileSystem& files, const Clock& clock)
      : token_(std::move(token)), file_(std::move(file)), files_(files), clock_(clock) {}

  // For the next request; "" if there is none.
  const std::string& Get();
  // The server did not take `used`: whether there is another one to try.
  bool Replace(const std::string& used);

 private:
  void Read();

  std::string token_;
  const std::string file_;
  FileSystem& files_;
  const Clock& clock_;
  std::optional<MonotonicTime> read_;  // last tried
};

}  // namespace drakkar::client
