#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "api/meta/field_error.h"
#include "api/meta/names.h"

// Rules for single values that fields of many kinds have: ports, addresses, paths, ids. Each adds
// what is wrong with the value of the field at `path`, worded as in Kubernetes.
namespace drakkar::apiserver {

void CheckPortNumber(api::FieldErrors& errors, const api::FieldPath& path, std::int64_t port);
void CheckPortName(api::FieldErrors& errors, const api::FieldPath& path, std::string_view name);
// A number, or the name of a port.
void CheckPort(api::FieldErrors& errors, const api::FieldPath& path, api::Value port);

void CheckIpAddress(api::FieldErrors& errors, const api::FieldPath& path, std::string_view address);
void CheckNetwork(api::FieldErrors& errors, const api::FieldPath& path, std::string_view network);
// An address that traffic can be sent to: neither unspecified nor link-local. Unlike Kubernetes
// this allows the loopback range, because all nodes of a cluster may be on one machine.
void CheckEndpointAddress(api::FieldErrors& errors, const api::FieldPath& path,
                          std::string_view address);

void CheckDnsLabel(api::FieldErrors& errors, const api::FieldPath& path, std::string_view name);
void CheckDnsSubdomain(api::FieldErrors& errors, const api::FieldPath& path, std::string_view name);
// The same, but the name may not be empty.
void RequireDnsLabel(api::FieldErrors& errors, const api::FieldPath& path, std::string_view name);
void RequireDnsSubdomain(api::FieldErrors& errors, const api::FieldPath& path,
                         std::string_view name);
void RequireText(api::FieldErrors& errors, const api::FieldPath& path, std::string_view text);

// One of `supported`.
void CheckOneOf(api::FieldErrors& errors, const api::FieldPath& path, std::string_view text,
                std::initializer_list<std::string_view> supported);
void CheckOneOf(api::FieldErrors& errors, const api::FieldPath& path, std::string_view text,
                const std::vector<std::string_view>& supported);
void RequireOneOf(api::FieldErrors& errors, const api::FieldPath& path, std::string_view text,
                  std::initializer_list<std::string_view> supported);

void CheckNotNegative(api::FieldErrors& errors, const api::FieldPath& path, std::int64_t number);
void CheckInRange(api::FieldErrors& errors, const api::FieldPath& path, std::int64_t number,
                  std::int64_t low, std::int64_t high);
// A user or group id; an absent one is valid.
void CheckUserOrGroupId(api::FieldErrors& errors, const api::FieldPath& path, api::Value id);
// Permission bits of a file; absent ones are valid.
void CheckFileMode(api::FieldErrors& errors, const api::FieldPath& path, api::Value mode);

// No element of the path is "..".
void CheckNoBacksteps(api::FieldErrors& errors, const api::FieldPath& path, std::string_view file);
// Also relative.
void CheckRelativePath(api::FieldErrors& errors, const api::FieldPath& path, std::string_view file);
// Also not a name that atomic updates of a volume use ("..data").
void CheckVolumeFile(api::FieldErrors& errors, const api::FieldPath& path, std::string_view file);

// A domain in a resolver's search list: labels may have underscores.
void CheckSearchDomain(api::FieldErrors& errors, const api::FieldPath& path,
                       std::string_view domain);
void CheckEnvironmentName(api::FieldErrors& errors, const api::FieldPath& path,
                          std::string_view name);
void CheckHeaderName(api::FieldErrors& errors, const api::FieldPath& path, std::string_view name);
// Keys of ConfigMaps and Secrets.
api::Problems ConfigKeyProblems(std::string_view key);
// A driver of volumes.
void CheckCsiDriverName(api::FieldErrors& errors, const api::FieldPath& path,
                        std::string_view name);
// The signer of a certificate: "example.com/signer-name".
void CheckSignerName(api::FieldErrors& errors, const api::FieldPath& path, std::string_view name);
// Whether Kubernetes itself defines the signer.
bool IsKubernetesSigner(std::string_view name);
// A ClusterTrustBundle's name, which begins with its signer, if it has one.
api::Problems TrustBundleNameProblems(std::string_view signer, std::string_view name);

}  // namespace drakkar::apiserver
