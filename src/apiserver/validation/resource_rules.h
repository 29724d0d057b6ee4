#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "api/tree/value.h"
#include "apiserver/validation/findings.h"

namespace drakkar {
class FeatureGates;
}

// Rules shared by several kinds of resource.k8s.io. Each checks one value and adds its errors.
namespace drakkar::apiserver {

inline constexpr std::size_t kMaxSelectors = 32;
inline constexpr std::size_t kMaxConfigs = 32;
inline constexpr std::size_t kMaxRequests = 32;
inline constexpr std::size_t kMaxOpaqueBytes = 10 * 1024;
inline constexpr std::size_t kMaxBindingConditions = 4;

using ItemRule = std::function<void(api::Value item, const api::FieldPath& path)>;
using ItemKey = std::function<std::string(api::Value item)>;

// All items, or one error about their number: items of a list that is too long are not checked.
void CheckItems(Findings& out, const api::FieldPath& path, api::Value list,
                std::optional<std::size_t> limit, Covered size_covered, const ItemRule& rule);
// Also checks that keys are unique.
void CheckUniqueItems(Findings& out, const api::FieldPath& path, api::Value list,
                      std::optional<std::size_t> limit, Covered size_covered,
                      Covered unique_covered, const ItemRule& rule, const ItemKey& key);
std::string TextKey(api::Value item);

// Expressions that are already stored were valid when they were stored and are not compiled again.
enum class Stored : bool { kNo, kYes };

struct ExpressionCost {
  std::uint64_t derived = 0;  // sum over a claim's derived attributes
};
void CheckSelectors(Findings& out, const api::FieldPath& path, api::Value selectors,
                    const FeatureGates& gates, Stored stored);
void CheckExpression(Findings& out, const api::FieldPath& path, std::string_view expression,
                     const FeatureGates& gates, ExpressionCost* derived);

// "opaque" of a configuration entry: driver and parameters.
void CheckConfiguration(Findings& out, const api::FieldPath& path, api::Value config,
                        Stored stored);
// Opaque JSON: an object within the size limit, unless it is already stored.
void CheckRawObject(Findings& out, const api::FieldPath& path, api::Value raw, std::size_t limit,
                    Stored stored);

void CheckTaint(Findings& out, const api::FieldPath& path, api::Value taint, api::Value before);
void CheckToleration(Findings& out, const api::FieldPath& path, api::Value toleration);
// bindingConditions and bindingFailureConditions of a device or of an allocation result.
void CheckBindingConditions(Findings& out, const api::FieldPath& path, api::Value owner);
// If prepare is skipped, unprepare must be skipped as well.
void CheckSkippedOperations(Findings& out, const api::FieldPath& path, api::Value field);
// The gate is off: setting the field is rejected; a stored value may stay or be removed.
void CheckSkippedOperationsGate(Findings& out, const api::FieldPath& path, api::Value field,
                                api::Value before, const FeatureGates& gates);
void CheckNodeSelector(Findings& out, const api::FieldPath& path, api::Value selector);
enum class LabelValues : bool { kValid, kAny };
void CheckNodeSelectorTerm(Findings& out, const api::FieldPath& path, api::Value term,
                           LabelValues values);
void CheckConditions(Findings& out, const api::FieldPath& path, api::Value conditions);

}  // namespace drakkar::apiserver
