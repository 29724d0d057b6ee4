// Our side of logind's interface, against a bus that is played here.
#include "node/shutdown/logind.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "base/exec/uv_loop.h"
#include "base/text/text.h"

namespace drakkar::node {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A bus with logind on it, for one connection. Runs on its own thread and blocks.
class FakeBus {
 public:
  explicit FakeBus(std::uint64_t limit_us) : limit_us_(limit_us) {
    char directory[] = "/tmp/logind-test-XXXXXX";
    directory_ = ::mkdtemp(directory);
    listener_ = Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path().c_str());
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
  }
  ~FakeBus() { static_cast<void>(RealFileSystem().RemoveTree(directory_).ok()); }

  std::string path() const { return directory_ + "/bus"; }
  std::string configuration() const { return directory_ + "/conf.d/99.conf"; }
  // What was called, in order: "Inhibit(shutdown, ...)".
  std::vector<std::string> calls;

  void Accept() {
    peer_ = Descriptor(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_THAT(ReadLine(), HasSubstr("AUTH EXTERNAL "));
    Write("OK 0123\r\n");
    EXPECT_EQ(ReadLine(), "NEGOTIATE_UNIX_FD");
    Write("AGREE_UNIX_FD\r\n");
    EXPECT_EQ(ReadLine(), "BEGIN");
    reader_.Feed(pending_);
  }
  // Answers calls until one of this name has been answered.
  void ServeUntil(const std::string& member) {
    while (true) {
      auto next = reader_.Next();
      ASSERT_TRUE(next.ok());
      if (!*next) {
        char bytes[4096];
        const ssize_t count = ::read(peer_.get(), bytes, sizeof(bytes));
        ASSERT_GT(count, 0);
        reader_.Feed({bytes, static_cast<std::size_t>(count)});
        continue;
      }
      Serve(**next);
      if ((*next)->member == member) return;
    }
  }
  void Shutdown(bool begins) {
    Write(EncodeDbus({.type = DbusMessage::Type::kSignal,
                      .serial = ++serial_,
                      .path = "/org/freedesktop/login1",
                      .interface = "org.freedesktop.login1.Manager",
                      .member = "PrepareForShutdown",
                      .signature = "b",
                      .body = std::string(1, begins ? 1 : 0) + std::string(3, 0)}));
  }
  // Whether the holder of the last lock has closed it.
  bool IsReleased() {
    pollfd poll{lock_.get(), POLLIN, 0};
    return ::poll(&poll, 1, 5'000) == 1 && (poll.revents & POLLHUP) != 0;
  }

 private:
  std::string ReadLine() {
    while (pending_.find("\r\n") == std::string::npos) {
      char bytes[512];
      const ssize_t count = ::read(peer_.get(), bytes, sizeof(bytes));
      if (count <= 0) return "(closed)";
      pending_.append(bytes, static_cast<std::size_t>(count));
    }
    const std::size_t end = pending_.find("\r\n");
    std::string line = pending_.substr(0, end);
    pending_.erase(0, end + 2);
    return line;
  }
  void Write(const std::string& bytes) {
    EXPECT_EQ(::write(peer_.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  void Serve(const DbusMessage& call) {
    std::string first = DbusText(call);
    calls.push_back(StrCat(call.member, "(", first, ")"));
    DbusMessage answer{
        .type = DbusMessage::Type::kReturn, .serial = ++serial_, .reply_to = call.serial};
    if (call.member == "Get") {
      answer.signature = "v";
      answer.body = std::string("\x01t\x00\x00\x00\x00\x00\x00", 8);
      for (int shift = 0; shift < 64; shift += 8) {
        answer.body += static_cast<char>(limit_us_ >> shift & 0xff);
      }
    } else if (call.member == "KillUnit") {
      // logind reads its configuration again.
      const auto text = RealFileSystem().ReadFile(configuration());
      EXPECT_THAT(text.ok() ? *text : "", HasSubstr("InhibitDelayMaxSec=30\n"));
      limit_us_ = 30'000'000;
    } else if (call.member == "Inhibit") {
      answer.signature = "h";
      answer.body = std::string(4, 0);
      answer.descriptors = 1;
      int ends[2];
      ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
      lock_ = Descriptor(ends[0]);
      const Descriptor theirs(ends[1]);
      return WriteWith(EncodeDbus(answer), theirs.get());
    }
    Write(EncodeDbus(answer));
  }
  void WriteWith(std::string bytes, int descriptor) {
    iovec vector{bytes.data(), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
    msghdr header{};
    header.msg_iov = &vector;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    cmsghdr* message = CMSG_FIRSTHDR(&header);
    message->cmsg_level = SOL_SOCKET;
    message->cmsg_type = SCM_RIGHTS;
    message->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(message), &descriptor, sizeof(int));
    EXPECT_GT(::sendmsg(peer_.get(), &header, 0), 0);
  }

  std::uint64_t limit_us_;
  std::string directory_;
  Descriptor listener_;
  Descriptor peer_;
  Descriptor lock_;
  std::string pending_;
  DbusReader reader_;
  std::uint32_t serial_ = 0;
};

class LogindTest : public ::testing::Test {
 protected:
  ~LogindTest() override {
    thread_.RunSync([this] { logind_.reset(); });
  }
  void Start(const FakeBus& bus) {
    thread_.RunSync([&] {
      logind_ = std::make_unique<Logind>(Logind::Options{
          .loop = thread_.loop(),
          .files = RealFileSystem(),
          .socket = bus.path(),
          .configuration = bus.configuration(),
          .wanted = std::chrono::seconds(30),
          .on_shutdown = [this](bool begins) { begins ? ++begun_ : ++cancelled_; }});
      logind_->Start();
    });
  }
  void Release() {
    thread_.RunSync([this] { logind_->Release(); });
  }

  LoopThread thread_{"logind"};
  std::unique_ptr<Logind> logind_;
  std::atomic<int> begun_ = 0, cancelled_ = 0;
};

TEST_F(LogindTest, TakesTheLockSaysWhenAShutdownBeginsAndGivesItBack) {
  FakeBus bus(60'000'000);
  Start(bus);
  bus.Accept();
  bus.ServeUntil("Inhibit");
  EXPECT_THAT(bus.calls, ElementsAre("Hello()", HasSubstr("AddMatch(type='signal'"),
                                     "Get(org.freedesktop.login1.Manager)", "Inhibit(shutdown)"));
  bus.Shutdown(true);
  while (begun_ == 0) std::this_thread::yield();
  Release();
  EXPECT_TRUE(bus.IsReleased());
  // The user changed their mind: the next shutdown must wait again.
  bus.Shutdown(false);
  bus.ServeUntil("Inhibit");
  while (cancelled_ == 0) std::this_thread::yield();
  Release();
  EXPECT_TRUE(bus.IsReleased());
}

TEST_F(LogindTest, RaisesALimitThatIsTooLow) {
  FakeBus bus(5'000'000);
  Start(bus);
  bus.Accept();
  bus.ServeUntil("Inhibit");
  EXPECT_THAT(bus.calls, ElementsAre("Hello()", HasSubstr("AddMatch"), HasSubstr("Get"),
                                     "KillUnit(systemd-logind.service)", HasSubstr("Get"),
                                     "Inhibit(shutdown)"));
}

TEST(SystemBusSocket, IsTheFirstPathOfTheAddress) {
  EXPECT_EQ(SystemBusSocket(""), "/run/dbus/system_bus_socket");
  EXPECT_EQ(SystemBusSocket("tcp:host=x;unix:path=/a,guid=1;unix:path=/b"), "/a");
  EXPECT_EQ(SystemBusSocket("unix:path=/c"), "/c");
}

TEST_F(LogindTest, AMachineWithoutABusIsNotAnError) {
  FakeBus bus(0);
  ASSERT_TRUE(RealFileSystem().Remove(bus.path()).ok());
  Start(bus);
  thread_.RunSync([this] { EXPECT_FALSE(logind_->holds_lock()); });
}

}  // namespace
}  // namespace drakkar::node
