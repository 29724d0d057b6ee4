// What is wrong with objects of other kinds, and what of them cannot change, in the words of
// Kubernetes.
#include <gmock/gmock.h>

#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using Texts = std::vector<std::string>;

class KindRulesTest : public CoreFixture {
 protected:
  void SetUp() override { StartCore(nullptr); }

  // All errors that come of creating the object.
  Texts Errors(std::string_view json) {
    Request request = RequestFor(Verb::kCreate, json, AdminUser());
    request.dry_run = true;
    return ErrorsOf(Handle(std::move(request)));
  }
  // The same for a merge patch of an object that exists.
  Texts PatchErrors(std::string_view json, std::string_view patch, std::string subresource = "") {
    Request request = RequestFor(Verb::kPatch, json, AdminUser());
    request.object = nullptr;
    request.patch = PatchKind::kMerge;
    request.text = patch;
    request.subresource = std::move(subresource);
    request.dry_run = true;
    return ErrorsOf(Handle(std::move(request)));
  }
  static Texts ErrorsOf(const Response& response) {
    Texts errors;
    if (!response.failure) return errors;
    for (const auto& cause : response.failure->causes) {
      errors.push_back(StrCat(cause.field, ": ", cause.message));
    }
    if (errors.empty()) errors.push_back(response.failure->message);
    return errors;
  }
  static std::string Object(std::string_view version, std::string_view kind,
                            std::string_view fields) {
    return StrCat(R"({"apiVersion":")", version, R"(","kind":")", kind,
                  R"(","metadata":{"name":"o"},)", fields, "}");
  }
};

TEST_F(KindRulesTest, NetworkPolicies) {
  const auto errors = [&](std::string_view rule) {
    return Errors(Object("networking.k8s.io/v1", "NetworkPolicy",
                         StrCat(R"("spec":{"podSelector":{},"ingress":[{)", rule, "}]}")));
  };
  EXPECT_THAT(errors(R"("from":[{"ipBlock":{"cidr":"10.0.0.0/8","except":["10.1.0.0/16"]}},
                      {"podSelector":{},"namespaceSelector":{}}],
                      "ports":[{"port":80,"endPort":90},{"port":"web"},{}])"),
              IsEmpty());
  EXPECT_THAT(errors(R"("from":[{},{"podSelector":{},"ipBlock":{"cidr":"::/0"}}])"),
              ElementsAreArray(Texts{
                  "spec.ingress[0].from[0]: Required value: must specify a peer",
                  "spec.ingress[0].from[1]: Forbidden: may not specify both ipBlock and another "
                  "peer"}));
  EXPECT_THAT(
      errors(R"("from":[{"ipBlock":{"cidr":"10.0.0.0/33"}},
               {"ipBlock":{"cidr":"10.0.0.0/8","except":["11.0.0.0/16","10.0.0.0/8"]}}])"),
      ElementsAreArray(Texts{
          "spec.ingress[0].from[0].ipBlock.cidr: Invalid value: \"10.0.0.0/33\": must be a valid "
          "CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
          "spec.ingress[0].from[1].ipBlock.except[0]: Invalid value: \"11.0.0.0/16\": must be a "
          "strict subset of `cidr`",
          "spec.ingress[0].from[1].ipBlock.except[1]: Invalid value: \"10.0.0.0/8\": must be a "
          "strict subset of `cidr`"}));
  EXPECT_THAT(errors(R"("ports":[{"endPort":2},{"port":"a","endPort":2},{"port":3,"endPort":2}])"),
              ElementsAreArray(Texts{
                  "spec.ingress[0].ports[0].endPort: Invalid value: 2: may not be specified when "
                  "`port` is not specified",
                  "spec.ingress[0].ports[1].endPort: Invalid value: 2: may not be specified when "
                  "`port` is non-numeric",
                  "spec.ingress[0].ports[2].endPort: Invalid value: 2: must be greater than or "
                  "equal to `port`"}));
}

TEST_F(KindRulesTest, Ingresses) {
  const auto errors = [&](std::string_view spec) {
    return Errors(Object("networking.k8s.io/v1", "Ingress", StrCat(R"("spec":{)", spec, "}")));
  };
  EXPECT_THAT(errors(R"("rules":[{"host":"*.example.com","http":{"paths":[{"path":"/a",
                      "pathType":"Prefix","backend":{"service":{"name":"s","port":{"number":80}}}}]}}],
                      "tls":[{"hosts":["a.example.com"],"secretName":"s"}])"),
              IsEmpty());
  EXPECT_THAT(errors(R"("ingressClassName":"c")"),
              ElementsAreArray(Texts{"spec: Invalid value: null: either `defaultBackend` or "
                                     "`rules` must be specified"}));
  EXPECT_THAT(
      errors(R"("defaultBackend":{},"rules":[{"host":"1.2.3.4"},{"http":{"paths":[{"path":"a//b/..",
               "pathType":"Exact","backend":{"service":{"name":"s","port":{}}}},
               {"path":"b","pathType":"ImplementationSpecific","backend":{"service":
               {"name":"s","port":{"name":"w","number":1}},"resource":{"kind":"K","name":"n"}}}]}}])"),
      ElementsAreArray(Texts{
          "spec.defaultBackend: Invalid value: \"\": resource or service backend is required",
          "spec.rules[0].host: Invalid value: \"1.2.3.4\": must be a DNS name, not an IP address",
          "spec.rules[1].http.paths[0].path: Invalid value: \"a//b/..\": must be an absolute path",
          "spec.rules[1].http.paths[0].path: Invalid value: \"a//b/..\": must not contain '//'",
          "spec.rules[1].http.paths[0].path: Invalid value: \"a//b/..\": cannot end with '/..'",
          "spec.rules[1].http.paths[0].backend: Required value: port name or number is required",
          "spec.rules[1].http.paths[1].path: Invalid value: \"b\": must be an absolute path",
          "spec.rules[1].http.paths[1].backend: Invalid value: \"\": cannot set both resource and "
          "service backends"}));
  EXPECT_THAT(
      errors(R"("defaultBackend":{"service":{"name":"s","port":{"name":"1"}}},
                      "tls":[{"hosts":["a.*"]}])"),
      ElementsAreArray(
          Texts{"spec.defaultBackend.service.port.name: Invalid value: \"1\": must contain at "
                "least one letter (a-z)",
                "spec.tls[0].hosts[0]: Invalid value: \"a.*\": a wildcard DNS-1123 subdomain must "
                "start with '*.', followed by a valid DNS subdomain, which must consist of lower "
                "case alphanumeric characters, '-' or '.' and end with an alphanumeric character "
                "(e.g. '*.example.com', regex used for validation is "
                "'\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"}));
  EXPECT_THAT(Errors(Object("networking.k8s.io/v1", "IngressClass",
                            R"("spec":{"controller":"a","parameters":{"kind":"K","name":"n",
                               "scope":"Namespace"}})")),
              ElementsAreArray(Texts{
                  "spec.controller: Invalid value: \"a\": must be a domain-prefixed path (such as "
                  "\"acme.io/foo\")",
                  "spec.parameters.namespace: Required value: `parameters.scope` is set to "
                  "'Namespace'"}));
}

TEST_F(KindRulesTest, EndpointsAndSlices) {
  EXPECT_THAT(Errors(Object("v1", "Endpoints",
                            R"("subsets":[{},{"addresses":[{"ip":"169.254.0.1","hostname":"a.b"}],
                               "ports":[{"port":0},{"port":1,"name":"a"}]}])")),
              ElementsAreArray(Texts{
                  "subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`",
                  "subsets[1].addresses[0].hostname: Invalid value: \"a.b\": must not contain dots",
                  "subsets[1].addresses[0].ip: Invalid value: \"169.254.0.1\": may not be in the "
                  "link-local range (169.254.0.0/16, fe80::/10)",
                  "subsets[1].ports[0].name: Required value",
                  "subsets[1].ports[0].port: Invalid value: 0: must be between 1 and 65535, "
                  "inclusive"}));
  EXPECT_THAT(Errors(Object("discovery.k8s.io/v1", "EndpointSlice",
                            R"("addressType":"IPv4","endpoints":[{"addresses":["0.0.0.0","::1"],
                       "hints":{"forZones":[{"name":"a"},{"name":"a"}]}}],
                       "ports":[{"name":"a","port":1},{"name":"a","port":2}])")),
              ElementsAreArray(Texts{
                  "ports[1].name: Duplicate value: \"a\"",
                  "endpoints[0].addresses[0]: Invalid value: \"0.0.0.0\": may not be unspecified "
                  "(0.0.0.0)",
                  "endpoints[0].addresses: Invalid value: \"::1\": must be an IPv4 address",
                  "endpoints[0].hints.forZones[1].name: Duplicate value: \"a\""}));
}

constexpr std::string_view kVolumeSpec =
    R"("accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"},"hostPath":{"path":"/a"})";

TEST_F(KindRulesTest, PersistentVolumes) {
  const auto errors = [&](std::string_view spec) {
    return Errors(Object("v1", "PersistentVolume", StrCat(R"("spec":{)", spec, "}")));
  };
  EXPECT_THAT(errors(kVolumeSpec), IsEmpty());
  EXPECT_THAT(errors(R"("accessModes":["ReadWriteOncePod","ReadWriteOnce"],
                      "capacity":{"storage":"0"},"volumeMode":"Raw")"),
              ElementsAreArray(Texts{
                  "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access "
                  "modes",
                  "spec.capacity[storage]: Invalid value: \"0\": must be greater than zero",
                  "spec: Required value: must specify a volume type",
                  "spec.volumeMode: Unsupported value: \"Raw\": supported values: \"Block\", "
                  "\"Filesystem\""}));
  EXPECT_THAT(errors(R"("accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"},
                      "persistentVolumeReclaimPolicy":"Recycle","hostPath":{"path":"/a/.."},
                      "local":{"path":"/b"})"),
              ElementsAreArray(
                  Texts{"spec.hostPath.path: Invalid value: \"/a/..\": must not contain '..'",
                        "spec.local: Forbidden: may not specify more than 1 volume type",
                        "spec.nodeAffinity: Required value: Local volume requires node affinity",
                        "spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a "
                        "hostPath mount of '/'"}));
  EXPECT_THAT(errors(R"("accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"},
                      "csi":{"driver":"d","volumeHandle":"","nodePublishSecretRef":{"name":"s"}})"),
              ElementsAreArray(Texts{"spec.csi.volumeHandle: Required value",
                                     "spec.csi.nodePublishSecretRef.namespace: Required value"}));
  const std::string volume =
      Object("v1", "PersistentVolume", StrCat(R"("spec":{)", kVolumeSpec, "}"));
  Create(volume);
  EXPECT_THAT(PatchErrors(volume, R"({"spec":{"capacity":{"storage":"2Gi"}}})"), IsEmpty());
  EXPECT_THAT(PatchErrors(volume, R"({"spec":{"hostPath":{"path":"/b"},"volumeMode":"Block"}})"),
              ElementsAreArray(
                  Texts{"spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is "
                        "immutable after creation",
                        "volumeMode: Invalid value: \"Block\": field is immutable"}));
}

TEST_F(KindRulesTest, VolumeClaims) {
  constexpr std::string_view kSpec =
      R"("accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"2Gi"}})";
  const auto errors = [&](std::string_view spec) {
    return Errors(Object("v1", "PersistentVolumeClaim", StrCat(R"("spec":{)", spec, "}")));
  };
  EXPECT_THAT(errors(kSpec), IsEmpty());
  EXPECT_THAT(errors(R"("selector":{"matchExpressions":[{"key":"k","operator":"In"}]})"),
              ElementsAreArray(Texts{
                  "spec.accessModes: Required value: at least 1 access mode is required",
                  "spec.selector.matchExpressions[0].values: Required value: must be specified "
                  "when `operator` is 'In' or 'NotIn'",
                  "spec.resources[storage]: Required value"}));
  EXPECT_THAT(errors(StrCat(kSpec, R"(,"dataSource":{"kind":"Pod","name":"a"})")),
              ElementsAreArray(Texts{
                  "spec.dataSource: Invalid value: \"Pod\": must be 'PersistentVolumeClaim' when "
                  "referencing the default apiGroup",
                  "spec.dataSourceRef: Invalid value: \"Pod\": must be 'PersistentVolumeClaim' "
                  "when referencing the default apiGroup"}));
  const std::string claim =
      Object("v1", "PersistentVolumeClaim",
             StrCat(R"("spec":{)", kSpec,
                    R"(,"dataSource":{"kind":"PersistentVolumeClaim","name":"a"}})"));
  const api::ObjectPtr made = Create(claim);
  EXPECT_EQ((*made)["spec"]["dataSourceRef"]["name"].str(), "a");
  EXPECT_THAT(PatchErrors(claim, R"({"spec":{"volumeName":"v","storageClassName":"c"}})"),
              IsEmpty());
  EXPECT_THAT(PatchErrors(claim, R"({"spec":{"accessModes":["ReadOnlyMany"]}})"),
              ElementsAreArray(Texts{"spec: Forbidden: spec is immutable after creation except "
                                     "resources.requests and volumeAttributesClassName for bound "
                                     "claims"}));
  Request bind = RequestFor(Verb::kPatch, claim, AdminUser());
  bind.object = nullptr;
  bind.patch = PatchKind::kMerge;
  bind.text = R"({"status":{"phase":"Bound","capacity":{"storage":"2Gi"}}})";
  bind.subresource = "status";
  ASSERT_FALSE(Handle(std::move(bind)).failure);
  const auto resize = [&](std::string_view size) {
    return PatchErrors(
        claim, StrCat(R"({"spec":{"resources":{"requests":{"storage":")", size, R"("}}}})"));
  };
  EXPECT_THAT(resize("3Gi"), IsEmpty());
  EXPECT_THAT(resize("1Gi"),
              ElementsAreArray(Texts{"spec.resources.requests.storage: Forbidden: field can not "
                                     "be less than status.capacity"}));
}

TEST_F(KindRulesTest, StorageKinds) {
  constexpr std::string_view kVersion = "storage.k8s.io/v1";
  EXPECT_THAT(Errors(Object(kVersion, "StorageClass",
                            R"("provisioner":"a/b/c","reclaimPolicy":"Recycle","allowedTopologies":
                               [{"matchLabelExpressions":[{"key":"k","values":[]}]}])")),
              ElementsAreArray(Texts{
                  "provisioner: Invalid value: \"a/b/c\": a valid label key must consist of "
                  "alphanumeric characters, '-', '_' or '.', and must start and end with an "
                  "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used "
                  "for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional "
                  "DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                  "reclaimPolicy: Unsupported value: \"Recycle\": supported values: \"Delete\", "
                  "\"Retain\"",
                  "allowedTopologies[0].matchLabelExpressions[0].values: Required value"}));
  const std::string storage_class =
      Object(kVersion, "StorageClass", R"("provisioner":"p","parameters":{"a":"b"})");
  Create(storage_class);
  EXPECT_THAT(PatchErrors(storage_class, R"({"allowVolumeExpansion":true})"), IsEmpty());
  EXPECT_THAT(
      PatchErrors(storage_class,
                  R"({"provisioner":"q","parameters":null,"reclaimPolicy":"Retain"})"),
      ElementsAreArray(Texts{"parameters: Invalid value: null: field is immutable",
                             "provisioner: Invalid value: \"q\": field is immutable",
                             "reclaimPolicy: Invalid value: \"Retain\": field is immutable"}));
  EXPECT_THAT(Errors(Object(kVersion, "CSIDriver",
                            R"("spec":{"fsGroupPolicy":"x","volumeLifecycleModes":["y"],
                               "tokenRequests":[{"audience":"a","expirationSeconds":1},
                               {"audience":"a"}]})")),
              ElementsAreArray(Texts{
                  "spec.fsGroupPolicy: Unsupported value: \"x\": supported values: \"File\", "
                  "\"None\", \"ReadWriteOnceWithFSType\"",
                  "spec.tokenRequests[0].expirationSeconds: Invalid value: 1: may not specify a "
                  "duration less than 10 minutes",
                  "spec.tokenRequests[1].audience: Duplicate value: \"a\"",
                  "spec.volumeLifecycleModes: Unsupported value: \"y\": supported values: "
                  "\"Ephemeral\", \"Persistent\""}));
  const std::string node =
      Object(kVersion, "CSINode", R"("spec":{"drivers":[{"name":"d","nodeID":"n"}]})");
  Create(node);
  EXPECT_EQ(PatchErrors(node, R"({"spec":{"drivers":[{"name":"d","nodeID":"m"}]}})").size(), 1u);
  EXPECT_THAT(PatchErrors(node, R"({"spec":{"drivers":[{"name":"d","nodeID":"n",
                                  "allocatable":{"count":3}},{"name":"e","nodeID":"n"}]}})"),
              IsEmpty());
  EXPECT_THAT(Errors(Object(kVersion, "VolumeAttachment",
                            R"("spec":{"attacher":"a","nodeName":"n","source":{}})")),
              ElementsAreArray(Texts{"spec.source: Required value: must specify exactly one of "
                                     "inlineVolumeSpec and persistentVolumeName"}));
}

TEST_F(KindRulesTest, RuntimeClassesAndBudgets) {
  const std::string runtime_class = Object("node.k8s.io/v1", "RuntimeClass", R"("handler":"h")");
  EXPECT_THAT(Errors(Object("node.k8s.io/v1", "RuntimeClass",
                            R"("handler":"a.b","overhead":{"podFixed":{"gpu":"1"}},"scheduling":
                               {"tolerations":[{"key":"k"},{"key":"k","tolerationSeconds":1}]})")),
              ElementsAreArray(Texts{
                  "handler: Invalid value: \"a.b\": must not contain dots",
                  "overhead.limits[gpu]: Invalid value: \"gpu\": must be a standard resource type "
                  "or fully qualified",
                  "overhead.limits[gpu]: Invalid value: \"gpu\": must be a standard resource for "
                  "containers",
                  "scheduling.tolerations[1].effect: Invalid value: \"\": effect must be "
                  "'NoExecute' when `tolerationSeconds` is set",
                  "scheduling.tolerations[1]: Duplicate value: "
                  "{\"key\":\"k\",\"tolerationSeconds\":1}"}));
  Create(runtime_class);
  EXPECT_THAT(PatchErrors(runtime_class, R"({"handler":"i"})"),
              ElementsAreArray(Texts{"handler: Invalid value: \"i\": field is immutable"}));
  EXPECT_THAT(Errors(Object("policy/v1", "PodDisruptionBudget",
                            R"("spec":{"minAvailable":1,"unhealthyPodEvictionPolicy":"x","selector":
                               {"matchExpressions":[{"key":"k","operator":"Is"}]}})")),
              ElementsAreArray(Texts{
                  "spec.selector.matchExpressions[0].operator: Invalid value: \"Is\": not a valid "
                  "selector operator",
                  "spec.unhealthyPodEvictionPolicy: Unsupported value: \"x\": supported values: "
                  "\"AlwaysAllow\", \"IfHealthyBudget\""}));
}

TEST_F(KindRulesTest, NodesAndNamespaces) {
  EXPECT_THAT(Errors(Object("v1", "Node",
                            R"("spec":{"podCIDRs":["10.0.0.0/24","10.0.1.0/24"]},
                               "status":{"capacity":{"example.com/gpu":"1500m","cpu":"-1"}})")),
              ElementsAreArray(Texts{
                  "status.capacity.cpu: Invalid value: \"-1\": must be greater than or equal to 0",
                  "status.capacity.example.com/gpu: Invalid value: \"1500m\": must be an integer",
                  "status.allocatable.cpu: Invalid value: \"-1\": must be greater than or equal "
                  "to 0",
                  "status.allocatable.example.com/gpu: Invalid value: \"1500m\": must be an "
                  "integer",
                  "spec.podCIDRs: Invalid value: [\"10.0.0.0/24\",\"10.0.1.0/24\"]: may specify no "
                  "more than one CIDR for each IP family"}));
  const std::string node =
      Object("v1", "Node", R"("spec":{"podCIDR":"10.0.0.0/24","providerID":"a"})");
  Create(node);
  EXPECT_THAT(
      PatchErrors(node, R"({"spec":{"podCIDR":"10.0.1.0/24","podCIDRs":["10.0.1.0/24"],
                          "providerID":"b"}})"),
      ElementsAreArray(Texts{"spec.podCIDRs: Forbidden: node updates may not change podCIDR except "
                             "from \"\" to valid",
                             "spec.providerID: Invalid value: null: field cannot be modified once "
                             "set"}));
  const std::string name_space = Object("v1", "Namespace", R"("spec":{})");
  Create(name_space);
  EXPECT_THAT(PatchErrors(name_space, R"({"status":{"phase":"Terminating"}})", "status"),
              ElementsAreArray(Texts{"status.Phase: Invalid value: \"Terminating\": may only be "
                                     "'Active' if `deletionTimestamp` is empty"}));
}

TEST_F(KindRulesTest, LimitsAndQuotas) {
  EXPECT_THAT(
      Errors(Object("v1", "LimitRange",
                    R"("spec":{"limits":[{"type":"Container","max":{"gpu":"1"}},
                               {"type":"Pod","max":{"storage":"1"}}]})")),
      ElementsAreArray(
          Texts{"spec.limits[0].max[gpu]: Invalid value: \"gpu\": must be a standard resource "
                "type or fully qualified",
                "spec.limits[0].max[gpu]: Invalid value: \"gpu\": must be a standard resource "
                "for containers",
                "spec.limits[0].default[gpu]: Invalid value: \"gpu\": must be a standard resource "
                "type or fully qualified",
                "spec.limits[0].default[gpu]: Invalid value: \"gpu\": must be a standard resource "
                "for containers",
                "spec.limits[0].defaultRequest[gpu]: Invalid value: \"gpu\": must be a standard "
                "resource type or fully qualified",
                "spec.limits[0].defaultRequest[gpu]: Invalid value: \"gpu\": must be a standard "
                "resource for containers",
                "spec.limits[1].max[storage]: Invalid value: \"storage\": must be a standard "
                "resource for containers"}));
  EXPECT_THAT(
      Errors(Object("v1", "ResourceQuota",
                    R"("spec":{"hard":{"gpu":"1","requests.example.com/a":"1500m"}})")),
      ElementsAreArray(
          Texts{"spec.hard[gpu]: Invalid value: \"gpu\": must be a standard resource type or "
                "fully qualified",
                "spec.hard[gpu]: Invalid value: \"gpu\": must be a standard resource for quota"}));
}

TEST_F(KindRulesTest, StatefulSetsCheckTheirClaims) {
  EXPECT_THAT(Errors(Object("apps/v1", "StatefulSet",
                            R"("spec":{"selector":{"matchLabels":{"a":"b"}},"template":
                               {"metadata":{"labels":{"a":"b"}},"spec":{"containers":
                               [{"name":"c","image":"i"}]}},"volumeClaimTemplates":
                               [{"metadata":{"name":"v"},"spec":{"accessModes":["RWO"]}}]})")),
              ElementsAreArray(Texts{
                  "spec.volumeClaimTemplates[0].spec.accessModes: Unsupported value: \"RWO\": "
                  "supported values: \"ReadOnlyMany\", \"ReadWriteMany\", \"ReadWriteOnce\", "
                  "\"ReadWriteOncePod\"",
                  "spec.volumeClaimTemplates[0].spec.resources[storage]: Required value"}));
}

}  // namespace
}  // namespace drakkar::apiserver
