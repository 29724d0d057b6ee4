#include "node/plugins/socket_watch.h"

#include <vector>

#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("node.plugins");

bool IsBelow(const std::string& path, const std::string& directory) {
  return path.size() > directory.size() && path.compare(0, directory.size(), directory) == 0 &&
         path[directory.size()] == '/';
}

}  // namespace

SocketWatch::SocketWatch(EventLoop& loop, FileSystem& files, FileWatcher& watcher,
                         std::string directory, Callbacks callbacks)
    : loop_(loop),
      files_(files),
      watcher_(watcher),
      root_(std::move(directory)),
      callbacks_(std::move(callbacks)) {}

SocketWatch::~SocketWatch() = default;

Result<void> SocketWatch::Start() {
  loop_.AssertInLoop();
  RETURN_IF_ERROR(files_.MakeDirectories(root_, 0750));
  loop_.Post(lifetime_.Guard([this] { Rescan(); }));
  return Ok();
}

void SocketWatch::Rescan() {
  rescan_.reset();
  for (auto& [path, seen] : sockets_) seen = false;
  watches_.clear();
  if (!files_.Exists(root_)) {
    if (auto made = files_.MakeDirectories(root_, 0750); !made.ok()) {
      kLog.Error("could not create the plugin registry",
                 {{"path", root_}, {"err", made.error().message}});
    }
  }
  AddDirectory(root_);
  std::vector<std::string> gone;
  for (const auto& [path, seen] : sockets_) {
    if (!seen) gone.push_back(path);
  }
  for (const std::string& path : gone) Forget(path);
  if (!rescan_ && callbacks_.on_scanned) callbacks_.on_scanned();
}

void SocketWatch::RescanLater() {
  if (!rescan_) rescan_ = loop_.RunAfter(kRescanAfter, [this] { Rescan(); });
}

void SocketWatch::AddDirectory(const std::string& directory) {
  if (watches_.size() >= kMaxDirectories) {
    kLog.Error("ignored directories in the plugin registry: too many", {{"ignored", directory}});
    return;
  }
  // Watch first, then list: a name may be seen twice but never missed.
  auto watch = watcher_.Watch(
      directory, [this, directory](const FileEvent& event) { OnEvent(directory, event); });
  if (!watch.ok()) {
    kLog.Error("could not watch the plugin registry",
               {{"path", directory}, {"err", watch.error().message}});
    RescanLater();
  } else {
    watches_[directory] = std::move(*watch);
  }
  auto names = files_.ListDirectory(directory);
  if (!names.ok()) {
    kLog.Error("could not list the plugin registry",
               {{"path", directory}, {"err", names.error().message}});
    RescanLater();
    return;
  }
  for (const std::string& name : *names) Inspect(JoinPath(directory, name), false);
}

void SocketWatch::OnEvent(const std::string& directory, const FileEvent& event) {
  switch (event.change) {
    case FileChange::kCreated:
      return Inspect(JoinPath(directory, event.name), true);
    case FileChange::kRemoved:
      return Forget(JoinPath(directory, event.name));
    case FileChange::kModified:
      return;
    case FileChange::kEventsLost:
    case FileChange::kDirectoryGone:
      return RescanLater();
  }
}

// `fresh`: the name has just appeared, so a known socket of that name was replaced.
void SocketWatch::Inspect(const std::string& path, bool fresh) {
  if (BaseName(path).starts_with('.')) return;
  auto info = files_.LinkStat(path);
  if (!info.ok()) {
    if (info.error().code != ErrorCode::kNotFound) RescanLater();
    return;
  }
  if (info->type == FileType::kDirectory) {
    if (!watches_.contains(path)) AddDirectory(path);
    return;
  }
  if (info->type != FileType::kSocket) return;
  auto known = sockets_.find(path);
  if (known != sockets_.end() && !fresh) {
    known->second = true;
    return;
  }
  if (known == sockets_.end() && sockets_.size() >= kMaxSockets) {
    kLog.Error("ignored sockets in the plugin registry: too many", {{"ignored", path}});
    return;
  }
  sockets_[path] = true;
  callbacks_.on_created(path);
}

void SocketWatch::Forget(const std::string& path) {
  watches_.erase(path);
  std::vector<std::string> gone;
  for (const auto& [socket, seen] : sockets_) {
    if (socket == path || IsBelow(socket, path)) gone.push_back(socket);
  }
  for (const std::string& socket : gone) {
    sockets_.erase(socket);
    callbacks_.on_removed(socket);
  }
}

}  // namespace drakkar::node
