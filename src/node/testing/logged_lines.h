#pragma once

#include <string>
#include <string_view>

#include "telemetry/log/log.h"

namespace drakkar::node {

// The log lines written while it exists, each with a line end.
class LoggedLines {
 public:
  LoggedLines() {
    SetLogSink([this](std::string_view line) { text_.append(line).append("\n"); });
  }
  ~LoggedLines() { SetLogSink(nullptr); }

  const std::string& text() const { return text_; }
  std::size_t Count(std::string_view message) const {
    std::size_t count = 0;
    for (std::size_t at = text_.find(message); at != text_.npos; at = text_.find(message, at + 1)) {
      ++count;
    }
    return count;
  }

 private:
  std::string text_;
};

}  // namespace drakkar::node
