#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drakkar::node {

// The side file of the claim checkpoint: two slots of fixed size that are overwritten in turn, each
// with a whole checkpoint. Making one durable is one wait for the disk, where replacing a file
// takes two and the file system's journal besides; and while one slot is written the other is
// whole.
//
// A slot says on which contents of the checkpoint itself it builds. One that builds on another than
// what is there is of the past: the checkpoint was written later, by us or by a kubelet.
inline constexpr char kCheckpointSlotsName[] = "dra_manager_state.intents";
inline constexpr std::size_t kCheckpointSlotBytes = 128u << 10;
inline constexpr std::size_t kCheckpointSlots = 2;

struct CheckpointSlot {
  std::uint64_t sequence = 0;
  std::vector<std::string> bases;  // ContentId of each checkpoint this one is newer than, at most 2
  std::string checkpoint;
};

// Names a checkpoint's content.
std::string ContentId(std::string_view checkpoint);

// Nothing when it does not fit into a slot.
std::optional<std::string> EncodeSlot(const CheckpointSlot& slot);

// What a side file says beside the checkpoint with this content.
//
// A slot whose head can be read and whose checksum is wrong was being written when the power went:
// nobody was told that it is durable, so it is passed over. More than one of them, or bytes that
// are no slot at all, no interrupted write leaves behind, since the slots are written one at a time
// and a head is within one sector: that is damage, and something that was durable may be lost.
struct SlotsReading {
  std::optional<CheckpointSlot> newest;  // of the whole ones that build on the checkpoint
  std::uint64_t last_sequence = 0;       // of all whole ones; 0 without one
  std::vector<std::size_t> torn;         // slots that were passed over
  std::string damage;                    // what is wrong, in words; empty if nothing is
};
SlotsReading ReadSlots(std::string_view file, std::string_view checkpoint);

}  // namespace drakkar::node
