#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "answers/cluster/snapshot.h"
#include "device/expression.h"
#include "device/slice.h"

namespace drakkar::answers {

// Which DeviceClasses a device belongs to: those whose selectors all match it. A selector that
// fails on a device does not match it.
//
// Devices that are equal in everything a class's selectors can read are evaluated once, so the cost
// depends on the number of models, not of devices.
class ClassMembership {
 public:
  ClassMembership(const Objects& classes, device::ExpressionCompiler& compiler);

  const std::vector<std::string>& names() const { return names_; }  // sorted
  const std::vector<std::string>& notes() const { return notes_; }  // unreadable classes

  // Indexes into `names`, ascending.
  std::vector<std::uint32_t> Find(std::string_view driver, const device::Device& device);

 private:
  struct Class {
    std::vector<std::shared_ptr<const device::Expression>> selectors;
    bool matches_nothing = false;  // some selector does not compile
    bool reads_everything = false;
    std::vector<std::string> reads;                 // "domain/id"
    std::unordered_map<std::string, bool> answers;  // by the values read; never iterated
  };

  std::vector<Class> classes_;
  std::vector<std::string> names_;
  std::vector<std::string> notes_;
  std::string key_;  // kept to reuse its memory
};

}  // namespace drakkar::answers
