#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "node/pods/downward.h"
#include "node/pods/pod_sources.h"
#include "node/runtime/runtime_config.h"

namespace drakkar::node {

// What a container's environment may be, names and values, and its command with all arguments:
// references double with each variable that uses the one before it twice. The kernel runs no
// program that is given more.
inline constexpr std::size_t kMaxEnvironmentBytes = 2 << 20;
inline constexpr std::size_t kMaxCommandBytes = 2 << 20;

// "$(NAME)" replaced by its value; "$$" is a "$"; a name that is not known stays as written. More
// than `max_bytes` is kResourceExhausted.
Result<std::string> ExpandReferences(std::string_view text,
                                     const std::map<std::string, std::string>& variables,
                                     std::size_t max_bytes);

struct EnvironmentInput {
  DownwardInput downward;
  api::Value container;
  const PodSources& sources;
  std::map<std::string, std::string> service_variables;  // KUBERNETES_SERVICE_HOST ...
};

// The container's environment in order, each name once: envFrom first, then env, which may refer to
// what came before it.
Result<std::vector<EnvironmentVariable>> MakeEnvironment(const EnvironmentInput& input);

}  // namespace drakkar::node
