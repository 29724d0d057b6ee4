#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>

#include "base/exec/uv_loop.h"
#include "base/text/text.h"
#include "net/socket/socket.h"

namespace drakkar::net {
namespace {

using ::testing::ElementsAre;

// A directory that reports which names appeared in it, and how.
class WatchedDirectory {
 public:
  WatchedDirectory() : path_(::testing::TempDir() + "listenerXXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
    inotify_ = inotify_init1(IN_NONBLOCK);
    EXPECT_GE(inotify_add_watch(inotify_, path_.c_str(), IN_CREATE | IN_MOVED_TO | IN_DELETE), 0);
  }
  ~WatchedDirectory() {
    close(inotify_);
    rmdir(path_.c_str());
  }

  std::string Path(const std::string& name) const { return path_ + "/" + name; }
  // "created NAME", "renamed NAME", "deleted NAME"; ignores hidden names, as plugin watchers do.
  std::vector<std::string> TakeEvents() {
    std::vector<std::string> events;
    alignas(inotify_event) char buffer[4096];
    const ssize_t size = read(inotify_, buffer, sizeof(buffer));
    for (ssize_t at = 0; at < size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      if (event->name[0] == '.') continue;
      events.push_back(StrCat(event->mask & IN_CREATE     ? "created "
                              : event->mask & IN_MOVED_TO ? "renamed "
                                                          : "deleted ",
                              event->name));
    }
    return events;
  }

 private:
  std::string path_;
  int inotify_ = -1;
};

int ConnectTo(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
  const int code =
      connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0
          ? 0
          : errno;
  close(descriptor);
  return code;
}

Result<std::unique_ptr<Listener>> Listen(LoopThread& thread, const std::string& path) {
  std::optional<Result<std::unique_ptr<Listener>>> listener;
  thread.RunSync([&] {
    Listener::Options options;
    options.address.unix_path = path;
    listener = Listener::Create(thread.loop(), options, [](std::unique_ptr<Socket>) {});
  });
  return std::move(*listener);
}

TEST(Listener, AUnixSocketGetsItsNameOnlyOnceItAcceptsConnections) {
  LoopThread thread("listener");
  WatchedDirectory directory;
  auto listener = Listen(thread, directory.Path("a.sock"));
  ASSERT_TRUE(listener.ok()) << listener.error().message;
  EXPECT_THAT(directory.TakeEvents(), ElementsAre("renamed a.sock")) << "never bound in view";
  EXPECT_EQ(ConnectTo(directory.Path("a.sock")), 0);
  struct stat info {};
  ASSERT_EQ(lstat(directory.Path("a.sock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  thread.RunSync([&] { listener->reset(); });
  EXPECT_THAT(directory.TakeEvents(), ElementsAre("deleted a.sock"));
}

TEST(Listener, AStaleSocketIsReplacedAndAnotherFileIsNot) {
  LoopThread thread("listener");
  WatchedDirectory directory;
  auto first = Listen(thread, directory.Path("a.sock"));
  ASSERT_TRUE(first.ok());
  // Left behind by a killed process.
  ASSERT_EQ(link(directory.Path("a.sock").c_str(), directory.Path("stale.sock").c_str()), 0);
  thread.RunSync([&] { first->reset(); });
  EXPECT_EQ(ConnectTo(directory.Path("stale.sock")), ECONNREFUSED);
  auto second = Listen(thread, directory.Path("stale.sock"));
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_EQ(ConnectTo(directory.Path("stale.sock")), 0);
  thread.RunSync([&] { second->reset(); });

  const std::string file = directory.Path("file");
  FILE* made = fopen(file.c_str(), "w");
  ASSERT_NE(made, nullptr);
  fclose(made);
  EXPECT_FALSE(Listen(thread, file).ok());
  EXPECT_EQ(access(file.c_str(), F_OK), 0);
  unlink(file.c_str());
}

TEST(Listener, TheLongestSocketPathStillWorks) {
  LoopThread thread("listener");
  WatchedDirectory directory;
  const std::size_t room = sizeof(sockaddr_un::sun_path) - 1 - directory.Path("").size();
  for (const std::size_t name : {room, room - 1, room - 4, room - 5, room - 6}) {
    const std::string path = directory.Path(std::string(name, 's'));
    auto listener = Listen(thread, path);
    ASSERT_TRUE(listener.ok()) << listener.error().message;
    EXPECT_EQ(ConnectTo(path), 0);
    thread.RunSync([&] { listener->reset(); });
    EXPECT_NE(access(path.c_str(), F_OK), 0);
  }
  EXPECT_FALSE(Listen(thread, directory.Path(std::string(room + 1, 's'))).ok());
}

TEST(Socket, LimitsHowLongItsPeerMayNotAcknowledge) {
  UvLoop loop;
  std::unique_ptr<Socket> accepted, connected;
  auto listener = Listener::Create(loop, {.address = {.host = "127.0.0.1"}},
                                   [&](std::unique_ptr<Socket> socket) {
                                     accepted = std::move(socket);
                                     if (connected != nullptr) loop.Stop();
                                   });
  ASSERT_TRUE(listener.ok());
  const auto connector =
      Connector::Start(loop, {.host = "127.0.0.1", .port = (*listener)->port()}, [&](auto socket) {
        connected = std::move(*socket);
        if (accepted != nullptr) loop.Stop();
      });
  loop.Run();
  connected->LimitUnacknowledged(std::chrono::milliseconds(2'500));
  const Result<DetachedSocket> detached = Socket::Detach(std::move(connected));
  ASSERT_TRUE(detached.ok());
  unsigned int limit = 0;
  socklen_t size = sizeof(limit);
  ASSERT_EQ(getsockopt(detached->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, &size), 0);
  EXPECT_EQ(limit, 2'500u);
}

}  // namespace
}  // namespace drakkar::net
