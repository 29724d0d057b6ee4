#include "node/runtime/oci/host.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/env/descriptor.h"
#include "base/env/file_system.h"
#include "base/result/check.h"
#include "base/text/text.h"

namespace drakkar::node {
namespace {

Result<void> PinOne(const char* kind, const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!file.ok()) return ErrnoError(errno, "create " + path);
  const std::string source = StrCat("/proc/thread-self/ns/", kind);
  if (::mount(source.c_str(), path.c_str(), nullptr, MS_BIND, nullptr) != 0) {
    return ErrnoError(errno, "pin " + path);
  }
  return Ok();
}

Result<void> RaiseLoopback() {
  const Descriptor control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::memcpy(request.ifr_name, "lo", sizeof("lo"));
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (!control.ok() || ::ioctl(control.get(), SIOCSIFFLAGS, &request) != 0) {
    return ErrnoError(errno, "bring up the loopback interface");
  }
  return Ok();
}

// mountinfo escapes space, tab, newline and backslash as octal.
std::string Unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                               (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

struct NamedLimit {
  const char* name;
  __rlimit_resource resource;
};
constexpr NamedLimit kLimits[] = {{"RLIMIT_AS", RLIMIT_AS},
                                  {"RLIMIT_CORE", RLIMIT_CORE},
                                  {"RLIMIT_CPU", RLIMIT_CPU},
                                  {"RLIMIT_DATA", RLIMIT_DATA},
                                  {"RLIMIT_FSIZE", RLIMIT_FSIZE},
                                  {"RLIMIT_LOCKS", RLIMIT_LOCKS},
                                  {"RLIMIT_MEMLOCK", RLIMIT_MEMLOCK},
                                  {"RLIMIT_MSGQUEUE", RLIMIT_MSGQUEUE},
                                  {"RLIMIT_NICE", RLIMIT_NICE},
                                  {"RLIMIT_NOFILE", RLIMIT_NOFILE},
                                  {"RLIMIT_NPROC", RLIMIT_NPROC},
                                  {"RLIMIT_RSS", RLIMIT_RSS},
                                  {"RLIMIT_RTPRIO", RLIMIT_RTPRIO},
                                  {"RLIMIT_RTTIME", RLIMIT_RTTIME},
                                  {"RLIMIT_SIGPENDING", RLIMIT_SIGPENDING},
                                  {"RLIMIT_STACK", RLIMIT_STACK}};

constexpr int kSysResourceBit = 24;  // CAP_SYS_RESOURCE
constexpr std::size_t kMaxHostDevices = 4096;

void CollectDevices(const std::string& directory, int depth, std::vector<DeviceNode>& devices) {
  if (depth > 4) return;
  auto names = RealFileSystem().ListDirectory(directory);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const std::string path = JoinPath(directory, name);
    // The container has its own instances of these.
    if (path == "/dev/pts" || path == "/dev/shm" || path == "/dev/mqueue" || path == "/dev/fd" ||
        path == "/dev/console" || path == "/dev/ptmx") {
      continue;
    }
    struct stat st {};
    if (::lstat(path.c_str(), &st) != 0 || devices.size() >= kMaxHostDevices) continue;
    if (S_ISDIR(st.st_mode)) {
      CollectDevices(path, depth + 1, devices);
    } else if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)) {
      DeviceNode device;
      device.host_path = path;
      auto resolved = ResolveDevice(std::move(device));
      if (resolved.ok()) devices.push_back(*std::move(resolved));
    }
  }
}

}  // namespace

ProcessHandle::ProcessHandle(ProcessHandle&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
ProcessHandle& ProcessHandle::operator=(ProcessHandle&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}
ProcessHandle::~ProcessHandle() {
  if (fd_ >= 0) ::close(fd_);
}

Result<ProcessHandle> ProcessHandle::Open(int pid, std::optional<std::uint64_t> start_ticks) {
  if (pid <= 0) return NotFound("no process");
  ProcessHandle handle;
  handle.fd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (handle.fd_ < 0) {
    if (errno == ESRCH) return NotFound(StrCat("process ", pid, " has ended"));
    return ErrnoError(errno, StrCat("open process ", pid));
  }
  // Compared after opening: if they are equal now, the handle refers to that process.
  if (start_ticks) {
    auto actual = ProcessStartTicks(pid);
    if (!actual.ok() && !handle.HasEnded()) return std::move(actual).error();
    if (!actual.ok() || *actual != *start_ticks) {
      return NotFound(StrCat("process ", pid, " has ended"));
    }
  }
  if (handle.HasEnded()) return NotFound(StrCat("process ", pid, " has ended"));
  return handle;
}

bool ProcessHandle::HasEnded() const {
  pollfd poll{fd_, POLLIN, 0};
  return ::poll(&poll, 1, 0) > 0;
}

Result<void> ProcessHandle::Signal(int signal) const {
  if (::syscall(SYS_pidfd_send_signal, fd_, signal, nullptr, 0) != 0) {
    return ErrnoError(errno, "signal process");
  }
  return Ok();
}

Result<std::uint64_t> ProcessStartTicks(int pid) {
  ASSIGN_OR_RETURN(const std::string text,
                   RealFileSystem().ReadFile(StrCat("/proc/", pid, "/stat")));
  // The name, in parentheses, may contain anything, so fields are counted from its end. The start
  // time is field 22, the 20th after the name.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return Internal("unexpected /proc/PID/stat");
  const auto fields = Split(std::string_view(text).substr(name_end + 2), ' ');
  if (fields.size() < 20) return Internal("unexpected /proc/PID/stat");
  const auto ticks = ParseInt64(fields[19]);
  if (!ticks) return Internal("unexpected /proc/PID/stat");
  return static_cast<std::uint64_t>(*ticks);
}

bool IsSupervisor(int pid, const std::string& argument) {
  constexpr std::size_t kMaxBytes = 128 << 10;  // processes of pods can make theirs endless
  auto arguments = RealFileSystem().ReadFileRange(StrCat("/proc/", pid, "/cmdline"), 0, kMaxBytes);
  if (!arguments.ok()) return false;
  const auto parts = Split(*arguments, '\0');
  const std::string_view program = BaseName(parts[0]);
  if (program != "conmon" && program != "runc" && program != "crun") return false;
  return std::find(parts.begin(), parts.end(), argument) != parts.end();
}

Result<std::vector<int>> FindSupervisors(const std::string& argument) {
  // conmon forks a child and exits. A single scan may miss both; the second one sees the child.
  constexpr int kLooks = 2;
  std::vector<int> found;
  for (int look = 0; look < kLooks && found.empty(); ++look) {
    ASSIGN_OR_RETURN(const auto names, RealFileSystem().ListDirectory("/proc"));
    for (const std::string& name : names) {
      const auto pid = ParseInt64(name);
      if (!pid || *pid == ::getpid()) continue;
      if (IsSupervisor(static_cast<int>(*pid), argument)) found.push_back(static_cast<int>(*pid));
    }
  }
  return found;
}

Result<void> MountOverlay(const std::string& lower, const std::string& upper,
                          const std::string& work, const std::string& target) {
  // Commas and colons separate mount options; our paths have none unless the data directory does.
  for (const std::string& path : {lower, upper, work}) {
    if (path.find_first_of(",:\\") != std::string::npos) {
      return InvalidArgument("overlay: path " + Quote(path) + " has a comma, colon or backslash");
    }
  }
  const std::string options = StrCat("lowerdir=", lower, ",upperdir=", upper, ",workdir=", work);
  if (options.size() >= 4096) return InvalidArgument("overlay: paths too long");
  if (::mount("overlay", target.c_str(), "overlay", 0, options.c_str()) != 0) {
    return ErrnoError(errno, "mount overlay on " + target);
  }
  return Ok();
}

Result<void> MountTmpfs(const std::string& target, const std::string& options) {
  if (::mount("tmpfs", target.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
              options.c_str()) != 0) {
    return ErrnoError(errno, "mount tmpfs on " + target);
  }
  return Ok();
}

Result<void> UnmountAll(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string table, RealFileSystem().ReadFile("/proc/self/mountinfo"));
  std::vector<std::string> points;
  for (std::string_view line : Split(table, '\n')) {
    const auto fields = Split(line, ' ');
    if (fields.size() < 5) continue;
    std::string point = Unescape(fields[4]);
    if (point == path || point.starts_with(path + "/")) points.push_back(std::move(point));
  }
  // The table is in mount order, so the last one is on top.
  for (auto point = points.rbegin(); point != points.rend(); ++point) {
    if (::umount2(point->c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0 && errno != EINVAL &&
        errno != ENOENT) {
      return ErrnoError(errno, "unmount " + *point);
    }
  }
  return Ok();
}

Result<void> PinNamespaces(const NamespacePins& pins) {
  int flags = 0;
  if (!pins.uts_path.empty()) flags |= CLONE_NEWUTS;
  if (!pins.ipc_path.empty()) flags |= CLONE_NEWIPC;
  if (!pins.network_path.empty()) flags |= CLONE_NEWNET;
  if (flags == 0) return Ok();
  // These namespaces belong to the thread, not the process: the others never notice.
  const Descriptor own_uts(::open("/proc/thread-self/ns/uts", O_RDONLY | O_CLOEXEC));
  const Descriptor own_ipc(::open("/proc/thread-self/ns/ipc", O_RDONLY | O_CLOEXEC));
  const Descriptor own_network(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!own_uts.ok() || !own_ipc.ok() || !own_network.ok())
    return ErrnoError(errno, "open own namespaces");
  if (::unshare(flags) != 0) return ErrnoError(errno, "make namespaces");
  Result<void> result = [&]() -> Result<void> {
    if (!pins.uts_path.empty()) {
      if (::sethostname(pins.hostname.data(), pins.hostname.size()) != 0) {
        return ErrnoError(errno, "set hostname " + Quote(pins.hostname));
      }
      RETURN_IF_ERROR(PinOne("uts", pins.uts_path));
    }
    if (!pins.ipc_path.empty()) RETURN_IF_ERROR(PinOne("ipc", pins.ipc_path));
    if (!pins.network_path.empty()) {
      RETURN_IF_ERROR(RaiseLoopback());
      RETURN_IF_ERROR(PinOne("net", pins.network_path));
    }
    return Ok();
  }();
  // A thread left in the namespace would leak the pod's hostname into its next task. Whatever
  // allowed us to leave also allows us to return.
  CHECK((flags & CLONE_NEWUTS) == 0 || ::setns(own_uts.get(), CLONE_NEWUTS) == 0);
  CHECK((flags & CLONE_NEWIPC) == 0 || ::setns(own_ipc.get(), CLONE_NEWIPC) == 0);
  CHECK((flags & CLONE_NEWNET) == 0 || ::setns(own_network.get(), CLONE_NEWNET) == 0);
  return result;
}

Result<void> UnpinNamespace(const std::string& path) {
  // Somebody may have mounted on top of it.
  constexpr int kMaxMounts = 16;
  for (int i = 0; i < kMaxMounts; ++i) {
    if (::umount2(path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) == 0) continue;
    if (errno == EINVAL || errno == ENOENT) break;
    return ErrnoError(errno, "unmount " + path);
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return ErrnoError(errno, "remove " + path);
  return Ok();
}

Result<bool> IsPinnedNamespace(const std::string& path) {
  struct statfs st {};
  if (::statfs(path.c_str(), &st) == 0) return st.f_type == NSFS_MAGIC;
  if (errno == ENOENT) return false;
  return ErrnoError(errno, "look at " + path);
}

HostLimits ProbeHostLimits() {
  HostLimits limits;
  FileSystem& files = RealFileSystem();
  if (auto status = files.ReadFile("/proc/self/status"); status.ok()) {
    for (std::string_view line : Split(*status, '\n')) {
      if (!line.starts_with("CapBnd:")) continue;
      limits.capabilities = std::strtoull(std::string(Trim(line.substr(7))).c_str(), nullptr, 16);
    }
  }
  limits.may_raise_rlimits = (limits.capabilities >> kSysResourceBit & 1) != 0;
  if (!limits.may_raise_rlimits) {
    auto own = files.ReadFile("/proc/self/oom_score_adj");
    const auto score = own.ok() ? ParseInt64(Trim(*own)) : std::nullopt;
    limits.lowest_oom_score = static_cast<int>(score.value_or(0));
  }
  for (const NamedLimit& entry : kLimits) {
    rlimit value{};
    if (::getrlimit(entry.resource, &value) != 0) continue;
    limits.rlimits.push_back({entry.name, value.rlim_max, value.rlim_cur});
  }
  return limits;
}

Result<DeviceNode> ResolveDevice(DeviceNode device) {
  if (device.container_path.empty()) device.container_path = device.host_path;
  const bool needs_look = device.type == 0 || device.major < 0 || device.minor < 0;
  if (!needs_look) return device;
  const std::string& path = device.host_path.empty() ? device.container_path : device.host_path;
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) return ErrnoError(errno, "device " + path);
  char type = 0;
  if (S_ISCHR(st.st_mode)) type = 'c';
  if (S_ISBLK(st.st_mode)) type = 'b';
  if (S_ISFIFO(st.st_mode)) type = 'p';
  if (type == 0) return InvalidArgument(path + " is not a device");
  if (device.type == 0) device.type = type;
  if (device.major < 0) device.major = static_cast<std::int64_t>(major(st.st_rdev));
  if (device.minor < 0) device.minor = static_cast<std::int64_t>(minor(st.st_rdev));
  if (!device.file_mode) device.file_mode = st.st_mode & 07777;
  if (!device.uid) device.uid = st.st_uid;
  if (!device.gid) device.gid = st.st_gid;
  return device;
}

std::vector<DeviceNode> ListHostDevices() {
  std::vector<DeviceNode> devices;
  CollectDevices("/dev", 0, devices);
  return devices;
}

Result<WallTime> ModifiedTime(const std::string& path) {
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) return ErrnoError(errno, "stat " + path);
  return WallTime(std::chrono::seconds(st.st_mtim.tv_sec) +
                  std::chrono::nanoseconds(st.st_mtim.tv_nsec));
}

Result<void> ReleaseExecFifo(const std::string& fifo, const ProcessHandle& init) {
  // Non-blocking: if init has died, no writer will ever open it.
  const Descriptor reader(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!reader.ok()) return ErrnoError(errno, "open " + fifo);
  constexpr int kPatienceMs = 10'000;
  pollfd polls[2] = {{reader.get(), POLLIN, 0}, {init.descriptor(), POLLIN, 0}};
  while (true) {
    const int ready = ::poll(polls, 2, kPatienceMs);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0)
      return Error{ErrorCode::kDeadlineExceeded, "the container's init does not respond"};
    char byte = 0;
    if (::read(reader.get(), &byte, 1) == 1) break;
    if (polls[1].revents != 0)
      return FailedPrecondition("the container's init exited before it ran");
  }
  if (::unlink(fifo.c_str()) != 0 && errno != ENOENT) return ErrnoError(errno, "remove " + fifo);
  return Ok();
}

}  // namespace drakkar::node
