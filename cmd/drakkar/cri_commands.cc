#include "cmd/drakkar/cri_commands.h"

#include <future>

#include "base/exec/uv_loop.h"
#include "base/text/text.h"
#include "node/runtime/cri/cri_runtime.h"
#include "node/runtime/cri/http_stream_dialer.h"
#include "rpc/transport/transport.h"

namespace drakkar::cmd {
namespace {

std::string NotePath(const std::string& data_dir) {
  return JoinPath(data_dir, "runtime/cri-socket");
}

// A connection to the runtime, for one command.
class CriSession {
 public:
  explicit CriSession(const std::string& socket) : thread_("cri") {
    thread_.RunSync([&] {
      transport_ = rpc::MakeGrpcTransport(thread_.loop());
      runtime_ = node::MakeCriRuntime({.loop = thread_.loop(),
                                       .transport = *transport_,
                                       .files = RealFileSystem(),
                                       .socket_path = socket,
                                       .reported_path = "",  // exits are not of interest here
                                       .dial = node::MakeHttpStreamDialer(thread_.loop())});
      runtime_->OnExit([](const node::ContainerStatus&) {});
    });
  }
  ~CriSession() {
    thread_.RunSync([this] {
      runtime_.reset();
      transport_.reset();
    });
  }

  Result<void> Open() {
    return Wait(
        [this](std::function<void(Result<void>)> done) { runtime_->Open(std::move(done)); });
  }
  // Runs `begin` on the loop and waits for its answer.
  Result<void> Wait(const std::function<void(std::function<void(Result<void>)>)>& begin) {
    std::promise<Result<void>> promise;
    thread_.RunSync(
        [&] { begin([&promise](Result<void> result) { promise.set_value(std::move(result)); }); });
    return promise.get_future().get();
  }
  std::vector<std::string> SandboxesLoggingBelow(const std::string& directory) {
    std::vector<std::string> ids;
    thread_.RunSync([&] { ids = runtime_->SandboxesLoggingBelow(directory); });
    return ids;
  }
  std::vector<node::Image> Images() {
    std::vector<node::Image> images;
    thread_.RunSync([&] { images = runtime_->ListImages(); });
    return images;
  }
  node::Runtime& runtime() { return *runtime_; }

 private:
  LoopThread thread_;
  std::unique_ptr<rpc::Transport> transport_;
  std::unique_ptr<node::CriRuntime> runtime_;
};

}  // namespace

Result<void> NoteRuntimeSocket(FileSystem& files, const std::string& data_dir,
                               const std::string& socket) {
  const std::string path = NotePath(data_dir);
  if (!socket.empty()) return files.WriteFileAtomically(path, socket, 0600, /*sync=*/false);
  if (!files.Exists(path)) return Ok();
  return files.Remove(path);
}

std::string RuntimeSocketOf(FileSystem& files, const std::string& data_dir) {
  const auto text = files.ReadFile(NotePath(data_dir));
  return text.ok() ? std::string(Trim(*text)) : std::string();
}

Result<RemovedPods> RemoveCriPods(const std::string& socket, const std::string& data_dir) {
  CriSession session(socket);
  RETURN_IF_ERROR(session.Open());
  RemovedPods removed;
  for (const std::string& id : session.SandboxesLoggingBelow(JoinPath(data_dir, "logs"))) {
    auto done = session.Wait([&](std::function<void(Result<void>)> answer) {
      session.runtime().StopPodSandbox(id, std::move(answer));
    });
    if (done.ok()) {
      done = session.Wait([&](std::function<void(Result<void>)> answer) {
        session.runtime().RemovePodSandbox(id, std::move(answer));
      });
    }
    if (done.ok()) {
      ++removed.count;
    } else {
      removed.errors.push_back(done.error().message);
    }
  }
  return removed;
}

Result<std::vector<node::Image>> ListCriImages(const std::string& socket) {
  CriSession session(socket);
  RETURN_IF_ERROR(session.Open());
  return session.Images();
}

}  // namespace drakkar::cmd
