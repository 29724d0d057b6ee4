#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/json/reader.h"
#include "base/result/error.h"
#include "client/client.h"

namespace drakkar::client {

// The body of a watch, {"type":...,"object":...} a line, as it comes.
class WatchReader {
 public:
  // One event; larger objects than the server accepts cannot come.
  static constexpr std::size_t kMaxEventBytes = 16u << 20;

  explicit WatchReader(api::ReadOptions options = {}) : options_(options) {}

  // Takes the next bytes and appends the events that are complete with them. An error ends the
  // watch: the server said so, or what it said cannot be understood. Those before it are appended.
  std::optional<Error> Read(std::string_view bytes, std::vector<WatchEvent>& events);

 private:
  const api::ReadOptions options_;
  std::string buffer_;  // the beginning of an event
};

}  // namespace drakkar::client
