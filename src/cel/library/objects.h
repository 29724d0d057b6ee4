#pragma once

#include <array>
#include <string>
#include <vector>

#include "api/meta/quantity.h"
#include "api/meta/semver.h"
#include "cel/types/type.h"
#include "cel/value/value.h"

// Values of the types that Kubernetes' libraries add.
namespace drakkar::cel {

class QuantityValue final : public ObjectValue {
 public:
  static constexpr std::string_view kTypeName = "kubernetes.Quantity";
  explicit QuantityValue(api::Quantity value)
      : ObjectValue(&kTypeName), quantity(std::move(value)) {}
  bool Equals(const ObjectValue& other) const override {
    return quantity.Compare(static_cast<const QuantityValue&>(other).quantity) == 0;
  }
  api::Quantity quantity;
};

class SemverValue final : public ObjectValue {
 public:
  static constexpr std::string_view kTypeName = "kubernetes.Semver";
  explicit SemverValue(api::Semver value) : ObjectValue(&kTypeName), version(std::move(value)) {}
  bool Equals(const ObjectValue& other) const override {
    return version.Compare(static_cast<const SemverValue&>(other).version) == 0;
  }
  api::Semver version;
};

namespace types {
const TypeRef& Quantity();
const TypeRef& Semver();
const TypeRef& Ip();
const TypeRef& Cidr();
const TypeRef& Url();
const TypeRef& NamedFormat();
}  // namespace types

}  // namespace drakkar::cel
