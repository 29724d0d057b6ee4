#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/view/interner.h"
#include "device/expression.h"
#include "device/slice.h"

namespace drakkar::allocator {

// Numbers devices so that every rule treats devices with the same number alike: they differ only in
// name, pool and attributes that no known expression or constraint reads.
//
// The set of attributes of interest only grows. When it does, shapes are renumbered and `epoch` is
// raised, so holders of shapes must ask again. Beyond kMaxInterest names every attribute counts.
class ShapeTable {
 public:
  static constexpr std::size_t kMaxInterest = 256;

  std::uint32_t Intern(std::string_view driver, const device::Device& device,
                       const std::vector<device::Taint>& taints, bool skips_node_operations);
  // The part of a shape that is neither driver nor attributes nor counters.
  std::uint32_t mechanics(std::uint32_t shape) const { return mechanics_of_[shape]; }

  void AddInterest(const device::Reads& reads);
  void AddInterest(std::string_view attribute);

  std::uint64_t epoch() const { return epoch_; }
  std::size_t size() const { return mechanics_of_.size(); }

 private:
  void Grow();

  bool everything_ = false;
  std::set<std::string, std::less<>> interest_;  // "domain/id"
  std::uint64_t epoch_ = 0;
  Interner shapes_;
  Interner mechanics_;
  std::vector<std::uint32_t> mechanics_of_;
  KeyBuilder key_;
};

}  // namespace drakkar::allocator
