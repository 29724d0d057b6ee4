// Which kind has which strategy: the one place that lists them.
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "api/scheme/scheme.h"
#include "apiserver/registry/cluster_strategies.h"
#include "apiserver/registry/pod_strategy.h"
#include "apiserver/registry/resource_strategies.h"
#include "apiserver/registry/strategy.h"

namespace drakkar::apiserver {

const Strategy& StrategyFor(const api::KindSchema& kind) {
  static const GenericStrategy generic;
  static const PodStrategy pod;
  static const NodeStrategy node;
  static const NamespaceStrategy name_space;
  static const RbacStrategy rbac;
  static const DeviceClassStrategy device_class;
  static const ResourceClaimStrategy claim;
  static const ResourceClaimTemplateStrategy claim_template;
  static const ResourceSliceStrategy slice;
  static const DeviceTaintRuleStrategy taint_rule;
  static const PoolStatusRequestStrategy pool_request;
  static const std::map<std::pair<std::string_view, std::string_view>, const Strategy*> table = {
      {{"", "Pod"}, &pod},
      {{"", "Node"}, &node},
      {{"", "Namespace"}, &name_space},
      {{"rbac.authorization.k8s.io", "Role"}, &rbac},
      {{"rbac.authorization.k8s.io", "ClusterRole"}, &rbac},
      {{"rbac.authorization.k8s.io", "RoleBinding"}, &rbac},
      {{"rbac.authorization.k8s.io", "ClusterRoleBinding"}, &rbac},
      {{"resource.k8s.io", "DeviceClass"}, &device_class},
      {{"resource.k8s.io", "ResourceClaim"}, &claim},
      {{"resource.k8s.io", "ResourceClaimTemplate"}, &claim_template},
      {{"resource.k8s.io", "ResourceSlice"}, &slice},
      {{"resource.k8s.io", "DeviceTaintRule"}, &taint_rule},
      {{"resource.k8s.io", "ResourcePoolStatusRequest"}, &pool_request},
  };
  auto found = table.find({kind.group, kind.kind});
  return found == table.end() ? static_cast<const Strategy&>(generic) : *found->second;
}

}  // namespace drakkar::apiserver
