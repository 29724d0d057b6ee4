#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace drakkar::fuzz {

// A fuzz target, by the name of its libFuzzer binary and its folder in tests/corpus.
struct Target {
  std::string name;
  int (*run)(const std::uint8_t* data, std::size_t size) = nullptr;
};
const std::vector<Target>& Targets();

}  // namespace drakkar::fuzz
