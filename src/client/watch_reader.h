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

// Parses the body of a watch as it arrives: one {"type":...,"object":...} per line.
class WatchReader {
 public:
  // Limit for one event. No object is larger than what the server accepts.
  static constexpr std::size_t kMaxEventBytes = 16u << 20;

  explicit WatchReader(api::ReadOptions options = {}) : options_(options) {}

  // Reads the next bytes and appends the events that they complete. An error ends the watch: the
  // server sent one, or sent something that cannot be parsed. Events before it are still appended.
  std::optional<Error> Read(std::string_view bytes, std::vector<WatchEvent>& events);

 private:
  const api::ReadOptions options_;
  std::string buffer_;  // the beginning of an event
};

}  // namespace drakkar::client
