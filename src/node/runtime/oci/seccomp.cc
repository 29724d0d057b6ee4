#include "node/runtime/oci/seccomp.h"

#include <cerrno>
#include <span>
#include <vector>

#include "base/text/text.h"
#include "node/runtime/json.h"
#include "node/runtime/oci/oci_spec.h"

namespace drakkar::node {
namespace {

using Names = std::span<const std::string_view>;

// Grouped by purpose. Variants for 32-bit programs (…32, …64, _time64) are listed beside their
// calls.
constexpr std::string_view kFiles[] = {"access",
                                       "cachestat",
                                       "chdir",
                                       "chmod",
                                       "chown",
                                       "chown32",
                                       "close",
                                       "close_range",
                                       "copy_file_range",
                                       "creat",
                                       "dup",
                                       "dup2",
                                       "dup3",
                                       "faccessat",
                                       "faccessat2",
                                       "fadvise64",
                                       "fadvise64_64",
                                       "fallocate",
                                       "fanotify_mark",
                                       "fchdir",
                                       "fchmod",
                                       "fchmodat",
                                       "fchmodat2",
                                       "fchown",
                                       "fchown32",
                                       "fchownat",
                                       "fcntl",
                                       "fcntl64",
                                       "fdatasync",
                                       "fgetxattr",
                                       "flistxattr",
                                       "flock",
                                       "fremovexattr",
                                       "fsetxattr",
                                       "fstat",
                                       "fstat64",
                                       "fstatat64",
                                       "fstatfs",
                                       "fstatfs64",
                                       "fsync",
                                       "ftruncate",
                                       "ftruncate64",
                                       "futimesat",
                                       "getcwd",
                                       "getdents",
                                       "getdents64",
                                       "getxattr",
                                       "inotify_add_watch",
                                       "inotify_init",
                                       "inotify_init1",
                                       "inotify_rm_watch",
                                       "ioctl",
                                       "lchown",
                                       "lchown32",
                                       "lgetxattr",
                                       "link",
                                       "linkat",
                                       "listxattr",
                                       "llistxattr",
                                       "_llseek",
                                       "lremovexattr",
                                       "lseek",
                                       "lsetxattr",
                                       "lstat",
                                       "lstat64",
                                       "mkdir",
                                       "mkdirat",
                                       "mknod",
                                       "mknodat",
                                       "name_to_handle_at",
                                       "newfstatat",
                                       "open",
                                       "openat",
                                       "openat2",
                                       "pread64",
                                       "preadv",
                                       "preadv2",
                                       "pwrite64",
                                       "pwritev",
                                       "pwritev2",
                                       "read",
                                       "readahead",
                                       "readlink",
                                       "readlinkat",
                                       "readv",
                                       "removexattr",
                                       "rename",
                                       "renameat",
                                       "renameat2",
                                       "rmdir",
                                       "sendfile",
                                       "sendfile64",
                                       "setxattr",
                                       "splice",
                                       "stat",
                                       "stat64",
                                       "statfs",
                                       "statfs64",
                                       "statmount",
                                       "listmount",
                                       "statx",
                                       "symlink",
                                       "symlinkat",
                                       "sync",
                                       "sync_file_range",
                                       "sync_file_range2",
                                       "syncfs",
                                       "tee",
                                       "truncate",
                                       "truncate64",
                                       "umask",
                                       "unlink",
                                       "unlinkat",
                                       "ustat",
                                       "utime",
                                       "utimensat",
                                       "utimensat_time64",
                                       "utimes",
                                       "vmsplice",
                                       "write",
                                       "writev",
                                       "getxattrat",
                                       "listxattrat",
                                       "removexattrat",
                                       "setxattrat"};
constexpr std::string_view kProcesses[] = {"arch_prctl",
                                           "capget",
                                           "capset",
                                           "execve",
                                           "execveat",
                                           "exit",
                                           "exit_group",
                                           "fork",
                                           "get_robust_list",
                                           "get_thread_area",
                                           "getcpu",
                                           "getegid",
                                           "getegid32",
                                           "geteuid",
                                           "geteuid32",
                                           "getgid",
                                           "getgid32",
                                           "getgroups",
                                           "getgroups32",
                                           "getpgid",
                                           "getpgrp",
                                           "getpid",
                                           "getppid",
                                           "getpriority",
                                           "getresgid",
                                           "getresgid32",
                                           "getresuid",
                                           "getresuid32",
                                           "getrlimit",
                                           "getrusage",
                                           "getsid",
                                           "gettid",
                                           "getuid",
                                           "getuid32",
                                           "ioprio_get",
                                           "ioprio_set",
                                           "kill",
                                           "landlock_add_rule",
                                           "landlock_create_ruleset",
                                           "landlock_restrict_self",
                                           "modify_ldt",
                                           "nice",
                                           "pidfd_open",
                                           "pidfd_send_signal",
                                           "prctl",
                                           "prlimit64",
                                           "process_mrelease",
                                           "ptrace",
                                           "process_vm_readv",
                                           "process_vm_writev",
                                           "restart_syscall",
                                           "rseq",
                                           "rt_sigaction",
                                           "rt_sigpending",
                                           "rt_sigprocmask",
                                           "rt_sigqueueinfo",
                                           "rt_sigreturn",
                                           "rt_sigsuspend",
                                           "rt_sigtimedwait",
                                           "rt_sigtimedwait_time64",
                                           "rt_tgsigqueueinfo",
                                           "sched_get_priority_max",
                                           "sched_get_priority_min",
                                           "sched_getaffinity",
                                           "sched_getattr",
                                           "sched_getparam",
                                           "sched_getscheduler",
                                           "sched_rr_get_interval",
                                           "sched_rr_get_interval_time64",
                                           "sched_setaffinity",
                                           "sched_setattr",
                                           "sched_setparam",
                                           "sched_setscheduler",
                                           "sched_yield",
                                           "seccomp",
                                           "set_robust_list",
                                           "set_thread_area",
                                           "set_tid_address",
                                           "setfsgid",
                                           "setfsgid32",
                                           "setfsuid",
                                           "setfsuid32",
                                           "setgid",
                                           "setgid32",
                                           "setgroups",
                                           "setgroups32",
                                           "setpgid",
                                           "setpriority",
                                           "setregid",
                                           "setregid32",
                                           "setresgid",
                                           "setresgid32",
                                           "setresuid",
                                           "setresuid32",
                                           "setreuid",
                                           "setreuid32",
                                           "setrlimit",
                                           "setsid",
                                           "setuid",
                                           "setuid32",
                                           "sigaltstack",
                                           "signal",
                                           "sigprocmask",
                                           "sigreturn",
                                           "sigsuspend",
                                           "sigaction",
                                           "sigpending",
                                           "tgkill",
                                           "tkill",
                                           "ugetrlimit",
                                           "vfork",
                                           "wait4",
                                           "waitid",
                                           "waitpid"};
constexpr std::string_view kMemory[] = {"brk",
                                        "madvise",
                                        "map_shadow_stack",
                                        "membarrier",
                                        "memfd_create",
                                        "memfd_secret",
                                        "mincore",
                                        "mlock",
                                        "mlock2",
                                        "mlockall",
                                        "mmap",
                                        "mmap2",
                                        "mprotect",
                                        "mremap",
                                        "mseal",
                                        "msync",
                                        "munlock",
                                        "munlockall",
                                        "munmap",
                                        "pkey_alloc",
                                        "pkey_free",
                                        "pkey_mprotect",
                                        "remap_file_pages"};
constexpr std::string_view kCommunication[] = {"accept",
                                               "accept4",
                                               "bind",
                                               "connect",
                                               "getpeername",
                                               "getsockname",
                                               "getsockopt",
                                               "ipc",
                                               "listen",
                                               "mq_getsetattr",
                                               "mq_notify",
                                               "mq_open",
                                               "mq_timedreceive",
                                               "mq_timedreceive_time64",
                                               "mq_timedsend",
                                               "mq_timedsend_time64",
                                               "mq_unlink",
                                               "msgctl",
                                               "msgget",
                                               "msgrcv",
                                               "msgsnd",
                                               "pipe",
                                               "pipe2",
                                               "recv",
                                               "recvfrom",
                                               "recvmmsg",
                                               "recvmmsg_time64",
                                               "recvmsg",
                                               "semctl",
                                               "semget",
                                               "semop",
                                               "semtimedop",
                                               "semtimedop_time64",
                                               "send",
                                               "sendmmsg",
                                               "sendmsg",
                                               "sendto",
                                               "setsockopt",
                                               "shmat",
                                               "shmctl",
                                               "shmdt",
                                               "shmget",
                                               "shutdown",
                                               "socketcall",
                                               "socketpair"};
constexpr std::string_view kTimeAndEvents[] = {"adjtimex",
                                               "alarm",
                                               "clock_adjtime",
                                               "clock_adjtime64",
                                               "clock_getres",
                                               "clock_getres_time64",
                                               "clock_gettime",
                                               "clock_gettime64",
                                               "clock_nanosleep",
                                               "clock_nanosleep_time64",
                                               "epoll_create",
                                               "epoll_create1",
                                               "epoll_ctl",
                                               "epoll_ctl_old",
                                               "epoll_pwait",
                                               "epoll_pwait2",
                                               "epoll_wait",
                                               "epoll_wait_old",
                                               "eventfd",
                                               "eventfd2",
                                               "futex",
                                               "futex_requeue",
                                               "futex_time64",
                                               "futex_wait",
                                               "futex_waitv",
                                               "futex_wake",
                                               "getitimer",
                                               "getrandom",
                                               "gettimeofday",
                                               "io_cancel",
                                               "io_destroy",
                                               "io_getevents",
                                               "io_pgetevents",
                                               "io_pgetevents_time64",
                                               "io_setup",
                                               "io_submit",
                                               "nanosleep",
                                               "_newselect",
                                               "pause",
                                               "poll",
                                               "ppoll",
                                               "ppoll_time64",
                                               "pselect6",
                                               "pselect6_time64",
                                               "select",
                                               "setitimer",
                                               "signalfd",
                                               "signalfd4",
                                               "sysinfo",
                                               "time",
                                               "timer_create",
                                               "timer_delete",
                                               "timer_getoverrun",
                                               "timer_gettime",
                                               "timer_gettime64",
                                               "timer_settime",
                                               "timer_settime64",
                                               "timerfd_create",
                                               "timerfd_gettime",
                                               "timerfd_gettime64",
                                               "timerfd_settime",
                                               "timerfd_settime64",
                                               "times",
                                               "uname"};

struct Opened {
  std::string_view capability;
  Names names;
};
constexpr std::string_view kOfAdministrators[] = {
    "bpf",      "clone",           "clone3",      "fanotify_init", "fsconfig",    "fsmount",
    "fsopen",   "fspick",          "mount",       "mount_setattr", "move_mount",  "open_tree",
    "quotactl", "perf_event_open", "quotactl_fd", "setdomainname", "sethostname", "setns",
    "syslog",   "umount",          "umount2",     "unshare"};
constexpr std::string_view kOfHandles[] = {"open_by_handle_at"};
constexpr std::string_view kOfBoot[] = {"reboot"};
constexpr std::string_view kOfRoots[] = {"chroot"};
constexpr std::string_view kOfModules[] = {"delete_module", "finit_module", "init_module"};
constexpr std::string_view kOfAccounting[] = {"acct"};
constexpr std::string_view kOfTracing[] = {"kcmp", "pidfd_getfd", "process_madvise"};
constexpr std::string_view kOfPorts[] = {"ioperm", "iopl"};
constexpr std::string_view kOfClocks[] = {"clock_settime", "clock_settime64", "settimeofday",
                                          "stime"};
constexpr std::string_view kOfTerminals[] = {"vhangup"};
constexpr std::string_view kOfPolicies[] = {"get_mempolicy", "mbind", "set_mempolicy",
                                            "set_mempolicy_home_node"};
constexpr std::string_view kOfKernelLogs[] = {"syslog"};
constexpr std::string_view kOfBpf[] = {"bpf"};
constexpr std::string_view kOfCounters[] = {"perf_event_open"};
constexpr Opened kOpened[] = {{"DAC_READ_SEARCH", kOfHandles},
                              {"SYS_ADMIN", kOfAdministrators},
                              {"SYS_BOOT", kOfBoot},
                              {"SYS_CHROOT", kOfRoots},
                              {"SYS_MODULE", kOfModules},
                              {"SYS_PACCT", kOfAccounting},
                              {"SYS_PTRACE", kOfTracing},
                              {"SYS_RAWIO", kOfPorts},
                              {"SYS_TIME", kOfClocks},
                              {"SYS_TTY_CONFIG", kOfTerminals},
                              {"SYS_NICE", kOfPolicies},
                              {"SYSLOG", kOfKernelLogs},
                              {"BPF", kOfBpf},
                              {"PERFMON", kOfCounters}};

// personality: the default and 32-bit personas, each with or without address randomization, and the
// query.
constexpr std::uint64_t kPersonalities[] = {0x0, 0x8, 0x20000, 0x20008, 0xffffffff};
// CLONE_NEWNS, _NEWCGROUP, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET.
constexpr std::uint64_t kNamespaceFlags = 0x7e020000;
constexpr std::uint64_t kAfVsock = 40;  // talks to the hypervisor

struct Argument {
  std::string_view operation;
  std::uint64_t value = 0;
  std::optional<std::uint64_t> second = std::nullopt;
};

void WriteRule(api::JsonWriter& json, Names names, std::optional<Argument> first_argument = {},
               std::optional<int> refused_with = {}) {
  json.BeginObject().Array("names", names);
  json.Member("action", refused_with ? "SCMP_ACT_ERRNO" : "SCMP_ACT_ALLOW");
  if (refused_with) json.Key("errnoRet").Integer(*refused_with);
  if (first_argument) {
    json.Key("args").BeginArray().BeginObject();
    json.Key("index").Integer(0).Key("value").Unsigned(first_argument->value);
    if (first_argument->second) json.Key("valueTwo").Unsigned(*first_argument->second);
    json.Member("op", first_argument->operation).EndObject().EndArray();
  }
  json.EndObject();
}

std::vector<std::string_view> Architectures() {
#if defined(__x86_64__)
  return {"SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"};
#elif defined(__aarch64__)
  return {"SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"};
#else
  return {};
#endif
}

}  // namespace

void WriteDefaultSeccomp(std::uint64_t capabilities, api::JsonWriter& json) {
  const auto has = [&](std::string_view name) {
    return (capabilities >> *CapabilityBit(name) & 1) != 0;
  };
  json.BeginObject();
  json.Member("defaultAction", "SCMP_ACT_ERRNO").Key("defaultErrnoRet").Integer(EPERM);
  json.Array("architectures", Architectures());
  json.Key("syscalls").BeginArray();
  for (const Names names : {Names(kFiles), Names(kProcesses), Names(kMemory), Names(kCommunication),
                            Names(kTimeAndEvents)}) {
    WriteRule(json, names);
  }
  static constexpr std::string_view kPersonality[] = {"personality"};
  for (const std::uint64_t value : kPersonalities) {
    WriteRule(json, kPersonality, Argument{"SCMP_CMP_EQ", value});
  }
  static constexpr std::string_view kSocket[] = {"socket"};
  WriteRule(json, kSocket, Argument{"SCMP_CMP_NE", kAfVsock});
  for (const Opened& each : kOpened) {
    if (has(each.capability)) WriteRule(json, each.names);
  }
  if (!has("SYS_ADMIN")) {
    static constexpr std::string_view kClone[] = {"clone"};
    WriteRule(json, kClone, Argument{"SCMP_CMP_MASKED_EQ", kNamespaceFlags, 0});
    // clone3 has its flags in memory, where no filter can see them; libraries fall back to clone.
    static constexpr std::string_view kClone3[] = {"clone3"};
    WriteRule(json, kClone3, {}, ENOSYS);
  }
  json.EndArray().EndObject();
}

Result<void> WriteSeccompProfile(std::string_view text, api::JsonWriter& json) {
  ASSIGN_OR_RETURN(const api::TreePtr profile, ParseJson(text));
  if (profile->root()["defaultAction"].str().empty()) {
    return InvalidArgument("defaultAction is missing");
  }
  json.Raw(Trim(text));
  return Ok();
}

}  // namespace drakkar::node
