#include "cmd/drakkar/input_lines.h"

#include <poll.h>
#include <unistd.h>

namespace drakkar::cmd {
namespace {

constexpr int kLookEveryMs = 100;  // whether to end
constexpr std::size_t kMaxLine = 1 << 16;

}  // namespace

InputLines::InputLines(UvLoop& loop, std::function<void(const std::string&)> on_line)
    : loop_(loop), on_line_(std::move(on_line)), thread_("input") {
  thread_.loop().Post([this] { Read(); });
}

InputLines::~InputLines() {
  stopped_ = true;
  thread_.Stop();
}

void InputLines::Read() {
  std::string pending;
  char buffer[4096];
  while (!stopped_) {
    pollfd input{.fd = 0, .events = POLLIN, .revents = 0};
    if (::poll(&input, 1, kLookEveryMs) <= 0) continue;
    const ssize_t size = ::read(0, buffer, sizeof(buffer));
    if (size <= 0) return;
    pending.append(buffer, static_cast<std::size_t>(size));
    for (std::size_t end; (end = pending.find('\n')) != std::string::npos; pending.erase(0, end + 1)) {
      loop_.Post([this, line = pending.substr(0, end), alive = std::weak_ptr<int>(alive_)] {
        if (alive.lock()) on_line_(line);
      });
    }
    if (pending.size() > kMaxLine) return;
  }
}

}  // namespace drakkar::cmd
