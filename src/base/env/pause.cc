#include "base/env/pause.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/env/file_system.h"

namespace drakkar {
namespace {

int Milliseconds(Duration duration) {
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(duration).count();
  return static_cast<int>(std::clamp<std::int64_t>(milliseconds, 0, 3'600'000));
}

class InotifyWatch final : public ChangeWatch {
 public:
  explicit InotifyWatch(int descriptor) : descriptor_(descriptor) {}
  ~InotifyWatch() override { ::close(descriptor_); }

  bool Add(std::string path) {
    constexpr std::uint32_t kEvents = IN_MODIFY | IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_TO |
                                      IN_DELETE_SELF | IN_MOVE_SELF | IN_ATTRIB;
    while (::inotify_add_watch(descriptor_, path.c_str(), kEvents) < 0) {
      if ((errno != ENOENT && errno != ENOTDIR) || path == "/" || path == ".") return false;
      path = DirectoryName(path);
    }
    return true;
  }

  void Wait(Duration limit) override {
    // A signal ends the wait early, which is fine because callers check the clock. The event itself
    // is not read: the caller looks at the files again and creates a new watch.
    pollfd events = {.fd = descriptor_, .events = POLLIN, .revents = 0};
    ::poll(&events, 1, Milliseconds(limit));
  }

 private:
  const int descriptor_;
};

class MachinePause final : public Pause {
 public:
  void For(Duration duration) override {
    // A signal ends this early too.
    ::poll(nullptr, 0, Milliseconds(duration));
  }

  std::unique_ptr<ChangeWatch> WatchChanges(const std::vector<std::string>& paths) override {
    if (paths.size() > kMaxWatchedPaths) return nullptr;
    const int descriptor = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (descriptor < 0) return nullptr;
    auto watch = std::make_unique<InotifyWatch>(descriptor);
    for (const std::string& path : paths) {
      if (!watch->Add(path)) return nullptr;
    }
    return watch;
  }
};

}  // namespace

Pause& RealPause() {
  static MachinePause pause;
  return pause;
}

}  // namespace drakkar
