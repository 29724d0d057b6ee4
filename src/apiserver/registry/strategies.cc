// The strategies, by kind.
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "api/scheme/scheme.h"
#include "apiserver/registry/admission_strategies.h"
#include "apiserver/registry/api_service_strategy.h"
#include "apiserver/registry/certificate_strategy.h"
#include "apiserver/registry/cluster_strategies.h"
#include "apiserver/registry/config_strategies.h"
#include "apiserver/registry/custom_strategies.h"
#include "apiserver/registry/job_strategies.h"
#include "apiserver/registry/migration_strategy.h"
#include "apiserver/registry/network_strategies.h"
#include "apiserver/registry/pod_certificate_strategies.h"
#include "apiserver/registry/pod_strategy.h"
#include "apiserver/registry/quota_strategies.h"
#include "apiserver/registry/rbac_strategy.h"
#include "apiserver/registry/resource_strategies.h"
#include "apiserver/registry/service_strategy.h"
#include "apiserver/registry/small_strategies.h"
#include "apiserver/registry/storage_strategies.h"
#include "apiserver/registry/strategy.h"
#include "apiserver/registry/workload_api_strategies.h"
#include "apiserver/registry/workload_strategies.h"

namespace drakkar::apiserver {

const Strategy& StrategyFor(const api::KindSchema& kind) {
  static const GenericStrategy generic;
  static const FixedMetadataStrategy fixed_metadata;
  static const PodStrategy pod;
  static const NodeStrategy node;
  static const NamespaceStrategy name_space;
  static const RbacStrategy rbac;
  static const SecretStrategy secret;
  static const ConfigMapStrategy config_map;
  static const EventStrategy event;
  static const LeaseStrategy lease;
  static const LimitRangeStrategy limit_range;
  static const ResourceQuotaStrategy quota;
  static const ServiceStrategy service;
  static const PriorityClassStrategy priority_class;
  static const DisruptionBudgetStrategy budget;
  static const RuntimeClassStrategy runtime_class;
  static const DefinitionStrategy definition;
  static const CertificateSigningRequestStrategy signing_request;
  static const ApiServiceStrategy api_service;
  static const PodGroupStrategy pod_group;
  static const WorkloadStrategy workload;
  static const StorageVersionMigrationStrategy migration;
  static const ClusterTrustBundleStrategy trust_bundle;
  static const PodCertificateRequestStrategy pod_certificate;
  static const std::map<std::pair<std::string_view, std::string_view>, const Strategy*> table = {
      {{"", "Pod"}, &pod},
      {{"", "Node"}, &node},
      {{"", "Namespace"}, &name_space},
      {{"", "Secret"}, &secret},
      {{"", "ConfigMap"}, &config_map},
      {{"", "Event"}, &event},
      {{"", "LimitRange"}, &limit_range},
      {{"", "ResourceQuota"}, &quota},
      {{"", "Service"}, &service},
      {{"coordination.k8s.io", "Lease"}, &lease},
      {{"scheduling.k8s.io", "PriorityClass"}, &priority_class},
      {{"policy", "PodDisruptionBudget"}, &budget},
      {{"node.k8s.io", "RuntimeClass"}, &runtime_class},
      {{kExtensionsGroup, "CustomResourceDefinition"}, &definition},
      {{"certificates.k8s.io", "CertificateSigningRequest"}, &signing_request},
      {{"certificates.k8s.io", "ClusterTrustBundle"}, &trust_bundle},
      {{"certificates.k8s.io", "PodCertificateRequest"}, &pod_certificate},
      {{"apiregistration.k8s.io", "APIService"}, &api_service},
      {{"scheduling.k8s.io", "PodGroup"}, &pod_group},
      {{"scheduling.k8s.io", "Workload"}, &workload},
      {{"storagemigration.k8s.io", "StorageVersionMigration"}, &migration},
      {{"networking.k8s.io", "ServiceCIDR"}, &fixed_metadata},
      {{"flowcontrol.apiserver.k8s.io", "FlowSchema"}, &fixed_metadata},
      {{"flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"}, &fixed_metadata},
      {{"rbac.authorization.k8s.io", "Role"}, &rbac},
      {{"rbac.authorization.k8s.io", "ClusterRole"}, &rbac},
      {{"rbac.authorization.k8s.io", "RoleBinding"}, &rbac},
      {{"rbac.authorization.k8s.io", "ClusterRoleBinding"}, &rbac},
  };
  if (kind.group == "resource.k8s.io") {
    if (const Strategy* strategy = ResourceStrategyFor(kind.kind)) return *strategy;
  }
  if (kind.group == "batch") {
    if (const Strategy* strategy = BatchStrategyFor(kind.kind)) return *strategy;
  }
  if (const Strategy* strategy = WorkloadStrategyFor(kind.group, kind.kind)) return *strategy;
  if (const Strategy* strategy = NetworkStrategyFor(kind.group, kind.kind)) return *strategy;
  if (const Strategy* strategy = StorageStrategyFor(kind.group, kind.kind)) return *strategy;
  if (const Strategy* strategy = AdmissionStrategyFor(kind.group, kind.kind)) return *strategy;
  auto found = table.find({kind.group, kind.kind});
  return found == table.end() ? static_cast<const Strategy&>(generic) : *found->second;
}

}  // namespace drakkar::apiserver
