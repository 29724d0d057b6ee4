#pragma once

#include <string>
#include <string_view>

namespace drakkar::driver {

// The kernel's limit on socket paths (108 with the terminating zero).
constexpr std::size_t kMaxSocketPathBytes = 107;

// "<driver>-reg.sock".
std::string RegistrarSocketName(std::string_view driver);

// The name for an instance that may run beside another one: the first of
//   <driver>-<podUID>-reg.sock, <driver>-<hash of podUID>-reg.sock, dra-<hash of both>-reg.sock
// whose path in `directory` is short enough, or the last one if none is.
std::string RollingUpdateRegistrarSocketName(std::string_view directory, std::string_view driver,
                                             std::string_view pod_uid);

// "dra.sock", or "dra-<podUID>.sock" with a pod UID.
std::string PluginSocketName(std::string_view pod_uid);

}  // namespace drakkar::driver
