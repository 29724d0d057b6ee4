// The files a node reads at startup: claim checkpoint, its side file, device health. What can be
// read must round-trip.
#include <cstddef>
#include <cstdint>

#include "api/json/writer.h"
#include "base/hash/crc32.h"
#include "base/result/check.h"
#include "base/text/text.h"
#include "node/checkpoint/checkpoint_slots.h"
#include "node/checkpoint/claim_checkpoint.h"
#include "node/health/health_cache.h"

namespace drakkar::node {
namespace {

void CheckCheckpoint(std::string_view file) {
  const auto state = DecodeCheckpoint(file);
  if (!state.ok()) {
    CHECK(state.error().code == ErrorCode::kDataLoss);
    return;
  }
  const auto again = DecodeCheckpoint(EncodeCheckpoint(*state));
  CHECK(again.ok() && *again == *state);
}

// Two slots separated by a zero byte. A slot that begins with '+' gets a valid checksum.
void CheckSlots(std::string_view text) {
  std::string file(kCheckpointSlots * kCheckpointSlotBytes, '\0');
  const std::size_t cut = std::min(text.find('\0'), text.size());
  const std::string_view parts[] = {text.substr(0, cut),
                                    text.substr(std::min(cut + 1, text.size()))};
  for (std::size_t i = 0; i < kCheckpointSlots; ++i) {
    std::string slot(parts[i]);
    if (slot.starts_with('+')) {
      slot = EncodeSlot({.sequence = i + 1, .bases = {ContentId("")}, .checkpoint = slot.substr(1)})
                 .value_or("");
    }
    file.replace(i * kCheckpointSlotBytes, std::min(slot.size(), kCheckpointSlotBytes), slot, 0,
                 kCheckpointSlotBytes);
  }
  const Result<SlotsReading> reading = ReadSlots(file, "");
  if (!reading.ok()) return;
  CHECK(reading->torn.size() < 2);
  if (!reading->newest) return;
  CHECK(reading->newest->sequence <= reading->last_sequence);
  // The result must be the beginning of one of the slots.
  const auto encoded = EncodeSlot(*reading->newest);
  CHECK(encoded.has_value());
  bool is_there = false;
  for (std::size_t i = 0; i < kCheckpointSlots; ++i) {
    is_there |= file.compare(i * kCheckpointSlotBytes, encoded->size(), *encoded) == 0;
  }
  CHECK(is_there);
}

void CheckHealth(std::string_view text) {
  const HealthTime now{WallTime(std::chrono::hours(500'000)),
                       MonotonicTime(std::chrono::hours(1'000))};
  HealthCache cache, again;
  if (!cache.Decode(text, now).ok()) return;
  CHECK(again.Decode(cache.Encode(), now).ok());
  CHECK(again.Encode() == cache.Encode());
  for (const auto& [key, view] : cache.List(now)) CHECK(!view.since || *view.since <= now.wall);
  cache.Expire({now.wall, now.tick + HealthCache::kLongestTimeout + std::chrono::seconds(1)});
  CHECK(cache.List(now).empty());
}

}  // namespace
}  // namespace drakkar::node

// The first byte chooses the file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'c':
      node::CheckCheckpoint(text);
      break;
    case 'd': {  // the payload only; the checksum is added
      std::string file = "{\"Data\":";
      api::AppendJsonString(file, text);
      node::CheckCheckpoint(StrCat(file, ",\"Checksum\":", Crc32(text), "}"));
      break;
    }
    case 's':
      node::CheckSlots(text);
      break;
    case 'h':
      node::CheckHealth(text);
      break;
  }
  return 0;
}
