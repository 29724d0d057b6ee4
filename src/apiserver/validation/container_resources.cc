#include "apiserver/validation/container_resources.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "api/meta/quantity.h"
#include "apiserver/validation/cause.h"
#include "apiserver/validation/name_rules.h"
#include "apiserver/validation/value_rules.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"
#include "quota/pod_resources.h"

namespace drakkar::apiserver {
namespace {

using api::FieldErrors;
using api::FieldPath;
using api::Quantity;
using api::Value;

constexpr std::string_view kHugePages = "hugepages-";
constexpr std::int64_t kMilli = 1'000;

bool IsComputeResource(std::string_view name) {
  return name == "cpu" || name == "memory";
}

bool IsOvercommitAllowed(std::string_view name) {
  return IsNativeResource(name) && !IsHugePageResource(name);
}

bool IsStandardResource(std::string_view name) {
  constexpr std::array<std::string_view, 20> kNames = {"cpu",
                                                       "memory",
                                                       "ephemeral-storage",
                                                       "requests.cpu",
                                                       "requests.memory",
                                                       "requests.ephemeral-storage",
                                                       "limits.cpu",
                                                       "limits.memory",
                                                       "limits.ephemeral-storage",
                                                       "pods",
                                                       "resourcequotas",
                                                       "services",
                                                       "replicationcontrollers",
                                                       "secrets",
                                                       "configmaps",
                                                       "persistentvolumeclaims",
                                                       "storage",
                                                       "requests.storage",
                                                       "services.nodeports",
                                                       "services.loadbalancers"};
  return std::ranges::find(kNames, name) != kNames.end() || IsHugePageResource(name) ||
         name.starts_with("requests.hugepages-");
}

void CheckPodResourceName(FieldErrors& errors, const FieldPath& path, std::string_view name) {
  const api::Problems problems = ResourceNameProblems(name);
  AddProblems(errors, path, name, problems);
  if (!problems.empty() || IsComputeResource(name) || IsHugePageResource(name)) return;
  errors.push_back(NotSupported(path, name, {"cpu", kHugePages, "memory"}));
}

// The amount must be a multiple of the size in the name ("hugepages-2Mi").
void CheckHugePages(FieldErrors& errors, const FieldPath& path, std::string_view name,
                    const Quantity& amount) {
  const auto page = Quantity::Parse(name.substr(kHugePages.size()));
  const bool divisible = page.ok() && page->Sign() > 0 && page->MilliValue() % kMilli == 0 &&
                         amount.Value() % page->Value() == 0;
  if (divisible) return;
  const std::string text = amount.ToString();
  errors.push_back(
      Invalid(path, text, StrCat(text, " is not positive integer multiple of ", name)));
}

// The entries of one list, parsed; those that cannot be are reported and left out.
using Amounts = std::map<std::string_view, Quantity>;
Amounts CheckList(FieldErrors& errors, const FieldPath& path, Value list, ResourceScope scope) {
  Amounts amounts;
  for (const auto& [key, name, value] : list.members()) {
    if (WorkBudget::IsExceeded()) break;
    const FieldPath at = path.Key(name);
    if (scope == ResourceScope::kPod) {
      CheckPodResourceName(errors, at, name);
    } else {
      CheckContainerResourceName(errors, at, name);
    }
    std::optional<Quantity> amount = CheckResourceAmount(errors, at, name, value);
    if (!amount) continue;
    if (IsHugePageResource(name)) CheckHugePages(errors, at, name, *amount);
    amounts.emplace(name, std::move(*amount));
  }
  return amounts;
}

bool HasAny(const Amounts& amounts, bool (*matches)(std::string_view)) {
  return std::ranges::any_of(amounts, [&](const auto& each) { return matches(each.first); });
}

}  // namespace

bool IsNativeResource(std::string_view name) {
  return name.find('/') == std::string_view::npos ||
         name.find("kubernetes.io/") != std::string_view::npos;
}

bool IsHugePageResource(std::string_view name) {
  return name.starts_with(kHugePages);
}

bool IsIntegerResource(std::string_view name) {
  constexpr std::array<std::string_view, 9> kCounts = {"pods",
                                                       "resourcequotas",
                                                       "services",
                                                       "replicationcontrollers",
                                                       "secrets",
                                                       "configmaps",
                                                       "persistentvolumeclaims",
                                                       "services.nodeports",
                                                       "services.loadbalancers"};
  if (IsNativeResource(name)) return std::ranges::find(kCounts, name) != kCounts.end();
  return IsExtendedResourceName(name);
}

api::Problems ResourceNameProblems(std::string_view name) {
  api::Problems problems = api::CheckLabelKey(name);
  if (problems.empty() && name.find('/') == std::string_view::npos && !IsStandardResource(name)) {
    problems.push_back("must be a standard resource type or fully qualified");
  }
  return problems;
}

void CheckContainerResourceName(FieldErrors& errors, const FieldPath& path, std::string_view name) {
  // By far the most common ones.
  if (IsComputeResource(name)) return;
  AddProblems(errors, path, name, ResourceNameProblems(name));
  if (name.find('/') == std::string_view::npos) {
    if (name == "ephemeral-storage" || IsHugePageResource(name)) return;
    errors.push_back(Invalid(path, name, "must be a standard resource for containers"));
  } else if (!IsNativeResource(name) && !IsExtendedResourceName(name)) {
    errors.push_back(Invalid(path, name, "doesn't follow extended resource name standard"));
  }
}

std::optional<Quantity> CheckResourceAmount(FieldErrors& errors, const FieldPath& path,
                                            std::string_view name, Value amount) {
  Result<Quantity> quantity = Quantity::Parse(amount.str());
  if (!quantity.ok()) {
    errors.push_back(Invalid(path, amount.str(), quantity.error().message));
    return std::nullopt;
  }
  if (quantity->Sign() < 0) {
    errors.push_back(Invalid(path, quantity->ToString(), "must be greater than or equal to 0"));
  }
  if (IsIntegerResource(name) && quantity->MilliValue() % kMilli != 0) {
    errors.push_back(Invalid(path, quantity->ToString(), "must be an integer"));
  }
  return std::move(*quantity);
}

void CheckResourceRequirements(FieldErrors& errors, const FieldPath& path, Value resources,
                               ResourceScope scope) {
  if (resources["limits"].empty() && resources["requests"].empty()) return;
  const FieldPath limits_path = path.Child("limits");
  const FieldPath requests_path = path.Child("requests");
  const Amounts limits = CheckList(errors, limits_path, resources["limits"], scope);
  const Amounts requests = CheckList(errors, requests_path, resources["requests"], scope);
  for (const auto& [name, amount] : requests) {
    const auto limit = limits.find(name);
    if (limit == limits.end()) {
      if (IsOvercommitAllowed(name)) continue;
      errors.push_back(Required(limits_path, "Limit must be set for non overcommitable resources"));
      continue;
    }
    const int order = amount.Compare(limit->second);
    const bool must_equal = !IsOvercommitAllowed(name);
    if (must_equal ? order == 0 : order <= 0) continue;
    errors.push_back(Invalid(requests_path, amount.ToString(),
                             StrCat("must be ", must_equal ? "equal" : "less than or equal", " to ",
                                    name, " limit of ", limit->second.ToString())));
  }
  const bool has_pages = HasAny(limits, IsHugePageResource) || HasAny(requests, IsHugePageResource);
  if (has_pages && !HasAny(limits, IsComputeResource) && !HasAny(requests, IsComputeResource)) {
    errors.push_back(Forbidden(path, "HugePages require cpu or memory"));
  }
}

void CheckOverhead(FieldErrors& errors, const FieldPath& path, Value overhead) {
  const Amounts amounts =
      CheckList(errors, path.Child("limits"), overhead, ResourceScope::kContainer);
  if (HasAny(amounts, IsHugePageResource) && !HasAny(amounts, IsComputeResource)) {
    errors.push_back(Forbidden(path, "HugePages require cpu or memory"));
  }
}

void CheckPodLevelResources(FieldErrors& errors, const FieldPath& spec_path, Value spec) {
  const Value resources = spec["resources"];
  if (!resources.has_value()) return;
  const FieldPath path = spec_path.Child("resources");
  if (spec["os"]["name"].str() == "windows") {
    errors.push_back(Forbidden(path, "may not be set for a windows pod"));
    return;
  }
  if (resources["claims"].has_value()) {
    errors.push_back(
        Forbidden(path.Child("claims"), "claims may not be set for Resources at pod-level"));
  }
  CheckResourceRequirements(errors, path, resources, ResourceScope::kPod);
  const quota::Amounts requests = quota::ReadAmounts(resources["requests"]);
  const quota::Amounts limits = quota::ReadAmounts(resources["limits"]);
  const auto compare = [&](const quota::Amounts& of_pod, api::FieldName field, bool all) {
    for (const auto& [name, sum] : quota::ContainerAmounts(spec, field)) {
      const auto whole = of_pod.find(name);
      if (whole == of_pod.end() || !(all || IsHugePageResource(name))) continue;
      if (sum <= whole->second) continue;
      errors.push_back(Invalid(path.Child(field.view()).Key(name), whole->second.ToString(),
                               StrCat("must be greater than or equal to aggregate container ",
                                      field.view(), " of ", sum.ToString())));
    }
  };
  compare(requests, "requests", true);
  compare(limits, "limits", false);
  std::size_t index = 0;
  for (const Value container : spec["containers"].elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = path.Child("containers").Index(index++);
    for (const auto& [name, limit] : quota::ReadAmounts(container["resources"]["limits"])) {
      const auto whole = limits.find(name);
      if (whole == limits.end() || limit <= whole->second) continue;
      errors.push_back(Invalid(
          at.Key(name).Child("limits"), limit.ToString(),
          StrCat("must be less than or equal to pod limits of ", whole->second.ToString())));
    }
  }
}

void CheckClaimReferences(FieldErrors& errors, const FieldPath& path, Value claims,
                          const std::set<std::string_view>& known) {
  std::map<std::string_view, std::set<std::string_view>> seen;
  std::size_t index = 0;
  for (const Value claim : claims.elements()) {
    const FieldPath at = path.Index(index++);
    const std::string_view name = claim["name"].str();
    const std::string_view request = claim["request"].str();
    if (name.empty()) {
      errors.push_back(Required(at));
      continue;
    }
    auto& requests = seen[name];
    const bool whole = requests.contains("");
    if (!whole && !request.empty()) CheckDnsLabel(errors, at.Child("request"), request);
    const bool twice =
        whole || requests.contains(request) || (request.empty() && !requests.empty());
    if (twice) {
      const bool shows_name = whole || request.empty();
      errors.push_back(Duplicate(at, shows_name ? std::string(name) : StrCat(name, "/", request)));
    }
    requests.insert(request);
    if (known.contains(name)) continue;
    api::FieldError error = api::FieldError::NotFound(at, name);
    error.detail = "must be one of the names in pod.spec.resourceClaims";
    if (known.empty()) {
      error.detail += " which is empty";
    } else if (!WorkBudget::IsExceeded()) {
      error.detail += ": " + Join(known, ", ");
      WorkBudget::Charge(error.detail.size());
    }
    errors.push_back(std::move(error));
  }
}

}  // namespace drakkar::apiserver
