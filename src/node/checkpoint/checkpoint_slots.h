#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"

namespace drakkar::node {

// The side file of the claim checkpoint: two fixed-size slots that are overwritten alternately,
// each holding a complete checkpoint. Making one durable takes one sync, while replacing a file
// takes two and a journal commit. While one slot is being written, the other stays intact.
//
// A slot names the contents of the main checkpoint that it is based on. If the main checkpoint has
// other contents, the slot is stale: the checkpoint was written later, by us or by a kubelet.
inline constexpr char kCheckpointSlotsName[] = "dra_manager_state.intents";
inline constexpr std::size_t kCheckpointSlotBytes = 128u << 10;
inline constexpr std::size_t kCheckpointSlots = 2;

struct CheckpointSlot {
  std::uint64_t sequence = 0;
  std::vector<std::string> bases;  // ContentId of each checkpoint this one is newer than, at most 2
  std::string checkpoint;
};

// Identifies a checkpoint's content.
std::string ContentId(std::string_view checkpoint);

// Nothing if it does not fit into a slot.
std::optional<std::string> EncodeSlot(const CheckpointSlot& slot);

// What a side file contains, given the content of the main checkpoint.
//
// A slot with a valid header and a wrong checksum was being written when the machine lost power. It
// was never reported as durable, so it is skipped. More than one such slot, or a slot without a
// valid header, cannot result from an interrupted write, because slots are written one at a time
// and a header fits into one sector. That is corruption, and durable data may be lost.
struct SlotsReading {
  std::optional<CheckpointSlot> newest;  // the newest intact slot based on the checkpoint
  std::uint64_t last_sequence = 0;       // the highest of all intact slots; 0: none
  std::vector<std::size_t> torn;         // slots that were skipped; at most one
};
// kDataLoss if the file is corrupt.
Result<SlotsReading> ReadSlots(std::string_view file, std::string_view checkpoint);

}  // namespace drakkar::node
