#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drakkar::node {

// The side file of the claim checkpoint: two slots of fixed size that are overwritten in turn, each
// with a whole checkpoint. Making one durable is one wait for the disk, where replacing a file takes
// two and the file system's journal besides; and while one slot is written the other is whole.
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

// The newest whole slot of the side file that builds on `checkpoint`. Slots that are empty, torn or
// anything else are passed over.
std::optional<CheckpointSlot> FindSlot(std::string_view file, std::string_view checkpoint);

// Of the newest whole slot, whatever it builds on; 0 without one.
std::uint64_t LastSequence(std::string_view file);

}  // namespace drakkar::node
