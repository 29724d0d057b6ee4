#include "device/extended_resources.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "api/meta/quantity.h"
#include "base/text/text.h"

namespace drakkar::device {
namespace {

using api::Value;

struct Container {
  Value value;
  std::size_t index = 0;
  bool ends = false;  // an init container that is not a sidecar
};

std::vector<Container> ListContainers(Value pod_spec) {
  std::vector<Container> containers;
  for (Value each : pod_spec["initContainers"].elements()) {
    containers.push_back({each, containers.size(), each["restartPolicy"].str() != "Always"});
  }
  for (Value each : pod_spec["containers"].elements()) {
    containers.push_back({each, containers.size(), false});
  }
  return containers;
}

// Zero if the container does not request the resource. Rounded up.
std::int64_t CountOf(const Container& container, std::string_view resource) {
  const Value amount = container.value["resources"]["requests"].Entry(resource);
  if (!amount.is_string()) return amount.integer();
  const Result<api::Quantity> parsed = api::Quantity::Parse(amount.str());
  return parsed.ok() ? parsed->Value() : 0;
}

std::string RequestName(const Container& container, std::string_view resource) {
  std::size_t position = 0;
  for (const auto& [key, name, amount] : container.value["resources"]["requests"].members()) {
    if (name < resource) ++position;
  }
  return StrCat("container-", container.index, "-request-", position);
}

struct Need {
  std::size_t container = 0;
  std::string request;
  std::int64_t count = 0;
};

}  // namespace

void ResourceClasses::Set(std::string name, std::string created, std::string resource) {
  Remove(name);
  if (!resource.empty()) providers_[resource].emplace(created, name);
  classes_[std::move(name)] = {std::move(created), std::move(resource)};
}

void ResourceClasses::Remove(std::string_view name) {
  const auto found = classes_.find(name);
  if (found == classes_.end()) return;
  if (const auto at = providers_.find(found->second.resource); at != providers_.end()) {
    at->second.erase({found->second.created, found->first});
    if (at->second.empty()) providers_.erase(at);
  }
  classes_.erase(found);
}

const std::string* ResourceClasses::Find(std::string_view resource) const {
  if (resource.starts_with(kImplicitResourcePrefix)) {
    const auto found = classes_.find(resource.substr(kImplicitResourcePrefix.size()));
    return found == classes_.end() ? nullptr : &found->first;
  }
  const auto found = providers_.find(resource);
  return found == providers_.end() ? nullptr : &found->second.begin()->second;
}

std::string_view ResourceClasses::ResourceOf(std::string_view class_name) const {
  const auto found = classes_.find(class_name);
  return found == classes_.end() ? std::string_view() : found->second.resource;
}

ExtendedResources ResolveExtendedResources(
    Value pod_spec, const std::map<std::string, std::string, std::less<>>& classes) {
  ExtendedResources resolved;
  const std::vector<Container> containers = ListContainers(pod_spec);
  for (const auto& [resource, device_class] : classes) {
    std::vector<Need> needs;  // of containers that keep running
    const auto give = [&](const Container& container, std::string request) {
      resolved.mappings.push_back(
          {std::string(container.value["name"].str()), resource, std::move(request)});
    };
    for (const Container& container : containers) {
      const std::int64_t count = CountOf(container, resource);
      if (container.ends || count <= 0) continue;
      needs.push_back({container.index, RequestName(container, resource), count});
      give(container, needs.back().request);
    }
    std::optional<Need> extra;  // the most that an init container needs in addition
    for (const Container& container : containers) {
      std::int64_t missing = CountOf(container, resource);
      if (!container.ends || missing <= 0) continue;
      for (const Need& later : needs) {
        if (later.container < container.index || missing <= 0) continue;
        give(container, later.request);
        missing -= later.count;
      }
      if (missing <= 0) continue;
      give(container, {});  // named once the largest is known
      if (!extra || missing > extra->count) {
        extra = Need{container.index, RequestName(container, resource), missing};
      }
    }
    if (extra) {
      for (RequestMapping& mapping : resolved.mappings) {
        if (mapping.request.empty()) mapping.request = extra->request;
      }
      needs.push_back(*extra);
    }
    for (Need& need : needs) {
      Request& request = resolved.requests.emplace_back();
      request.name = need.request;
      request.exactly.emplace();
      request.exactly->name = std::move(need.request);
      request.exactly->device_class = device_class;
      request.exactly->allocation_mode = "ExactCount";
      request.exactly->count = need.count;
    }
  }
  std::ranges::sort(resolved.requests, {}, &Request::name);
  return resolved;
}

}  // namespace drakkar::device
