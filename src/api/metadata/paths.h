#pragma once

#include <string>
#include <string_view>

namespace drakkar::metadata {

// Paths of metadata files. Names are inserted unchecked: callers validate untrusted ones first.

// In containers. The KEP's directory contains <claim>/<request>/<driver>-metadata.json; that of
// Kubernetes has the same below resourceclaims/<claim> or resourceclaimtemplates/<claim in the
// pod>.
inline constexpr std::string_view kContainerDirectory = "/var/run/dra-device-attributes";
inline constexpr std::string_view kKubernetesContainerDirectory =
    "/var/run/kubernetes.io/dra-device-attributes";
inline constexpr std::string_view kClaimsDirectory = "resourceclaims";
inline constexpr std::string_view kTemplatesDirectory = "resourceclaimtemplates";
inline constexpr std::string_view kFileSuffix = "-metadata.json";
// If several drivers have devices for one request, their files are mounted one by one, and a
// running container does not see updates. <driver>-metadata.d next to such a file is a directory
// with the current <driver>-metadata.json.
inline constexpr std::string_view kLiveDirectorySuffix = "-metadata.d";

// On the host, below the driver's own directory: <namespace>_<claim>/<request>/metadata.json.
inline constexpr std::string_view kHostDirectory = "dra-device-metadata";
inline constexpr std::string_view kHostFile = "metadata.json";

// "request" of "request/subrequest", as used in paths and CDI ids.
std::string BaseRequest(std::string_view request);

}  // namespace drakkar::metadata
