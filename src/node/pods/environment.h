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

// Byte limit for a container's environment (names and values), and for its command line. References
// can double the size with each variable that uses the previous one twice. The kernel runs no
// program that is given more.
inline constexpr std::size_t kMaxEnvironmentBytes = 2 << 20;
inline constexpr std::size_t kMaxCommandBytes = 2 << 20;

// Replaces "$(NAME)" with the variable's value and "$$" with "$". Unknown names stay as written.
// kResourceExhausted if the result exceeds `max_bytes`.
Result<std::string> ExpandReferences(std::string_view text,
                                     const std::map<std::string, std::string>& variables,
                                     std::size_t max_bytes);
// The same for a path: unknown and empty variables are an error that names them.
Result<std::string> ExpandPath(std::string_view text,
                               const std::map<std::string, std::string>& variables,
                               std::size_t max_bytes);

struct EnvironmentInput {
  DownwardInput downward;
  api::Value container;
  const PodSources& sources;
  std::map<std::string, std::string> service_variables;  // KUBERNETES_SERVICE_HOST ...
  // Reads a file of a volume, for fileKeyRef. Null: there are no volumes.
  std::function<Result<std::string>(const std::string& volume, const std::string& path)> read_file =
      nullptr;
};

// The container's environment in order, without duplicates: first envFrom, then env, which may
// refer to earlier variables.
Result<std::vector<EnvironmentVariable>> MakeEnvironment(const EnvironmentInput& input);

}  // namespace drakkar::node
