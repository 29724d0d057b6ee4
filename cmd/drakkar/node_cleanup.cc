#include "cmd/drakkar/node_cleanup.h"

#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <optional>

#include "base/env/descriptor.h"
#include "base/env/file_system.h"
#include "base/env/random.h"
#include "base/exec/uv_loop.h"
#include "base/exec/worker_pool.h"
#include "base/text/text.h"
#include "cmd/drakkar/node_part.h"
#include "node/runtime/images/image_store.h"
#include "node/runtime/oci/oci_runtime.h"
#include "storage/sqlite/directory_lock.h"

namespace drakkar::cmd {
namespace {

constexpr std::size_t kWorkers = 2;
constexpr std::size_t kMaxQueuedWork = 1'024;
constexpr int kKillSeconds = 10;

// "\040" and the like are how the kernel writes spaces in paths.
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

Result<std::vector<std::string>> MountsIn(const std::vector<std::string>& directories) {
  ASSIGN_OR_RETURN(const std::string table, RealFileSystem().ReadFile("/proc/self/mountinfo"));
  std::vector<std::string> found;
  for (std::string_view line : Split(table, '\n')) {
    const std::vector<std::string_view> words = Split(line, ' ');
    if (words.size() < 5) continue;
    const std::string point = Unescape(words[4]);
    for (const std::string& directory : directories) {
      if (point.starts_with(directory + "/")) {
        found.push_back(point);
        break;
      }
    }
  }
  return found;
}

// Stops and removes one pod after the other.
class PodRemover {
 public:
  PodRemover(UvLoop& loop, node::Runtime& runtime) : loop_(loop), runtime_(runtime) {}

  Result<std::size_t> Run() {
    loop_.Post([this] {
      runtime_.Open([this](Result<void> opened) {
        if (!opened.ok()) return Finish(std::move(opened));
        Next();
      });
    });
    loop_.Run();
    if (!result_.ok()) return result_.error();
    return removed_;
  }

 private:
  void Next() {
    const std::vector<node::PodSandbox> left = runtime_.ListPodSandboxes();
    if (left.empty()) return Finish(Ok());
    const std::string id = left.front().id;
    runtime_.StopPodSandbox(id, [this, id](Result<void> stopped) {
      if (!stopped.ok()) return Finish(stopped.error().Prefixed(StrCat("stop pod ", id)));
      runtime_.RemovePodSandbox(id, [this, id](Result<void> removed) {
        if (!removed.ok()) return Finish(removed.error().Prefixed(StrCat("remove pod ", id)));
        ++removed_;
        Next();
      });
    });
  }
  void Finish(Result<void> result) {
    result_ = std::move(result);
    loop_.Stop();
  }

  UvLoop& loop_;
  node::Runtime& runtime_;
  std::size_t removed_ = 0;
  Result<void> result_ = Ok();
};

// Of `up --separate-processes`, the process that would start this one again; otherwise itself.
int SupervisorOf(int pid) {
  constexpr std::string_view kFlag = "--parent-pid=";
  const Result<std::string> words = RealFileSystem().ReadFile(StrCat("/proc/", pid, "/cmdline"));
  if (!words.ok()) return pid;
  for (std::string_view word : Split(*words, '\0')) {
    if (!word.starts_with(kFlag)) continue;
    const std::optional<std::int64_t> parent = ParseInt64(word.substr(kFlag.size()));
    if (parent && *parent > 1) return static_cast<int>(*parent);
  }
  return pid;
}

}  // namespace

Result<Cleanup> CleanUpNode(const std::string& data_dir,
                            const std::vector<std::string>& directories) {
  Cleanup cleanup;
  FileSystem& files = RealFileSystem();
  const std::string root = JoinPath(data_dir, "runtime");
  if (files.Exists(root)) {
    UvLoop loop;
    WorkerPool workers(kWorkers, kMaxQueuedWork);
    node::ImageStore images(files, RealRandom(), ImageDirectory(data_dir));
    RETURN_IF_ERROR(images.Open());
    const std::unique_ptr<node::Runtime> runtime = node::MakeOciRuntime(
        loop, workers, files, RealRandom(), images, {.root = root, .runtime = {}, .log = {}});
    const Result<std::size_t> removed = PodRemover(loop, *runtime).Run();
    workers.Stop();
    if (!removed.ok()) return removed.error();
    cleanup.pods = *removed;
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> mounts, MountsIn(directories));
  // The last one mounted may be on top of another.
  for (auto mount = mounts.rbegin(); mount != mounts.rend(); ++mount) {
    if (::umount2(mount->c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0 && errno != EINVAL) {
      return ErrnoError(errno, StrCat("unmount ", *mount));
    }
    ++cleanup.mounts;
  }
  return cleanup;
}

Result<void> EndProcess(int pid, int seconds) {
  const Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process.ok()) return errno == ESRCH ? Ok() : Result<void>(ErrnoError(errno, "pidfd_open"));
  for (const auto& [signal, patience] :
       {std::pair(SIGTERM, seconds), std::pair(SIGKILL, kKillSeconds)}) {
    if (::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0) != 0) {
      if (errno == ESRCH) return Ok();
      return ErrnoError(errno, StrCat("signal process ", pid));
    }
    pollfd ended{.fd = process.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ended, 1, patience * 1000) > 0) return Ok();
  }
  return Unavailable(StrCat("process ", pid, " does not end"));
}

Result<int> OwnerOf(const std::string& data_dir) {
  const std::string store = JoinPath(data_dir, "store");
  if (!RealFileSystem().Exists(JoinPath(store, "lock"))) return 0;
  const auto lock = storage::DirectoryLock::Take(store);
  if (lock.ok() || lock.error().code != ErrorCode::kFailedPrecondition) return 0;
  ASSIGN_OR_RETURN(const std::string text, RealFileSystem().ReadFile(JoinPath(store, "lock")));
  const std::optional<std::int64_t> pid = ParseInt64(Trim(text));
  if (!pid || *pid <= 1) return Unavailable(StrCat(store, " is in use by an unknown process"));
  return SupervisorOf(static_cast<int>(*pid));
}

}  // namespace drakkar::cmd
