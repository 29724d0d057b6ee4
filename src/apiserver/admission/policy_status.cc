#include "apiserver/admission/policy_status.h"

#include "api/scheme/scheme.h"
#include "apiserver/custom/definition.h"

namespace drakkar::apiserver {
namespace {

constexpr std::string_view kGroup = "admissionregistration.k8s.io";
constexpr std::string_view kPlural = "validatingadmissionpolicies";

bool IsChecked(const api::Object& policy) {
  return policy["status"]["observedGeneration"].integer() >=
         policy["metadata"]["generation"].integer();
}

}  // namespace

void PolicyStatusKeeper::Start(Core& core) {
  core_ = &core;
  const WatchCache& cache = *core.FindCache(kGroup, kPlural);
  watcher_ = cache.StartFeed(std::make_shared<const std::size_t>(0), storage::Mark::kApplied,
                             {[this](const std::vector<Change>& changes) {
                               for (const Change& change : changes) {
                                 if (change.type != ChangeType::kDeleted) Look(change.object);
                               }
                             }});
  for (const auto& [name, policy] : cache.objects()) Look(policy);
}

void PolicyStatusKeeper::Look(const api::ObjectPtr& policy) {
  if (IsChecked(*policy)) return;
  const std::string name(policy->name());
  const std::int64_t generation = (*policy)["metadata"]["generation"].integer();
  if (const auto known = generations_.find(name);
      known != generations_.end() && known->second == generation) {
    return;  // only its metadata has changed
  }
  generations_[name] = generation;
  waiting_[name] = nullptr;
  RunLater();
}

void PolicyStatusKeeper::RunLater() {
  if (is_scheduled_ || waiting_.empty()) return;
  is_scheduled_ = true;
  loop_.Post(lifetime_.Guard([this] {
    is_scheduled_ = false;
    Run();
    RunLater();
  }));
}

void PolicyStatusKeeper::Run() {
  const auto first = waiting_.begin();
  const std::string name = first->first;
  std::unique_ptr<PolicyTypeCheck>& check = first->second;
  if (check == nullptr) {
    const api::ObjectPtr policy = core_->Find(kGroup, kPlural, name);
    if (policy == nullptr) {
      generations_.erase(name);
      waiting_.erase(first);
      return;
    }
    const CustomKindsPtr custom = core_->custom_kinds().current();
    check = std::make_unique<PolicyTypeCheck>(
        policy,
        PolicyTypeCheck::Kinds{
            .find_resource =
                [&](std::string_view group, std::string_view version, std::string_view plural) {
                  const api::KindSchema* kind = api::FindResource(group, version, plural);
                  return kind != nullptr ? kind : custom->FindResource(group, version, plural);
                },
            .find_kind =
                [&](std::string_view api_version, std::string_view kind) {
                  return core_->FindKind(api_version, kind);
                }});
  }
  if (check->Next()) return;
  api::Draft result = check->Result();
  waiting_.erase(first);
  Write(name, std::move(result));
}

void PolicyStatusKeeper::Write(const std::string& name, api::Draft result) {
  const std::int64_t generation = generations_[name];
  generations_.erase(name);
  const api::ObjectPtr policy = core_->Find(kGroup, kPlural, name);
  if (policy == nullptr || IsChecked(*policy)) return;
  api::Draft changed(policy->tree());
  changed["status"]["observedGeneration"] = generation;
  changed["status"]["typeChecking"] = std::move(result);
  Request request;
  request.user = {.name = "system:apiserver", .groups = {"system:masters"}};
  request.verb = Verb::kUpdate;
  request.kind = api::FindKind(kGroup, "v1", "ValidatingAdmissionPolicy");
  request.name = name;
  request.subresource = "status";
  request.field_manager = "validatingadmissionpolicy-status";
  request.object = changed.Freeze();
  // If it changed meanwhile, the change brings it here again.
  core_->Handle(std::move(request), [](const Response&) {});
}

}  // namespace drakkar::apiserver
