#include "controllers/selection.h"

#include "base/text/text.h"

namespace drakkar::controllers {
namespace {

// In the order in which they are started.
constexpr ControllerName kControllers[] = {
    {"resourceclaim-controller", "resource-claim-controller", "resource-claim-controller"},
    {"pod-garbage-collector-controller", "podgc", "pod-garbage-collector"},
    {"namespace-controller", "namespace", "namespace-controller"},
    {"serviceaccount-controller", "serviceaccount", "service-account-controller"},
    {"root-ca-certificate-publisher-controller", "root-ca-cert-publisher",
     "root-ca-cert-publisher"},
    {"garbage-collector-controller", "garbagecollector", "generic-garbage-collector"},
    {"replicaset-controller", "replicaset", "replicaset-controller"},
    {"deployment-controller", "deployment", "deployment-controller"},
    {"replicationcontroller-controller", "replicationcontroller", "replication-controller"},
    {"job-controller", "job", "job-controller"},
    {"cronjob-controller", "cronjob", "cronjob-controller"},
    {"daemonset-controller", "daemonset", "daemon-set-controller"},
    {"statefulset-controller", "statefulset", "statefulset-controller"},
    {"node-lifecycle-controller", "nodelifecycle", "node-controller"},
    {"taint-eviction-controller", "", "node-controller"},
    {"endpoints-controller", "endpoint", "endpoint-controller"},
    {"endpointslice-controller", "endpointslice", "endpointslice-controller"},
    {"resourcequota-controller", "resourcequota", "resourcequota-controller"},
    {"disruption-controller", "disruption", "disruption-controller"},
    {"resourcepoolstatusrequest-controller", "", "resourcepoolstatusrequest-controller"},
    {"ttl-after-finished-controller", "ttl-after-finished", "ttl-after-finished-controller"},
    {"device-taint-eviction-controller", "", "device-taint-eviction-controller"},
    {"certificatesigningrequest-approving-controller", "csrapproving", "certificate-controller"},
    {"certificatesigningrequest-signing-controller", "csrsigning", "certificate-controller"},
    {"certificatesigningrequest-cleaner-controller", "csrcleaner", "certificate-controller"},
    {"bootstrap-signer-controller", "bootstrapsigner", "bootstrap-signer"},
    {"token-cleaner-controller", "tokencleaner", "token-cleaner"},
    {"storage-version-migrator-controller", "", "storage-version-migrator-controller"},
    // Controllers that only kube-controller-manager has.
    {"serviceaccount-token-controller", "serviceaccount-token", ""},
    {"endpointslice-mirroring-controller", "endpointslicemirroring", ""},
    {"horizontal-pod-autoscaler-controller", "horizontalpodautoscaling", ""},
    {"podcertificaterequest-cleaner-controller", "", ""},
    {"ttl-controller", "ttl", ""},
    {"node-ipam-controller", "nodeipam", ""},
    {"service-lb-controller", "service", ""},
    {"node-route-controller", "route", ""},
    {"cloud-node-lifecycle-controller", "cloud-node-lifecycle", ""},
    {"persistentvolume-binder-controller", "persistentvolume-binder", ""},
    {"persistentvolume-attach-detach-controller", "attachdetach", ""},
    {"persistentvolume-expander-controller", "persistentvolume-expander", ""},
    {"clusterrole-aggregation-controller", "clusterrole-aggregation", ""},
    {"persistentvolumeclaim-protection-controller", "pvc-protection", ""},
    {"persistentvolume-protection-controller", "pv-protection", ""},
    {"podgroup-protection-controller", "", ""},
    {"kube-apiserver-serving-clustertrustbundle-publisher-controller", "", ""},
    {"ephemeral-volume-controller", "ephemeral-volume", ""},
    {"storageversion-garbage-collector-controller", "storage-version-gc", ""},
    {"legacy-serviceaccount-token-cleaner-controller", "legacy-service-account-token-cleaner", ""},
    {"validatingadmissionpolicy-status-controller", "", ""},
    {"volumeattributesclass-protection-controller", "", ""},
    {"service-cidr-controller", "", ""},
    {"selinux-warning-controller", "", ""},
};

const ControllerName* Find(std::string_view name) {
  for (const ControllerName& each : kControllers) {
    if (each.name == name || (!each.older_name.empty() && each.older_name == name)) return &each;
  }
  return nullptr;
}

}  // namespace

std::span<const ControllerName> KnownControllers() {
  return kControllers;
}

Result<Selection> Selection::Parse(std::span<const std::string> words) {
  Selection selection;
  selection.all_ = words.empty();
  for (const std::string& word : words) {
    if (word == "*") {
      selection.all_ = true;
      continue;
    }
    const bool off = word.starts_with('-');
    const ControllerName* found = Find(std::string_view(word).substr(off ? 1 : 0));
    if (found == nullptr) {
      return InvalidArgument(
          StrCat("--controllers: ", Quote(word), " is not in the list of known controllers"));
    }
    if (!off && found->account.empty()) {
      return InvalidArgument(StrCat("--controllers: Drakkar has no ", found->name,
                                    "; leave it out, or run it in a kube-controller-manager"));
    }
    (off ? selection.off_ : selection.on_).emplace(found->name);
  }
  return selection;
}

bool Selection::Runs(std::string_view name) const {
  if (on_.contains(name)) return true;
  return all_ && !off_.contains(name);
}

}  // namespace drakkar::controllers
