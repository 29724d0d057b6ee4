#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::node {

// How the runtime reads JSON: state files, OCI bundles, image manifests, conmon's reports. Images
// are untrusted input, so size and depth are bounded.
constexpr int kMaxJsonDepth = 64;
constexpr std::size_t kMaxJsonBytes = 8u << 20;

// Strict RFC 8259, duplicate keys refused. Errors name line and column.
Result<api::TreePtr> ParseJson(std::string_view text);

// The strings in a list or map; other values are skipped.
std::vector<std::string> Strings(api::Value list);
std::map<std::string, std::string> StringMap(api::Value map);

}  // namespace drakkar::node
