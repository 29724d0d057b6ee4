#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/result/result.h"

namespace drakkar::node {

// Logical CPUs by number, and the kernel's list format for them: "0-3,8".
class CpuSet {
 public:
  // Maximum number of CPUs; a machine with more could not express them in a cgroup either.
  static constexpr int kMaxCpu = 65'535;

  CpuSet() = default;
  CpuSet(std::initializer_list<int> cpus) : cpus_(cpus) {}

  static Result<CpuSet> Parse(std::string_view list);
  std::string ToString() const;

  void Add(int cpu) { cpus_.insert(cpu); }
  void Add(const CpuSet& others) { cpus_.insert(others.begin(), others.end()); }
  CpuSet Without(const CpuSet& others) const;
  CpuSet And(const CpuSet& others) const;
  bool Contains(int cpu) const { return cpus_.contains(cpu); }
  bool Contains(const CpuSet& others) const { return others.Without(*this).empty(); }
  bool empty() const { return cpus_.empty(); }
  int size() const { return static_cast<int>(cpus_.size()); }
  std::set<int>::const_iterator begin() const { return cpus_.begin(); }
  std::set<int>::const_iterator end() const { return cpus_.end(); }

  bool operator==(const CpuSet&) const = default;

 private:
  std::set<int> cpus_;
};

}  // namespace drakkar::node
