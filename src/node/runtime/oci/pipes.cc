#include "node/runtime/oci/pipes.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text/text.h"

namespace drakkar::node {
namespace {

Result<void> MakeNonBlocking(const Descriptor& descriptor) {
  const int flags = ::fcntl(descriptor.get(), F_GETFL);
  if (flags < 0 || ::fcntl(descriptor.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
    return ErrnoError(errno, "set O_NONBLOCK");
  }
  return Ok();
}

bool IsTemporary(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

Result<PipeEnds> MakePipe(bool we_read) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoError(errno, "make a pipe");
  PipeEnds pipe{Descriptor(ends[we_read ? 0 : 1]), Descriptor(ends[we_read ? 1 : 0])};
  RETURN_IF_ERROR(MakeNonBlocking(pipe.ours));
  return pipe;
}

Result<PipeEnds> MakeTerminal() {
  PipeEnds terminal;
  terminal.ours = Descriptor(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  char name[64];
  if (!terminal.ours.ok() || ::grantpt(terminal.ours.get()) != 0 ||
      ::unlockpt(terminal.ours.get()) != 0 ||
      ::ptsname_r(terminal.ours.get(), name, sizeof(name)) != 0) {
    return ErrnoError(errno, "make a terminal");
  }
  terminal.theirs = Descriptor(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal.theirs.ok()) return ErrnoError(errno, StrCat("open ", name));
  // The real terminal is inside the container; this one only forwards bytes.
  termios settings{};
  if (::tcgetattr(terminal.theirs.get(), &settings) == 0) {
    ::cfmakeraw(&settings);
    ::tcsetattr(terminal.theirs.get(), TCSANOW, &settings);
  }
  RETURN_IF_ERROR(MakeNonBlocking(terminal.ours));
  return terminal;
}

Result<Descriptor> OpenNull() {
  Descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.ok()) return ErrnoError(errno, "open /dev/null");
  return null;
}

Result<Descriptor> Duplicate(const Descriptor& descriptor) {
  Descriptor copy(::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, 3));
  if (!copy.ok()) return ErrnoError(errno, "duplicate a descriptor");
  return copy;
}

Result<Descriptor> ConnectPacketSocket(const std::string& directory, const std::string& name) {
  const Descriptor place(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!place.ok()) return ErrnoError(errno, "open " + directory);
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.ok()) return ErrnoError(errno, "make a socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = StrCat("/proc/self/fd/", place.get(), "/", name);
  if (path.size() >= sizeof(address.sun_path)) return InvalidArgument("socket name too long");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return ErrnoError(errno, StrCat("connect to ", directory, "/", name));
  }
  RETURN_IF_ERROR(MakeNonBlocking(socket));
  return socket;
}

PipeReader::PipeReader(UvLoop& loop, Descriptor descriptor,
                       std::function<void(std::string_view)> on_data, std::function<void()> on_end)
    : loop_(loop),
      descriptor_(std::move(descriptor)),
      on_data_(std::move(on_data)),
      on_end_(std::move(on_end)) {
  SetReading(true);
}

void PipeReader::SetReading(bool reading) {
  if (!reading || has_ended()) {
    watch_.reset();
  } else if (!watch_) {
    watch_ = WatchReadable(loop_, descriptor_.get(), [this] { OnReadable(); });
  }
}

void PipeReader::OnReadable() {
  static thread_local char space[kReadBytes];
  const ssize_t size = ::read(descriptor_.get(), space, sizeof(space));
  if (size < 0 && IsTemporary(errno)) return;
  if (size > 0) {
    auto on_data = on_data_;
    return on_data(std::string_view(space, static_cast<std::size_t>(size)));
  }
  // Reading a terminal whose other side was closed fails with EIO.
  watch_.reset();
  descriptor_ = Descriptor();
  auto on_end = std::move(on_end_);
  on_end();
}

PipeWriter::PipeWriter(UvLoop& loop, Descriptor descriptor, std::function<void()> on_drained,
                       std::size_t max_packet)
    : loop_(loop),
      descriptor_(std::move(descriptor)),
      on_drained_(std::move(on_drained)),
      max_packet_(max_packet) {}

void PipeWriter::Write(std::string_view bytes) {
  if (closing_ || !descriptor_.ok()) return;
  pending_.append(bytes);
  if (!watch_) Flush();
}

void PipeWriter::Close(std::function<void(int)> how) {
  if (std::exchange(closing_, true)) return;
  close_how_ = std::move(how);
  if (pending() == 0) Flush();
}

void PipeWriter::Flush() {
  while (pending() > 0 && descriptor_.ok()) {
    const ssize_t size =
        ::write(descriptor_.get(), pending_.data() + sent_, std::min(pending(), max_packet_));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && IsTemporary(errno)) break;
    if (size < 0) {
      // The reader is gone.
      watch_.reset();
      descriptor_ = Descriptor();
      break;
    }
    sent_ += static_cast<std::size_t>(size);
  }
  if (pending() == 0 || !descriptor_.ok()) {
    pending_.clear();
    sent_ = 0;
    watch_.reset();
    if (closing_ && descriptor_.ok()) {
      if (close_how_) {
        close_how_(descriptor_.get());
      } else {
        descriptor_ = Descriptor();
      }
    }
  } else if (!watch_) {
    watch_ = WatchWritable(loop_, descriptor_.get(), [this] { OnWritable(); });
  }
}

void PipeWriter::OnWritable() {
  Flush();
  if (pending() > 0) return;
  auto on_drained = on_drained_;
  on_drained();
}

}  // namespace drakkar::node
