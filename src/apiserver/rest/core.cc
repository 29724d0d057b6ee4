#include "apiserver/rest/core.h"

#include <algorithm>

#include "api/scheme/scheme.h"
#include "apiserver/conversion/versions.h"
#include "apiserver/custom/definition.h"
#include "apiserver/registry/custom_strategies.h"
#include "apiserver/rest/core_resource.h"
#include "apiserver/rest/field_managers.h"
#include "apiserver/rest/scale.h"
#include "base/exec/work_budget.h"
#include "base/ids/uuid.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

bool HasVerb(const api::KindSchema& kind, std::string_view verb) {
  for (std::string_view each : kind.verbs) {
    if (each == verb) return true;
  }
  return false;
}

}  // namespace

Core::Core(Options options)
    : options_(std::move(options)),
      is_shared_(options_.store.is_shared()),
      guard_prefix_(RootPrefix(options_.layout) + "drakkar.io/allocated/"),
      own_id_(std::make_shared<const std::string>(is_shared_ ? NewUuid(options_.random)
                                                             : std::string())) {
  for (const api::KindSchema& kind : api::AllKinds()) {
    // Kinds without "get" (reviews, bindings) are never stored.
    if (!kind.storage_version || !HasVerb(kind, "get")) continue;
    // Events outnumber everything else and are seldom read: no tree is kept of them.
    const bool are_events = kind.group.empty() && kind.kind == "Event";
    auto resource = std::make_unique<Resource>(are_events ? WatchCache::Holds::kBytes
                                                          : WatchCache::Holds::kObjects);
    resource->kind = &kind;
    resource->strategy = &StrategyFor(kind);
    resource->unattended = UnattendedOf(kind);
    resource->prefix = KeyPrefix(options_.layout, kind);
    if (are_events && options_.store.expires_keys()) resource->time_to_live = options_.event_ttl;
    by_prefix_.emplace(resource->prefix, resource.get());
    if (kind.group == kExtensionsGroup && kind.plural == kDefinitionsPlural) {
      definitions_ = resource.get();
    }
    resources_.emplace(std::pair(std::string(kind.group), std::string(kind.plural)),
                       std::move(resource));
  }
  for (const api::KindSchema& kind : api::AllKinds()) {
    const api::KindSchema& stored = kind.storage == nullptr ? kind : *kind.storage;
    auto found = resources_.find(ByName::Views(stored.group, stored.plural));
    if (found != resources_.end()) by_kind_.emplace(&kind, found->second.get());
  }
  for (const auto& step : options_.admission) {
    if (step->SeesActions()) action_steps_.push_back(step.get());
  }
  claims_ = resources_.find(ByName::Views("resource.k8s.io", "resourceclaims"))->second.get();
  arbiter_ = std::make_unique<DeviceArbiter>(claims_->cache,
                                             *FindCache("resource.k8s.io", "resourceslices"));
}

Core::~Core() = default;

Core::Resource* Core::FindResource(const api::KindSchema& kind) {
  const auto found = by_kind_.find(&kind);
  return found == by_kind_.end() ? nullptr : found->second;
}

api::ObjectPtr Core::Find(std::string_view group, std::string_view plural,
                          const std::string& key) const {
  const WatchCache* cache = FindCache(group, plural);
  return cache == nullptr ? nullptr : cache->Find(key);
}

const WatchCache* Core::FindCache(std::string_view group, std::string_view plural) const {
  auto found = resources_.find(ByName::Views(group, plural));
  return found == resources_.end() ? nullptr : &found->second->cache;
}

void Core::ForEachCache(
    const std::function<void(const api::KindSchema&, const WatchCache&)>& each) const {
  for (const auto& [name, resource] : resources_) each(*resource->kind, resource->cache);
}

StrategyContext Core::ContextFor(const Request& request) {
  return StrategyContext{
      .clock = options_.loop.clock(),
      .random = options_.random,
      .gates = options_.gates,
      .user = request.user,
      .verb = request.verb,
      .lookup = [this](std::string_view group, std::string_view plural,
                       const std::string& key) { return Find(group, plural, key); },
      .authorize =
          [this, &request](std::string_view verb, std::string_view group, std::string_view resource,
                           std::string_view subresource, std::string_view namespace_,
                           std::string_view name) {
            return Authorize(
                {request.user, verb, group, resource, subresource, namespace_, name, {}});
          },
      .find_first = [this](
                        std::string_view group, std::string_view plural,
                        const std::function<bool(const api::Object&)>& matches) -> api::ObjectPtr {
        const WatchCache* cache = FindCache(group, plural);
        if (cache == nullptr) return nullptr;
        for (const auto& [key, object] : cache->objects()) {
          if (matches(*object)) return object;
        }
        return nullptr;
      },
      .visit =
          [this](std::string_view group, std::string_view plural, std::string_view namespace_,
                 const std::function<void(const api::ObjectPtr&)>& each) {
            const WatchCache* cache = FindCache(group, plural);
            if (cache == nullptr) return;
            const std::string prefix = KeyOf(namespace_, "");
            const auto& objects = cache->objects();
            for (auto it = objects.lower_bound(prefix);
                 it != objects.end() && it->first.starts_with(prefix); ++it) {
              each(it->second);
            }
          },
      .version = request.kind->version,
      .group = request.kind->group,
  };
}

Decision Core::Authorize(const Authorizer::Attributes& attributes) {
  if (options_.authorizer == nullptr) return Decision::Allow();
  return options_.authorizer->Check(attributes);
}

std::optional<Failure> Core::CheckAuthorized(const Request& request) {
  const Decision decision =
      Authorize({request.user, VerbName(request.verb), request.kind->group, request.kind->plural,
                 request.subresource, request.namespace_, request.name, request.field_selector});
  if (decision.allowed) return std::nullopt;
  const std::string resource = request.subresource.empty()
                                   ? std::string(request.kind->plural)
                                   : StrCat(request.kind->plural, "/", request.subresource);
  std::string text =
      StrCat("User ", Quote(request.user.name), " cannot ", VerbName(request.verb), " resource ",
             Quote(resource), " in API group ", Quote(request.kind->group));
  if (!request.namespace_.empty()) {
    text += StrCat(" in the namespace ", Quote(request.namespace_));
  } else {
    text += " at the cluster scope";
  }
  if (!decision.reason.empty()) text += StrCat(": ", decision.reason);
  return ForbiddenFailure(*request.kind, request.name, text);
}

std::function<void(Response)> Core::InVersionOf(const api::KindSchema* kind,
                                                std::function<void(Response)> done) {
  if (IsConvertedByWebhook(*kind)) return InWebhookVersion(kind, std::move(done));
  return [kind, done = std::move(done)](Response response) {
    const WorkBudget unlimited(WorkBudget::kUnlimited);
    if (response.object != nullptr) response.object = ConvertObjectTo(response.object, *kind);
    for (api::ObjectPtr& item : response.items) item = ConvertObjectTo(item, *kind);
    done(std::move(response));
  };
}

void Core::ListForWatch(Request watch, std::function<void(Response)> done) {
  options_.loop.AssertInLoop();
  if (is_shared_) {
    return WhenFresh(lifetime_.Guard([this, watch = std::move(watch), done = std::move(done)](
                                         std::optional<Failure> failure) mutable {
      if (failure) return done(Response::Failed(std::move(*failure)));
      ListFresh(std::move(watch), std::move(done));
    }));
  }
  ListFresh(std::move(watch), std::move(done));
}

void Core::ListFresh(Request watch, std::function<void(Response)> done) {
  if (std::optional<Failure> failure = CheckAuthorized(watch)) {
    return done(Response::Failed(std::move(*failure)));
  }
  Resource* resource = FindResource(*watch.kind);
  if (resource == nullptr) {
    return done(Response::Failed(MethodNotAllowedFailure(*watch.kind, "watch")));
  }
  if (IsConverted(*watch.kind, *resource)) done = InVersionOf(watch.kind, std::move(done));
  watch.verb = Verb::kList;
  List(*resource, std::move(watch), std::move(done));
}

void Core::Handle(Request request, std::function<void(Response)> done) {
  options_.loop.AssertInLoop();
  // "0" accepts any state.
  if (!is_shared_ || request.resource_version == "0") {
    return HandleFresh(std::move(request), std::move(done));
  }
  WhenFresh(lifetime_.Guard([this, request = std::move(request),
                             done = std::move(done)](std::optional<Failure> failure) mutable {
    if (failure) return done(Response::Failed(std::move(*failure)));
    HandleFresh(std::move(request), std::move(done));
  }));
}

void Core::HandleFresh(Request request, std::function<void(Response)> done) {
  const WorkBudget budget(kMaxSteps);
  if (std::optional<Failure> failure = CheckAuthorized(request)) {
    done(Response::Failed(std::move(*failure)));
    return;
  }
  Resource* resource = FindResource(*request.kind);
  if (options_.answerer != nullptr && request.verb == Verb::kCreate &&
      (resource == nullptr || !request.subresource.empty())) {
    if (request.subresource == "token" && (IsConcerned(*request.kind) || HasActionStep(request))) {
      return IssueToken(std::move(request), std::move(done));
    }
    Response response;
    if (options_.answerer->Answer(request, response)) return done(std::move(response));
  }
  if (resource == nullptr && request.verb == Verb::kCreate && request.kind->group.empty() &&
      request.kind->kind == "Binding") {
    return BindNamed(std::move(request), std::move(done));
  }
  if (resource == nullptr) {
    done(Response::Failed(MethodNotAllowedFailure(*request.kind, VerbName(request.verb))));
    return;
  }
  if (!resource->is_served ||
      (!request.subresource.empty() && !HasSubresource(*request.kind, request.subresource))) {
    done(Response::Failed(api::StatusNoSuchPath()));
    return;
  }
  if (request.kind->family != nullptr) {
    if (std::optional<Failure> failure = CheckCustomRequest(*resource, request)) {
      return done(Response::Failed(std::move(*failure)));
    }
  } else if (resource == definitions_) {
    if (std::optional<Failure> failure = CheckDefinitionRoom(request)) {
      return done(Response::Failed(std::move(*failure)));
    }
  }
  if (IsConverted(*request.kind, *resource)) {
    // Everything below uses the storage version; the client gets its own.
    done = InVersionOf(request.kind, std::move(done));
  }
  if (!unreadable_.empty() && !request.name.empty()) {
    if (std::optional<Failure> failure =
            FindUnreadable(*resource, KeyOf(request.namespace_, request.name))) {
      if (request.verb == Verb::kDelete && request.ignore_read_error) {
        return DeleteUnreadable(*resource, request, std::move(done));
      }
      return done(Response::Failed(std::move(*failure)));
    }
  }
  const bool plain = request.subresource.empty() || request.subresource == "status";
  switch (request.verb) {
    case Verb::kGet:
      if (plain || request.subresource == "resize" || request.subresource == "approval" ||
          request.subresource == "ephemeralcontainers") {
        return done(Get(*resource, request));
      }
      if (request.subresource == "scale") {
        return GetScale(request, Get(*resource, request), done);
      }
      break;
    case Verb::kList:
      if (request.subresource.empty()) {
        if (!unreadable_.empty()) {
          std::vector<std::string> warnings;
          WarnOfUnreadable(*resource, request, warnings);
          done = [warnings = std::move(warnings), done = std::move(done)](Response response) {
            response.warnings = warnings;
            done(std::move(response));
          };
        }
        return List(*resource, std::move(request), std::move(done));
      }
      break;
    case Verb::kCreate:
      if (request.subresource == "binding") {
        return Bind(*resource, std::move(request), std::move(done));
      }
      if (request.subresource == "eviction") {
        return Evict(*resource, std::move(request), std::move(done));
      }
      if (request.subresource.empty()) {
        return Create(*resource, std::move(request), std::move(done));
      }
      break;
    case Verb::kUpdate:
    case Verb::kPatch:
      if (std::optional<Failure> failure = CheckPatchOptions(request)) {
        return done(Response::Failed(std::move(*failure)));
      }
      if (request.subresource == "scale") {
        return Rescale(*resource, std::move(request), std::move(done));
      }
      if (plain || request.subresource == "finalize" || request.subresource == "resize" ||
          request.subresource == "approval" || request.subresource == "ephemeralcontainers") {
        return Update(*resource, std::move(request), std::move(done));
      }
      break;
    case Verb::kDelete:
      if (request.subresource.empty()) {
        return Delete(*resource, std::move(request), std::move(done));
      }
      break;
    case Verb::kDeleteCollection:
      if (request.subresource.empty()) {
        return DeleteCollection(*resource, std::move(request), std::move(done));
      }
      break;
    case Verb::kWatch:
    case Verb::kNone:
      break;
  }
  done(Response::Failed(MethodNotAllowedFailure(*request.kind, VerbName(request.verb))));
}

}  // namespace drakkar::apiserver
