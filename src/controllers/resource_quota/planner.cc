#include "controllers/resource_quota/planner.h"

#include <set>

namespace drakkar::controllers {

namespace {

using api::Quantity;
using api::Value;

bool SameAmounts(const quota::Amounts& amounts, Value map) {
  return map.is_object() && amounts == quota::ReadAmounts(map) && map.size() == amounts.size();
}

}  // namespace

std::vector<quota::ResourceName> CountedBy(const api::Object& quota) {
  std::set<quota::ResourceName> resources;
  for (const auto& [key, name, value] : quota["spec"]["hard"].members()) {
    for (quota::ResourceName& resource : quota::CountedResources(name)) {
      resources.insert(std::move(resource));
    }
  }
  return {resources.begin(), resources.end()};
}

std::optional<api::Draft> PlanQuotaStatus(const api::Object& quota, const VisitObjects& visit,
                                          const quota::Surroundings& around) {
  const Value hard = quota["spec"]["hard"];
  quota::Amounts used;
  for (const auto& [key, name, value] : hard.members()) {
    // Shown in the notation of the limit: bytes as binary multiples.
    const Result<Quantity> limit = Quantity::Parse(value.str());
    used.emplace(name, Quantity(0, limit.ok() ? limit->format() : Quantity::Format::kDecimalSI));
  }
  for (const quota::ResourceName& resource : CountedBy(quota)) {
    visit(resource, [&](const api::Object& object) {
      if (!quota::IsInScope(quota.root(), resource.group, resource.plural, object.root())) return;
      for (const auto& [name, amount] :
           quota::UsageOf(resource.group, resource.plural, object.root(), around)) {
        const auto found = used.find(name);
        if (found != used.end()) found->second.Add(amount);
      }
    });
  }
  const Value status = quota["status"];
  if (SameAmounts(quota::ReadAmounts(hard), status["hard"]) && SameAmounts(used, status["used"])) {
    return std::nullopt;
  }
  api::Draft draft = api::Draft::Object();
  draft.KeepAlive(quota.tree());
  draft["hard"] = api::Draft(hard);
  draft["used"] = api::Draft::Object();
  for (const auto& [name, amount] : used) draft["used"].Entry(name) = amount.ToString();
  return draft;
}

}  // namespace drakkar::controllers
