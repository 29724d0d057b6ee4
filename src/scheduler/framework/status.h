#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace drakkar::scheduler {

enum class Code : std::uint8_t {
  kSuccess,
  kUnschedulable,  // a change in the cluster may help
  kUnresolvable,   // removing other pods would not help
  kError,          // unexpected: retry with backoff
  kSkip,           // the plugin has nothing to do for this pod
};

// A plugin's result. Reasons are worded as in Kubernetes and shown in events and conditions.
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
  std::string Message() const;  // the reasons, separated by commas
};

}  // namespace drakkar::scheduler
