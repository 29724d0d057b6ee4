#include "cmd/drakkar/input_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace drakkar::cmd {
namespace {

constexpr std::size_t kMaxLine = 1 << 16;

}  // namespace

InputLines::InputLines(UvLoop& loop, std::function<void(const std::string&)> on_line)
    : on_line_(std::move(on_line)), flags_(::fcntl(STDIN_FILENO, F_GETFL)) {
  watch_ = WatchReadable(loop, STDIN_FILENO, [this] { OnReadable(); });
}

InputLines::~InputLines() {
  watch_.reset();
  // Watching the descriptor made it non-blocking for every process on this terminal, so restore it.
  if (flags_ >= 0) static_cast<void>(::fcntl(STDIN_FILENO, F_SETFL, flags_));
}

void InputLines::OnReadable() {
  char buffer[4096];
  const ssize_t size = ::read(STDIN_FILENO, buffer, sizeof(buffer));
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0 || pending_.size() > kMaxLine) return watch_.reset();
  pending_.append(buffer, static_cast<std::size_t>(size));
  for (std::size_t end; (end = pending_.find('\n')) != std::string::npos;) {
    const std::string line = pending_.substr(0, end);
    pending_.erase(0, end + 1);
    on_line_(line);
  }
}

}  // namespace drakkar::cmd
