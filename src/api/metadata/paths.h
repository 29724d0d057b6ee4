#pragma once

#include <string>
#include <string_view>

namespace drakkar::metadata {

// Where metadata files lie. Names are put into paths as they are: whoever gets them from outside
// checks them first.

// In containers. The KEP's directory has <claim>/<request>/<driver>-metadata.json, the one of
// Kubernetes has the same below resourceclaims/<claim> or resourceclaimtemplates/<claim in the
// pod>.
inline constexpr std::string_view kContainerDirectory = "/var/run/dra-device-attributes";
inline constexpr std::string_view kKubernetesContainerDirectory =
    "/var/run/kubernetes.io/dra-device-attributes";
inline constexpr std::string_view kClaimsDirectory = "resourceclaims";
inline constexpr std::string_view kTemplatesDirectory = "resourceclaimtemplates";
inline constexpr std::string_view kFileSuffix = "-metadata.json";
// Where several drivers have devices of one request, their files are mounted one by one, and a
// running container sees no update of them. <driver>-metadata.d beside such a file is a directory
// with the current <driver>-metadata.json.
inline constexpr std::string_view kLiveDirectorySuffix = "-metadata.d";

// On the host, below the driver's own directory: <namespace>_<claim>/<request>/metadata.json.
inline constexpr std::string_view kHostDirectory = "dra-device-metadata";
inline constexpr std::string_view kHostFile = "metadata.json";

// "request" of "request/subrequest": what paths and CDI ids are made of.
std::string BaseRequest(std::string_view request);

}  // namespace drakkar::metadata
