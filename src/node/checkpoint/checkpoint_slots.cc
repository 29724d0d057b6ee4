#include "node/checkpoint/checkpoint_slots.h"

#include <algorithm>

#include "base/hash/crc32.h"
#include "base/text/text.h"

namespace drakkar::node {
namespace {

constexpr std::string_view kMagic = "drakkar-intents-1";
constexpr std::size_t kMaxHeadBytes = 256;

struct DecodedSlot {
  bool has_head = false;
  std::optional<CheckpointSlot> whole;  // with the right checksum
};

// "<magic> <crc of the rest> <sequence> <base>,<base> <bytes>\n<checkpoint>"
DecodedSlot DecodeSlot(std::string_view bytes) {
  DecodedSlot decoded;
  const std::size_t end = bytes.substr(0, kMaxHeadBytes).find('\n');
  if (end == std::string_view::npos) return decoded;
  const auto words = Split(bytes.substr(0, end), ' ');
  if (words.size() != 5 || words[0] != kMagic) return decoded;
  const auto crc = ParseInt64(words[1]);
  const auto sequence = ParseInt64(words[2]);
  const auto size = ParseInt64(words[4]);
  if (!crc || !sequence || !size || *sequence < 0 || *size < 0) return decoded;
  if (static_cast<std::uint64_t>(*size) > bytes.size() - end - 1) return decoded;
  decoded.has_head = true;
  const std::string_view checkpoint = bytes.substr(end + 1, static_cast<std::size_t>(*size));
  const std::size_t covered = kMagic.size() + 1 + words[1].size() + 1;
  if (Crc32(bytes.substr(covered, end + 1 + checkpoint.size() - covered)) != *crc) return decoded;
  CheckpointSlot slot;
  slot.sequence = static_cast<std::uint64_t>(*sequence);
  for (std::string_view base : Split(words[3], ',')) slot.bases.emplace_back(base);
  slot.checkpoint = std::string(checkpoint);
  decoded.whole = std::move(slot);
  return decoded;
}

Error Damage(const std::string& what) {
  return {ErrorCode::kDataLoss, StrCat("checkpoint is corrupted: ", what)};
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

Result<SlotsReading> ReadSlots(std::string_view file, std::string_view checkpoint) {
  SlotsReading reading;
  if (file.size() != kCheckpointSlots * kCheckpointSlotBytes) {
    // The file is created atomically, so this is not an interrupted write.
    if (file.find_first_not_of('\0') == std::string_view::npos) return reading;
    return Damage(StrCat("it has ", file.size(), " bytes instead of ",
                         kCheckpointSlots * kCheckpointSlotBytes));
  }
  const std::string id = ContentId(checkpoint);
  for (std::size_t i = 0; i < kCheckpointSlots; ++i) {
    const std::string_view bytes = file.substr(i * kCheckpointSlotBytes, kCheckpointSlotBytes);
    if (bytes.front() == '\0') continue;  // never written, or cleared
    DecodedSlot slot = DecodeSlot(bytes);
    if (!slot.has_head) return Damage(StrCat("slot ", i, " has no valid header"));
    if (!slot.whole) {
      reading.torn.push_back(i);
    } else {
      reading.last_sequence = std::max(reading.last_sequence, slot.whole->sequence);
      const std::vector<std::string>& bases = slot.whole->bases;
      if (std::find(bases.begin(), bases.end(), id) == bases.end()) continue;
      if (!reading.newest || slot.whole->sequence > reading.newest->sequence)
        reading.newest = std::move(slot.whole);
    }
  }
  if (reading.torn.size() > 1) return Damage("more than one slot has a wrong checksum");
  return reading;
}

}  // namespace drakkar::node
