#include "apiserver/admission/resource_quota.h"

#include <algorithm>
#include <set>

#include "api/scheme/scheme.h"
#include "apiserver/request/failure.h"
#include "base/text/text.h"
#include "features/gates/feature_gates.h"

namespace drakkar::apiserver {
namespace {

using api::Quantity;
using api::Value;
using quota::Amounts;

constexpr std::string_view kGuardPrefix = "quotas/";

bool IsResource(const Request& request, std::string_view group, std::string_view kind) {
  return request.kind->group == group && request.kind->kind == kind;
}

quota::Surroundings SurroundingsOf(const StrategyContext& context) {
  quota::Surroundings around{.now = context.clock.Now()};
  if (!context.gates.Enabled(Gate::kDRAExtendedResource)) return around;
  around.find_class = [&context](const std::string& name) {
    return context.lookup("resource.k8s.io", "deviceclasses", name);
  };
  around.find_pod = [&context](const std::string& key) { return context.lookup("", "pods", key); };
  around.visit_claims = [&context](std::string_view ns,
                                   const std::function<void(const api::Object&)>& each) {
    context.visit("resource.k8s.io", "resourceclaims", ns,
                  [&each](const api::ObjectPtr& claim) { each(*claim); });
  };
  return around;
}

// The usage of the quota's resources by all objects of the namespace.
Amounts Count(const api::Object& quota, const StrategyContext& context) {
  const quota::Surroundings around = SurroundingsOf(context);
  const Value hard = quota["spec"]["hard"];
  std::set<quota::ResourceName> resources;
  Amounts used;
  for (const auto& [key, name, value] : hard.members()) {
    used.emplace(name, Quantity(0));
    for (quota::ResourceName& resource : quota::CountedResources(name)) {
      resources.insert(std::move(resource));
    }
  }
  for (const quota::ResourceName& resource : resources) {
    context.visit(
        resource.group, resource.plural, quota.namespace_(), [&](const api::ObjectPtr& object) {
          if (!quota::IsInScope(quota.root(), resource.group, resource.plural, object->root())) {
            return;
          }
          for (const auto& [name, amount] :
               quota::UsageOf(resource.group, resource.plural, object->root(), around)) {
            const auto found = used.find(name);
            if (found != used.end()) found->second.Add(amount);
          }
        });
  }
  return used;
}

}  // namespace

bool ResourceQuotaAdmission::Concerns(const Request& request) const {
  if (!request.kind->namespaced || request.kind->kind == "Event") return false;
  if (request.verb != Verb::kCreate && request.verb != Verb::kUpdate &&
      request.verb != Verb::kPatch) {
    return false;
  }
  return request.subresource.empty() ||
         (request.subresource == "resize" && IsResource(request, "", "Pod"));
}

std::optional<Failure> ResourceQuotaAdmission::Check(const Request& request, Value object,
                                                     Value before, const StrategyContext& context,
                                                     std::vector<std::string>&) {
  if (!object.exists() || !context.visit) return std::nullopt;
  std::optional<Failure> failure;
  context.visit("", "resourcequotas", request.namespace_, [&](const api::ObjectPtr& quota) {
    if (!failure) failure = CheckQuota(request, quota, object, before, context);
  });
  return failure;
}

ResourceQuotaAdmission::Known& ResourceQuotaAdmission::Find(const api::ObjectPtr& quota,
                                                            const StrategyContext& context) {
  const MonotonicTime now = context.clock.Monotonic();
  if (known_.size() >= kMaxQuotas) known_.clear();
  Known& known = known_[std::string(quota->uid())];
  if (known.quota == nullptr || now - known.counted > std::max(kCountAgain, known.rest()) ||
      !api::Equal((*known.quota)["spec"], (*quota)["spec"])) {
    known = CountNow(quota, context);
  }
  return known;
}

ResourceQuotaAdmission::Known ResourceQuotaAdmission::CountNow(const api::ObjectPtr& quota,
                                                               const StrategyContext& context) {
  const MonotonicTime begun = context.clock.Monotonic();
  Amounts used = Count(*quota, context);
  const MonotonicTime ended = context.clock.Monotonic();
  return {quota, std::move(used), ended, ended - begun};
}

Amounts ResourceQuotaAdmission::AskedOf(const Request& request, const api::Object& quota,
                                        Value object, Value before,
                                        const StrategyContext& context) {
  const quota::Surroundings around = SurroundingsOf(context);
  const std::string_view group = request.kind->group;
  const std::string_view plural = request.kind->plural;
  Amounts asked;
  if (!quota::IsInScope(quota.root(), group, plural, object)) return asked;
  const Value hard = quota["spec"]["hard"];
  const bool was_in_scope =
      before.exists() && quota::IsInScope(quota.root(), group, plural, before);
  const Amounts old = was_in_scope ? quota::UsageOf(group, plural, before, around) : Amounts();
  for (auto& [name, amount] : quota::UsageOf(group, plural, object, around)) {
    if (!hard.Entry(name).exists()) continue;
    Quantity more = amount;
    if (const auto found = old.find(name); found != old.end()) more.Subtract(found->second);
    if (more.Sign() > 0) asked.emplace(name, more);
  }
  return asked;
}

std::vector<std::string> ResourceQuotaAdmission::DecidesAbout(
    const Request& request, Value object, Value before, const StrategyContext& context) const {
  std::vector<std::string> names;
  if (!object.exists() || !context.visit) return names;
  context.visit("", "resourcequotas", request.namespace_, [&](const api::ObjectPtr& quota) {
    if (AskedOf(request, *quota, object, before, context).empty()) return;
    names.push_back(StrCat(kGuardPrefix, quota->qualified_name()));
  });
  return names;
}

void ResourceQuotaAdmission::OnDecidedElsewhere(std::string_view name) {
  if (name.empty()) return known_.clear();
  if (!name.starts_with(kGuardPrefix)) return;
  name.remove_prefix(kGuardPrefix.size());
  std::erase_if(known_,
                [&](const auto& each) { return each.second.quota->qualified_name() == name; });
}

std::optional<Failure> ResourceQuotaAdmission::CheckQuota(const Request& request,
                                                          const api::ObjectPtr& quota, Value object,
                                                          Value before,
                                                          const StrategyContext& context) {
  const std::string_view group = request.kind->group;
  const std::string_view plural = request.kind->plural;
  const Value hard = (*quota)["spec"]["hard"];
  if (!quota::IsInScope(quota->root(), group, plural, object)) return std::nullopt;
  const Amounts asked = AskedOf(request, *quota, object, before, context);
  if (!before.exists() && IsResource(request, "", "Pod")) {
    const std::string missing = quota::MissingResources(hard, object["spec"]);
    if (!missing.empty()) {
      return ForbiddenFailure(*request.kind, request.name,
                              StrCat("failed quota: ", quota->name(), ": ", missing));
    }
  }
  if (asked.empty()) return std::nullopt;
  Amounts exceeded, used, limited;
  for (const bool again : {false, true}) {
    Known& known = Find(quota, context);
    if (again) {
      if (context.clock.Monotonic() - known.counted < known.rest()) break;
      known = CountNow(quota, context);
    }
    exceeded.clear();
    for (const auto& [name, amount] : asked) {
      const Result<Quantity> limit = Quantity::Parse(hard.Entry(name).str());
      Quantity after = known.used[name];
      after.Add(amount);
      if (!limit.ok() || after <= *limit) continue;
      exceeded.emplace(name, amount);
      used.insert_or_assign(name, known.used[name]);
      limited.insert_or_assign(name, *limit);
    }
    if (exceeded.empty()) {
      if (!request.dry_run) quota::Add(known.used, asked);
      return std::nullopt;
    }
  }
  return ForbiddenFailure(
      *request.kind, request.name,
      StrCat("exceeded quota: ", quota->name(), ", requested: ", quota::Format(exceeded),
             ", used: ", quota::Format(used), ", limited: ", quota::Format(limited)));
}

}  // namespace drakkar::apiserver
