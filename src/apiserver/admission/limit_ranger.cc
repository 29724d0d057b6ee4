#include "apiserver/admission/limit_ranger.h"

#include <cstdio>

#include "api/scheme/scheme.h"
#include "apiserver/admission/pod_defaults.h"
#include "apiserver/request/failure.h"
#include "base/text/text.h"
#include "quota/pod_resources.h"

namespace drakkar::apiserver {
namespace {

using api::Quantity;
using api::Value;
using quota::Amounts;

constexpr std::string_view kAnnotation = "kubernetes.io/limit-ranger";

// Sets what a container does not specify. Returns the names that were set.
std::vector<std::string> SetMissing(api::Draft& resources, api::FieldName field,
                                    const Amounts& defaults) {
  std::vector<std::string> set;
  for (const auto& [name, amount] : defaults) {
    api::Draft& amounts = resources[field];
    if (amounts.HasEntry(name)) continue;
    amounts.Entry(name) = amount.ToString();
    set.push_back(name);
  }
  return set;
}

const Quantity* FindAmount(const Amounts& amounts, const std::string& name) {
  const auto found = amounts.find(name);
  return found == amounts.end() ? nullptr : &found->second;
}

// Checks one item of a LimitRange against the requests and limits of a container, pod or volume
// claim.
class Checker {
 public:
  Checker(Value item, std::vector<std::string>& errors)
      : type_(item["type"].str()),
        min_(quota::ReadAmounts(item["min"])),
        max_(quota::ReadAmounts(item["max"])),
        ratio_(quota::ReadAmounts(item["maxLimitRequestRatio"])),
        errors_(errors) {}

  void Check(const Amounts& requests, const Amounts& limits) {
    for (const auto& [name, least] : min_) {
      const Quantity* request = FindAmount(requests, name);
      const Quantity* limit = FindAmount(limits, name);
      const std::string rule = Rule("minimum", name, least);
      if (request == nullptr) {
        errors_.push_back(rule + ".  No request is specified");
      } else if (*request < least) {
        errors_.push_back(StrCat(rule, ", but request is ", request->ToString()));
      } else if (limit != nullptr && *limit < least) {
        errors_.push_back(StrCat(rule, ", but limit is ", limit->ToString()));
      }
    }
    for (const auto& [name, most] : max_) {
      const Quantity* request = FindAmount(requests, name);
      const Quantity* limit = FindAmount(limits, name);
      const std::string rule = Rule("maximum", name, most);
      if (limit == nullptr) {
        errors_.push_back(rule + ".  No limit is specified");
      } else if (*limit > most) {
        errors_.push_back(StrCat(rule, ", but limit is ", limit->ToString()));
      } else if (request != nullptr && *request > most) {
        errors_.push_back(StrCat(rule, ", but request is ", request->ToString()));
      }
    }
    for (const auto& [name, most] : ratio_) CheckRatio(name, most, requests, limits);
  }

  // Volume claims have no limits.
  void CheckRequests(const Amounts& requests) {
    for (const auto& [name, least] : min_) {
      const Quantity* request = FindAmount(requests, name);
      if (request != nullptr && *request >= least) continue;
      const std::string rule = Rule("minimum", name, least);
      errors_.push_back(request == nullptr
                            ? rule + ".  No request is specified"
                            : StrCat(rule, ", but request is ", request->ToString()));
    }
    for (const auto& [name, most] : max_) {
      const Quantity* request = FindAmount(requests, name);
      if (request != nullptr && *request <= most) continue;
      const std::string rule = Rule("maximum", name, most);
      errors_.push_back(request == nullptr
                            ? rule + ".  No request is specified"
                            : StrCat(rule, ", but request is ", request->ToString()));
    }
  }

 private:
  std::string Rule(std::string_view which, std::string_view name, const Quantity& amount) const {
    return StrCat(which, " ", name, " usage per ", type_, " is ", amount.ToString());
  }

  void CheckRatio(const std::string& name, const Quantity& most, const Amounts& requests,
                  const Amounts& limits) {
    const Quantity* request = FindAmount(requests, name);
    const Quantity* limit = FindAmount(limits, name);
    const std::string rule =
        StrCat(name, " max limit to request ratio per ", type_, " is ", most.ToString());
    if (request == nullptr || request->IsZero()) {
      errors_.push_back(rule + ", but no request is specified or request is 0");
    } else if (limit == nullptr || limit->IsZero()) {
      errors_.push_back(rule + ", but no limit is specified or limit is 0");
    } else {
      const double ratio = limit->AsApproximateFloat() / request->AsApproximateFloat();
      if (ratio <= most.AsApproximateFloat()) return;
      char text[64];
      std::snprintf(text, sizeof text, "%f", ratio);
      errors_.push_back(StrCat(rule, ", but provided ratio is ", text));
    }
  }

  const std::string_view type_;
  const Amounts min_, max_, ratio_;
  std::vector<std::string>& errors_;
};

void CheckPod(Value item, Value spec, std::vector<std::string>& errors) {
  const std::string_view type = item["type"].str();
  if (type == "Container") {
    Checker checker(item, errors);
    for (const api::FieldName list : api::FieldNames{"containers", "initContainers"}) {
      for (Value container : spec[list].elements()) {
        checker.Check(quota::ReadAmounts(container["resources"]["requests"]),
                      quota::ReadAmounts(container["resources"]["limits"]));
      }
    }
  } else if (type == "Pod") {
    Checker(item, errors)
        .Check(quota::PodAmounts(spec, "requests", false),
               quota::PodAmounts(spec, "limits", false));
  }
}

}  // namespace

bool LimitRangerDefaults::Concerns(const Request& request) const {
  return IsForNewPod(request);
}

std::optional<Failure> LimitRangerDefaults::Admit(const Request& request, api::Draft* object,
                                                  Value before, const StrategyContext& context) {
  if (object == nullptr || before.exists() || !IsForNewPod(request) || !context.visit) {
    return std::nullopt;
  }
  context.visit("", "limitranges", request.namespace_, [&](const api::ObjectPtr& range) {
    Amounts requests, limits;
    for (Value item : (*range)["spec"]["limits"].elements()) {
      if (item["type"].str() != "Container") continue;
      for (auto& [name, amount] : quota::ReadAmounts(item["defaultRequest"])) {
        requests.insert_or_assign(name, amount);
      }
      for (auto& [name, amount] : quota::ReadAmounts(item["default"])) {
        limits.insert_or_assign(name, amount);
      }
    }
    if (requests.empty() && limits.empty()) return;
    std::vector<std::string> notes;
    struct List {
      api::FieldName field;
      std::string_view what;
    };
    constexpr List kLists[] = {{"containers", "container"}, {"initContainers", "init container"}};
    for (const auto& [field, what] : kLists) {
      api::Draft* containers = (*object)["spec"].Find(field);
      if (containers == nullptr || !containers->is_array()) continue;
      for (std::size_t i = 0; i < containers->size(); ++i) {
        api::Draft& container = containers->at(i);
        if (!container.is_object()) continue;
        const std::string name(container["name"].str());
        api::Draft& resources = container["resources"];
        const auto set_limits = SetMissing(resources, "limits", limits);
        const auto set_requests = SetMissing(resources, "requests", requests);
        if (!set_requests.empty()) {
          notes.push_back(StrCat(Join(set_requests, ", "), " request for ", what, " ", name));
        }
        if (!set_limits.empty()) {
          notes.push_back(StrCat(Join(set_limits, ", "), " limit for ", what, " ", name));
        }
      }
    }
    if (notes.empty()) return;
    (*object)["metadata"]["annotations"].Entry(kAnnotation) =
        StrCat("LimitRanger plugin set: ", Join(notes, "; "));
  });
  return std::nullopt;
}

bool LimitRanger::Concerns(const Request& request) const {
  if (request.verb == Verb::kDelete || !request.kind->group.empty()) return false;
  if (request.kind->kind == "Pod") {
    return request.subresource.empty() || request.subresource == "resize";
  }
  return request.kind->kind == "PersistentVolumeClaim" && request.subresource.empty();
}

std::optional<Failure> LimitRanger::Check(const Request& request, Value object, Value before,
                                          const StrategyContext& context,
                                          std::vector<std::string>&) {
  const bool is_pod = request.kind->kind == "Pod";
  // The resources of a pod change only by a resize.
  if (!object.exists() || !context.visit ||
      (is_pod && before.exists() && request.subresource.empty())) {
    return std::nullopt;
  }
  std::vector<std::string> errors;
  context.visit("", "limitranges", request.namespace_, [&](const api::ObjectPtr& range) {
    for (Value item : (*range)["spec"]["limits"].elements()) {
      if (is_pod) {
        CheckPod(item, object["spec"], errors);
      } else if (item["type"].str() == "PersistentVolumeClaim") {
        Checker(item, errors)
            .CheckRequests(quota::ReadAmounts(object["spec"]["resources"]["requests"]));
      }
    }
  });
  if (errors.empty()) return std::nullopt;
  return ForbiddenFailure(*request.kind, request.name,
                          errors.size() == 1 ? errors[0] : StrCat("[", Join(errors, ", "), "]"));
}

}  // namespace drakkar::apiserver
