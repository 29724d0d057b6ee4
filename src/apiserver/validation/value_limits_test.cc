// The last value that a field may have, and the first one that it may not.
#include "apiserver/testing/value_rule_fixture.h"

namespace drakkar::apiserver {
namespace {

std::string Long(std::size_t size) {
  return std::string(size, 'a');
}

// Labels of at most 50 letters, joined by dots.
std::string Dotted(std::size_t size) {
  std::string text(size, 'a');
  for (std::size_t i = 50; i + 1 < size; i += 51) text[i] = '.';
  return text;
}

std::string Repeated(std::size_t count, std::string_view item) {
  std::string list;
  for (std::size_t i = 0; i < count; ++i) {
    std::string each = StrCat(i == 0 ? "" : ",", item);
    for (std::size_t at = each.find('#'); at != each.npos; at = each.find('#')) {
      each.replace(at, 1, std::to_string(i));
    }
    list += each;
  }
  return list;
}

class ValueLimitsTest : public ValueRuleFixture {};

TEST_F(ValueLimitsTest, NumbersInPods) {
  ExpectOfContainer({
      {"spec.containers[0].ports[0].containerPort",
       R"("ports":[{"containerPort":%}])",
       {"1", "65535"},
       {"0", "-1", "65536"}},
      {"spec.containers[0].ports[0].hostPort",
       R"("ports":[{"containerPort":1,"hostPort":%}])",
       {"0", "1", "65535"},
       {"-1", "65536"}},
      {"spec.containers[0].livenessProbe.terminationGracePeriodSeconds",
       R"("livenessProbe":{"tcpSocket":{"port":1},"terminationGracePeriodSeconds":%})",
       {"1"},
       {"0", "-1"}},
      {"spec.containers[0].livenessProbe.successThreshold",
       R"("livenessProbe":{"tcpSocket":{"port":1},"successThreshold":%})",
       {"1"},
       {"2"}},
      {"spec.containers[0].readinessProbe.failureThreshold",
       R"("readinessProbe":{"tcpSocket":{"port":1},"failureThreshold":%})",
       {"1"},
       {"-1"}},
      {"spec.containers[0].lifecycle.preStop.sleep",
       R"("lifecycle":{"preStop":{"sleep":{"seconds":%}}})",
       {"0", "30"},
       {"-1", "31"}},
      {"spec.containers[0].securityContext.runAsUser",
       R"("securityContext":{"runAsUser":%})",
       {"0", "2147483647"},
       {"-1", "2147483648"}},
      {"spec.containers[0].securityContext.runAsGroup",
       R"("securityContext":{"runAsGroup":%})",
       {"0", "2147483647"},
       {"-1", "2147483648"}},
  });
  ExpectOfSpec({
      {"spec.activeDeadlineSeconds",
       R"("activeDeadlineSeconds":%)",
       {"1", "2147483647"},
       {"0", "2147483648"}},
      {"spec.terminationGracePeriodSeconds",
       R"("terminationGracePeriodSeconds":%)",
       {"0", "1"},
       {"-1"}},
      {"spec.securityContext.fsGroup",
       R"("securityContext":{"fsGroup":%})",
       {"0", "2147483647"},
       {"-1", "2147483648"}},
      {"spec.securityContext.supplementalGroups[1]",
       R"("securityContext":{"supplementalGroups":[1,%]})",
       {"0", "2147483647"},
       {"-1", "2147483648"}},
      {"spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[1].weight",
       R"("affinity":{"podAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[
          {"weight":1,"podAffinityTerm":{"topologyKey":"a"}},
          {"weight":%,"podAffinityTerm":{"topologyKey":"a"}}]}})",
       {"1", "100"},
       {"0", "101"}},
      {"spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[1].weight",
       R"("affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[
          {"weight":1,"preference":{"matchExpressions":[{"key":"a","operator":"Exists"}]}},
          {"weight":%,"preference":{"matchExpressions":[{"key":"a","operator":"Exists"}]}}]}})",
       {"1", "100"},
       {"0", "101"}},
      {"spec.topologySpreadConstraints[1].maxSkew",
       R"("topologySpreadConstraints":[
          {"maxSkew":1,"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule"},
          {"maxSkew":%,"topologyKey":"b","whenUnsatisfiable":"DoNotSchedule"}])",
       {"1"},
       {"0", "-1"}},
      {"spec.topologySpreadConstraints[0].minDomains",
       R"("topologySpreadConstraints":[
          {"maxSkew":1,"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule","minDomains":%}])",
       {"1"},
       {"0", "-1"}},
  });
  Expect(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","annotations":{)",
         {{"metadata.annotations[controller.kubernetes.io/pod-deletion-cost]",
           R"("controller.kubernetes.io/pod-deletion-cost":"%")",
           {"0", "2147483647", "-2147483648"},
           {"2147483648", "-2147483649", "+1", "01", "-0", "", "a", "1 "}}},
         R"(}},"spec":{"containers":[{"name":"a","image":"i"}]}})");
}

TEST_F(ValueLimitsTest, NumbersInVolumes) {
  for (const std::string_view source :
       {R"("gcePersistentDisk":{"pdName":"d","partition":%})",
        R"("awsElasticBlockStore":{"volumeID":"d","partition":%})"}) {
    const bool gce = source.starts_with("\"gce");
    ExpectOfVolume({{gce ? "spec.volumes[0].persistentDisk.partition"
                         : "spec.volumes[0].awsElasticBlockStore.partition",
                     source,
                     {"0", "1", "255"},
                     {"-1", "256"}}});
  }
  ExpectOfVolume({
      {"spec.volumes[0].iscsi.lun",
       R"("iscsi":{"targetPortal":"p","iqn":"iqn.2020-01.a:b","lun":%})",
       {"0", "255"},
       {"-1", "256"}},
      {"spec.volumes[0].fc.lun",
       R"("fc":{"targetWWNs":["a"],"lun":%})",
       {"0", "255"},
       {"-1", "256"}},
      {"spec.volumes[0].emptyDir.sizeLimit",
       R"("emptyDir":{"sizeLimit":"%"})",
       {"0", "1Gi"},
       {"-1"}},
      {"spec.volumes[0].configMap.defaultMode",
       R"("configMap":{"name":"c","defaultMode":%})",
       {"0", "511"},
       {"-1", "512"}},
      {"spec.volumes[0].secret.items[1].mode",
       R"("secret":{"secretName":"c","items":[{"key":"k","path":"a"},
          {"key":"l","path":"b","mode":%}]})",
       {"0", "511"},
       {"-1", "512"}},
      {"spec.volumes[0].downwardAPI.mode",
       R"("downwardAPI":{"items":[{"path":"a","fieldRef":{"fieldPath":"metadata.name"},
          "mode":%}]})",
       {"0", "511"},
       {"-1", "512"}},
      {"spec.volumes[0].projected.defaultMode",
       R"("projected":{"sources":[],"defaultMode":%})",
       {"0", "511"},
       {"-1", "512"}},
      {"spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds",
       R"("projected":{"sources":[{"serviceAccountToken":{"path":"t","expirationSeconds":%}}]})",
       {"600", "4294967296"},
       {"599", "4294967297"}},
      {"spec.volumes[0].projected.sources[0].podCertificate.maxExpirationSeconds",
       R"("projected":{"sources":[{"podCertificate":{"signerName":"a.b/c","keyType":"ED25519",
          "keyPath":"k","maxExpirationSeconds":%}}]})",
       {"3600", "7862400"},
       {"3599", "7862401"}},
      {"spec.volumes[0].projected.sources[0].podCertificate.maxExpirationSeconds",
       R"("projected":{"sources":[{"podCertificate":{"signerName":"kubernetes.io/c",
          "keyType":"ED25519","keyPath":"k","maxExpirationSeconds":%}}]})",
       {"3600", "86400"},
       {"3599", "86401"}},
  });
}

TEST_F(ValueLimitsTest, NumbersInOtherKinds) {
  ExpectOfObject({
      {"spec.sessionAffinityConfig.clientIP.timeoutSeconds",
       R"("apiVersion":"v1","kind":"Service","spec":{"ports":[{"port":1}],"sessionAffinity":
          "ClientIP","sessionAffinityConfig":{"clientIP":{"timeoutSeconds":%}}})",
       {"1", "86400"},
       {"0", "-1", "86401"}},
      {"spec.ingress[0].ports[0].endPort",
       R"("apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","spec":{"podSelector":{},
          "ingress":[{"ports":[{"port":80,"endPort":%}]}]})",
       {"80", "81"},
       {"79"}},
      {"spec.egress[1].ports[1].port",
       R"("apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","spec":{"podSelector":{},
          "egress":[{},{"ports":[{"port":80},{"port":%}]}]})",
       {"1", "65535", R"("web")"},
       {"0", "65536", R"("-")"}},
      {"spec.tokenRequests[1].expirationSeconds",
       R"("apiVersion":"storage.k8s.io/v1","kind":"CSIDriver","spec":{"tokenRequests":
          [{"audience":"a"},{"audience":"b","expirationSeconds":%}]})",
       {"600", "4294967296"},
       {"599", "4294967297"}},
      {"spec.drivers[0].allocatable.count",
       R"("apiVersion":"storage.k8s.io/v1","kind":"CSINode","spec":{"drivers":[{"name":"d",
          "nodeID":"n","allocatable":{"count":%}}]})",
       {"0", "1"},
       {"-1"}},
      {"capacity",
       R"("apiVersion":"storage.k8s.io/v1","kind":"CSIStorageCapacity","storageClassName":"c",
          "capacity":"%")",
       {"0", "1Gi"},
       {"-1"}},
      {"spec.capacity[storage]",
       R"("apiVersion":"v1","kind":"PersistentVolume","spec":{"accessModes":["ReadWriteOnce"],
          "hostPath":{"path":"/a"},"capacity":{"storage":"%"}})",
       {"1"},
       {"0", "-1"}},
      {"spec.resources[storage]",
       R"("apiVersion":"v1","kind":"PersistentVolumeClaim","spec":{"accessModes":
          ["ReadWriteOnce"],"resources":{"requests":{"storage":"%"}}})",
       {"1"},
       {"0", "-1"}},
  });
}

TEST_F(ValueLimitsTest, SizesInPods) {
  ExpectOfContainer({
      {"spec.containers[0].ports[0].name",
       R"("ports":[{"containerPort":1,"name":"%"}])",
       {Long(15)},
       {Long(16)}},
      {"spec.containers[0].securityContext.appArmorProfile.localhostProfile",
       R"("securityContext":{"appArmorProfile":{"type":"Localhost","localhostProfile":"%"}})",
       {Long(4'095)},
       {Long(4'096)}},
      {"spec.containers[0].env[0].valueFrom.configMapKeyRef.key",
       R"("env":[{"name":"A","valueFrom":{"configMapKeyRef":{"name":"c","key":"%"}}}])",
       {Long(253)},
       {Long(254)}},
      {"spec.containers[0].restartPolicyRules",
       R"("restartPolicy":"Never","restartPolicyRules":[%])",
       {Repeated(20, R"({"action":"Restart","exitCodes":{"operator":"In","values":[#]}})")},
       {Repeated(21, R"({"action":"Restart","exitCodes":{"operator":"In","values":[#]}})")}},
      {"spec.containers[0].restartPolicyRules[0].exitCodes.values",
       R"("restartPolicy":"Never","restartPolicyRules":[{"action":"Restart","exitCodes":
          {"operator":"In","values":[%]}}])",
       {Repeated(255, "#")},
       {Repeated(256, "#")}},
  });
  ExpectOfSpec({
      {"spec.securityContext.sysctls[0].name",
       R"("securityContext":{"sysctls":[{"name":"%","value":"1"}]})",
       {Dotted(253)},
       {Dotted(254)}},
      {"spec.dnsConfig.nameservers",
       R"("dnsConfig":{"nameservers":[%]})",
       {Repeated(3, R"("10.0.0.#")")},
       {Repeated(4, R"("10.0.0.#")")}},
      {"spec.dnsConfig.searches",
       R"("dnsConfig":{"searches":[%]})",
       {Repeated(32, R"("a#")"),
        // Nine times 200 bytes and one of 239, with nine spaces.
        StrCat(Repeated(9, StrCat('"', Dotted(200), '"')), ",\"", Dotted(239), '"')},
       {Repeated(33, R"("a#")"),
        StrCat(Repeated(9, StrCat('"', Dotted(200), '"')), ",\"", Dotted(240), '"')}},
      {"spec.dnsConfig.searches[1]",
       R"("dnsConfig":{"searches":["a","%"]})",
       {Dotted(253), Dotted(253) + "."},
       {Dotted(254)}},
      {"spec.hostname", R"("hostname":"%")", {Long(63)}, {Long(64)}},
  });
  ExpectOfVolume({
      {"spec.volumes[0].quobyte.tenant",
       R"("quobyte":{"registry":"h:1","volume":"v","tenant":"%"})",
       {Long(64)},
       {Long(65)}},
      {"spec.volumes[0].name",
       R"("iscsi":{"targetPortal":"%","iqn":"iqn.2020-01.a:b","lun":1,
          "initiatorName":"iqn.2020-01.a:b"})",
       {Long(62)},
       {Long(63)}},
      {"spec.volumes[0].csi.driver", R"("csi":{"driver":"%"})", {Dotted(63)}, {Dotted(64)}},
  });
  Expect(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"os":
            {"name":"windows"},"containers":[{"name":"a","image":"i","securityContext":
            {"windowsOptions":{)",
      {{"spec.containers[0].securityContext.windowsOptions.runAsUserName",
        R"("runAsUserName":"%")",
        {Long(104), StrCat("_______________", R"(\\)", "u"), StrCat(Dotted(255), R"(\\)", "u")},
        {Long(105), StrCat("________________", R"(\\)", "u"), StrCat(Dotted(256), R"(\\)", "u")}},
       {"spec.containers[0].securityContext.windowsOptions.gmsaCredentialSpec",
        R"("gmsaCredentialSpec":"%")",
        {"a", Long(64 * 1024)},
        {"", Long(64 * 1024 + 1)}}},
      "}}}]}}");
}

TEST_F(ValueLimitsTest, SizesInOtherKinds) {
  ExpectOfPersistentVolume({{"spec.iscsi.targetportal",
                             R"("iscsi":{"targetPortal":"%","iqn":"iqn.2020-01.a:b","lun":1,
                                "initiatorName":"iqn.2020-01.a:b"})",
                             {Long(62)},
                             {Long(63)}}});
  ExpectOfObject({
      {"spec.controller",
       R"("apiVersion":"networking.k8s.io/v1","kind":"IngressClass","spec":{"controller":"%"})",
       {StrCat("a.b/", Long(246))},
       {StrCat("a.b/", Long(247))}},
      {"spec.rules[0].host",
       R"("apiVersion":"networking.k8s.io/v1","kind":"Ingress","spec":{"rules":[{"host":"%"}]})",
       {StrCat("*.", Dotted(251)), Dotted(253)},
       {StrCat("*.", Dotted(252)), Dotted(254)}},
      {"parameters",
       R"("apiVersion":"storage.k8s.io/v1","kind":"StorageClass","provisioner":"p",
          "parameters":{%})",
       {Repeated(512, R"("a#":"b")"), StrCat(R"("a":")", Long(256 * 1024 - 1), '"')},
       {Repeated(513, R"("a#":"b")"), StrCat(R"("a":")", Long(256 * 1024), '"'), R"("":"b")"}},
      {"spec.drivers[0].nodeID",
       R"("apiVersion":"storage.k8s.io/v1","kind":"CSINode","spec":{"drivers":[{"name":"d",
          "nodeID":"%"}]})",
       {Long(256)},
       {Long(257), ""}},
      {"spec.clusterIPs",
       R"("apiVersion":"v1","kind":"Service","spec":{"ports":[{"port":1}],"clusterIP":"None",
          "clusterIPs":[%]})",
       {R"("None")"},
       {R"("None","10.96.1.1")", R"("None","10.96.1.1","::1")"}},
  });
}

}  // namespace
}  // namespace drakkar::apiserver
