#include "node/pods/log_rotation.h"

#include <algorithm>

#include "api/meta/time.h"
#include "base/text/text.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("node.logs");

// Digits only, so that file names sort by time.
std::string Stamp(WallTime now) {
  std::string stamp;
  for (char c : api::FormatTime(now)) {
    if (c >= '0' && c <= '9') stamp += c;
  }
  return stamp;
}

}  // namespace

std::vector<std::string> RotatedLogs(FileSystem& files, const std::string& path) {
  std::vector<std::string> found;
  auto names = files.ListDirectory(DirectoryName(path));
  if (!names.ok()) return found;
  const std::string prefix = StrCat(BaseName(path), ".");
  for (const std::string& name : *names) {
    // The new log file, which is about to be renamed into place.
    if (name.ends_with(".tmp")) continue;
    if (name.starts_with(prefix)) found.push_back(JoinPath(DirectoryName(path), name));
  }
  return found;
}

LogRotation::LogRotation(EventLoop& loop, FileSystem& files, Runtime& runtime, LogLimits limits)
    : loop_(loop), files_(files), runtime_(runtime), limits_(limits) {}

void LogRotation::Start() {
  looked_at_ = loop_.clock().Monotonic();
  Arm(limits_.check_every);
}

void LogRotation::Arm(Duration delay) {
  timer_ = loop_.RunAfter(delay, [this] { Arm(Check()); });
}

Duration LogRotation::Check() {
  const MonotonicTime now = loop_.clock().Monotonic();
  const double seconds = std::chrono::duration<double>(now - looked_at_).count();
  looked_at_ = now;
  Duration next = limits_.check_every;
  std::map<std::string, std::uint64_t> sizes;
  for (const ContainerStatus& container : runtime_.ListContainers()) {
    if (container.state != ContainerState::kRunning || container.log_path.empty()) continue;
    auto info = files_.Stat(container.log_path);
    if (!info.ok()) continue;
    const std::uint64_t size = info->size_bytes;
    const auto last = sizes_.find(container.id);
    // A log that shrank was rotated in the meantime.
    const std::uint64_t before = last != sizes_.end() && last->second <= size ? last->second : 0;
    const double rate = static_cast<double>(size - before) / std::max(seconds, 1e-3);
    std::uint64_t left = limits_.max_bytes;
    if (size > limits_.max_bytes) {
      Rotate(container.id, container.log_path);
      sizes[container.id] = 0;
    } else {
      left -= size;
      sizes[container.id] = size;
    }
    const double until_full = static_cast<double>(left) / std::max(rate, 1.0);
    if (until_full < std::chrono::duration<double>(next).count()) {
      next = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(until_full));
    }
  }
  sizes_ = std::move(sizes);
  return std::max(next, kCheckSoonest);
}

void LogRotation::Rotate(const std::string& container_id, const std::string& path) {
  std::vector<std::string> old = RotatedLogs(files_, path);
  // Leaves room for the current file and the one about to be rotated.
  for (std::size_t i = 0; i + limits_.max_files < old.size() + 2; ++i)
    static_cast<void>(files_.Remove(old[i]).ok());
  // Several files may be rotated within one second.
  const std::string stamp = StrCat(path, ".", Stamp(loop_.clock().Now()));
  std::string aside = stamp;
  for (int i = 1; files_.Exists(aside); ++i) aside = StrCat(stamp, "-", i < 10 ? "0" : "", i);
  if (auto renamed = files_.Rename(path, aside); !renamed.ok()) {
    kLog.Warning("could not rotate container log",
                 {{"path", path}, {"err", renamed.error().message}});
    return;
  }
  runtime_.ReopenLog(container_id, [&files = files_, path, aside](Result<void> reopened) {
    if (reopened.ok()) return;
    kLog.Warning("could not rotate container log",
                 {{"path", path}, {"err", reopened.error().message}});
    // The container still writes to the renamed file: rename it back.
    if (!files.Exists(path)) static_cast<void>(files.Rename(aside, path).ok());
  });
}

}  // namespace drakkar::node
