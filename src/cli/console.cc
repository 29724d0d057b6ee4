#include "cli/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/text/text.h"

namespace drakkar::cli {
namespace {

// Far more than any manifest needs; larger input is a mistake.
constexpr std::size_t kMaxInputBytes = 256u << 20;

}  // namespace

void Console::Error(std::string_view message) {
  Err(StrCat("error: ", message, "\n"));
}

void ProcessConsole::Out(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    had_write_error_ = true;
  }
}

void ProcessConsole::Err(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

Result<std::string> ProcessConsole::ReadInput() {
  std::string text;
  char buffer[65536];
  while (true) {
    const ssize_t count = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoError(errno, "standard input");
    if (count == 0) return text;
    text.append(buffer, static_cast<std::size_t>(count));
    if (text.size() > kMaxInputBytes)
      return InvalidArgument("standard input is larger than 256 MiB");
  }
}

std::optional<std::string> ProcessConsole::Environment(const std::string& name) const {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

bool ProcessConsole::in_is_terminal() const {
  return ::isatty(STDIN_FILENO) == 1;
}

bool ProcessConsole::out_is_terminal() const {
  return ::isatty(STDOUT_FILENO) == 1;
}

Console::Size ProcessConsole::size() const {
  Size size;
  struct winsize window {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 && window.ws_row > 0) {
    size.columns = window.ws_col;
    size.lines = window.ws_row;
  }
  return size;
}

bool ProcessConsole::err_is_terminal() const {
  return ::isatty(STDERR_FILENO) == 1;
}

}  // namespace drakkar::cli
