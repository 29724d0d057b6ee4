#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::cmd {

// Checks a KubeletConfiguration (kubelet.config.k8s.io/v1beta1, Kubernetes 1.37) against the fields
// and types that a kubelet has. The first that is misspelt or of another type is an error which
// ends in its line and column. `text` is what `root` was read from.
//
// Returns the settings that are given and have no effect on this node, as paths, in the order
// given.
Result<std::vector<std::string>> CheckKubeletFields(api::Value root, std::string_view text);

}  // namespace drakkar::cmd
