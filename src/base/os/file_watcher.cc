#include "base/os/file_watcher.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <vector>

#include "base/exec/uv_loop.h"
#include "base/os/descriptor_watch.h"

namespace drakkar {
namespace {

constexpr std::uint32_t kMask = IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE |
                                IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF |
                                IN_ONLYDIR;

// The kernel returns one watch descriptor per directory and instance, so watches of the same
// directory share one entry.
struct Subscriber {
  int watch_descriptor = -1;
  std::function<void(const FileEvent&)> on_event;
};

struct State {
  int inotify = -1;
  std::map<int, std::vector<std::shared_ptr<Subscriber>>> subscribers;

  ~State() {
    if (inotify >= 0) ::close(inotify);
  }

  void Remove(const std::shared_ptr<Subscriber>& subscriber) {
    subscriber->on_event = nullptr;
    auto found = subscribers.find(subscriber->watch_descriptor);
    if (found == subscribers.end()) return;
    std::erase(found->second, subscriber);
    if (!found->second.empty()) return;
    subscribers.erase(found);
    ::inotify_rm_watch(inotify, subscriber->watch_descriptor);
  }

  void Deliver(int watch_descriptor, const FileEvent& event) {
    auto found = subscribers.find(watch_descriptor);
    if (found == subscribers.end()) return;
    // Copied, because a callback may end its own watch or others, which clears their on_event.
    const auto receivers = found->second;
    for (const auto& receiver : receivers) {
      if (!receiver->on_event) continue;
      auto callback = receiver->on_event;
      callback(event);
    }
  }
};

class InotifyWatch final : public FileWatch {
 public:
  InotifyWatch(std::weak_ptr<State> state, std::shared_ptr<Subscriber> subscriber)
      : state_(std::move(state)), subscriber_(std::move(subscriber)) {}
  ~InotifyWatch() override {
    if (auto state = state_.lock()) state->Remove(subscriber_);
  }

 private:
  std::weak_ptr<State> state_;
  std::shared_ptr<Subscriber> subscriber_;
};

void Dispatch(State& state, const inotify_event& event) {
  const std::string name = event.len > 0 ? std::string(event.name) : std::string();
  if (event.mask & IN_Q_OVERFLOW) {
    std::vector<int> all;
    for (const auto& [descriptor, unused] : state.subscribers) all.push_back(descriptor);
    for (int descriptor : all) state.Deliver(descriptor, {FileChange::kEventsLost, ""});
    return;
  }
  if (event.mask & (IN_DELETE_SELF | IN_MOVE_SELF)) {
    state.Deliver(event.wd, {FileChange::kDirectoryGone, ""});
    return;
  }
  if (event.mask & IN_IGNORED) {
    state.subscribers.erase(event.wd);
    return;
  }
  if (name.empty()) return;  // attributes of the directory itself
  if (event.mask & (IN_CREATE | IN_MOVED_TO)) {
    state.Deliver(event.wd, {FileChange::kCreated, name});
  } else if (event.mask & (IN_DELETE | IN_MOVED_FROM)) {
    state.Deliver(event.wd, {FileChange::kRemoved, name});
  } else if (event.mask & (IN_CLOSE_WRITE | IN_ATTRIB | IN_MODIFY)) {
    state.Deliver(event.wd, {FileChange::kModified, name});
  }
}

void ReadEvents(const std::shared_ptr<State>& state) {
  alignas(inotify_event) char buffer[16384];
  while (true) {
    const ssize_t size = ::read(state->inotify, buffer, sizeof(buffer));
    if (size <= 0) return;  // EAGAIN: all read
    for (ssize_t at = 0; at < size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      Dispatch(*state, *event);
    }
  }
}

class InotifyWatcher final : public FileWatcher {
 public:
  InotifyWatcher(UvLoop& loop, FileWatcherOptions options, std::shared_ptr<State> state)
      : loop_(loop), options_(options), state_(std::move(state)) {
    // The state must survive a callback that destroys the watcher.
    poll_ = WatchReadable(loop_, state_->inotify, [state = std::weak_ptr<State>(state_)] {
      if (auto alive = state.lock()) ReadEvents(alive);
    });
  }
  // The poll must end before the descriptor is closed.
  ~InotifyWatcher() override { poll_.reset(); }

  bool ok() const { return poll_ != nullptr; }

  Result<std::unique_ptr<FileWatch>> Watch(
      const std::string& directory, std::function<void(const FileEvent&)> on_event) override {
    loop_.AssertInLoop();
    const std::uint32_t mask = kMask | (options_.reports_writes ? IN_MODIFY : 0u);
    const int descriptor = ::inotify_add_watch(state_->inotify, directory.c_str(), mask);
    if (descriptor < 0) {
      if (errno == ENOSPC) {
        return Error{ErrorCode::kResourceExhausted,
                     "watch " + directory + ": raise fs.inotify.max_user_watches"};
      }
      return ErrnoError(errno, "watch " + directory);
    }
    auto subscriber = std::make_shared<Subscriber>();
    subscriber->watch_descriptor = descriptor;
    subscriber->on_event = std::move(on_event);
    state_->subscribers[descriptor].push_back(subscriber);
    return std::unique_ptr<FileWatch>(
        std::make_unique<InotifyWatch>(state_, std::move(subscriber)));
  }

 private:
  UvLoop& loop_;
  const FileWatcherOptions options_;
  std::shared_ptr<State> state_;
  std::unique_ptr<DescriptorWatch> poll_;
};

}  // namespace

Result<std::unique_ptr<FileWatcher>> MakeFileWatcher(UvLoop& loop, FileWatcherOptions options) {
  auto state = std::make_shared<State>();
  state->inotify = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (state->inotify < 0) return ErrnoError(errno, "open inotify");
  auto watcher = std::make_unique<InotifyWatcher>(loop, options, std::move(state));
  if (!watcher->ok()) return Internal("poll inotify");
  return std::unique_ptr<FileWatcher>(std::move(watcher));
}

}  // namespace drakkar
