#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/env/clock.h"

namespace drakkar::load {

// Durations of many calls, all kept: a run has at most a few hundred thousand.
class Samples {
 public:
  void Add(Duration each) { values_.push_back(each); }
  std::size_t size() const { return values_.size(); }
  // The smallest value that at least `percent` of the samples do not exceed (nearest rank);
  // zero without samples.
  Duration Percentile(double percent) const;

 private:
  mutable std::vector<Duration> values_;
};

inline double Seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}
inline double Milliseconds(Duration d) {
  return Seconds(d) * 1e3;
}

// One JSON object, member by member. Strings must need no escaping.
class Detail {
 public:
  void Number(std::string_view name, double value);
  void Text(std::string_view name, std::string_view value);
  void Latency(std::string_view prefix, const Samples& samples);  // <prefix>_p50_ms, _p99_ms
  std::string Json() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

// The result of a scenario; docs/benchmarks.md lists the units.
struct Figure {
  std::string id;
  double value = 0;
  std::string unit;
  Detail detail;
};

std::string FiguresJson(const std::vector<Figure>& figures);

}  // namespace drakkar::load
