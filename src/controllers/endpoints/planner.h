#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/object.h"
#include "api/tree/draft.h"

// The addresses of a Service's pods, as Endpoints and as EndpointSlices. Pure functions.
namespace drakkar::controllers {

struct ServiceState {
  const api::Object& service;
  std::vector<api::ObjectPtr> pods;  // those that the Service selects
  // The node of a name, for its zone; may be null.
  std::function<api::ObjectPtr(std::string_view name)> find_node;
};

// Whether the controllers are responsible: Services without a selector and ExternalNames are not.
bool SelectsPods(const api::Object& service);

// Endpoints have at most this many addresses; the rest are left out, and an annotation says so.
inline constexpr std::size_t kMaxEndpointAddresses = 1'000;
// Maximum number of ports with endpoints, because every slice repeats the ports. Further ports get
// none.
inline constexpr std::size_t kMaxServicePorts = 2'000;
// The Endpoints that the Service should have, without the metadata of the stored ones. `before` may
// be null. Null if `before` is correct.
api::TreePtr PlanEndpoints(const ServiceState& state, const api::Object* before);

inline constexpr std::size_t kMaxSliceEndpoints = 100;
struct SlicePlan {
  struct Update {
    api::ObjectPtr slice;
    api::TreePtr body;
  };
  std::vector<api::TreePtr> create;
  std::vector<Update> update;
  std::vector<api::ObjectPtr> remove;
};
// Changes as few slices as possible: endpoints stay in their slice, and new ones fill slices that
// have room.
SlicePlan PlanSlices(const ServiceState& state, const std::vector<api::ObjectPtr>& slices);

inline constexpr std::string_view kServiceNameLabel = "kubernetes.io/service-name";
inline constexpr std::string_view kManagedByLabel = "endpointslice.kubernetes.io/managed-by";
inline constexpr std::string_view kSliceManager = "endpointslice-controller.k8s.io";

}  // namespace drakkar::controllers
