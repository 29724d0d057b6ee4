#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/meta/quantity.h"
#include "device/toleration.h"

namespace drakkar::device {

// A selector. Without an expression it is of an unknown kind.
struct Selector {
  std::optional<std::string> cel;
};

struct CapacityRequest {
  std::string name;
  api::Quantity value;
};

struct DerivedAttribute {
  std::string name;
  std::string expression;
};

// Driver-specific parameters, passed on byte for byte.
struct OpaqueConfig {
  std::string driver;
  std::string parameters;  // JSON

  bool operator==(const OpaqueConfig&) const = default;
};

// What one request, or one alternative of it, asks for.
struct RequestSpec {
  std::string name;  // the request's own, or the subrequest's
  std::string device_class;
  std::vector<Selector> selectors;
  std::string allocation_mode;  // ExactCount, All
  std::int64_t count = 0;
  std::optional<bool> admin_access;
  std::vector<Toleration> tolerations;
  // Absent and empty differ: only the first is allowed without consumable capacity.
  std::optional<std::vector<CapacityRequest>> capacity;  // sorted by name
  std::vector<DerivedAttribute> derived_attributes;
};

// Validation ensures exactly one of the two; neither means an unknown kind of request.
struct Request {
  std::string name;
  std::optional<RequestSpec> exactly;
  std::vector<RequestSpec> first_available;
};

// If neither attribute is set, the constraint is of an unknown kind.
struct Constraint {
  std::vector<std::string> requests;  // "request" or "request/subrequest"; empty means all
  std::optional<std::string> match_attribute;
  std::optional<std::string> distinct_attribute;
};

struct ClaimConfig {
  std::vector<std::string> requests;
  std::optional<OpaqueConfig> opaque;
};

struct Claim {
  std::string ns;
  std::string name;
  std::string uid;
  std::vector<Request> requests;
  std::vector<Constraint> constraints;
  std::vector<ClaimConfig> config;
  std::vector<std::string> unknown_fields;

  std::string ToString() const;  // "namespace/name", or "name" without a namespace
};

struct DeviceClass {
  std::string name;
  std::vector<Selector> selectors;
  std::vector<std::optional<OpaqueConfig>> config;
  std::optional<std::string> extended_resource_name;
  std::vector<std::string> unknown_fields;
};

}  // namespace drakkar::device
