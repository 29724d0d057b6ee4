#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace drakkar::metadata {

// Device metadata for a container (KEP-5304), in plain types that do not depend on a version of the
// file format. Every version is converted to these.

inline constexpr std::string_view kV1alpha1 = "metadata.resource.k8s.io/v1alpha1";
inline constexpr std::string_view kV1beta1 = "metadata.resource.k8s.io/v1beta1";

// A semantic version, as opposed to arbitrary text.
struct Version {
  std::string text;
  bool operator==(const Version&) const = default;
};

// DeviceAttribute of resource.k8s.io: exactly one value.
using AttributeValue =
    std::variant<std::int64_t, bool, std::string, Version, std::vector<std::int64_t>,
                 std::vector<bool>, std::vector<std::string>, std::vector<Version>>;
// By qualified name, verbatim: "model", "resource.kubernetes.io/pciBusID".
using Attributes = std::map<std::string, AttributeValue>;

struct NetworkDeviceData {
  std::string interface_name;
  std::vector<std::string> ips;  // CIDR form
  std::string hardware_address;

  bool operator==(const NetworkDeviceData&) const = default;
};

struct Device {
  std::string driver;
  std::string pool;
  std::string name;
  Attributes attributes;
  std::optional<NetworkDeviceData> network_data;

  bool operator==(const Device&) const = default;
};

struct Request {
  std::string name;  // "request", or "request/subrequest" for one of several alternatives
  std::vector<Device> devices;

  bool operator==(const Request&) const = default;
};

struct DeviceMetadata {
  std::string claim_name;
  std::string claim_namespace;
  std::string claim_uid;
  std::int64_t generation = 0;  // incremented with every change, from 1
  // Name of the claim in the pod, if the claim was made from a template.
  std::optional<std::string> pod_claim_name;
  std::vector<Request> requests;

  bool operator==(const DeviceMetadata&) const = default;
};

// Which one to follow where the KEP's text and Kubernetes 1.37 differ (docs/compatibility.md,
// 5304).
enum class Dialect { kKep, kKubernetes };

}  // namespace drakkar::metadata
