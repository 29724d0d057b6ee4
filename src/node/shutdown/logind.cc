#include "node/shutdown/logind.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/text/text.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("node.shutdown");
constexpr char kBus[] = "org.freedesktop.DBus";
constexpr char kLogin[] = "org.freedesktop.login1";
constexpr char kLoginPath[] = "/org/freedesktop/login1";
constexpr char kManager[] = "org.freedesktop.login1.Manager";
constexpr std::size_t kReadBytes = 64 << 10;
constexpr std::size_t kMaxDescriptors = 16;
constexpr std::size_t kMaxGreeting = 4 << 10;

std::string Hex(std::string_view text) {
  std::string hex;
  for (const char c : text) {
    hex += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4];
    hex += "0123456789abcdef"[c & 15];
  }
  return hex;
}

}  // namespace

std::string SystemBusSocket(std::string_view addresses) {
  constexpr std::string_view kPath = "unix:path=";
  for (const std::string_view each : Split(addresses, ';')) {
    if (!each.starts_with(kPath)) continue;
    return std::string(each.substr(kPath.size(), each.find(',') - kPath.size()));
  }
  return "/run/dbus/system_bus_socket";
}

void Logind::Start() {
  if (auto connected = Connect(); !connected.ok()) Fail(connected.error());
}

// Also ends the operation in progress. The lock stays until it is released.
void Logind::Fail(const Error& error) {
  if (logged_ != error.message) {
    logged_ = error.message;
    kLog.Warning("a shutdown of this machine will not wait for its pods", {{"err", error.message}});
  }
  watch_.reset();
  socket_ = Descriptor();
  answers_.clear();
  received_.clear();
  greeting_.clear();
  reader_ = DbusReader();
  is_authenticated_ = false;
  timer_ = options_.loop.RunAfter(kRetry, [this] { Start(); });
}

Result<void> Logind::Connect() {
  const std::string what = "connect to " + options_.socket;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (options_.socket.size() >= sizeof(address.sun_path))
    return InvalidArgument(what + ": too long");
  std::memcpy(address.sun_path, options_.socket.c_str(), options_.socket.size());
  socket_ = Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_.ok()) return ErrnoError(errno, what);
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return ErrnoError(errno, what);
  }
  watch_ = WatchReadable(options_.loop, socket_.get(), [this] { OnReadable(); });
  if (watch_ == nullptr) return Internal(what + ": cannot wait for it");
  return Send(StrCat(std::string_view("\0", 1), "AUTH EXTERNAL ", Hex(std::to_string(::geteuid())),
                     "\r\n"));
}

// Requests are small: the socket accepts them whole, or the bus does not read.
Result<void> Logind::Send(std::string_view bytes) {
  const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(bytes.size())) return Ok();
  return sent < 0 ? ErrnoError(errno, "write to the system bus")
                  : Unavailable("the system bus does not read");
}

Result<bool> Logind::Receive() {
  char bytes[kReadBytes];
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
  iovec vector{bytes, sizeof(bytes)};
  msghdr header{};
  header.msg_iov = &vector;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  const ssize_t count = ::recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (count < 0) return ErrnoError(errno, "read from the system bus");
  for (cmsghdr* each = CMSG_FIRSTHDR(&header); each != nullptr; each = CMSG_NXTHDR(&header, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t descriptors = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < descriptors; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(each) + i * sizeof(int), sizeof(int));
      received_.emplace_back(descriptor);
    }
  }
  if (received_.size() > kMaxDescriptors) {
    return Error{ErrorCode::kResourceExhausted, "the system bus sent too many descriptors"};
  }
  const std::string_view got(bytes, static_cast<std::size_t>(count));
  if (is_authenticated_) {
    reader_.Feed(got);
  } else {
    greeting_ += got;
  }
  return count > 0;
}

void Logind::OnReadable() {
  auto received = Receive();
  if (!received.ok()) return Fail(received.error());
  if (!*received) return Fail(Unavailable("the system bus closed the connection"));
  OnBytes();
}

void Logind::OnBytes() {
  while (!is_authenticated_) {
    const std::size_t end = greeting_.find("\r\n");
    if (end == std::string::npos) {
      if (greeting_.size() > kMaxGreeting) Fail(Unavailable("the system bus sent no greeting"));
      return;
    }
    const std::string line = greeting_.substr(0, end);
    greeting_.erase(0, end + 2);
    if (line.starts_with("OK ")) {
      if (auto sent = Send("NEGOTIATE_UNIX_FD\r\n"); !sent.ok()) return Fail(sent.error());
    } else if (line == "AGREE_UNIX_FD") {
      if (auto sent = Send("BEGIN\r\n"); !sent.ok()) return Fail(sent.error());
      is_authenticated_ = true;
      reader_.Feed(greeting_);
      Greet();
    } else {
      return Fail(FailedPrecondition(StrCat("the system bus refused us: ", line)));
    }
  }
  // A handler may end the connection.
  const auto alive = lifetime_.Observe();
  while (socket_.ok()) {
    auto message = reader_.Next();
    if (!message.ok()) return Fail(message.error());
    if (!*message) return;
    OnMessage(**message);
    if (!alive.alive()) return;
  }
}

void Logind::OnMessage(const DbusMessage& message) {
  if (message.type == DbusMessage::Type::kSignal) {
    if (message.interface != kManager || message.member != "PrepareForShutdown") return;
    const auto begins = DbusBool(message);
    if (!begins.ok()) return;
    if (!*begins) Lock();  // cancelled: the next shutdown must wait again
    return options_.on_shutdown(*begins);
  }
  const auto found = answers_.find(message.reply_to);
  if (found == answers_.end()) return;
  const Answer answer = std::move(found->second);
  answers_.erase(found);
  if (message.type == DbusMessage::Type::kError) {
    const std::string text = DbusText(message);
    return Fail(Unavailable(text.empty() ? message.error_name : text));
  }
  answer(message);
}

void Logind::Call(const DbusCall& call, Answer answer) {
  const std::uint32_t serial = ++last_serial_;
  answers_[serial] = std::move(answer);
  if (auto sent = Send(EncodeDbusCall(serial, call)); !sent.ok()) Fail(sent.error());
}

void Logind::Greet() {
  const auto bus = [](std::string member, std::vector<std::string> strings) {
    return DbusCall{.destination = kBus,
                    .path = "/org/freedesktop/DBus",
                    .interface = kBus,
                    .member = std::move(member),
                    .strings = std::move(strings)};
  };
  Call(bus("Hello", {}), [this, bus](const DbusMessage&) {
    // Subscribe to the signal before taking the lock: a shutdown in between would be missed.
    Call(bus("AddMatch", {StrCat("type='signal',interface='", kManager,
                                 "',member='PrepareForShutdown',path='", kLoginPath, "'")}),
         [this](const DbusMessage&) { ReadLimit(kLooks); });
  });
}

void Logind::ReadLimit(int looks_left) {
  Call({.destination = kLogin,
        .path = kLoginPath,
        .interface = "org.freedesktop.DBus.Properties",
        .member = "Get",
        .strings = {kManager, "InhibitDelayMaxUSec"}},
       [this, looks_left](const DbusMessage& answer) {
         const auto limit = DbusVariantNumber(answer);
         if (!limit.ok()) return Fail(limit.error());
         const auto wanted =
             std::chrono::duration_cast<std::chrono::microseconds>(options_.wanted).count();
         if (*limit >= static_cast<std::uint64_t>(wanted)) return Lock();
         if (!raised_) return RaiseLimit();
         if (looks_left == 0) {
           kLog.Warning("logind's InhibitDelayMaxSec is shorter than the pods' grace period",
                        {{"microseconds", *limit}, {"wanted", wanted}});
           return Lock();
         }
         timer_ = options_.loop.RunAfter(kFirstLook * (1 << (kLooks - looks_left)),
                                         [this, looks_left] { ReadLimit(looks_left - 1); });
       });
}

void Logind::RaiseLimit() {
  raised_ = true;
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(options_.wanted).count();
  auto written = options_.files.MakeDirectories(DirectoryName(options_.configuration), 0755);
  if (written.ok()) {
    written = options_.files.WriteFile(
        options_.configuration,
        StrCat("# Time that Drakkar's pods may take to end.\n[Login]\nInhibitDelayMaxSec=", seconds,
               "\n"),
        0644);
  }
  if (!written.ok()) {
    kLog.Warning("could not raise logind's InhibitDelayMaxSec", {{"err", written.error().message}});
    return Lock();
  }
  // SIGHUP makes logind read its configuration.
  Call({.destination = "org.freedesktop.systemd1",
        .path = "/org/freedesktop/systemd1",
        .interface = "org.freedesktop.systemd1.Manager",
        .member = "KillUnit",
        .strings = {"systemd-logind.service", "all"},
        .number = SIGHUP},
       [this](const DbusMessage&) { ReadLimit(kLooks); });
}

void Logind::Lock() {
  Call({.destination = kLogin,
        .path = kLoginPath,
        .interface = kManager,
        .member = "Inhibit",
        .strings = {"shutdown", "drakkar", "Pods are being stopped in order of priority", "delay"}},
       [this](const DbusMessage& answer) {
         if (answer.signature != "h" || received_.empty()) {
           return Fail(Unavailable("logind granted no inhibitor lock"));
         }
         lock_ = std::move(received_.front());
         received_.erase(received_.begin());
         if (!logged_.empty()) kLog.Info("a shutdown of this machine will wait for its pods");
         logged_.clear();
       });
}

}  // namespace drakkar::node
