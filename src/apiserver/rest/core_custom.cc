// The kinds that CustomResourceDefinitions add, and the end of a definition.
#include "api/scheme/scheme.h"
#include "apiserver/conversion/versions.h"
#include "apiserver/custom/definition.h"
#include "apiserver/registry/custom_strategies.h"
#include "apiserver/rest/core_resource.h"

namespace drakkar::apiserver {
namespace {

// Delay before the cleanup of a definition is retried.
constexpr Duration kCleanupInterval = std::chrono::seconds(1);
// How long watches outlive their definition.
constexpr Duration kCloseDelay = std::chrono::seconds(1);

const UserInfo& CleanupUser() {
  static const UserInfo user = {.name = "system:apiserver", .groups = {"system:masters"}};
  return user;
}

}  // namespace

// A definition that the core has seen, and the resource that it serves.
struct Core::Custom {
  api::ObjectPtr object;                               // null once it was deleted
  std::shared_ptr<const CustomDefinition> definition;  // null until it is established
  std::unique_ptr<const CustomStrategy> strategy;
  Resource* resource = nullptr;
  TimerHandle cleanup;
  TimerHandle closing;
  bool is_cleaning = false;
};

Core::CustomStates::CustomStates() : board(std::make_unique<CustomKindsBoard>()) {}
Core::CustomStates::~CustomStates() = default;

const CustomKindsBoard& Core::custom_kinds() const {
  return *custom_.board;
}

const api::KindSchema* Core::FindKind(std::string_view api_version, std::string_view kind) const {
  if (const api::KindSchema* known = api::FindKindByApiVersion(api_version, kind)) return known;
  return custom_.board->current()->FindKind(api_version, kind);
}

void Core::SeeDefinition(const api::ObjectPtr& object, bool is_deleted) {
  const std::string name(object->name());
  std::unique_ptr<Custom>& state = custom_.by_name[name];
  if (state == nullptr) state = std::make_unique<Custom>();
  Custom& custom = *state;
  const api::Value root = object->root();
  // Another definition may be waiting for them.
  const bool gave_up_names =
      custom.object != nullptr &&
      !api::Equal((*custom.object)["status"]["acceptedNames"], root["status"]["acceptedNames"]);
  custom.object = is_deleted ? nullptr : object;
  const bool serves = !is_deleted && IsEstablished(root);
  const bool has_changed = custom.definition == nullptr ||
                           !api::Equal(custom.definition->object()->root()["spec"], root["spec"]);
  const bool was_served = custom.resource != nullptr && custom.resource->is_served;
  if (serves && has_changed) {
    // The replaced definition stays in memory: requests and watches may refer to it.
    if (custom.definition != nullptr) {
      custom_.retired_bytes += custom.definition->size_bytes();
      custom_.retired_definitions.push_back(custom.definition);
      custom_.retired_strategies.push_back(std::move(custom.strategy));
    }
    custom.definition = std::make_shared<const CustomDefinition>(object);
    custom.strategy = std::make_unique<const CustomStrategy>(*custom.definition);
    AddCustomResource(custom);
  }
  if (custom.resource != nullptr) {
    custom.resource->is_served = serves;
    custom.resource->is_terminating = serves && object->is_being_deleted();
  }
  // It takes time for each kind that is served, so a change of the status alone is left out.
  if (serves != was_served || (serves && has_changed)) PublishCustomKinds();
  if ((has_changed || is_deleted) && custom.resource != nullptr && !custom_.is_loading) {
    const auto close = [resource = custom.resource] {
      resource->cache.CloseAll(
          Error{ErrorCode::kExpired, "the definition of the resource changed; list again"});
    };
    if (is_deleted) {
      // Watchers still have to see the deletion of the last objects.
      custom.closing = options_.loop.RunAfter(kCloseDelay, close);
    } else {
      // Objects that were stored before a default existed have it from now on.
      std::vector<WatchCache::Loaded> objects;
      bool has_new_defaults = false;
      for (const auto& [key, before] : custom.resource->cache.objects()) {
        objects.push_back({key, WithStoredDefaults(before, *custom.resource->kind), nullptr});
        has_new_defaults = has_new_defaults || objects.back().object != before;
      }
      if (has_new_defaults) custom.resource->cache.Replace(std::move(objects), reached_);
      // Watches keep the schema that they started with.
      close();
    }
  }
  if (!is_deleted && object->is_being_deleted()) CleanUpLater(name);
  if (!custom_.is_loading && (is_deleted || gave_up_names)) {
    const std::string group(root["spec"]["group"].str());
    options_.loop.Post(lifetime_.Guard([this, group] { ReviewNames(group); }));
  }
}

void Core::ReviewNames(const std::string& group) {
  // An update that changes nothing looks for conflicts again. It is stored only if that changes the
  // status.
  std::vector<api::ObjectPtr> refused;
  for (const auto& [key, definition] : definitions_->cache.objects()) {
    const api::Value root = definition->root();
    if (root["spec"]["group"].str() != group || definition->is_being_deleted()) continue;
    for (const api::Value condition : root["status"]["conditions"].elements()) {
      const bool is_refused =
          condition["type"].str() == "NamesAccepted" && condition["status"].str() == "False";
      if (is_refused) refused.push_back(definition);
    }
  }
  for (const api::ObjectPtr& definition : refused) {
    Request request;
    request.user = CleanupUser();
    request.verb = Verb::kUpdate;
    request.kind = api::FindKind(kExtensionsGroup, "v1", "CustomResourceDefinition");
    request.name = definition->name();
    request.object = definition->tree();
    request.skips_webhooks = request.skips_policies = true;
    Handle(std::move(request), [](const Response&) {});
  }
}

void Core::ForgetDefinitionsExcept(const std::set<std::string>& present) {
  for (const auto& [name, custom] : custom_.by_name) {
    if (custom->object == nullptr || present.contains(name)) continue;
    custom->object = nullptr;
    if (custom->resource != nullptr) custom->resource->is_served = false;
  }
}

void Core::AddCustomResource(Custom& custom) {
  const CustomDefinition& definition = *custom.definition;
  const api::KindSchema& stored = definition.storage().kind();
  if (custom.resource == nullptr) {
    auto resource = std::make_unique<Resource>(WatchCache::Holds::kObjects);
    resource->prefix = StrCat(RootPrefix(options_.layout), stored.group, "/", stored.plural, "/");
    custom.resource = resource.get();
    by_prefix_.emplace(custom.resource->prefix, custom.resource);
    if (!custom_.is_loading) resource->cache.FinishLoad(reached_);
    resources_.emplace(std::pair(std::string(stored.group), std::string(stored.plural)),
                       std::move(resource));
  }
  custom.resource->kind = &stored;
  custom.resource->strategy = custom.strategy.get();
  for (const auto& version : definition.custom_versions()) {
    by_kind_.insert_or_assign(&version->kind(), custom.resource);
  }
}

void Core::PublishCustomKinds() {
  if (custom_.is_loading) return;
  std::vector<const api::KindSchema*> served;
  for (const auto& [name, custom] : custom_.by_name) {
    if (custom->resource == nullptr || !custom->resource->is_served) continue;
    for (const auto& version : custom->definition->custom_versions()) {
      if (version->is_served()) served.push_back(&version->kind());
    }
  }
  custom_.board->Publish(std::make_shared<const CustomKinds>(std::move(served)));
}

std::optional<Failure> Core::CheckDefinitionRoom(const Request& request) const {
  if (request.verb == Verb::kDelete || request.verb == Verb::kDeleteCollection) return std::nullopt;
  if (request.verb == Verb::kCreate && custom_.by_name.size() >= kMaxDefinitions) {
    return api::StatusTooManyRequests(
        StrCat("this server has seen ", custom_.by_name.size(),
               " CustomResourceDefinitions since it started; the limit is ", kMaxDefinitions),
        0);
  }
  if (request.subresource.empty() && custom_.retired_bytes >= kMaxRetiredBytes) {
    return api::StatusTooManyRequests(
        "CustomResourceDefinitions changed so often that their former schemas fill the memory "
        "reserved for them; restart the API server",
        0);
  }
  return std::nullopt;
}

std::optional<Failure> Core::CheckCustomRequest(const Resource& resource, const Request& request) {
  if (request.verb == Verb::kCreate && resource.is_terminating) {
    Failure failure = MethodNotAllowedFailure(*request.kind, "create");
    failure.message = "create not allowed while custom resource definition is terminating";
    return failure;
  }
  if (request.verb == Verb::kPatch && request.patch == PatchKind::kStrategicMerge) {
    return api::StatusUnsupportedMediaType(
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml");
  }
  return std::nullopt;
}

void Core::CleanUpLater(const std::string& name) {
  options_.loop.Post(lifetime_.Guard([this, name] { CleanUp(name); }));
}

void Core::CleanUp(const std::string& name) {
  const auto found = custom_.by_name.find(name);
  if (found == custom_.by_name.end() || found->second->object == nullptr) return;
  Custom& custom = *found->second;
  if (custom.is_cleaning || !custom.object->is_being_deleted()) return;
  const api::Value finalizers = custom.object->root()["metadata"]["finalizers"];
  bool holds = false;
  for (api::Value each : finalizers.elements()) holds = holds || each.str() == kCleanupFinalizer;
  if (!holds) return;
  custom.is_cleaning = true;
  const auto again = [this, name](const Response&) {
    const auto state = custom_.by_name.find(name);
    if (state == custom_.by_name.end()) return;
    state->second->is_cleaning = false;
    state->second->cleanup =
        options_.loop.RunAfter(kCleanupInterval, [this, name] { CleanUp(name); });
  };
  Request request;
  request.user = CleanupUser();
  if (custom.resource != nullptr && custom.resource->cache.size() > 0) {
    request.verb = Verb::kDeleteCollection;
    request.kind = custom.resource->kind;
    return Handle(std::move(request), [this, name, again](Response response) {
      // Objects without finalizers have been deleted by now.
      const auto state = custom_.by_name.find(name);
      if (state == custom_.by_name.end()) return;
      if (response.failure || state->second->resource->cache.size() > 0) return again(response);
      state->second->is_cleaning = false;
      CleanUpLater(name);
    });
  }
  api::Draft draft(custom.object->tree());
  api::Draft kept = api::Draft::Array();
  for (api::Value each : finalizers.elements()) {
    if (each.str() != kCleanupFinalizer) kept.Append(each.str());
  }
  draft["metadata"]["finalizers"] = std::move(kept);
  request.verb = Verb::kUpdate;
  request.kind = api::FindKind(kExtensionsGroup, "v1", "CustomResourceDefinition");
  request.name = name;
  request.object = draft.Freeze();
  Handle(std::move(request), again);
}

}  // namespace drakkar::apiserver
