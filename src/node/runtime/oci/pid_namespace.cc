#include "node/runtime/oci/pid_namespace.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/env/descriptor.h"
#include "base/env/file_system.h"
#include "base/text/text.h"
#include "node/runtime/oci/host.h"

namespace drakkar::node {
namespace {

constexpr char kVariable[] = "DRAKKAR_POD_SANDBOX=";
constexpr const char* kPrograms[] = {"/bin/sleep", "/usr/bin/sleep"};

// As fork, without the handlers of the C library: what follows makes system calls only.
pid_t Fork(unsigned long flags) {
  return static_cast<pid_t>(::syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0));
}

// Runs in the new namespace. Sends the reason to `report` if it cannot become the holder.
[[noreturn]] void BecomeHolder(int null, int report, char** arguments, char** environment) {
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigset_t none;
  ::sigemptyset(&none);
  ::sigaction(SIGCHLD, &ignore, nullptr);  // survives exec: the kernel reaps its children
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setsid();
  for (int standard = 0; standard < 3; ++standard) ::dup2(null, standard);
  constexpr int kReport = 3;
  ::dup2(report, kReport);
  ::fcntl(kReport, F_SETFD, FD_CLOEXEC);
  ::syscall(SYS_close_range, kReport + 1, ~0U, 0);
  if (::chdir("/") == 0) {
    for (const char* program : kPrograms) ::execve(program, arguments, environment);
  }
  const int reason = -errno;
  static_cast<void>(::write(kReport, &reason, sizeof(reason)) == 0);
  ::_exit(1);
}

// Returns the holder's pid.
Result<int> StartHolder(const std::string& name) {
  std::string program = "sleep", forever = "2147483647", variable = kVariable + name;
  char* arguments[] = {program.data(), forever.data(), nullptr};
  char* environment[] = {variable.data(), nullptr};
  const Descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  int ends[2] = {-1, -1};
  if (!null.ok() || ::pipe2(ends, O_CLOEXEC) != 0) return ErrnoError(errno, "prepare a process");
  const Descriptor from(ends[0]);
  Descriptor report(ends[1]);
  // The process in between ends at once, so that the holder is no child of ours.
  const pid_t between = Fork(0);
  if (between < 0) return ErrnoError(errno, "start a process");
  if (between == 0) {
    const pid_t holder = Fork(CLONE_NEWPID);
    if (holder == 0) BecomeHolder(null.get(), report.get(), arguments, environment);
    const int answer = holder > 0 ? holder : -errno;
    static_cast<void>(::write(report.get(), &answer, sizeof(answer)) == 0);
    ::_exit(0);
  }
  report = Descriptor();
  while (::waitpid(between, nullptr, 0) < 0 && errno == EINTR) continue;
  int pid = 0;
  for (int answer = 0;;) {
    const ssize_t got = ::read(from.get(), &answer, sizeof(answer));
    if (got < 0 && errno == EINTR) continue;
    if (got != static_cast<ssize_t>(sizeof(answer))) break;
    if (answer < 0) return ErrnoError(-answer, "start the process that holds a PID namespace");
    pid = answer;
  }
  if (pid == 0) return Internal("the process that holds a PID namespace did not start");
  return pid;
}

// A holder has this variable and no other. Processes of pods can make theirs endless.
bool IsHolder(int pid, const std::string& name) {
  const std::string wanted = StrCat(kVariable, name, std::string_view("\0", 1));
  const auto environment =
      RealFileSystem().ReadFileRange(StrCat("/proc/", pid, "/environ"), 0, wanted.size() + 1);
  return environment.ok() && *environment == wanted;
}

}  // namespace

Result<void> HoldPidNamespace(const std::string& path, const std::string& name) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!file.ok()) return ErrnoError(errno, "create " + path);
  ASSIGN_OR_RETURN(const int pid, StartHolder(name));
  const std::string source = StrCat("/proc/", pid, "/ns/pid");
  if (::mount(source.c_str(), path.c_str(), nullptr, MS_BIND, nullptr) != 0) {
    return ErrnoError(errno, "pin " + path);
  }
  return Ok();
}

Result<std::vector<int>> FindHolders(const std::string& name) {
  ASSIGN_OR_RETURN(const auto entries, RealFileSystem().ListDirectory("/proc"));
  std::vector<int> found;
  for (const std::string& entry : entries) {
    const auto pid = ParseInt64(entry);
    if (pid && IsHolder(static_cast<int>(*pid), name)) found.push_back(static_cast<int>(*pid));
  }
  return found;
}

Result<void> EndPidNamespace(const std::string& name) {
  ASSIGN_OR_RETURN(const std::vector<int> holders, FindHolders(name));
  for (const int pid : holders) {
    const auto handle = ProcessHandle::Open(pid);
    // Compared again: the pid may have been reused before it was opened.
    if (!handle.ok() || !IsHolder(pid, name)) continue;
    auto killed = handle->Signal(SIGKILL);
    if (!killed.ok() && killed.error().code != ErrorCode::kNotFound) return killed;
  }
  return Ok();
}

}  // namespace drakkar::node
