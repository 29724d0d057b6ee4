#include "controllers/controllers.h"

#include "api/scheme/scheme.h"
#include "client/informer.h"
#include "controllers/garbage_collector/controller.h"
#include "controllers/namespace/controller.h"
#include "controllers/pod_gc/controller.h"
#include "controllers/resource_claim/controller.h"
#include "controllers/service_account/controller.h"

namespace drakkar::controllers {

struct Controllers::Impl {
  static client::Informer::Options All(std::string_view group, std::string_view kind) {
    return {.collection = {api::FindKind(group, "v1", kind), "", "", ""}};
  }

  explicit Impl(Options o)
      : pods(o.loop, o.random, o.client, All("", "Pod")),
        nodes(o.loop, o.random, o.client, All("", "Node")),
        namespaces(o.loop, o.random, o.client, All("", "Namespace")),
        accounts(o.loop, o.random, o.client, All("", "ServiceAccount")),
        authorities(o.loop, o.random, o.client,
                    {.collection = {api::FindKind("", "v1", "ConfigMap"), "", "", ""},
                     .field_selector = ServiceAccountController::AuthoritySelector()}),
        claims(o.loop, o.random, o.client, All("resource.k8s.io", "ResourceClaim")),
        templates(o.loop, o.random, o.client, All("resource.k8s.io", "ResourceClaimTemplate")),
        resource_claim({o.loop, o.random, o.client, o.warn, o.metrics, pods, claims, templates}),
        pod_gc(o.loop, o.random, o.client, pods, nodes),
        name_space(o.loop, o.random, o.client, namespaces),
        service_account(o.loop, o.random, o.client, namespaces, accounts, authorities, o.ca_pem),
        garbage_collector(o.loop, o.random, o.client,
                          {&pods, &nodes, &namespaces, &accounts, &claims, &templates}) {}

  // Informers first: they outlive the controllers that use them.
  client::Informer pods, nodes, namespaces, accounts, authorities, claims, templates;
  ResourceClaimController resource_claim;
  PodGarbageCollector pod_gc;
  NamespaceController name_space;
  ServiceAccountController service_account;
  GarbageCollector garbage_collector;
};

Controllers::Controllers(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Controllers::~Controllers() = default;

void Controllers::Start() {
  for (client::Informer* informer :
       {&impl_->nodes, &impl_->accounts, &impl_->authorities, &impl_->namespaces, &impl_->templates,
        &impl_->claims, &impl_->pods}) {
    informer->Start();
  }
  impl_->garbage_collector.Start();
}

bool Controllers::has_synced() const {
  return impl_->nodes.has_synced() && impl_->namespaces.has_synced() &&
         impl_->templates.has_synced() && impl_->claims.has_synced() && impl_->pods.has_synced();
}

}  // namespace drakkar::controllers
