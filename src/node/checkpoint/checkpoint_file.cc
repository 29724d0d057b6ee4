#include "node/checkpoint/checkpoint_file.h"

#include "base/text/text.h"
#include "node/checkpoint/checkpoint_slots.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("node.checkpoint");
constexpr Duration kRetryAfter = std::chrono::seconds(1);
constexpr std::string_view kEmptySlot("\0", 1);  // the bytes after it are ignored

Error WithWayOut(const Error& error, const std::string& path) {
  return error.Prefixed(
      StrCat("cannot use ", path,
             ", which records the prepared devices (to start without it, delete the pods "
             "with claims on this node, using `drakkar up --node=false` if nothing else "
             "serves the API, then move the file away)"));
}

}  // namespace

CheckpointFile::CheckpointFile(EventLoop& loop, FileSystem& files, BlockingWork& work,
                               std::string directory, bool side_file)
    : loop_(loop),
      files_(files),
      work_(work),
      directory_(std::move(directory)),
      side_file_(side_file),
      path_(JoinPath(directory_, kClaimCheckpointName)),
      slots_path_(JoinPath(directory_, kCheckpointSlotsName)) {}

CheckpointFile::~CheckpointFile() = default;

Result<CheckpointState> CheckpointFile::LoadOrCreate() {
  RETURN_IF_ERROR(files_.MakeDirectories(directory_, 0755));
  auto content = files_.ReadFile(path_);
  if (!content.ok()) {
    if (content.error().code != ErrorCode::kNotFound) return WithWayOut(content.error(), path_);
    // The file was moved away to start over, so the side file must not bring its content back.
    if (auto removed = files_.Remove(slots_path_);
        !removed.ok() && removed.error().code != ErrorCode::kNotFound) {
      return removed.error();
    }
    content = EncodeCheckpoint(std::nullopt);
    RETURN_IF_ERROR(files_.WriteFileAtomically(path_, *content, 0600));
  }
  written_id_ = ContentId(*content);
  auto state = DecodeCheckpoint(*content);
  if (!state.ok()) {
    return WithWayOut(
        state.error().Prefixed(StrCat("failed to get checkpoint ", kClaimCheckpointName)), path_);
  }
  ASSIGN_OR_RETURN(const std::optional<std::string> newer, LoadSlots(*content));
  if (!newer) return state;
  auto stored = DecodeCheckpoint(*newer);
  if (!stored.ok()) return WithWayOut(stored.error(), slots_path_);
  StoreEventually();
  return stored;
}

// The checkpoint in the side file if it is newer; creates the side file if there is none.
Result<std::optional<std::string>> CheckpointFile::LoadSlots(const std::string& checkpoint) {
  std::optional<std::string> newer;
  auto slots = files_.ReadFile(slots_path_);
  if (!slots.ok() && slots.error().code != ErrorCode::kNotFound)
    return WithWayOut(slots.error(), slots_path_);
  if (slots.ok()) {
    Result<SlotsReading> reading = ReadSlots(*slots, checkpoint);
    if (!reading.ok()) return WithWayOut(reading.error(), slots_path_);
    for (const std::size_t slot : reading->torn) {
      kLog.Warning("dropped an incomplete prepare intent; no driver had been called for it",
                   {{"path", slots_path_}, {"slot", slot}});
      // A second torn slot would be treated as corruption.
      RETURN_IF_ERROR(files_.OverwriteFile(slots_path_, slot * kCheckpointSlotBytes, kEmptySlot,
                                           /*sync=*/true));
    }
    if (reading->newest) newer = std::move(reading->newest->checkpoint);
    sequence_ = reading->last_sequence;
    has_slots_ = slots->size() == kCheckpointSlots * kCheckpointSlotBytes;
  }
  if (has_slots_ || newer || !side_file_) return newer;
  // Written in full rather than preallocated, so that overwriting later touches only data blocks.
  auto made = files_.WriteFileAtomically(
      slots_path_, std::string(kCheckpointSlots * kCheckpointSlotBytes, '\0'), 0600);
  has_slots_ = made.ok();
  if (!made.ok()) {
    kLog.Warning("could not create the checkpoint's side file; prepares take longer without it",
                 {{"path", slots_path_}, {"err", made.error().message}});
  }
  return newer;
}

void CheckpointFile::Store(std::function<void(Result<void>)> done) {
  loop_.AssertInLoop();
  waiting_.push_back(std::move(done));
  if (!writing_slot_) WriteSlot();
}

void CheckpointFile::StoreEventually() {
  owes_file_ = true;
  if (settle_ == nullptr && next_id_.empty()) {
    settle_ = loop_.RunAfter(kSettleAfter, [this] { WriteFile(); });
  }
}

void CheckpointFile::WriteSlot() {
  auto served = std::make_shared<Waiting>();
  served->swap(waiting_);
  CheckpointSlot slot{.sequence = sequence_ + 1,
                      .bases = {written_id_},
                      .checkpoint = EncodeCheckpoint(current_())};
  if (!next_id_.empty()) slot.bases.push_back(next_id_);
  auto bytes = has_slots_ ? EncodeSlot(slot) : std::nullopt;
  if (!bytes) {
    // Too large for a slot, or no side file: write the checkpoint itself.
    for (auto& done : *served) waiting_for_file_.push_back(std::move(done));
    if (next_id_.empty()) WriteFile();
    return;
  }
  writing_slot_ = true;
  ++sequence_;
  work_.Run(
      [&files = files_, path = slots_path_,
       offset = sequence_ % kCheckpointSlots * kCheckpointSlotBytes, content = *std::move(bytes)] {
        return files.OverwriteFile(path, offset, content, /*sync=*/true);
      },
      lifetime_.Guard([this, served](Result<void> result) {
        if (result.ok()) {
          StoreEventually();
        } else {
          kLog.Warning("could not write the checkpoint's side file",
                       {{"path", slots_path_}, {"err", result.error().message}});
          for (auto& done : *served) waiting_for_file_.push_back(std::move(done));
          served->clear();
          if (next_id_.empty()) WriteFile();
        }
        EndSlotWrite();
        for (auto& done : *served) done(Ok());
      }));
}

void CheckpointFile::EndSlotWrite() {
  writing_slot_ = false;
  if (!waiting_.empty()) WriteSlot();
}

void CheckpointFile::WriteFile() {
  settle_ = nullptr;
  owes_file_ = false;
  auto served = std::make_shared<Waiting>();
  served->swap(waiting_for_file_);
  std::string content = EncodeCheckpoint(current_());
  next_id_ = ContentId(content);
  work_.Run(
      [&files = files_, path = path_, content = std::move(content)] {
        return files.WriteFileAtomically(path, content, 0600);
      },
      lifetime_.Guard([this, served, sequence = sequence_](Result<void> result) {
        if (result.ok()) written_id_ = next_id_;
        next_id_.clear();
        if (!result.ok()) {
          kLog.Error("could not write the claim checkpoint",
                     {{"path", path_}, {"err", result.error().message}});
          owes_file_ = true;
          settle_ = loop_.RunAfter(kRetryAfter, [this] { WriteFile(); });
        } else if (sequence == sequence_) {
          ClearSlots();
        }
        if (!waiting_for_file_.empty()) {
          WriteFile();
        } else if (owes_file_) {
          StoreEventually();
        }
        for (auto& done : *served) done(result);
      }));
}

// The checkpoint now contains what the slots held. A stale slot is ignored unless the checkpoint
// reverts to its earlier content, so this needs no sync.
void CheckpointFile::ClearSlots() {
  if (writing_slot_ || !has_slots_) return;
  writing_slot_ = true;
  work_.Run(
      [&files = files_, path = slots_path_]() -> Result<void> {
        for (std::size_t i = 0; i < kCheckpointSlots; ++i) {
          RETURN_IF_ERROR(files.OverwriteFile(path, i * kCheckpointSlotBytes, kEmptySlot, false));
        }
        return Ok();
      },
      lifetime_.Guard([this](Result<void>) { EndSlotWrite(); }));
}

void CheckpointFile::Flush() {
  if (!owes_file_ || !next_id_.empty()) return;
  settle_ = nullptr;
  if (files_.WriteFileAtomically(path_, EncodeCheckpoint(current_()), 0600).ok())
    owes_file_ = false;
}

}  // namespace drakkar::node
