#include "controllers/endpoints/controller.h"

#include <memory>

#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "controllers/workload/pod_facts.h"

namespace drakkar::controllers {

namespace {

// Whether two versions of a pod are equal in everything that endpoints show.
bool IsSameForServices(const api::Object& before, const api::Object& after) {
  const auto ready = [](const api::Object& pod) { return IsReady(pod); };
  return before.is_being_deleted() == after.is_being_deleted() &&
         IsTerminal(before) == IsTerminal(after) && ready(before) == ready(after) &&
         before["spec"]["nodeName"].str() == after["spec"]["nodeName"].str() &&
         before["status"]["podIP"].str() == after["status"]["podIP"].str() &&
         api::Equal(before["status"]["podIPs"], after["status"]["podIPs"]) &&
         api::Equal(before["metadata"]["labels"], after["metadata"]["labels"]);
}

Result<void> Accept(const client::Reply& reply) {
  if (reply.ok() || reply.error->code == ErrorCode::kNotFound || IsNamespaceTerminating(reply)) {
    return Ok();
  }
  return *reply.error;
}

}  // namespace

ServiceFollower::ServiceFollower(Options options,
                                 std::function<void(const std::string& service)> changed)
    : options_(options),
      selectors_(options.services, SelectorIndex::ReadMap),
      changed_(std::move(changed)) {
  options_.services.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& service) { changed_(service->qualified_name()); },
       .on_update = [this](const api::ObjectPtr&,
                           const api::ObjectPtr& after) { changed_(after->qualified_name()); },
       .on_delete =
           [this](const api::ObjectPtr& service) {
             Forget(service->qualified_name());
             changed_(service->qualified_name());
           }});
  options_.pods.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& pod) { OnPod(nullptr, pod); },
       .on_update = [this](const api::ObjectPtr& before,
                           const api::ObjectPtr& pod) { OnPod(before, pod); },
       .on_delete = [this](const api::ObjectPtr& pod) { OnPod(nullptr, pod); }});
  const auto all = [this] {
    for (const auto& [name, service] : options_.services.objects()) changed_(name);
  };
  options_.pods.OnSynced(all);
  options_.nodes.OnSynced(all);
}

bool ServiceFollower::has_synced() const {
  return options_.services.has_synced() && options_.pods.has_synced() &&
         options_.nodes.has_synced();
}

void ServiceFollower::OnPod(const api::ObjectPtr& before, const api::ObjectPtr& pod) {
  if (before != nullptr && IsSameForServices(*before, *pod)) return;
  for (const api::ObjectPtr& each : {before, pod}) {
    if (each == nullptr) continue;
    for (const std::string& name :
         selectors_.Matching(each->namespace_(), (*each)["metadata"]["labels"])) {
      changed_(name);
    }
  }
}

ServiceState ServiceFollower::StateOf(const api::Object& service) const {
  ServiceState state{.service = service, .find_node = [this](std::string_view name) {
                       return options_.nodes.Find(name);
                     }};
  const api::LabelSelector* selector = selectors_.Find(service.qualified_name());
  if (selector == nullptr) return state;
  const std::string prefix = StrCat(service.namespace_(), "/");
  const auto& pods = options_.pods.objects();
  for (auto each = pods.lower_bound(prefix);
       each != pods.end() && std::string_view(each->first).starts_with(prefix); ++each) {
    if (selector->Matches((*each->second)["metadata"]["labels"])) {
      state.pods.push_back(each->second);
    }
  }
  return state;
}

Duration ServiceFollower::UntilTurn(const std::string& service) {
  const MonotonicTime now = options_.loop.clock().Monotonic();
  const auto [found, is_new] = processed_.try_emplace(service, now);
  if (is_new) return Duration::zero();
  const Duration wait = found->second + kInterval - now;
  if (wait > Duration::zero()) return wait;
  found->second = now;
  return Duration::zero();
}

EndpointsController::EndpointsController(Options options)
    : options_(options),
      client_(options.client),
      queue_(options.loop, options.random, {"endpoint"},
             [this](const std::string& key, Done done) { Sync(key, std::move(done)); }),
      follower_({options.loop, options.services, options.pods, options.nodes},
                [this](const std::string& service) { queue_.Add(service); }) {
  const auto changed = [this](const api::ObjectPtr& object) {
    queue_.Add(object->qualified_name());
  };
  options_.endpoints.AddHandlers(
      {.on_update = [changed](const api::ObjectPtr&,
                              const api::ObjectPtr& after) { changed(after); },
       .on_delete = changed});
  options_.endpoints.OnSynced([this] {
    for (const auto& [name, service] : options_.services.objects()) queue_.Add(name);
  });
}

void EndpointsController::Sync(const std::string& key, Done done) {
  if (!follower_.has_synced() || !options_.endpoints.has_synced()) return done(Ok());
  const api::ObjectPtr service = options_.services.Find(key);
  const api::ObjectPtr before = options_.endpoints.Find(key);
  const api::KindSchema& kind = options_.endpoints.kind();
  if (service == nullptr) {
    // Only those that the controller created: others may be used without a Service.
    if (before == nullptr ||
        (*before)["metadata"]["labels"].Entry("endpoints.kubernetes.io/managed-by").str() !=
            "endpoint-controller") {
      return done(Ok());
    }
    return client_.Delete(
        {&kind, std::string(before->namespace_()), std::string(before->name()), ""},
        {.precondition_uid = std::string(before->uid())},
        [done = std::move(done)](client::Reply reply) { done(Accept(reply)); });
  }
  if (!SelectsPods(*service)) return done(Ok());
  if (const Duration wait = follower_.UntilTurn(key); wait > Duration::zero()) {
    done(Ok());
    return queue_.AddAfter(key, wait);
  }
  api::TreePtr body = PlanEndpoints(follower_.StateOf(*service), before.get());
  if (body == nullptr) return done(Ok());
  const auto answer = [this, service, done = std::move(done)](client::Reply reply) {
    if (!reply.ok()) {
      options_.events.Warning(service, "FailedToUpdateEndpoint",
                              StrCat("Failed to update endpoint ", service->qualified_name(), ": ",
                                     reply.error->message));
    }
    done(Accept(reply));
  };
  const std::string name_space(service->namespace_());
  if (before == nullptr) return client_.Create({&kind, name_space, "", ""}, body, {}, answer);
  client_.Update({&kind, name_space, std::string(service->name()), ""}, body, {}, answer);
}

EndpointSliceController::EndpointSliceController(Options options)
    : options_(options),
      client_(options.client),
      writer_({.loop = options.loop,
               .client = client_,
               .dependents = options.slices.informer(),
               .owner_kind = options.services.kind()}),
      queue_(options.loop, options.random, {"endpointslice"},
             [this](const std::string& key, Done done) { Sync(key, std::move(done)); }),
      follower_({options.loop, options.services, options.pods, options.nodes},
                [this](const std::string& service) { queue_.Add(service); }) {
  const auto changed = [this](const api::ObjectPtr& slice) {
    const std::string_view service = (*slice)["metadata"]["labels"].Entry(kServiceNameLabel).str();
    if (!service.empty()) queue_.Add(StrCat(slice->namespace_(), "/", service));
  };
  options_.slices.informer().AddHandlers(
      {.on_add = changed,
       .on_update = [changed](const api::ObjectPtr&,
                              const api::ObjectPtr& after) { changed(after); },
       .on_delete = changed});
  options_.services.AddHandlers(
      {.on_delete = [this](const api::ObjectPtr& service) { writer_.Forget(service->uid()); }});
  options_.slices.informer().OnSynced([this] {
    for (const auto& [name, service] : options_.services.objects()) queue_.Add(name);
  });
}

// A plan in progress.
struct EndpointSliceController::Work {
  SlicePlan plan;
  std::size_t waiting = 0;
  std::optional<Error> error;
  Done done;

  void Answer(const std::optional<Error>& failed) {
    if (failed && !error) error = failed;
    if (--waiting == 0) done(error ? Result<void>(*error) : Ok());
  }
};

void EndpointSliceController::Sync(const std::string& key, Done done) {
  const api::ObjectPtr service = options_.services.Find(key);
  // The garbage collector deletes the slices of a deleted Service.
  if (service == nullptr || !follower_.has_synced() || !options_.slices.informer().has_synced() ||
      !SelectsPods(*service) || !writer_.IsUpToDate(service->uid())) {
    return done(Ok());
  }
  if (const Duration wait = follower_.UntilTurn(key); wait > Duration::zero()) {
    done(Ok());
    return queue_.AddAfter(key, wait);
  }
  std::vector<api::ObjectPtr> slices;
  for (const auto& [name, slice] : options_.slices.Of(service->uid())) {
    if ((*slice)["metadata"]["labels"].Entry(kManagedByLabel).str() == kSliceManager &&
        !slice->is_being_deleted()) {
      slices.push_back(slice);
    }
  }
  auto work = std::make_shared<Work>();
  work->done = std::move(done);
  work->plan = PlanSlices(follower_.StateOf(*service), slices);
  work->waiting = 2 + work->plan.update.size();
  for (const SlicePlan::Update& update : work->plan.update) {
    writer_.Update(service, *update.slice, update.body, [work](client::Reply reply) {
      const Result<void> result = Accept(reply);
      work->Answer(result.ok() ? std::nullopt : std::optional<Error>(result.error()));
    });
  }
  const auto finished = [work](DependentWriter::Outcome outcome) { work->Answer(outcome.error); };
  writer_.Create(service, work->plan.create, finished);
  writer_.Delete(service, work->plan.remove, finished);
}

}  // namespace drakkar::controllers
