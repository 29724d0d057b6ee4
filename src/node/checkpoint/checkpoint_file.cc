#include "node/checkpoint/checkpoint_file.h"

#include "base/text/text.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("node.checkpoint");
constexpr Duration kRetryAfter = std::chrono::seconds(1);

}  // namespace

CheckpointFile::CheckpointFile(EventLoop& loop, FileSystem& files, BlockingWork& work,
                               std::string directory)
    : loop_(loop),
      files_(files),
      work_(work),
      directory_(std::move(directory)),
      path_(JoinPath(directory_, kClaimCheckpointName)) {}

CheckpointFile::~CheckpointFile() = default;

Result<CheckpointState> CheckpointFile::LoadOrCreate() {
  RETURN_IF_ERROR(files_.MakeDirectories(directory_, 0755));
  auto content = files_.ReadFile(path_);
  if (!content.ok()) {
    if (content.error().code != ErrorCode::kNotFound) return content.error();
    RETURN_IF_ERROR(files_.WriteFileAtomically(path_, EncodeCheckpoint(std::nullopt), 0600));
    return CheckpointState();
  }
  auto state = DecodeCheckpoint(*content);
  if (!state.ok()) {
    return state.error()
        .Prefixed(StrCat("failed to get checkpoint ", kClaimCheckpointName))
        .Prefixed(StrCat("cannot use ", path_,
                         ", which says which devices are prepared (to start without it: delete the "
                         "pods with claims on this node, with `drakkar up --node=false` if nothing "
                         "else serves the API, then move the file away)"));
  }
  return state;
}

void CheckpointFile::Store(std::function<void(Result<void>)> done) {
  loop_.AssertInLoop();
  waiting_.push_back(std::move(done));
  if (!writing_) Write();
}

void CheckpointFile::StoreEventually() {
  Store([this](Result<void> result) {
    if (result.ok()) return;
    kLog.Error("cannot write the claim checkpoint", {{"path", path_}, {"err", result.error().message}});
    retry_ = loop_.RunAfter(kRetryAfter, [this] { StoreEventually(); });
  });
}

void CheckpointFile::Write() {
  writing_ = true;
  auto served = std::make_shared<std::vector<std::function<void(Result<void>)>>>();
  served->swap(waiting_);
  work_.Run(
      [&files = files_, path = path_, content = EncodeCheckpoint(current_())] {
        return files.WriteFileAtomically(path, content, 0600);
      },
      [this, served, alive = std::weak_ptr<int>(alive_)](Result<void> result) {
        if (!alive.lock()) return;
        writing_ = false;
        if (!waiting_.empty()) Write();
        for (auto& done : *served) done(result);
      });
}

}  // namespace drakkar::node
