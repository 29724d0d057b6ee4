#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace drakkar::scheduler {

enum class Code : std::uint8_t {
  kSuccess,
  kUnschedulable,  // not now; the state of the cluster may change that
  kUnresolvable,   // not now, and removing other pods would not help
  kError,          // something went wrong: try again after a pause
  kSkip,           // the plugin has nothing to do for this pod
};

// What a plugin says. Reasons are Kubernetes' texts, which events and conditions show.
struct [[nodiscard]] Status {
  Code code = Code::kSuccess;
  std::vector<std::string> reasons;

  static Status Success() { return {}; }
  static Status Skip() { return {Code::kSkip, {}}; }
  static Status Unschedulable(std::string reason) {
    return {Code::kUnschedulable, {std::move(reason)}};
  }
  static Status Unresolvable(std::string reason) {
    return {Code::kUnresolvable, {std::move(reason)}};
  }
  static Status Error(std::string reason) { return {Code::kError, {std::move(reason)}}; }

  bool ok() const { return code == Code::kSuccess; }
  bool IsSkip() const { return code == Code::kSkip; }
  bool IsRejected() const { return code == Code::kUnschedulable || code == Code::kUnresolvable; }
  std::string Message() const;  // the reasons, with commas
};

}  // namespace drakkar::scheduler
