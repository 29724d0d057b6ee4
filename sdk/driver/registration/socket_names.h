#pragma once

#include <string>
#include <string_view>

namespace drakkar::driver {

// The kernel takes socket paths of up to this many bytes (108 with the terminating zero).
constexpr std::size_t kMaxSocketPathBytes = 107;

// "<driver>-reg.sock".
std::string RegistrarSocketName(std::string_view driver);

// The name for an instance of a driver that is updated while another one runs: the first that makes
// a usable path in `directory` of
//   <driver>-<podUID>-reg.sock, <driver>-<hash of podUID>-reg.sock, dra-<hash of both>-reg.sock
// and the last one if none does.
std::string RollingUpdateRegistrarSocketName(std::string_view directory, std::string_view driver,
                                             std::string_view pod_uid);

// "dra.sock", or "dra-<podUID>.sock" with a pod UID.
std::string PluginSocketName(std::string_view pod_uid);

}  // namespace drakkar::driver
