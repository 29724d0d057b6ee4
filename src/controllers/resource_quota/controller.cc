#include "controllers/resource_quota/controller.h"

#include <algorithm>

#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "claims/pod_claims.h"
#include "controllers/resource_quota/planner.h"

namespace drakkar::controllers {
namespace {

const quota::ResourceName kPods{"", "pods"};
const quota::ResourceName kClaims{"resource.k8s.io", "resourceclaims"};

bool CanBeCounted(const api::KindSchema& kind) {
  return kind.namespaced && std::ranges::find(kind.verbs, "watch") != kind.verbs.end();
}

}  // namespace

ResourceQuotaController::ResourceQuotaController(Options options)
    : options_(std::move(options)),
      client_(options_.client),
      queue_(options_.loop, options_.random, {"resourcequota"},
             [this](const std::string& key, Done done) { Sync(key, std::move(done)); }) {
  for (client::Informer* informer : options_.shared) {
    const quota::ResourceName name{std::string(informer->kind().group),
                                   std::string(informer->kind().plural)};
    followed_[name] = informer;
    Watch(name, *informer);
  }
  options_.quotas.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& quota) { queue_.Add(quota->qualified_name()); },
       .on_update =
           [this](const api::ObjectPtr& before, const api::ObjectPtr& quota) {
             if (!api::Equal((*before)["spec"], (*quota)["spec"])) {
               counted_.erase(quota->qualified_name());
               queue_.Add(quota->qualified_name());
             }
           },
       .on_delete =
           [this](const api::ObjectPtr& quota) { counted_.erase(quota->qualified_name()); }});
}

client::Informer* ResourceQuotaController::Follow(const quota::ResourceName& resource) {
  const auto found = followed_.find(resource);
  if (found != followed_.end()) return found->second;
  const api::KindSchema* kind = nullptr;
  for (const api::KindSchema& each : api::AllKinds()) {
    const bool is_it = each.group == resource.group && each.plural == resource.plural;
    if (is_it && CanBeCounted(each)) kind = &each;
  }
  if (const auto custom = custom_.find(resource); kind == nullptr && custom != custom_.end()) {
    kind = custom->second;
  }
  if (kind == nullptr) return nullptr;
  own_.push_back(std::make_unique<client::Informer>(
      options_.loop, options_.random, client_,
      client::Informer::Options{.collection = {kind, "", "", ""}, .may_be_missing = true}));
  client::Informer* made = own_.back().get();
  followed_[resource] = made;
  Watch(resource, *made);
  made->Start();
  return made;
}

void ResourceQuotaController::Discover(const std::string& key, Done done) {
  next_discovery_ = options_.loop.clock().Monotonic() + kDiscovery;
  client_.Discover([this, key, done = std::move(done)](Result<client::ServedKinds> served) {
    if (!served.ok()) return done(served.error());
    for (const api::KindSchema* kind : served->kinds) {
      if (!CanBeCounted(*kind)) continue;
      custom_[{std::string(kind->group), std::string(kind->plural)}] = kind;
    }
    done(Ok());
    queue_.Add(key);
  });
}

void ResourceQuotaController::Watch(const quota::ResourceName& resource,
                                    client::Informer& informer) {
  const auto changed = [this, resource](const api::ObjectPtr& object) {
    OnObject(resource, object->namespace_());
  };
  informer.AddHandlers(
      {.on_add = changed,
       .on_update =
           [this, changed](const api::ObjectPtr& before, const api::ObjectPtr& after) {
             if (options_.quotas.objects().empty()) return;  // before comparing specs
             // Usage depends only on the spec, except for the end of a pod and the claim for its
             // extended resources.
             if (api::Equal((*before)["spec"], (*after)["spec"]) &&
                 (*before)["status"]["phase"].str() == (*after)["status"]["phase"].str() &&
                 claims::ExtendedResourceClaim(before->root()) ==
                     claims::ExtendedResourceClaim(after->root())) {
               return;
             }
             changed(after);
           },
       .on_delete = changed});
  informer.OnSynced(lifetime_.Guard([this] {
    for (const auto& [name, quota] : options_.quotas.objects()) queue_.Add(name);
  }));
}

client::Informer& ResourceQuotaController::FollowClasses() {
  if (classes_ != nullptr) return *classes_;
  own_.push_back(std::make_unique<client::Informer>(
      options_.loop, options_.random, client_,
      client::Informer::Options{
          .collection = {api::FindKind("resource.k8s.io", "v1", "DeviceClass"), "", "", ""},
          .may_be_missing = true}));
  classes_ = own_.back().get();
  const auto recount = lifetime_.Guard([this] {
    for (const auto& [name, quota] : options_.quotas.objects()) queue_.Add(name);
  });
  classes_->AddHandlers(
      {.on_add = [recount](const api::ObjectPtr&) { recount(); },
       .on_update = [recount](const api::ObjectPtr&, const api::ObjectPtr&) { recount(); },
       .on_delete = [recount](const api::ObjectPtr&) { recount(); }});
  classes_->OnSynced(recount);
  classes_->Start();
  return *classes_;
}

quota::Surroundings ResourceQuotaController::Around() {
  quota::Surroundings around{.now = options_.loop.clock().Now()};
  around.find_class = [this](const std::string& name) { return FollowClasses().Find(name); };
  around.find_pod = [this](const std::string& key) {
    const client::Informer* pods = Follow(kPods);
    return pods == nullptr ? nullptr : pods->Find(key);
  };
  around.visit_claims = [this](std::string_view ns,
                               const std::function<void(const api::Object&)>& each) {
    Visit(kClaims, ns, each);
  };
  return around;
}

void ResourceQuotaController::Visit(const quota::ResourceName& resource, std::string_view ns,
                                    const std::function<void(const api::Object&)>& each) {
  const client::Informer* informer = Follow(resource);
  if (informer == nullptr) return;
  const std::string prefix = StrCat(ns, "/");
  const auto& objects = informer->objects();
  for (auto it = objects.lower_bound(prefix);
       it != objects.end() && std::string_view(it->first).starts_with(prefix); ++it) {
    each(*it->second);
  }
}

void ResourceQuotaController::OnObject(const quota::ResourceName&, std::string_view name_space) {
  const std::string prefix = StrCat(name_space, "/");
  const auto& quotas = options_.quotas.objects();
  for (auto each = quotas.lower_bound(prefix);
       each != quotas.end() && each->first.starts_with(prefix); ++each) {
    queue_.Add(each->first);
  }
}

void ResourceQuotaController::Sync(const std::string& key, Done done) {
  const api::ObjectPtr quota = options_.quotas.Find(key);
  if (quota == nullptr) return done(Ok());
  const MonotonicTime now = options_.loop.clock().Monotonic();
  const auto counted = counted_.find(key);
  if (counted != counted_.end() && now - counted->second < kInterval) {
    const Duration wait = counted->second + kInterval - now;
    done(Ok());
    return queue_.AddAfter(key, wait);
  }
  bool is_unknown = false;
  bool is_listed = true;  // otherwise the first list queues the quota again
  for (const quota::ResourceName& resource : CountedBy(*quota)) {
    const client::Informer* informer = Follow(resource);
    is_unknown = is_unknown || informer == nullptr;
    is_listed = is_listed && (informer == nullptr || informer->has_synced());
    if (resource == kClaims) is_listed = FollowClasses().has_synced() && is_listed;
  }
  if (!is_listed) return done(Ok());
  if (is_unknown && now >= next_discovery_) return Discover(key, std::move(done));
  counted_[key] = now;
  std::optional<api::Draft> status = PlanQuotaStatus(
      *quota,
      [&](const quota::ResourceName& resource,
          const std::function<void(const api::Object&)>& each) {
        Visit(resource, quota->namespace_(), each);
      },
      Around());
  const Duration again = is_unknown ? kDiscovery : kRecount;
  const auto finish = [this, key, again, done = std::move(done)](Result<void> result) {
    const bool ok = result.ok();  // failures are retried with backoff
    if (!ok) counted_.erase(key);
    done(std::move(result));
    if (ok) queue_.AddAfter(key, again);
  };
  if (!status) return finish(Ok());
  api::Draft body(quota->tree());
  body["status"] = std::move(*status);
  client_.Update({&options_.quotas.kind(), std::string(quota->namespace_()),
                  std::string(quota->name()), "status"},
                 body.Freeze(), {}, [finish](client::Reply reply) {
                   const bool over = reply.ok() || reply.error->code == ErrorCode::kNotFound;
                   finish(over ? Ok() : Result<void>(*reply.error));
                 });
}

}  // namespace drakkar::controllers
