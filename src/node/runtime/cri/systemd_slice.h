#pragma once

#include <string>
#include <string_view>

namespace drakkar::node {

// The name that systemd has for a cgroup, as kubelets convert it:
//   /kubepods/burstable/pod12-34  ->
//   /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_34.slice
std::string SystemdSlice(std::string_view path);

}  // namespace drakkar::node
