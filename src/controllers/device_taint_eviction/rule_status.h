#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "api/meta/object.h"
#include "api/tree/draft.h"
#include "base/env/clock.h"

namespace drakkar::controllers {

// What a DeviceTaintRule has done, and what remains to be done.
struct RuleProgress {
  std::size_t pending_pods = 0;  // for the effect None: pods that NoExecute would evict
  std::size_t pending_namespaces = 0;
  std::size_t evicted_pods = 0;  // since this process started
  // Counted for the effect None only.
  std::size_t published_devices = 0;
  std::size_t allocated_devices = 0;
};

// Whether the rule's effect is None, whose numbers are reported once and never updated.
bool IsRehearsal(const api::Object& rule);
// Whether the condition describes this generation of the rule.
bool IsReported(const api::Object& rule);

// The apply patch that sets the condition EvictionInProgress; nullopt if it is up to date.
std::optional<std::string> RuleStatusPatch(const api::Object& rule, const RuleProgress& progress,
                                           WallTime now);

}  // namespace drakkar::controllers
