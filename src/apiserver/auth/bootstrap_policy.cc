#include "apiserver/auth/bootstrap_policy.h"

#include <set>
#include <string>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "apiserver/auth/controller_roles.h"
#include "apiserver/request/node_identity.h"
#include "apiserver/rest/core.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::Value;

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";
constexpr std::string_view kCertificates = "certificates.k8s.io";
constexpr std::string_view kAutoUpdate = "rbac.authorization.kubernetes.io/autoupdate";

struct RoleText {
  std::string_view name;
  std::vector<RuleText> rules;
  std::vector<std::string_view> paths = {};  // with the verb "get"
  std::string_view aggregate_to = "";        // "view": has the label that the role view selects
  std::string_view aggregates = "";          // consists of the roles with this label
};

struct BindingText {
  std::string_view name;
  std::string_view role;
  std::vector<std::string_view> users = {};
  std::vector<std::string_view> groups = {};
  std::vector<std::string_view> accounts = {};  // in kube-system
};

constexpr std::string_view kRead = "get list watch";
constexpr std::string_view kWrite = "create delete deletecollection patch update";
constexpr RuleText kEvents = {"create patch update", "core events.k8s.io", "events"};
constexpr RuleText kReviews[] = {
    {"create", "authentication.k8s.io", "tokenreviews"},
    {"create", "authorization.k8s.io", "subjectaccessreviews"},
};

Draft Words(std::string_view text) {
  Draft array = Draft::Array();
  for (std::string_view word : Split(text, ' ')) array.Append(word == "core" ? "" : word);
  return array;
}

Draft MakeRule(const RuleText& text) {
  Draft rule({{"verbs", Words(text.verbs)},
              {"apiGroups", Words(text.groups)},
              {"resources", Words(text.resources)}});
  if (!text.names.empty()) rule["resourceNames"] = Words(text.names);
  return rule;
}

std::vector<RuleText> NodeRuleTexts() {
  return {
      kEvents,
      kReviews[0],
      kReviews[1],
      {"create", "authorization.k8s.io", "localsubjectaccessreviews"},
      {kRead, "core", "services"},
      {"get", "core", "persistentvolumes endpoints"},
      {"get", "storage.k8s.io", "volumeattachments"},
      {kRead, "storage.k8s.io", "csidrivers"},
      {kRead, "node.k8s.io", "runtimeclasses"},
      {"get", "core", "namespaces"},
      // To renew their own certificates.
      {"create get list watch", "certificates.k8s.io", "certificatesigningrequests"},
      {kRead, "certificates.k8s.io", "clustertrustbundles"},
  };
}

std::vector<RoleText> UserRoles() {
  constexpr std::string_view kPublic[] = {"/healthz", "/livez", "/readyz", "/version", "/version/"};
  constexpr std::string_view kWorkloads =
      "controllerrevisions daemonsets daemonsets/status deployments deployments/scale "
      "deployments/status replicasets replicasets/scale replicasets/status statefulsets "
      "statefulsets/scale statefulsets/status";
  constexpr std::string_view kWorkloadsWritten =
      "daemonsets deployments deployments/rollback deployments/scale replicasets "
      "replicasets/scale statefulsets statefulsets/scale";
  return {
      {"cluster-admin", {{"*", "*", "*"}}},
      {"system:discovery",
       {},
       {"/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*",
        "/readyz", "/version", "/version/"}},
      {"system:public-info-viewer", {}, {std::begin(kPublic), std::end(kPublic)}},
      // In Kubernetes this role has only paths; a node's metrics are as harmless as a component's.
      {"system:monitoring",
       {{"get", "core", "nodes/metrics"}},
       {"/healthz", "/healthz/*", "/livez", "/livez/*", "/metrics", "/metrics/slis", "/readyz",
        "/readyz/*"}},
      {"system:service-account-issuer-discovery",
       {},
       {"/.well-known/openid-configuration", "/.well-known/openid-configuration/",
        "/openid/v1/jwks", "/openid/v1/jwks/"}},
      {"system:basic-user",
       {{"create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"},
        {"create", "authentication.k8s.io", "selfsubjectreviews"}}},
      {"admin", {}, {}, "", "rbac.authorization.k8s.io/aggregate-to-admin"},
      {"edit", {}, {}, "admin", "rbac.authorization.k8s.io/aggregate-to-edit"},
      {"view", {}, {}, "edit", "rbac.authorization.k8s.io/aggregate-to-view"},
      {"system:aggregate-to-admin",
       {{"create", "authorization.k8s.io", "localsubjectaccessreviews"},
        {"create delete deletecollection get list patch update watch", kGroup,
         "roles rolebindings"}},
       {},
       "admin"},
      {"system:aggregate-to-edit",
       {{kRead, "core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"},
        {"impersonate", "core", "serviceaccounts"},
        {kWrite, "core", "pods pods/attach pods/exec pods/portforward pods/proxy"},
        {"create", "core", "pods/eviction serviceaccounts/token"},
        {kWrite, "core",
         "configmaps events persistentvolumeclaims replicationcontrollers "
         "replicationcontrollers/scale secrets serviceaccounts services services/proxy"},
        {kWrite, "apps", kWorkloadsWritten},
        {kWrite, "autoscaling", "horizontalpodautoscalers"},
        {kWrite, "batch", "cronjobs jobs"},
        {kWrite, "networking.k8s.io", "ingresses networkpolicies"},
        {kWrite, "policy", "poddisruptionbudgets"},
        {kWrite, "coordination.k8s.io", "leases"},
        {kWrite, "resource.k8s.io", "resourceclaims resourceclaimtemplates"}},
       {},
       "edit"},
      {"system:aggregate-to-view",
       {{kRead, "core",
         "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods "
         "replicationcontrollers replicationcontrollers/scale serviceaccounts services "
         "services/status"},
        {kRead, "core",
         "bindings events limitranges namespaces namespaces/status pods/log pods/status "
         "replicationcontrollers/status resourcequotas resourcequotas/status"},
        {kRead, "apps", kWorkloads},
        {kRead, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"},
        {kRead, "batch", "cronjobs cronjobs/status jobs jobs/status"},
        {kRead, "discovery.k8s.io", "endpointslices"},
        {kRead, "networking.k8s.io", "ingresses ingresses/status networkpolicies"},
        {kRead, "policy", "poddisruptionbudgets poddisruptionbudgets/status"},
        {kRead, "coordination.k8s.io", "leases"},
        {kRead, "resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates"}},
       {},
       "view"},
      // For `drakkar why`. A separate role, because the one above is Kubernetes'.
      {"drakkar:aggregate-to-view",
       {{"get", "core", "pods/why"}, {"get", "resource.k8s.io", "resourceclaims/why"}},
       {},
       "view"},
  };
}

std::vector<RoleText> ComponentRoles() {
  return {
      // For the servers behind APIServices, which ask us who calls them and what they may do.
      {"system:auth-delegator", {kReviews[0], kReviews[1]}},
      {"system:cluster-trust-bundle-discovery", {{kRead, kCertificates, "clustertrustbundles"}}},
      {"system:kube-scheduler",
       {kEvents,
        kReviews[0],
        kReviews[1],
        {"create", "coordination.k8s.io", "leases"},
        {"get list update watch", "coordination.k8s.io", "leases", "kube-scheduler"},
        {kRead, "core",
         "namespaces nodes persistentvolumeclaims persistentvolumes replicationcontrollers "
         "services"},
        {"delete get list watch", "core", "pods"},
        {"create", "core", "bindings pods/binding"},
        {"patch update", "core", "pods/status"},
        {"update", "core", "pods/finalizers"},
        {"patch update", "core", "persistentvolumeclaims persistentvolumes"},
        {kRead, "apps", "replicasets statefulsets"},
        {kRead, "policy", "poddisruptionbudgets"},
        {kRead, "scheduling.k8s.io", "podgroups priorityclasses"},
        {kRead, "storage.k8s.io",
         "csidrivers csinodes csistoragecapacities storageclasses volumeattachments"},
        {kRead, "resource.k8s.io", "deviceclasses devicetaintrules resourceslices"},
        {"get list patch update watch", "resource.k8s.io", "resourceclaims resourceclaims/status"},
        {"create delete", "resource.k8s.io", "resourceclaims"},
        {"patch update", "resource.k8s.io", "resourceclaims/binding"}}},
      {"system:kube-controller-manager",
       {kEvents,
        kReviews[0],
        kReviews[1],
        {"create", "coordination.k8s.io", "leases"},
        {"get list update watch", "coordination.k8s.io", "leases", "kube-controller-manager"},
        {"create", "core", "secrets serviceaccounts serviceaccounts/token"},
        {"delete", "core", "secrets"},
        {"create", "core", "configmaps"},
        {"get", "core", "configmaps namespaces secrets serviceaccounts"},
        {"update", "core", "secrets serviceaccounts"},
        {"list watch", "*", "*"}}},
      {"system:kubelet-api-admin",
       {{kRead, "core", "nodes"},
        {"proxy", "core", "nodes"},
        {"*", "core",
         "nodes/configz nodes/healthz nodes/log nodes/metrics nodes/pods nodes/proxy "
         "nodes/stats"}}},
      // Joining: who may ask for a node's first certificate, whose requests are approved without an
      // administrator, and who may approve for a signer.
      {"system:node-bootstrapper",
       {{"create get list watch", kCertificates, "certificatesigningrequests"}}},
      {"system:certificates.k8s.io:certificatesigningrequests:nodeclient",
       {{"create", kCertificates, "certificatesigningrequests/nodeclient"}}},
      {"system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
       {{"create", kCertificates, "certificatesigningrequests/selfnodeclient"}}},
      {"system:certificates.k8s.io:legacy-unknown-approver",
       {{"approve", kCertificates, "signers", "kubernetes.io/legacy-unknown"}}},
      {"system:certificates.k8s.io:kubelet-serving-approver",
       {{"approve", kCertificates, "signers", "kubernetes.io/kubelet-serving"}}},
      {"system:certificates.k8s.io:kube-apiserver-client-approver",
       {{"approve", kCertificates, "signers", "kubernetes.io/kube-apiserver-client"}}},
      {"system:certificates.k8s.io:kube-apiserver-client-kubelet-approver",
       {{"approve", kCertificates, "signers", "kubernetes.io/kube-apiserver-client-kubelet"}}},
      // The API server's permissions on the ports of nodes; they grant nothing in the API.
      {"drakkar:apiserver-kubelet-client",
       {{"create get", "core", "nodes/proxy"},
        {"get", "core", "nodes/flagz nodes/log nodes/metrics nodes/stats nodes/statusz"}}},
      // Questions that the API server forwards to the scheduler's port.
      {"drakkar:apiserver-scheduler-client", {}, {"/why"}},
      // The scheduler reads a driver's last error from the events of the pod.
      {"drakkar:scheduler-answers", {{"list", "core", "events"}}},
      {"drakkar:node-driver",
       {kEvents,
        {"get", "core", "nodes"},
        {"get list watch", "resource.k8s.io", "deviceclasses"},
        {"get", "resource.k8s.io", "resourceclaims"},
        {"patch update", "resource.k8s.io", "resourceclaims/status"},
        {"associated-node:patch associated-node:update", "resource.k8s.io",
         "resourceclaims/driver"},
        {"create delete get list patch update watch", "resource.k8s.io", "resourceslices"}}},
  };
}

std::vector<BindingText> Bindings() {
  std::vector<BindingText> bindings = {
      {"cluster-admin", "cluster-admin", {}, {"system:masters"}},
      {"system:discovery", "system:discovery", {}, {"system:authenticated"}},
      {"system:basic-user", "system:basic-user", {}, {"system:authenticated"}},
      {"system:public-info-viewer",
       "system:public-info-viewer",
       {},
       {"system:authenticated", "system:unauthenticated"}},
      {"system:monitoring", "system:monitoring", {}, {"system:monitoring"}},
      {"system:service-account-issuer-discovery",
       "system:service-account-issuer-discovery",
       {},
       {"system:serviceaccounts"}},
      {"system:cluster-trust-bundle-discovery",
       "system:cluster-trust-bundle-discovery",
       {},
       {"system:serviceaccounts"}},
      {"system:kube-scheduler", "system:kube-scheduler", {"system:kube-scheduler"}},
      {"system:kube-controller-manager",
       "system:kube-controller-manager",
       {"system:kube-controller-manager"}},
      // Nodes get their permissions from the node authorizer.
      {"system:node", "system:node"},
      {"drakkar:node-driver", "drakkar:node-driver", {}, {kNodeDriversGroup}},
      {"drakkar:apiserver-kubelet-client", "drakkar:apiserver-kubelet-client", {kNodeClientUser}},
      {"drakkar:apiserver-scheduler-client",
       "drakkar:apiserver-scheduler-client",
       {kNodeClientUser}},
      {"drakkar:scheduler-answers", "drakkar:scheduler-answers", {"system:kube-scheduler"}},
      // What kubeadm grants to machines with a bootstrap token, and to nodes that renew.
      {"drakkar:node-bootstrapper", "system:node-bootstrapper", {}, {"system:bootstrappers"}},
      {"drakkar:node-autoapprove-bootstrap",
       "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
       {},
       {"system:bootstrappers"}},
      {"drakkar:node-autoapprove-certificate-rotation",
       "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
       {},
       {"system:nodes"}},
      // Ours approves serving certificates too (controllers/certificates).
      {"drakkar:kubelet-serving-approver",
       "system:certificates.k8s.io:kubelet-serving-approver",
       {"system:kube-controller-manager"},
       {},
       {"certificate-controller"}},
  };
  return bindings;
}

Draft MakeMetadata(std::string_view name) {
  return Draft({{"name", name},
                {"labels", Draft::Map({{"kubernetes.io/bootstrapping", "rbac-defaults"}})},
                {"annotations", Draft::Map({{kAutoUpdate, "true"}})}});
}

api::TreePtr MakeRole(const RoleText& text) {
  Draft role({{"apiVersion", "rbac.authorization.k8s.io/v1"},
              {"kind", "ClusterRole"},
              {"metadata", MakeMetadata(text.name)},
              {"rules", Draft::Array()}});
  if (!text.aggregate_to.empty()) {
    role["metadata"]["labels"].Entry(
        StrCat("rbac.authorization.k8s.io/aggregate-to-", text.aggregate_to)) = "true";
  }
  for (const RuleText& rule : text.rules) role["rules"].Append(MakeRule(rule));
  if (!text.paths.empty()) {
    Draft paths = Draft::Array();
    for (std::string_view path : text.paths) paths.Append(path);
    role["rules"].Append(Draft({{"verbs", Words("get")}, {"nonResourceURLs", std::move(paths)}}));
  }
  if (text.name == "cluster-admin") {
    role["rules"].Append(Draft({{"verbs", Words("*")}, {"nonResourceURLs", Words("*")}}));
  }
  if (!text.aggregates.empty()) {
    Draft labels = Draft::Object();
    labels.Entry(text.aggregates) = "true";
    role["aggregationRule"]["clusterRoleSelectors"].Append(
        Draft({{"matchLabels", std::move(labels)}}));
  }
  return role.Freeze();
}

api::TreePtr MakeBinding(const BindingText& text) {
  Draft subjects = Draft::Array();
  for (std::string_view name : text.users) {
    subjects.Append(Draft({{"kind", "User"}, {"apiGroup", kGroup}, {"name", name}}));
  }
  for (std::string_view name : text.groups) {
    subjects.Append(Draft({{"kind", "Group"}, {"apiGroup", kGroup}, {"name", name}}));
  }
  for (std::string_view name : text.accounts) {
    subjects.Append(
        Draft({{"kind", "ServiceAccount"}, {"name", name}, {"namespace", "kube-system"}}));
  }
  Draft binding({{"apiVersion", "rbac.authorization.k8s.io/v1"},
                 {"kind", "ClusterRoleBinding"},
                 {"metadata", MakeMetadata(text.name)}});
  if (subjects.size() > 0) binding["subjects"] = std::move(subjects);
  binding["roleRef"] = Draft({{"apiGroup", kGroup}, {"kind", "ClusterRole"}, {"name", text.role}});
  return binding.Freeze();
}

// Binds each role to the controller's own account, and to the user that runs all controllers in one
// process.
void AddControllers(std::vector<api::TreePtr>& objects) {
  for (const ControllerRole& controller : ControllerRoles()) {
    const std::string role = StrCat("system:controller:", controller.name);
    objects.push_back(MakeRole({.name = role, .rules = controller.rules}));
    objects.push_back(MakeBinding({.name = role,
                                   .role = role,
                                   .users = {"system:kube-controller-manager"},
                                   .accounts = {controller.name}}));
  }
}

// One creation after the other, so that a failure names the object it is about.
struct Creation {
  Core& core;
  std::vector<api::TreePtr> objects;
  std::size_t next = 0;
  std::function<void(Result<void>)> done;
};

void CreateNext(const std::shared_ptr<Creation>& creation) {
  if (creation->next == creation->objects.size()) return creation->done(Ok());
  Request request;
  request.user = {.name = "system:apiserver", .groups = {"system:masters"}};
  request.verb = Verb::kCreate;
  request.object = creation->objects[creation->next++];
  request.kind = api::FindKind(kGroup, "v1", request.object->root()["kind"].str());
  const std::string name(request.object->root()["metadata"]["name"].str());
  creation->core.Handle(std::move(request), [creation, name](Response response) {
    if (response.failure && response.failure->reason != "AlreadyExists") {
      return creation->done(Error{ErrorCode::kInternal, StrCat("create the default policy ", name,
                                                               ": ", response.failure->message)});
    }
    CreateNext(creation);
  });
}

}  // namespace

api::TreePtr NodeRules() {
  Draft rules = Draft::Array();
  for (const RuleText& rule : NodeRuleTexts()) rules.Append(MakeRule(rule));
  return rules.Freeze();
}

std::vector<api::TreePtr> BootstrapPolicy() {
  std::vector<api::TreePtr> objects;
  for (const RoleText& role : UserRoles()) objects.push_back(MakeRole(role));
  for (const RoleText& role : ComponentRoles()) objects.push_back(MakeRole(role));
  RoleText node{"system:node", NodeRuleTexts()};
  node.rules.push_back({"create get list patch update watch", "core", "nodes"});
  node.rules.push_back({"patch update", "core", "nodes/status pods/status"});
  node.rules.push_back({"create delete get list watch", "core", "pods"});
  node.rules.push_back({"create", "core", "pods/eviction serviceaccounts/token"});
  node.rules.push_back({kRead, "core", "configmaps secrets"});
  node.rules.push_back({"create delete get patch update", "coordination.k8s.io", "leases"});
  node.rules.push_back({"create delete get patch update", "storage.k8s.io", "csinodes"});
  node.rules.push_back({"get", "resource.k8s.io", "resourceclaims"});
  node.rules.push_back({"deletecollection", "resource.k8s.io", "resourceslices"});
  objects.push_back(MakeRole(node));
  for (const BindingText& binding : Bindings()) objects.push_back(MakeBinding(binding));
  AddControllers(objects);
  return objects;
}

namespace {

// ["a","b"], each once.
std::string ListText(const std::vector<std::string>& first,
                     const std::vector<std::string>& second) {
  Draft list = Draft::Array();
  std::set<std::string_view> seen;
  for (const auto* each : {&first, &second}) {
    for (const std::string& text : *each) {
      if (seen.insert(text).second) list.Append(text);
    }
  }
  return api::WriteJson(list.Freeze()->root());
}

std::vector<std::string> ListOf(std::string_view json) {
  std::vector<std::string> texts;
  const Result<api::TreePtr> read = api::ParseJson(json);
  if (!read.ok()) return texts;
  for (const Value each : (*read)->root().elements()) texts.emplace_back(each.str());
  return texts;
}

// The certificates of a bundle, each with the end of its last line.
std::vector<std::string_view> CertificatesOf(std::string_view bundle) {
  constexpr std::string_view kEnd = "-----END CERTIFICATE-----\n";
  std::vector<std::string_view> certificates;
  while (!bundle.empty()) {
    const std::size_t end = bundle.find(kEnd);
    const std::size_t size = end == std::string_view::npos ? bundle.size() : end + kEnd.size();
    certificates.push_back(bundle.substr(0, size));
    bundle.remove_prefix(size);
  }
  return certificates;
}

}  // namespace

api::TreePtr MergeAuthentication(const api::TreePtr& map, Value wanted) {
  Draft merged(map);
  bool changed = false;
  for (const api::MemberView& each : wanted["data"].members()) {
    const std::string before(map->root()["data"].Entry(each.name).str());
    std::string after = before;
    if (each.name.ends_with("ca-file")) {
      for (const std::string_view certificate : CertificatesOf(each.value.str())) {
        if (after.find(Trim(certificate)) != std::string::npos) continue;
        if (!after.empty() && after.back() != '\n') after += '\n';
        after += certificate;
      }
    } else {
      after = ListText(ListOf(before), ListOf(each.value.str()));
    }
    if (after == before) continue;
    merged["data"].Entry(each.name) = after;
    changed = true;
  }
  return changed ? merged.Freeze() : nullptr;
}

std::vector<api::TreePtr> DelegatedAuthentication(std::string_view client_ca_pem,
                                                  std::string_view front_proxy_ca_pem,
                                                  const FrontProxies& proxies) {
  constexpr std::string_view kNamespace = "kube-system";
  constexpr std::string_view kMap = "extension-apiserver-authentication";
  constexpr std::string_view kReader = "extension-apiserver-authentication-reader";
  const IdentityHeaders ours;  // with which this server names its clients
  Draft map(
      {{"apiVersion", "v1"},
       {"kind", "ConfigMap"},
       {"metadata", Draft({{"name", kMap}, {"namespace", kNamespace}})},
       {"data",
        Draft::Map({{"client-ca-file", client_ca_pem},
                    {"requestheader-client-ca-file", StrCat(front_proxy_ca_pem, proxies.ca_pem)},
                    {"requestheader-allowed-names",
                     ListText({"front-proxy-client"}, proxies.allowed_names)},
                    {"requestheader-username-headers", ListText(ours.user, proxies.headers.user)},
                    {"requestheader-uid-headers", ListText(ours.uid, proxies.headers.uid)},
                    {"requestheader-group-headers", ListText(ours.group, proxies.headers.group)},
                    {"requestheader-extra-headers-prefix",
                     ListText(ours.extra_prefix, proxies.headers.extra_prefix)}})}});
  Draft role({{"apiVersion", "rbac.authorization.k8s.io/v1"},
              {"kind", "Role"},
              {"metadata", MakeMetadata(kReader)},
              {"rules", Draft::Array()}});
  role["metadata"]["namespace"] = kNamespace;
  role["rules"].Append(MakeRule({kRead, "core", "configmaps", kMap}));
  Draft binding({{"apiVersion", "rbac.authorization.k8s.io/v1"},
                 {"kind", "RoleBinding"},
                 {"metadata", MakeMetadata("system::extension-apiserver-authentication-reader")},
                 {"subjects", Draft::Array()}});
  binding["metadata"]["namespace"] = kNamespace;
  for (std::string_view user : {"system:kube-controller-manager", "system:kube-scheduler"}) {
    binding["subjects"].Append(Draft({{"kind", "User"}, {"apiGroup", kGroup}, {"name", user}}));
  }
  binding["roleRef"] = Draft({{"apiGroup", kGroup}, {"kind", "Role"}, {"name", kReader}});
  // What the scheduler publishes for `drakkar why`. Permission to create cannot be limited to a
  // name.
  constexpr std::string_view kPublisher = "drakkar:scheduler-settings";
  Draft publisher({{"apiVersion", "rbac.authorization.k8s.io/v1"},
                   {"kind", "Role"},
                   {"metadata", MakeMetadata(kPublisher)},
                   {"rules", Draft::Array()}});
  publisher["metadata"]["namespace"] = kNamespace;
  publisher["rules"].Append(MakeRule({"create", "core", "configmaps"}));
  publisher["rules"].Append(MakeRule({"get update", "core", "configmaps", "drakkar-scheduler"}));
  Draft publishes({{"apiVersion", "rbac.authorization.k8s.io/v1"},
                   {"kind", "RoleBinding"},
                   {"metadata", MakeMetadata(kPublisher)},
                   {"subjects", Draft::Array()}});
  publishes["metadata"]["namespace"] = kNamespace;
  publishes["subjects"].Append(
      Draft({{"kind", "User"}, {"apiGroup", kGroup}, {"name", "system:kube-scheduler"}}));
  publishes["roleRef"] = Draft({{"apiGroup", kGroup}, {"kind", "Role"}, {"name", kPublisher}});
  return {map.Freeze(), role.Freeze(), binding.Freeze(), publisher.Freeze(), publishes.Freeze()};
}

api::TreePtr LegacyTokenTracking(WallTime since) {
  constexpr std::size_t kDate = std::string_view("2026-01-31").size();
  return Draft({{"apiVersion", "v1"},
                {"kind", "ConfigMap"},
                {"metadata",
                 {{"name", "kube-apiserver-legacy-service-account-token-tracking"},
                  {"namespace", "kube-system"}}},
                {"data", Draft::Map({{"since", api::FormatTime(since).substr(0, kDate)}})}})
      .Freeze();
}

api::TreePtr ReconcilePolicy(api::Value existing, api::Value wanted) {
  if (existing["metadata"]["annotations"].Entry(kAutoUpdate).str() != "true") return nullptr;
  Draft out(api::CopyTree(existing));
  bool changed = false;
  for (const api::MemberView& label : wanted["metadata"]["labels"].members()) {
    if (existing["metadata"]["labels"].Entry(label.name).str() == label.value.str()) continue;
    out["metadata"]["labels"].Entry(label.name) = label.value.str();
    changed = true;
  }
  for (const api::FieldName list : api::FieldNames{"rules", "subjects"}) {
    // The rules of an aggregating role come from others.
    if (list == "rules" && wanted["aggregationRule"].has_value()) continue;
    for (api::Value each : wanted[list].elements()) {
      bool found = false;
      for (api::Value has : existing[list].elements()) found = found || api::Equal(has, each);
      if (found) continue;
      out[list].Append(Draft(each));
      changed = true;
    }
  }
  return changed ? out.Freeze() : nullptr;
}

void EnsureBootstrapPolicy(Core& core, std::function<void(Result<void>)> done) {
  CreateNext(std::make_shared<Creation>(Creation{core, BootstrapPolicy(), 0, std::move(done)}));
}

}  // namespace drakkar::apiserver
