#include "features/catalog/internal/resources.h"

#include <array>
#include <string>
#include <string_view>

#include "api/json/writer.h"
#include "api/meta/quantity.h"

namespace drakkar::features {
namespace {

constexpr std::array<api::FieldName, 2> kQuantityMaps = {"requests", "limits"};

// A quantity may be a string or a number; the text is the same.
std::string QuantityText(api::Value value) {
  return value.is_string() ? std::string(value.str()) : api::WriteJson(value);
}

bool IdenticalQuantities(api::Value a, api::Value b) {
  return QuantityText(a) == QuantityText(b);
}

template <typename Same>
bool EqualMaps(api::Value a, api::Value b, Same same) {
  if (a.size() != b.size()) return false;
  for (const api::MemberView member : a.members()) {
    const api::Value other = b.Entry(member.name);
    if (!other.exists() || !same(member.value, other)) return false;
  }
  return true;
}

}  // namespace

bool EqualQuantities(api::Value a, api::Value b) {
  if (IdenticalQuantities(a, b)) return true;
  const Result<api::Quantity> left = api::Quantity::Parse(QuantityText(a));
  const Result<api::Quantity> right = api::Quantity::Parse(QuantityText(b));
  return left.ok() && right.ok() && *left == *right;
}

bool EqualResources(api::Value a, api::Value b) {
  for (const api::FieldName name : kQuantityMaps) {
    if (!EqualMaps(a[name], b[name], EqualQuantities)) return false;
  }
  const api::Value left = a["claims"];
  const api::Value right = b["claims"];
  return (left.empty() && right.empty()) || api::Equal(left, right);
}

bool IdenticalResources(api::Value a, api::Value b) {
  for (const api::FieldName name : kQuantityMaps) {
    if (a[name].has_value() != b[name].has_value()) return false;
    if (!EqualMaps(a[name], b[name], IdenticalQuantities)) return false;
  }
  const api::Value left = a["claims"];
  const api::Value right = b["claims"];
  if (!left.has_value()) return !right.has_value();
  return api::Equal(left, right);
}

}  // namespace drakkar::features
