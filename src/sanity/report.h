#pragma once

#include <string>
#include <vector>

namespace drakkar::sanity {

enum class Outcome { kPassed, kFailed, kSkipped };

struct CheckResult {
  std::string id;     // for example "prepare.repeat"; stable across releases
  std::string title;  // what must hold
  Outcome outcome = Outcome::kPassed;
  std::string why;  // reason for a failure or skip
};

struct Report {
  std::string driver;
  std::vector<CheckResult> checks;

  std::size_t Count(Outcome outcome) const;
  bool ok() const { return Count(Outcome::kFailed) == 0; }
};

std::string RenderTable(const Report& report);
std::string RenderJson(const Report& report);

}  // namespace drakkar::sanity
