#include "node/checkpoint/checkpoint_slots.h"

#include <algorithm>

#include "base/hash/crc32.h"
#include "base/text/text.h"

namespace drakkar::node {
namespace {

constexpr std::string_view kMagic = "drakkar-intents-1";

// "<magic> <crc of the rest> <sequence> <base>,<base> <bytes>\n<checkpoint>"
std::optional<CheckpointSlot> DecodeSlot(std::string_view bytes) {
  const std::size_t end = bytes.substr(0, 256).find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const auto words = Split(bytes.substr(0, end), ' ');
  if (words.size() != 5 || words[0] != kMagic) return std::nullopt;
  const auto crc = ParseInt64(words[1]);
  const auto sequence = ParseInt64(words[2]);
  const auto size = ParseInt64(words[4]);
  if (!crc || !sequence || !size || *sequence < 0 || *size < 0) return std::nullopt;
  if (static_cast<std::uint64_t>(*size) > bytes.size() - end - 1) return std::nullopt;
  const std::string_view checkpoint = bytes.substr(end + 1, static_cast<std::size_t>(*size));
  const std::size_t covered = kMagic.size() + 1 + words[1].size() + 1;
  if (Crc32(bytes.substr(covered, end + 1 + checkpoint.size() - covered)) != *crc) return std::nullopt;
  CheckpointSlot slot;
  slot.sequence = static_cast<std::uint64_t>(*sequence);
  for (std::string_view base : Split(words[3], ',')) slot.bases.emplace_back(base);
  slot.checkpoint = std::string(checkpoint);
  return slot;
}

template <typename Visit>
void EachSlot(std::string_view file, Visit visit) {
  for (std::size_t i = 0; i < kCheckpointSlots && (i + 1) * kCheckpointSlotBytes <= file.size(); ++i) {
    if (auto slot = DecodeSlot(file.substr(i * kCheckpointSlotBytes, kCheckpointSlotBytes))) visit(*slot);
  }
}

}  // namespace

std::string ContentId(std::string_view checkpoint) {
  return StrCat(checkpoint.size(), "-", Crc32(checkpoint));
}

std::optional<std::string> EncodeSlot(const CheckpointSlot& slot) {
  const std::string covered = StrCat(slot.sequence, " ", Join(slot.bases, ","), " ",
                                     slot.checkpoint.size(), "\n", slot.checkpoint);
  std::string bytes = StrCat(kMagic, " ", Crc32(covered), " ", covered);
  if (bytes.size() > kCheckpointSlotBytes) return std::nullopt;
  return bytes;
}

std::optional<CheckpointSlot> FindSlot(std::string_view file, std::string_view checkpoint) {
  const std::string id = ContentId(checkpoint);
  std::optional<CheckpointSlot> newest;
  EachSlot(file, [&](CheckpointSlot& slot) {
    if (std::find(slot.bases.begin(), slot.bases.end(), id) == slot.bases.end()) return;
    if (!newest || slot.sequence > newest->sequence) newest = std::move(slot);
  });
  return newest;
}

std::uint64_t LastSequence(std::string_view file) {
  std::uint64_t last = 0;
  EachSlot(file, [&](const CheckpointSlot& slot) { last = std::max(last, slot.sequence); });
  return last;
}

}  // namespace drakkar::node
