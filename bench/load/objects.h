#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// The objects of the workloads as JSON, in the shapes of Kubernetes' scheduler_perf for DRA.
namespace drakkar::load {

inline constexpr std::string_view kNodes = "/api/v1/nodes";
inline constexpr std::string_view kPods = "/api/v1/namespaces/default/pods";
inline constexpr std::string_view kNamespaces = "/api/v1/namespaces";
inline constexpr std::string_view kSlices = "/apis/resource.k8s.io/v1/resourceslices";
inline constexpr std::string_view kClasses = "/apis/resource.k8s.io/v1/deviceclasses";
inline constexpr std::string_view kClaims =
    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
inline constexpr std::string_view kInitialClaims =
    "/apis/resource.k8s.io/v1/namespaces/init/resourceclaims";
inline constexpr std::string_view kAllClaims = "/apis/resource.k8s.io/v1/resourceclaims";
inline constexpr std::string_view kTemplates =
    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates";
inline constexpr std::string_view kTaintRules = "/apis/resource.k8s.io/v1beta2/devicetaintrules";

inline constexpr std::string_view kDriver = "test-driver.cdi.k8s.io";

std::string NodeName(std::size_t node);
std::string NamespaceJson(std::string_view name);
std::string NodeJson(std::size_t node);
std::string ClassJson(std::string_view name, std::string_view driver);
// `devices` is the content of the list; `more` are further members of the spec, with a leading
// comma.
std::string SliceJson(std::string_view name, std::size_t node, std::string_view driver,
                      std::size_t slices_in_pool, std::string_view devices,
                      std::string_view more = {});
// Ten devices with the 13 attributes and two capacities of the workloads.
std::string BasicDevices(std::size_t count = 10);
// `requests` is the content of the list; `more` are further members of "devices".
std::string ClaimSpec(std::string_view requests, std::string_view more = {});
std::string OneDevice(std::string_view device_class);  // a request "req-0"
std::string TemplateJson(std::string_view name, std::string_view spec);
// An empty name means generateName.
std::string ClaimJson(std::string_view name, std::string_view spec);
// A pod with one claim: from a template, or by name.
std::string PodWithTemplate(std::string_view template_name);
std::string PodWithClaim(std::string_view claim);
// A merge patch for a claim's status: allocated on `node`, not reserved.
std::string AllocationPatch(std::size_t node, std::size_t device);
// A merge patch for a claim's status that sets one device's condition to true.
std::string ConditionPatch(std::string_view driver, std::string_view pool, std::string_view device,
                           std::string_view condition);

}  // namespace drakkar::load
