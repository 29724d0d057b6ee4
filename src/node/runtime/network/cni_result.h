#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"

namespace drakkar::node {

// The output of plugins. They are third-party programs: nothing in it is trusted.
constexpr std::size_t kMaxCniResultBytes = 1u << 20;
constexpr std::size_t kMaxCniAddresses = 64;
constexpr std::size_t kMaxCniMessageBytes = 1024;

struct CniResult {
  std::vector<std::string> addresses;  // of the pod's interface, without prefix lengths
  std::string json;                    // for the next plugin
};

// The result of ADD. Addresses of other interfaces than `interface` are left out.
Result<CniResult> ParseCniResult(std::string_view output, std::string_view interface);

// The error message for a failed plugin: from its JSON error, or from its output.
std::string DescribeCniFailure(std::string_view output, std::string_view error_output,
                               int exit_code);

// At most one address of each family, in the order of `addresses`, except that the first has the
// family of `node_address`.
std::vector<std::string> ChoosePodAddresses(const std::vector<std::string>& addresses,
                                            std::string_view node_address);

bool IsIpAddress(const std::string& text);

}  // namespace drakkar::node
