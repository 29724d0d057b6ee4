#include "controllers/controllers.h"

#include <map>
#include <optional>

#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "bootstrap/cluster_info.h"
#include "bootstrap/token.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "controllers/bootstrap/signer.h"
#include "controllers/bootstrap/token_cleaner.h"
#include "controllers/certificates/approver.h"
#include "controllers/certificates/cleaner.h"
#include "controllers/certificates/signer.h"
#include "controllers/cron_job/controller.h"
#include "controllers/daemon_set/controller.h"
#include "controllers/deployment/controller.h"
#include "controllers/device_taint_eviction/controller.h"
#include "controllers/disruption/controller.h"
#include "controllers/endpoints/controller.h"
#include "controllers/garbage_collector/controller.h"
#include "controllers/job/controller.h"
#include "controllers/namespace/controller.h"
#include "controllers/node_lifecycle/controller.h"
#include "controllers/pod_gc/controller.h"
#include "controllers/pool_status/controller.h"
#include "controllers/replica_set/controller.h"
#include "controllers/resource_claim/controller.h"
#include "controllers/resource_quota/controller.h"
#include "controllers/service_account/controller.h"
#include "controllers/stateful_set/controller.h"
#include "controllers/storage_version_migrator/controller.h"
#include "controllers/taint_eviction/controller.h"
#include "controllers/ttl_after_finished/controller.h"
#include "controllers/workload/owned_index.h"

namespace drakkar::controllers {
namespace {

// The client and event recorder of a controller: with its own service account if there is a client
// for it, and events in its own name.
struct Actor {
  Actor(const Controllers::Options& options, std::string_view account, std::string component)
      : own(options.client_for ? options.client_for(account) : nullptr),
        client(own != nullptr ? *own : options.client),
        events({.loop = options.loop, .client = client, .component = std::move(component)}) {}

  const std::unique_ptr<client::Client> own;  // null: uses the shared one
  client::Client& client;
  client::EventRecorder events;
};

}  // namespace

struct Controllers::Impl {
  static client::Informer::Options All(std::string_view group, std::string_view kind) {
    return {.collection = {api::FindKind(group, "v1", kind), "", "", ""}};
  }

  explicit Impl(Options o)
      : options(std::move(o)),
        pods(options.loop, options.random, options.client, All("", "Pod")),
        nodes(options.loop, options.random, options.client, All("", "Node")),
        namespaces(options.loop, options.random, options.client, All("", "Namespace")),
        accounts(options.loop, options.random, options.client, All("", "ServiceAccount")),
        authorities(options.loop, options.random, options.client,
                    {.collection = {api::FindKind("", "v1", "ConfigMap"), "", "", ""},
                     .field_selector = ServiceAccountController::AuthoritySelector()}),
        claims(options.loop, options.random, options.client,
               All("resource.k8s.io", "ResourceClaim")),
        templates(options.loop, options.random, options.client,
                  All("resource.k8s.io", "ResourceClaimTemplate")),
        pod_groups(
            options.loop, options.random, options.client,
            {.collection = {api::FindKind("scheduling.k8s.io", "v1beta1", "PodGroup"), "", "", ""},
             .may_be_missing = true}),
        slices(options.loop, options.random, options.client,
               All("resource.k8s.io", "ResourceSlice")),
        taint_rules(
            options.loop, options.random, options.client,
            {.collection = {api::FindKind("resource.k8s.io", "v1", "DeviceTaintRule"), "", "", ""},
             .may_be_missing = true}),
        deployments(options.loop, options.random, options.client, All("apps", "Deployment")),
        replica_sets(options.loop, options.random, options.client, All("apps", "ReplicaSet")),
        replication_controllers(options.loop, options.random, options.client,
                                All("", "ReplicationController")),
        jobs(options.loop, options.random, options.client, All("batch", "Job")),
        cron_jobs(options.loop, options.random, options.client, All("batch", "CronJob")),
        daemon_sets(options.loop, options.random, options.client, All("apps", "DaemonSet")),
        stateful_sets(options.loop, options.random, options.client, All("apps", "StatefulSet")),
        revisions(options.loop, options.random, options.client, All("apps", "ControllerRevision")),
        volume_claims(options.loop, options.random, options.client,
                      All("", "PersistentVolumeClaim")),
        leases(options.loop, options.random, options.client,
               {.collection = {api::FindKind("coordination.k8s.io", "v1", "Lease"),
                               "kube-node-lease", "", ""}}),
        services(options.loop, options.random, options.client, All("", "Service")),
        endpoints(options.loop, options.random, options.client, All("", "Endpoints")),
        endpoint_slices(options.loop, options.random, options.client,
                        All("discovery.k8s.io", "EndpointSlice")),
        quotas(options.loop, options.random, options.client, All("", "ResourceQuota")),
        budgets(options.loop, options.random, options.client, All("policy", "PodDisruptionBudget")),
        pool_requests(options.loop, options.random, options.client,
                      {.collection = {api::FindKind("resource.k8s.io", "v1alpha3",
                                                    "ResourcePoolStatusRequest"),
                                      "", "", ""},
                       .may_be_missing = true}),
        signing_requests(
            options.loop, options.random, options.client,
            {.collection = {api::FindKind("certificates.k8s.io", "v1", "CertificateSigningRequest"),
                            "", "", ""},
             .may_be_missing = true}),
        migrations(options.loop, options.random, options.client,
                   {.collection = {api::FindKind("storagemigration.k8s.io", "v1",
                                                 "StorageVersionMigration"),
                                   "", "", ""},
                    .may_be_missing = true}),
        token_secrets(options.loop, options.random, options.client,
                      {.collection = {api::FindKind("", "v1", "Secret"),
                                      std::string(bootstrap::kSecretNamespace), "", ""},
                       .field_selector = StrCat("type=", bootstrap::kSecretType)}),
        cluster_info(options.loop, options.random, options.client,
                     {.collection = {api::FindKind("", "v1", "ConfigMap"),
                                     std::string(bootstrap::kInfoNamespace), "", ""},
                      .field_selector = StrCat("metadata.name=", bootstrap::kInfoName)}),
        pods_by_owner(pods),
        sets_by_owner(replica_sets),
        jobs_by_owner(jobs),
        revisions_by_owner(revisions),
        slices_by_owner(endpoint_slices),
        pods_by_node(pods) {
    if (Runs("resourceclaim-controller")) {
      Actor& actor = As("resource-claim-controller", "resource_claim");
      auto warn = options.warn;
      if (!warn) {
        warn = [&actor](const api::ObjectPtr& object, std::string_view reason,
                        std::string message) {
          actor.events.Warning(object, reason, std::move(message));
        };
      }
      resource_claim.emplace(ResourceClaimController::Options{
          options.loop, options.random, actor.client, std::move(warn), options.metrics, pods,
          options.pod_group_claims ? &pod_groups : nullptr, claims, templates});
    }
    if (Runs("pod-garbage-collector-controller")) {
      pod_gc.emplace(options.loop, options.random,
                     As("pod-garbage-collector", "pod-garbage-collector").client, pods, nodes);
    }
    if (Runs("namespace-controller")) {
      name_space.emplace(options.loop, options.random,
                         As("namespace-controller", "namespace-controller").client, namespaces);
    }
    if (Runs("serviceaccount-controller")) {
      service_account.emplace(options.loop, options.random, options.client, namespaces, accounts,
                              authorities, options.ca_pem);
    }
    if (Runs("device-taint-eviction-controller")) {
      Actor& actor = As("device-taint-eviction-controller", "device-taint-eviction");
      device_taint_eviction.emplace(
          DeviceTaintEvictionController::Options{.loop = options.loop,
                                                 .random = options.random,
                                                 .client = actor.client,
                                                 .events = actor.events,
                                                 .metrics = options.metrics,
                                                 .pods = pods,
                                                 .claims = claims,
                                                 .slices = slices,
                                                 .rules = taint_rules});
    }
    if (Runs("replicaset-controller")) {
      Actor& actor = As("replicaset-controller", "replicaset-controller");
      replica_set.emplace(ReplicaSetController::Options{.loop = options.loop,
                                                        .random = options.random,
                                                        .client = actor.client,
                                                        .events = actor.events,
                                                        .sets = replica_sets,
                                                        .pods = pods_by_owner,
                                                        .siblings = &sets_by_owner});
    }
    if (Runs("deployment-controller")) {
      Actor& actor = As("deployment-controller", "deployment-controller");
      deployment.emplace(DeploymentController::Options{.loop = options.loop,
                                                       .random = options.random,
                                                       .client = actor.client,
                                                       .events = actor.events,
                                                       .deployments = deployments,
                                                       .sets = sets_by_owner,
                                                       .pods = pods_by_owner});
    }
    if (Runs("replicationcontroller-controller")) {
      Actor& actor = As("replication-controller", "replication-controller");
      replication_controller.emplace(ReplicaSetController::Options{
          .loop = options.loop,
          .random = options.random,
          .client = actor.client,
          .events = actor.events,
          .sets = replication_controllers,
          .pods = pods_by_owner,
          .kind = ReplicaSetController::Kind::kReplicationController});
    }
    if (Runs("job-controller")) {
      Actor& actor = As("job-controller", "job-controller");
      job.emplace(JobController::Options{.loop = options.loop,
                                         .random = options.random,
                                         .client = actor.client,
                                         .events = actor.events,
                                         .jobs = jobs,
                                         .pods = pods_by_owner});
    }
    if (Runs("cronjob-controller")) {
      Actor& actor = As("cronjob-controller", "cronjob-controller");
      cron_job.emplace(CronJobController::Options{.loop = options.loop,
                                                  .random = options.random,
                                                  .client = actor.client,
                                                  .events = actor.events,
                                                  .cron_jobs = cron_jobs,
                                                  .jobs = jobs_by_owner});
    }
    if (Runs("daemonset-controller")) {
      Actor& actor = As("daemon-set-controller", "daemonset-controller");
      daemon_set.emplace(DaemonSetController::Options{.loop = options.loop,
                                                      .random = options.random,
                                                      .client = actor.client,
                                                      .events = actor.events,
                                                      .sets = daemon_sets,
                                                      .nodes = nodes,
                                                      .pods = pods_by_owner,
                                                      .revisions = revisions_by_owner});
    }
    if (Runs("statefulset-controller")) {
      Actor& actor = As("statefulset-controller", "statefulset-controller");
      stateful_set.emplace(StatefulSetController::Options{.loop = options.loop,
                                                          .random = options.random,
                                                          .client = actor.client,
                                                          .events = actor.events,
                                                          .sets = stateful_sets,
                                                          .volume_claims = volume_claims,
                                                          .pods = pods_by_owner,
                                                          .revisions = revisions_by_owner});
    }
    if (Runs("node-lifecycle-controller")) {
      Actor& actor = As("node-controller", "node-controller");
      node_lifecycle.emplace(NodeLifecycleController::Options{.loop = options.loop,
                                                              .random = options.random,
                                                              .client = actor.client,
                                                              .events = actor.events,
                                                              .nodes = nodes,
                                                              .leases = leases,
                                                              .pods = pods_by_node});
    }
    if (Runs("taint-eviction-controller")) {
      Actor& actor = As("node-controller", "node-controller");
      taint_eviction.emplace(TaintEvictionController::Options{.loop = options.loop,
                                                              .random = options.random,
                                                              .client = actor.client,
                                                              .events = actor.events,
                                                              .metrics = options.metrics,
                                                              .nodes = nodes,
                                                              .pods = pods_by_node});
    }
    if (Runs("endpoints-controller")) {
      Actor& actor = As("endpoint-controller", "endpoint-controller");
      endpoints_controller.emplace(EndpointsController::Options{.loop = options.loop,
                                                                .random = options.random,
                                                                .client = actor.client,
                                                                .events = actor.events,
                                                                .services = services,
                                                                .pods = pods,
                                                                .nodes = nodes,
                                                                .endpoints = endpoints});
    }
    if (Runs("endpointslice-controller")) {
      Actor& actor = As("endpointslice-controller", "endpoint-slice-controller");
      endpoint_slice.emplace(EndpointSliceController::Options{.loop = options.loop,
                                                              .random = options.random,
                                                              .client = actor.client,
                                                              .events = actor.events,
                                                              .services = services,
                                                              .pods = pods,
                                                              .nodes = nodes,
                                                              .slices = slices_by_owner});
    }
    if (Runs("resourcequota-controller")) {
      resource_quota.emplace(ResourceQuotaController::Options{
          .loop = options.loop,
          .random = options.random,
          .client = As("resourcequota-controller", "resourcequota-controller").client,
          .quotas = quotas,
          .shared = {&pods, &claims, &volume_claims, &services, &replication_controllers}});
    }
    if (Runs("disruption-controller")) {
      Actor& actor = As("disruption-controller", "controllermanager");
      disruption.emplace(DisruptionController::Options{
          .loop = options.loop,
          .random = options.random,
          .client = actor.client,
          .events = actor.events,
          .budgets = budgets,
          .pods = pods,
          .owners = {&replica_sets, &replication_controllers, &stateful_sets, &deployments}});
    }
    if (Runs("resourcepoolstatusrequest-controller")) {
      pool_status.emplace(PoolStatusController::Options{
          .loop = options.loop,
          .random = options.random,
          .client =
              As("resourcepoolstatusrequest-controller", "resourcepoolstatusrequest-controller")
                  .client,
          .requests = pool_requests,
          .slices = slices,
          .claims = claims,
          .rules = taint_rules});
    }
    if (Runs("ttl-after-finished-controller")) {
      ttl_after_finished.emplace(TtlAfterFinishedController::Options{
          .loop = options.loop,
          .random = options.random,
          .client = As("ttl-after-finished-controller", "ttl-after-finished-controller").client,
          .jobs = jobs});
    }
    if (Runs("certificatesigningrequest-approving-controller")) {
      Actor& actor = As("certificate-controller", "certificate-controller");
      certificate_approver.emplace(CertificateApprover::Options{.loop = options.loop,
                                                                .random = options.random,
                                                                .client = actor.client,
                                                                .events = actor.events,
                                                                .requests = signing_requests,
                                                                .nodes = nodes,
                                                                .services = services,
                                                                .info = cluster_info});
    }
    if (Runs("certificatesigningrequest-signing-controller") && options.signing) {
      certificate_signer.emplace(CertificateSigner::Options{
          .loop = options.loop,
          .random = options.random,
          .client = As("certificate-controller", "certificate-controller").client,
          .requests = signing_requests,
          .authority = *options.signing});
    }
    if (Runs("certificatesigningrequest-cleaner-controller")) {
      certificate_cleaner.emplace(CertificateCleaner::Options{
          .loop = options.loop,
          .random = options.random,
          .client = As("certificate-controller", "certificate-controller").client,
          .requests = signing_requests});
    }
    if (Runs("storage-version-migrator-controller")) {
      storage_version_migrator.emplace(StorageVersionMigrator::Options{
          .loop = options.loop,
          .random = options.random,
          .client = As("storage-version-migrator-controller", "storage-version-migrator-controller")
                        .client,
          .migrations = migrations});
    }
    if (Runs("bootstrap-signer-controller")) {
      bootstrap_signer.emplace(
          BootstrapSigner::Options{.loop = options.loop,
                                   .random = options.random,
                                   .client = As("bootstrap-signer", "bootstrap-signer").client,
                                   .info = cluster_info,
                                   .secrets = token_secrets});
    }
    if (Runs("token-cleaner-controller")) {
      token_cleaner.emplace(
          TokenCleaner::Options{.loop = options.loop,
                                .random = options.random,
                                .client = As("token-cleaner", "token-cleaner").client,
                                .secrets = token_secrets});
    }
    if (Runs("garbage-collector-controller")) {
      garbage_collector.emplace(
          options.loop, options.random,
          As("generic-garbage-collector", "garbage-collector-controller").client,
          std::vector<client::Informer*>{&pods,          &nodes,        &namespaces,
                                         &accounts,      &claims,       &templates,
                                         &deployments,   &replica_sets, &replication_controllers,
                                         &jobs,          &cron_jobs,    &daemon_sets,
                                         &stateful_sets, &revisions,    &volume_claims,
                                         &services,      &endpoints,    &endpoint_slices,
                                         &quotas,        &budgets});
    }
  }

  bool Runs(std::string_view name) const { return options.selection.Runs(name); }

  Actor& As(std::string_view account, std::string component) {
    std::unique_ptr<Actor>& actor = actors[std::string(account)];
    if (actor == nullptr) actor = std::make_unique<Actor>(options, account, std::move(component));
    return *actor;
  }

  // In the order in which they are started: owners before their dependents.
  std::vector<client::Informer*> Informers() {
    std::vector<client::Informer*> informers = {
        &nodes,       &accounts,      &authorities,   &namespaces,
        &templates,   &slices,        &taint_rules,   &claims,
        &deployments, &replica_sets,  &cron_jobs,     &replication_controllers,
        &daemon_sets, &stateful_sets, &revisions,     &volume_claims,
        &leases,      &services,      &endpoints,     &endpoint_slices,
        &quotas,      &budgets,       &pool_requests, &signing_requests,
        &migrations,  &token_secrets, &cluster_info,  &jobs};
    if (options.pod_group_claims) informers.push_back(&pod_groups);
    informers.push_back(&pods);
    return informers;
  }

  const Options options;
  // Informers and indexes come first, so that they outlive the controllers that use them.
  client::Informer pods, nodes, namespaces, accounts, authorities, claims, templates, pod_groups,
      slices, taint_rules;
  client::Informer deployments, replica_sets, replication_controllers, jobs, cron_jobs;
  client::Informer daemon_sets, stateful_sets, revisions, volume_claims, leases;
  client::Informer services, endpoints, endpoint_slices, quotas, budgets, pool_requests;
  client::Informer signing_requests, migrations, token_secrets, cluster_info;
  OwnedIndex pods_by_owner, sets_by_owner, jobs_by_owner, revisions_by_owner, slices_by_owner;
  PodsByNode pods_by_node;
  std::map<std::string, std::unique_ptr<Actor>> actors;  // by account
  std::optional<ResourceClaimController> resource_claim;
  std::optional<PodGarbageCollector> pod_gc;
  std::optional<NamespaceController> name_space;
  std::optional<ServiceAccountController> service_account;
  std::optional<DeviceTaintEvictionController> device_taint_eviction;
  std::optional<ReplicaSetController> replica_set;
  std::optional<DeploymentController> deployment;
  std::optional<ReplicaSetController> replication_controller;
  std::optional<JobController> job;
  std::optional<CronJobController> cron_job;
  std::optional<DaemonSetController> daemon_set;
  std::optional<StatefulSetController> stateful_set;
  std::optional<NodeLifecycleController> node_lifecycle;
  std::optional<TaintEvictionController> taint_eviction;
  std::optional<EndpointsController> endpoints_controller;
  std::optional<EndpointSliceController> endpoint_slice;
  std::optional<ResourceQuotaController> resource_quota;
  std::optional<DisruptionController> disruption;
  std::optional<PoolStatusController> pool_status;
  std::optional<TtlAfterFinishedController> ttl_after_finished;
  std::optional<CertificateApprover> certificate_approver;
  std::optional<CertificateSigner> certificate_signer;
  std::optional<CertificateCleaner> certificate_cleaner;
  std::optional<BootstrapSigner> bootstrap_signer;
  std::optional<TokenCleaner> token_cleaner;
  std::optional<StorageVersionMigrator> storage_version_migrator;
  std::optional<GarbageCollector> garbage_collector;
};

Controllers::Controllers(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Controllers::~Controllers() = default;

void Controllers::Start() {
  for (client::Informer* informer : impl_->Informers()) informer->Start();
  if (impl_->garbage_collector) impl_->garbage_collector->Start();
}

bool Controllers::has_synced() const {
  for (const client::Informer* informer : impl_->Informers()) {
    if (!informer->has_synced()) return false;
  }
  return true;
}

}  // namespace drakkar::controllers
