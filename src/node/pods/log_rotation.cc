#include "node/pods/log_rotation.h"

#include "api/meta/time.h"
#include "base/text/text.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("node.logs");

// Digits only, so that names sort by time.
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
    if (name.starts_with(prefix)) found.push_back(JoinPath(DirectoryName(path), name));
  }
  return found;
}

LogRotation::LogRotation(EventLoop& loop, FileSystem& files, Runtime& runtime)
    : loop_(loop), files_(files), runtime_(runtime) {}

void LogRotation::Start() {
  timer_ = loop_.RunAfter(kCheckEvery, [this] {
    Check();
    Start();
  });
}

void LogRotation::Check() {
  for (const ContainerStatus& container : runtime_.ListContainers()) {
    if (container.state != ContainerState::kRunning || container.log_path.empty()) continue;
    auto info = files_.Stat(container.log_path);
    if (info.ok() && info->size_bytes > kMaxBytes) Rotate(container.id, container.log_path);
  }
}

void LogRotation::Rotate(const std::string& container_id, const std::string& path) {
  std::vector<std::string> old = RotatedLogs(files_, path);
  // With the current one and the one about to be set aside.
  for (std::size_t i = 0; i + kMaxFiles < old.size() + 2; ++i)
    static_cast<void>(files_.Remove(old[i]).ok());
  const std::string aside = StrCat(path, ".", Stamp(loop_.clock().Now()));
  if (auto renamed = files_.Rename(path, aside); !renamed.ok()) {
    kLog.Warning("cannot rotate a log", {{"path", path}, {"err", renamed.error().message}});
    return;
  }
  runtime_.ReopenLog(container_id, [&files = files_, path, aside](Result<void> reopened) {
    if (reopened.ok()) return;
    kLog.Warning("cannot rotate a log", {{"path", path}, {"err", reopened.error().message}});
    // It is still being written under its new name: give the old one back.
    if (!files.Exists(path)) static_cast<void>(files.Rename(aside, path).ok());
  });
}

}  // namespace drakkar::node
