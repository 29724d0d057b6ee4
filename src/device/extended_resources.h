#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/tree/value.h"
#include "device/claim.h"

namespace drakkar::device {

// Containers can request devices as an extended resource: the one that a DeviceClass names in
// spec.extendedResourceName, or kImplicitResourcePrefix with the name of a class. On nodes that do
// not offer the resource themselves, the scheduler allocates devices of the class, for one claim
// that it creates for the pod (KEP-5004).
inline constexpr std::string_view kImplicitResourcePrefix = "deviceclass.resource.kubernetes.io/";
// Shown as the name of that claim as long as it has none.
inline constexpr std::string_view kPlannedClaim = "<extended-resources>";

// Which class provides which extended resource. One entry per class.
class ResourceClasses {
 public:
  // `created` is metadata.creationTimestamp; `resource` is spec.extendedResourceName, empty if the
  // class has none. Replaces what is known about the class.
  void Set(std::string name, std::string created, std::string resource);
  void Remove(std::string_view name);

  // The name of the class that provides the resource: the newest if there are several, and the
  // first by name among equally old ones. Null if there is none.
  const std::string* Find(std::string_view resource) const;
  // spec.extendedResourceName of a class; empty if it has none.
  std::string_view ResourceOf(std::string_view class_name) const;

 private:
  struct Class {
    std::string created;
    std::string resource;
  };
  struct Newest {
    using Provider = std::pair<std::string, std::string>;  // created, name
    bool operator()(const Provider& a, const Provider& b) const {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    }
  };
  std::map<std::string, Class, std::less<>> classes_;                                 // by name
  std::map<std::string, std::set<Newest::Provider, Newest>, std::less<>> providers_;  // by resource
};

// One entry of a pod's status.extendedResourceClaimStatus.requestMappings: the container gets the
// devices of the claim's request.
struct RequestMapping {
  std::string container;
  std::string resource;
  std::string request;

  bool operator==(const RequestMapping&) const = default;
};

// The claim behind a pod's extended resources: its requests, sorted by name, and who gets what.
struct ExtendedResources {
  std::vector<Request> requests;
  std::vector<RequestMapping> mappings;
};

// The devices that the containers need for `classes`, which maps resources to the classes that
// provide them; other resources are ignored. A request is named container-<i>-request-<j>: i counts
// init containers first, and j is the position of the resource among those that the container
// requests, by name. An init container that ends uses the devices of the containers that start
// after it. If it needs more than those have, the rest is one more request, which all such init
// containers share.
ExtendedResources ResolveExtendedResources(
    api::Value pod_spec, const std::map<std::string, std::string, std::less<>>& classes);

}  // namespace drakkar::device
