#pragma once

#include <cstdint>
#include <string>

#include "storage/store.h"

namespace drakkar::storage {

// The transactions of the kill test. Each is a function of its number, so the test can compute the
// state after any of them. Each changes several keys, so that a half-written transaction is
// visible.
constexpr int kKillSlots = 64;
constexpr std::int64_t kKillWindow = 200;

inline std::string KillValue(std::int64_t number) {
  const auto length = static_cast<std::size_t>((number * 2'654'435'761) % 3'000);
  return std::to_string(number) + ":" + std::string(length, static_cast<char>('a' + number % 26));
}

inline Transaction KillTransaction(std::int64_t number) {
  const auto value = std::make_shared<const std::string>(KillValue(number));
  const std::string slot = std::to_string(number % kKillSlots);
  Transaction transaction;
  transaction.operations = {{"last", value},
                            {"left/" + slot, value},
                            {"right/" + slot, value},
                            {"window/" + std::to_string(number), value}};
  if (number > kKillWindow) {
    transaction.operations.push_back({"window/" + std::to_string(number - kKillWindow), nullptr});
  }
  return transaction;
}

// Transaction 1 gets the first revision of a new store.
constexpr Revision KillRevision(std::int64_t number) {
  return number + 1;
}

}  // namespace drakkar::storage
