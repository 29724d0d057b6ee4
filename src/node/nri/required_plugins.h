#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace drakkar::node {

// The NRI plugins without which a container must not be created. A pod may name more of them in the
// annotation `required-plugins.noderesource.dev` ("[a, b]"), and containers that must run without
// them (those of the plugins themselves) have `tolerate-missing-plugins.noderesource.dev: "true"`.
// Each annotation may end in "/pod" or "/container.<name>"; the most specific one applies.

// Whether an annotation requires plugins.
bool RequiresPlugins(const std::map<std::string, std::string>& annotations);

// Those of `required` and of the annotation that are not `connected`, in order.
std::vector<std::string> MissingPlugins(std::vector<std::string> required,
                                        const std::map<std::string, std::string>& annotations,
                                        std::string_view container,
                                        const std::vector<std::string>& connected);

}  // namespace drakkar::node
