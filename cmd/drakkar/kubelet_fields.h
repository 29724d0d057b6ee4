#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::cmd {

// Checks a KubeletConfiguration (kubelet.config.k8s.io/v1beta1, Kubernetes 1.37) against the fields
// and types that a kubelet has. Fails at the first unknown field or wrong type, with its line and
// column. `text` is the source of `root`.
//
// Returns the paths of the given settings that have no effect on this node, in order.
Result<std::vector<std::string>> CheckKubeletFields(api::Value root, std::string_view text);

}  // namespace drakkar::cmd
