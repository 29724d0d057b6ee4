// What is wrong with pods, in the words of Kubernetes.
#include <gmock/gmock.h>

#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

// Something added to a valid pod, and all errors that it causes.
struct Case {
  std::string_view fields;
  std::vector<std::string> errors = {};
};

class PodErrorsTest : public CoreFixture {
 protected:
  void SetUp() override { StartCore(nullptr); }

  std::vector<std::string> Errors(std::string_view json) {
    Request request = RequestFor(Verb::kCreate, json, AdminUser());
    request.dry_run = true;
    return ErrorsOf(Handle(std::move(request)));
  }
  static std::vector<std::string> ErrorsOf(const Response& response) {
    std::vector<std::string> errors;
    if (!response.failure) return errors;
    for (const auto& cause : response.failure->causes) {
      errors.push_back(StrCat(cause.field, ": ", cause.message));
    }
    if (errors.empty()) errors.push_back(response.failure->message);
    return errors;
  }
  static std::string Pod(std::string_view spec, std::string_view metadata = "") {
    return StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p")",
                  metadata.empty() ? "" : ",", metadata, R"(},"spec":{)", spec, "}}");
  }
  void ExpectForContainer(const std::vector<Case>& cases) {
    for (const Case& each : cases) {
      SCOPED_TRACE(each.fields);
      const std::string spec = StrCat(
          R"("volumes":[{"name":"v","emptyDir":{}},{"name":"c","persistentVolumeClaim":)",
          R"({"claimName":"c"}}],"containers":[{"name":"a","image":"i",)", each.fields, "}]");
      EXPECT_THAT(Errors(Pod(spec)), ElementsAreArray(each.errors));
    }
  }
  void ExpectForSpec(const std::vector<Case>& cases) {
    for (const Case& each : cases) {
      SCOPED_TRACE(each.fields);
      const std::string spec = StrCat(R"("containers":[{"name":"a","image":"i"}],)", each.fields);
      EXPECT_THAT(Errors(Pod(spec)), ElementsAreArray(each.errors));
    }
  }
  void ExpectForVolume(const std::vector<Case>& cases) {
    for (const Case& each : cases) {
      SCOPED_TRACE(each.fields);
      const std::string spec =
          StrCat(R"("serviceAccountName":"s","containers":[{"name":"a","image":"i"}],)",
                 R"("volumes":[{"name":"v",)", each.fields, "}]");
      EXPECT_THAT(Errors(Pod(spec)), ElementsAreArray(each.errors));
    }
  }
};

TEST_F(PodErrorsTest, TolerationsAreConsistent) {
  const std::string label =
      "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
      "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value', "
      " or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
  ExpectForSpec({
      {R"("tolerations":[{"operator":"Exists"},{"key":"k","value":"v","effect":"NoExecute",
          "tolerationSeconds":-1}])"},
      {R"("tolerations":[{"key":"k","operator":"Exists","value":"v"}])",
       {"spec.tolerations[0].operator: Invalid value: \"v\": value must be empty when `operator` "
        "is 'Exists'"}},
      {R"("tolerations":[{"operator":"Equal"}])",
       {"spec.tolerations[0].operator: Invalid value: \"Equal\": operator must be Exists when "
        "`key` is empty, which means \"match all values and all keys\""}},
      {R"("tolerations":[{"key":"k","effect":"NoSchedule","tolerationSeconds":1}])",
       {"spec.tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' "
        "when `tolerationSeconds` is set"}},
      {R"("tolerations":[{"key":"k","operator":"Gt","value":"1"}])",
       {"spec.tolerations[0].operator: Unsupported value: \"Gt\": supported values: \"Equal\", "
        "\"Exists\", \"Gt\", \"Lt\""}},
      {R"("tolerations":[{"key":"k","operator":"In","value":"1"}])",
       {"spec.tolerations[0].operator: Unsupported value: \"In\": supported values: \"Equal\", "
        "\"Exists\""}},
      {R"("tolerations":[{"key":"k","value":"a b"}])",
       {"spec.tolerations[0].operator: Invalid value: \"a b\": " + label}},
      {R"("tolerations":[{"key":"k","effect":"Never"}])",
       {"spec.tolerations[0].effect: Unsupported value: \"Never\": supported values: "
        "\"NoExecute\", \"NoSchedule\", \"PreferNoSchedule\""}},
  });
}

TEST_F(PodErrorsTest, GatesAreUniqueAndQualified) {
  ExpectForSpec({
      {R"("schedulingGates":[{"name":"a.b/c"},{"name":"d"}])"},
      {R"("schedulingGates":[{"name":"a"},{"name":"a"}])",
       {"spec.schedulingGates[1]: Duplicate value: \"a\""}},
      {R"("schedulingGates":[{"name":"a"}],"nodeName":"n")",
       {"spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"}},
      {R"("readinessGates":[{"conditionType":"example.com/ready"}])"},
      {R"("readinessGates":[{"conditionType":"a/b/c"}])",
       {"spec.readinessGates[0].conditionType: Invalid value: \"a/b/c\": a valid label key must "
        "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
        "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
        "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain "
        "prefix and '/' (e.g. 'example.com/MyName')"}},
  });
}

TEST_F(PodErrorsTest, PortsAreInRangeAndUnique) {
  ExpectForContainer({
      {R"("ports":[{"containerPort":80,"name":"web"},{"containerPort":80,"protocol":"UDP"}])"},
      {R"("ports":[{"containerPort":0}])",
       {"spec.containers[0].ports[0].containerPort: Required value"}},
      {R"("ports":[{"containerPort":65536,"hostPort":-1}])",
       {"spec.containers[0].ports[0].containerPort: Invalid value: 65536: must be between 1 and "
        "65535, inclusive",
        "spec.containers[0].ports[0].hostPort: Invalid value: -1: must be between 1 and 65535, "
        "inclusive"}},
      {R"("ports":[{"containerPort":1,"name":"a"},{"containerPort":2,"name":"a"}])",
       {"spec.containers[0].ports[1].name: Duplicate value: \"a\""}},
      {R"("ports":[{"containerPort":1,"name":"1--A-"}])",
       {"spec.containers[0].ports[0].name: Invalid value: \"1--A-\": must contain only "
        "alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        "spec.containers[0].ports[0].name: Invalid value: \"1--A-\": must contain at least one "
        "letter (a-z)",
        "spec.containers[0].ports[0].name: Invalid value: \"1--A-\": must not contain consecutive "
        "hyphens",
        "spec.containers[0].ports[0].name: Invalid value: \"1--A-\": must not begin or end with a "
        "hyphen"}},
      {R"("ports":[{"containerPort":1,"protocol":"tcp"}])",
       {"spec.containers[0].ports[0].protocol: Unsupported value: \"tcp\": supported values: "
        "\"SCTP\", \"TCP\", \"UDP\""}},
      {R"("ports":[{"containerPort":1,"hostPort":8},{"containerPort":2,"hostPort":8},
          {"containerPort":3,"hostPort":8,"hostIP":"1.2.3.4"}])",
       {"spec.containers[0].ports[1].hostPort: Duplicate value: \"TCP//8\""}},
  });
  EXPECT_THAT(Errors(Pod(R"("hostNetwork":true,"containers":[{"name":"a","image":"i",
                            "ports":[{"containerPort":80,"hostPort":81}]}])")),
              ElementsAreArray({"spec.containers[0].ports[0].hostPort: Invalid value: 81: must "
                                "match `containerPort` when `hostNetwork` is true"}));
}

TEST_F(PodErrorsTest, VariablesHaveOneSource) {
  ExpectForContainer({
      {R"("env":[{"name":"a-b.c d"},{"name":"N","valueFrom":{"fieldRef":
          {"fieldPath":"metadata.labels['a/b']"}}}])"},
      {R"("env":[{"name":"a=b"},{}])",
       {"spec.containers[0].env[0].name: Invalid value: \"a=b\": a valid environment variable name "
        "must consist only of printable ASCII characters other than '='",
        "spec.containers[0].env[1].name: Required value"}},
      {R"("env":[{"name":"N","valueFrom":{}}])",
       {"spec.containers[0].env[0].valueFrom: Invalid value: \"\": must specify one of: "
        "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"}},
      {R"("env":[{"name":"N","value":"v","valueFrom":{"configMapKeyRef":{"name":"c","key":"k"}}}])",
       {"spec.containers[0].env[0].valueFrom: Invalid value: \"\": may not be specified when "
        "`value` is not empty"}},
      {R"("env":[{"name":"N","valueFrom":{"configMapKeyRef":{"name":"c","key":"k"},
          "secretKeyRef":{"name":"c","key":"k"}}}])",
       {"spec.containers[0].env[0].valueFrom: Invalid value: \"\": may not have more than one "
        "field specified at a time"}},
      {R"("env":[{"name":"N","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels"}}}])",
       {"spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "
        "\"metadata.labels\": supported values: \"metadata.name\", \"metadata.namespace\", "
        "\"metadata.uid\", \"spec.nodeName\", \"spec.serviceAccountName\", \"status.hostIP\", "
        "\"status.hostIPs\", \"status.podIP\", \"status.podIPs\""}},
      {R"("env":[{"name":"N","valueFrom":{"fieldRef":{"fieldPath":"spec.x"}}}])",
       {"spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"spec.x\": error "
        "converting fieldPath: field label not supported: spec.x"}},
      {R"("env":[{"name":"N","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu",
          "divisor":"2"}}}])",
       {"spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "
        "\"limits.cpu\": only divisor's values 1m and 1 are supported with the cpu resource"}},
      {R"("env":[{"name":"N","valueFrom":{"fileKeyRef":{"volumeName":"c","path":"a/../b",
          "key":"k"}}}])",
       {"spec.containers[0].env[0].valueFrom.fileKeyRef.path: Invalid value: \"a/../b\": must not "
        "contain '..'",
        "spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName: Invalid value: \"c\": "
        "referenced volume must be of type emptyDir"}},
      {R"("envFrom":[{"prefix":"a="},{"configMapRef":{"name":"c"},"secretRef":{}}])",
       {"spec.containers[0].envFrom[0].prefix: Invalid value: \"a=\": a valid environment variable "
        "name must consist only of printable ASCII characters other than '='",
        "spec.containers[0].envFrom: Invalid value: \"\": must specify one of: `configMapRef` or "
        "`secretRef`",
        "spec.containers[0].envFrom[1].secretRef.name: Required value",
        "spec.containers[0].envFrom: Invalid value: \"\": may not have more than one field "
        "specified at a time"}},
  });
}

TEST_F(PodErrorsTest, MountsAndDevicesDoNotCollide) {
  ExpectForContainer({
      {R"("volumeMounts":[{"name":"v","mountPath":"/a","subPath":"b/c"}],
          "volumeDevices":[{"name":"c","devicePath":"/dev/c"}])"},
      {R"("volumeMounts":[{"name":"v","mountPath":"/a"},{"name":"v","mountPath":"/a"},
          {"name":"w","mountPath":""}])",
       {"spec.containers[0].volumeMounts[1].mountPath: Invalid value: \"/a\": must be unique",
        "spec.containers[0].volumeMounts[2].name: Not found: \"w\"",
        "spec.containers[0].volumeMounts[2].mountPath: Required value"}},
      {R"("volumeMounts":[{"name":"v","mountPath":"/a","subPath":"../b","subPathExpr":"/c"}])",
       {"spec.containers[0].volumeMounts.subPath: Invalid value: \"../b\": must not contain '..'",
        "spec.containers[0].volumeMounts[0].subPathExpr: Invalid value: \"/c\": subPathExpr and "
        "subPath are mutually exclusive",
        "spec.containers[0].volumeMounts.subPathExpr: Invalid value: \"/c\": must be a relative "
        "path"}},
      {R"("volumeMounts":[{"name":"v","mountPath":"/a","mountPropagation":"Bidirectional",
          "recursiveReadOnly":"Enabled"}])",
       {"spec.containers[0].volumeMounts.mountPropagation: Forbidden: Bidirectional mount "
        "propagation is available only to privileged containers",
        "spec.containers[0].volumeMounts.recursiveReadOnly: Forbidden: may only be specified when "
        "readOnly is true",
        "spec.containers[0].volumeMounts.recursiveReadOnly: Forbidden: may only be specified when "
        "mountPropagation is None or not specified"}},
      {R"("volumeDevices":[{"name":"v","devicePath":"/dev/../x"}])",
       {"spec.containers[0].volumeDevices[0].name: Invalid value: \"v\": can only use volume "
        "source type of PersistentVolumeClaim or Ephemeral for block mode",
        "spec.containers[0].volumeDevices[0].devicePath: Invalid value: \"/dev/../x\": can not "
        "contain backsteps ('..')"}},
  });
}

TEST_F(PodErrorsTest, ProbesAndHooksHaveOneHandler) {
  ExpectForContainer({
      {R"("livenessProbe":{"httpGet":{"port":"web","scheme":"HTTPS","httpHeaders":
          [{"name":"X-A","value":"b c"}]}},"lifecycle":{"preStop":{"sleep":{"seconds":30}}})"},
      {R"("livenessProbe":{})",
       {"spec.containers[0].livenessProbe: Required value: must specify a handler type"}},
      {R"("livenessProbe":{"exec":{},"tcpSocket":{"port":1}})",
       {"spec.containers[0].livenessProbe.exec.command: Required value",
        "spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 "
        "handler type"}},
      {R"("startupProbe":{"tcpSocket":{"port":"a_b"},"successThreshold":2,"periodSeconds":-1})",
       {"spec.containers[0].startupProbe.tcpSocket.port: Invalid value: \"a_b\": must contain only "
        "alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        "spec.containers[0].startupProbe.periodSeconds: Invalid value: -1: must be greater than or "
        "equal to 0",
        "spec.containers[0].startupProbe.successThreshold: Invalid value: 2: must be 1"}},
      {R"("readinessProbe":{"grpc":{"port":0},"terminationGracePeriodSeconds":1})",
       {"spec.containers[0].readinessProbe.grpc.port: Invalid value: 0: must be between 1 and "
        "65535, inclusive",
        "spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 1: must "
        "not be set for readinessProbes"}},
      {R"("livenessProbe":{"httpGet":{"port":1,"scheme":"http","httpHeaders":
          [{"name":"a b","value":""}]}})",
       {"spec.containers[0].livenessProbe.httpGet.scheme: Unsupported value: \"http\": supported "
        "values: \"HTTP\", \"HTTPS\"",
        "spec.containers[0].livenessProbe.httpGet.httpHeaders: Invalid value: \"a b\": a valid "
        "HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex "
        "used for validation is '[-A-Za-z0-9]+')"}},
      {R"("lifecycle":{"postStart":{"sleep":{"seconds":31}},"stopSignal":"SIGTERM"})",
       {"spec.containers[0].lifecycle.postStart.sleep: Invalid value: 31: must be non-negative and "
        "less than terminationGracePeriodSeconds (30)",
        "spec.containers[0].lifecycle.stopSignal: Forbidden: may not be set for containers with "
        "empty `spec.os.name`"}},
  });
  EXPECT_THAT(
      Errors(Pod(R"("containers":[{"name":"a","image":"i"}],"initContainers":[{"name":"b",
                    "image":"i","readinessProbe":{"tcpSocket":{"port":1}}}])")),
      ElementsAreArray({"spec.initContainers[0].readinessProbe: Forbidden: may not be set for init "
                        "containers without restartPolicy=Always"}));
}

TEST_F(PodErrorsTest, ResourcesFitTheirNames) {
  ExpectForContainer({
      {R"("resources":{"limits":{"example.com/gpu":"1","hugepages-2Mi":"4Mi","cpu":"1"}})"},
      {R"("resources":{"requests":{"gpu":"1"}})",
       {"spec.containers[0].resources.requests[gpu]: Invalid value: \"gpu\": must be a standard "
        "resource type or fully qualified",
        "spec.containers[0].resources.requests[gpu]: Invalid value: \"gpu\": must be a standard "
        "resource for containers"}},
      {R"("resources":{"requests":{"example.com/gpu":"1"}})",
       {"spec.containers[0].resources.limits: Required value: Limit must be set for non "
        "overcommitable resources"}},
      {R"("resources":{"limits":{"example.com/gpu":"1500m"}})",
       {"spec.containers[0].resources.limits[example.com/gpu]: Invalid value: \"1500m\": must be "
        "an integer",
        "spec.containers[0].resources.requests[example.com/gpu]: Invalid value: \"1500m\": must be "
        "an integer"}},
      {R"("resources":{"limits":{"example.com/gpu":"2"},"requests":{"example.com/gpu":"1"}})",
       {"spec.containers[0].resources.requests: Invalid value: \"1\": must be equal to "
        "example.com/gpu limit of 2"}},
      {R"("resources":{"limits":{"hugepages-2Mi":"3Mi"}})",
       {"spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not "
        "positive integer multiple of hugepages-2Mi",
        "spec.containers[0].resources.requests[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not "
        "positive integer multiple of hugepages-2Mi",
        "spec.containers[0].resources: Forbidden: HugePages require cpu or memory"}},
      {R"("resizePolicy":[{"resourceName":"disk","restartPolicy":"Maybe"}])",
       {"spec.containers[0].resizePolicy: Unsupported value: \"disk\": supported values: \"cpu\", "
        "\"memory\"",
        "spec.containers[0].resizePolicy: Unsupported value: \"Maybe\": supported values: "
        "\"NotRequired\", \"RestartContainer\""}},
  });
}

TEST_F(PodErrorsTest, PodLevelResourcesCoverThoseOfTheContainers) {
  const auto errors = [&](std::string_view of_pod, std::string_view of_container) {
    return Errors(Pod(StrCat(R"("resources":{)", of_pod,
                             R"(},"containers":[{"name":"a","image":"i","resources":{)",
                             of_container, "}}]")));
  };
  EXPECT_THAT(errors(R"("requests":{"cpu":"1"})", R"("requests":{"cpu":"1"})"), IsEmpty());
  EXPECT_THAT(errors(R"("requests":{"cpu":"1"})", R"("requests":{"cpu":"1500m"})"),
              ElementsAreArray({"spec.resources.requests[cpu]: Invalid value: \"1\": must be "
                                "greater than or equal to aggregate container requests of 1500m"}));
  EXPECT_THAT(
      errors(R"("limits":{"cpu":"1"})", R"("limits":{"cpu":"2"},"requests":{"cpu":"1"})"),
      ElementsAreArray({"spec.resources.containers[0][cpu].limits: Invalid value: \"2\": must be "
                        "less than or equal to pod limits of 1"}));
  EXPECT_THAT(errors(R"("requests":{"ephemeral-storage":"1"})", ""),
              ElementsAreArray({"spec.resources.requests[ephemeral-storage]: Unsupported value: "
                                "\"ephemeral-storage\": supported values: \"cpu\", \"hugepages-\", "
                                "\"memory\""}));
}

TEST_F(PodErrorsTest, SecurityContextsAreConsistent) {
  ExpectForContainer({
      {R"("securityContext":{"runAsUser":2147483647,"seccompProfile":{"type":"Localhost",
          "localhostProfile":"a/b.json"}})"},
      {R"("securityContext":{"runAsUser":-1,"runAsGroup":2147483648})",
       {"spec.containers[0].securityContext.runAsUser: Invalid value: -1: must be between 0 and "
        "2147483647, inclusive",
        "spec.containers[0].securityContext.runAsGroup: Invalid value: 2147483648: must be between "
        "0 and 2147483647, inclusive"}},
      {R"("securityContext":{"procMount":"Unmasked"})",
       {"spec.containers[0].securityContext.procMount: Invalid value: \"Unmasked\": `hostUsers` "
        "must be false to use `Unmasked`"}},
      {R"("securityContext":{"seccompProfile":{"type":"Localhost"}})",
       {"spec.containers[0].securityContext.seccompProfile.localhostProfile: Required value: must "
        "be set when seccomp type is Localhost"}},
      {R"("securityContext":{"seccompProfile":{"type":"RuntimeDefault","localhostProfile":"a"}})",
       {"spec.containers[0].securityContext.seccompProfile.localhostProfile: Invalid value: "
        "{\"type\":\"RuntimeDefault\",\"localhostProfile\":\"a\"}: can only be set when seccomp "
        "type is Localhost"}},
      {R"("securityContext":{"seccompProfile":{"type":"Default"}})",
       {"spec.containers[0].securityContext.seccompProfile.type: Unsupported value: \"Default\": "
        "supported values: \"Localhost\", \"RuntimeDefault\", \"Unconfined\""}},
      {R"("securityContext":{"allowPrivilegeEscalation":false,"privileged":true})",
       {"spec.containers[0].securityContext: Invalid value: "
        "{\"privileged\":true,\"allowPrivilegeEscalation\":false}: cannot set "
        "`allowPrivilegeEscalation` to false and `privileged` to true"}},
      {R"("securityContext":{"appArmorProfile":{"type":"Localhost","localhostProfile":" a"}})",
       {"spec.containers[0].securityContext.appArmorProfile.localhostProfile: Invalid value: "
        "\" a\": must not be padded with whitespace"}},
  });
  ExpectForSpec({
      {R"("securityContext":{"sysctls":[{"name":"net.ipv4.ip_forward","value":"1"},
          {"name":"net/core/somaxconn","value":"1"}],"fsGroupChangePolicy":"Always"})"},
      {R"("hostIPC":true,"securityContext":{"sysctls":[{"name":"a","value":""},{"name":"a","value":""},
          {"name":"A..b","value":""},{"name":"kernel/shmmax","value":""}]})",
       {"spec.securityContext.sysctls[1].name: Duplicate value: \"a\"",
        "spec.securityContext.sysctls[2].name: Invalid value: \"A..b\": must have at most 253 "
        "characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*"
        "[a-z0-9])?$",
        "spec.securityContext.sysctls[3].name: Invalid value: \"kernel/shmmax\": may not be "
        "specified when 'hostIPC' is true"}},
      {R"("securityContext":{"fsGroupChangePolicy":"Never","supplementalGroupsPolicy":"x",
          "seLinuxChangePolicy":"y","supplementalGroups":[-1]})",
       {"spec.securityContext.supplementalGroups[0]: Invalid value: -1: must be between 0 and "
        "2147483647, inclusive",
        "spec.securityContext.fsGroupChangePolicy: Unsupported value: \"Never\": supported values: "
        "\"Always\", \"OnRootMismatch\"",
        "spec.securityContext.supplementalGroupsPolicy: Unsupported value: \"x\": supported "
        "values: \"Merge\", \"Strict\"",
        "spec.securityContext.seLinuxChangePolicy: Unsupported value: \"y\": supported values: "
        "\"MountOption\", \"Recursive\""}},
      {R"("os":{"name":"windows"},"hostPID":true,"securityContext":{"runAsUser":1})",
       {"spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod",
        "spec.hostPID: Forbidden: cannot be set for a windows pod"}},
      {R"("os":{"name":"linux"},"securityContext":{"windowsOptions":{"hostProcess":true,
          "runAsUserName":"a\\b\\c"}},"hostNetwork":true)",
       {"spec.securityContext.windowsOptions.runAsUserName: Invalid value: \"a\\\\b\\\\c\": "
        "runAsUserName cannot contain more than one backslash",
        "spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux "
        "pod"}},
      {R"("os":{"name":"plan9"})",
       {"spec.os: Unsupported value: \"plan9\": supported values: \"linux\", \"windows\""}},
      {R"("hostPID":true,"shareProcessNamespace":true)",
       {"spec.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot "
        "both be enabled"}},
  });
}

TEST_F(PodErrorsTest, VolumesHaveOneCompleteSource) {
  ExpectForVolume({
      {R"("configMap":{"name":"c","defaultMode":511,"items":[{"key":"k","path":"a/b"}]})"},
      {R"("emptyDir":{"sizeLimit":"-1"},"hostPath":{"path":"/"})",
       {"spec.volumes[0].emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource "
        "quantity",
        "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"}},
      {R"("configMap":{"defaultMode":512,"items":[{"key":"","path":"../a","mode":-1}]})",
       {"spec.volumes[0].configMap.name: Required value",
        "spec.volumes[0].configMap.defaultMode: Invalid value: 512: must be a number between 0 and "
        "0777 (octal), both inclusive",
        "spec.volumes[0].configMap.items[0].key: Required value",
        "spec.volumes[0].configMap.items[0].path: Invalid value: \"../a\": must not contain '..'",
        "spec.volumes[0].configMap.items[0].mode: Invalid value: -1: must be a number between 0 "
        "and 0777 (octal), both inclusive"}},
      {R"("secret":{"items":[{"key":"k","path":"..data"},{"key":"k","path":"/a"}]})",
       {"spec.volumes[0].secret.secretName: Required value",
        "spec.volumes[0].secret.items[0].path: Invalid value: \"..data\": must not start with '..'",
        "spec.volumes[0].secret.items[1].path: Invalid value: \"/a\": must be a relative path"}},
      {R"("hostPath":{"path":"/a/../b","type":"Disk"})",
       {"spec.volumes[0].hostPath.path: Invalid value: \"/a/../b\": must not contain '..'",
        "spec.volumes[0].hostPath.type: Unsupported value: \"Disk\": supported values: \"\", "
        "\"BlockDevice\", \"CharDevice\", \"Directory\", \"DirectoryOrCreate\", \"File\", "
        "\"FileOrCreate\", \"Socket\""}},
      {R"("nfs":{"server":"s","path":"a"})",
       {"spec.volumes[0].nfs.path: Invalid value: \"a\": must be an absolute path"}},
      {R"("persistentVolumeClaim":{})",
       {"spec.volumes[0].persistentVolumeClaim.claimName: Required value"}},
      {R"("downwardAPI":{"items":[{"path":"a"},{"path":"b","fieldRef":{"fieldPath":"status.podIP"}},
          {"path":"c","resourceFieldRef":{"resource":"limits.cpu"}}]})",
       {"spec.volumes[0].downwardAPI: Required value: one of fieldRef and resourceFieldRef is "
        "required",
        "spec.volumes[0].downwardAPI.fieldRef.fieldPath: Unsupported value: \"status.podIP\": "
        "supported values: \"metadata.annotations\", \"metadata.labels\", \"metadata.name\", "
        "\"metadata.namespace\", \"metadata.uid\"",
        "spec.volumes[0].downwardAPI.resourceFieldRef.containerName: Required value"}},
      {R"("projected":{"sources":[{"configMap":{"name":"c","items":[{"key":"k","path":"a"}]}},
          {"secret":{"name":"s","items":[{"key":"k","path":"a"}]}},
          {"serviceAccountToken":{"path":"t","expirationSeconds":599},"secret":{"name":"s"}}]})",
       {"spec.volumes[0].projected: Invalid value: \"s\": conflicting duplicate paths",
        "spec.volumes[0].projected.sources[2].serviceAccountToken.expirationSeconds: Invalid "
        "value: 599: may not specify a duration less than 10 minutes",
        "spec.volumes[0].projected.sources[2]: Forbidden: may not specify more than 1 volume type "
        "per source"}},
      {R"("projected":{"sources":[{"clusterTrustBundle":{"path":"a"}},
          {"clusterTrustBundle":{"path":"b","name":"a:b","labelSelector":{}}},
          {"podCertificate":{"signerName":"a.b/c","keyType":"RSA"}}]})",
       {"spec.volumes[0].projected.sources[0].clusterTrustBundle: Required value: either name or "
        "signerName must be specified",
        "spec.volumes[0].projected.sources[1].clusterTrustBundle.labelSelector: Invalid value: {}: "
        "labelSelector must be unset if name is specified",
        "spec.volumes[0].projected.sources[2].podCertificate.keyType: Unsupported value: \"RSA\": "
        "supported values: \"ECDSAP256\", \"ECDSAP384\", \"ECDSAP521\", \"ED25519\", \"RSA3072\", "
        "\"RSA4096\"",
        "spec.volumes[0].projected.sources[2].podCertificate: Required value: specify at least one "
        "of credentialBundlePath, keyPath, and certificateChainPath"}},
      {R"("csi":{"driver":"-a"})",
       {"spec.volumes[0].csi.driver: Invalid value: \"-a\": a lowercase RFC 1123 subdomain must "
        "consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
        "alphanumeric character (e.g. 'example.com', regex used for validation is "
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"}},
      {R"("ephemeral":{"volumeClaimTemplate":{"metadata":{"name":"x"},"spec":{"accessModes":["RWO"],
          "resources":{"requests":{"storage":"0"}}}}})",
       {"spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set",
        "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes: Unsupported value: "
        "\"RWO\": supported values: \"ReadOnlyMany\", \"ReadWriteMany\", \"ReadWriteOnce\", "
        "\"ReadWriteOncePod\"",
        "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]: Invalid value: "
        "\"0\": must be greater than zero"}},
      {R"("iscsi":{"targetPortal":"p","iqn":"iqn.2020-01.a:b","lun":256,"chapAuthSession":true})",
       {"spec.volumes[0].iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive",
        "spec.volumes[0].iscsi.secretRef: Required value"}},
      {R"("fc":{"targetWWNs":["a"]})",
       {"spec.volumes[0].fc.lun: Required value: lun is required if targetWWNs is specified"}},
      {R"("image":{"pullPolicy":"Often"})",
       {"spec.volumes[0].image.reference: Required value",
        "spec.volumes[0].image.pullPolicy: Unsupported value: \"Often\": supported values: "
        "\"Always\", \"IfNotPresent\", \"Never\""}},
  });
}

TEST_F(PodErrorsTest, AffinityAndSpreadAreComplete) {
  ExpectForSpec({
      {R"("affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":
          {"nodeSelectorTerms":[]},"preferredDuringSchedulingIgnoredDuringExecution":
          [{"weight":0,"preference":{"matchExpressions":[{"key":"k","operator":"In"}]}}]}})",
       {"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
        "nodeSelectorTerms: Required value: must have at least one node selector term",
        "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: "
        "Invalid value: 0: must be in the range 1-100",
        "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference."
        "matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or "
        "'NotIn'"}},
      {R"("affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":
          [{"topologyKey":"zone","matchLabelKeys":["a"]},{"topologyKey":"zone","namespaces":["A"],
          "labelSelector":{"matchExpressions":[{"key":"k","operator":"Is"}]}}]}})",
       {"spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]."
        "matchLabelKeys: Forbidden: must not be specified when labelSelector is not set",
        "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[1]."
        "labelSelector.matchExpressions[0].operator: Invalid value: \"Is\": not a valid selector "
        "operator",
        "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[1]."
        "namespace: Invalid value: \"A\": a lowercase RFC 1123 label must consist of lower case "
        "alphanumeric characters or '-', and must start and end with an alphanumeric character "
        "(e.g. 'my-name',  or '123-abc', regex used for validation is "
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"}},
      {R"("topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone",
          "whenUnsatisfiable":"ScheduleAnyway","minDomains":1},{"maxSkew":0,"topologyKey":"zone",
          "whenUnsatisfiable":"ScheduleAnyway","nodeTaintsPolicy":"x"}])",
       {"spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "
        "\"{zone, ScheduleAnyway}\"",
        "spec.topologySpreadConstraints[0].minDomains: Invalid value: 1: can only use minDomains "
        "if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway",
        "spec.topologySpreadConstraints[1].maxSkew: Invalid value: 0: must be greater than zero",
        "spec.topologySpreadConstraints[1].nodeTaintsPolicy: Unsupported value: \"x\": supported "
        "values: \"Honor\", \"Ignore\""}},
      {R"("topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"","whenUnsatisfiable":"Never"}])",
       {"spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty",
        "spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: \"Never\": "
        "supported values: \"DoNotSchedule\", \"ScheduleAnyway\""}},
  });
}

TEST_F(PodErrorsTest, NamesAndAddressesAreValid) {
  ExpectForSpec({
      {R"("dnsPolicy":"None","dnsConfig":{"nameservers":["1.2.3.4"],"searches":["_a.b","."],
          "options":[{"name":"o"}]},"hostAliases":[{"ip":"::1","hostnames":["a.b"]}])"},
      {R"("dnsPolicy":"None")",
       {"spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"}},
      {R"("dnsPolicy":"Auto","dnsConfig":{"nameservers":["1.2.3.04","::ffff:1.2.3.4","x","1.1.1.1"],
          "searches":["A"],"options":[{}]})",
       {"spec.dnsPolicy: Unsupported value: \"Auto\": supported values: \"ClusterFirst\", "
        "\"ClusterFirstWithHostNet\", \"Default\", \"None\"",
        "spec.dnsConfig.nameservers: Invalid value: [\"1.2.3.04\",\"::ffff:1.2.3.4\",\"x\","
        "\"1.1.1.1\"]: must not have more than 3 nameservers",
        "spec.dnsConfig.nameservers[0]: Invalid value: \"1.2.3.04\": must not have leading 0s",
        "spec.dnsConfig.nameservers[1]: Invalid value: \"::ffff:1.2.3.4\": must not be an "
        "IPv4-mapped IPv6 address",
        "spec.dnsConfig.nameservers[2]: Invalid value: \"x\": must be a valid IP address, (e.g. "
        "10.9.8.7 or 2001:db8::ffff)",
        "spec.dnsConfig.searches[0]: Invalid value: \"A\": a lowercase RFC 1123 subdomain must "
        "consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end "
        "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
        "'_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')",
        "spec.dnsConfig.options[0]: Required value: must not be empty"}},
      {R"("hostname":"a.b","hostAliases":[{"ip":"1"}])",
       {"spec.hostname: Invalid value: \"a.b\": must not contain dots",
        "spec.hostAliases[0].ip: Invalid value: \"1\": must be a valid IP address, (e.g. 10.9.8.7 "
        "or 2001:db8::ffff)"}},
      {R"("hostnameOverride":"a","setHostnameAsFQDN":true,"hostNetwork":true)",
       {"spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true",
        "spec.hostnameOverride: Forbidden: may not be specified when hostNetwork is true"}},
      {R"("preemptionPolicy":"Sometimes")",
       {"spec.preemptionPolicy: Unsupported value: \"Sometimes\": supported values: \"Never\", "
        "\"PreemptLowerPriority\""}},
      {R"("overhead":{"gpu":"1"})",
       {"spec.overhead.limits[gpu]: Invalid value: \"gpu\": must be a standard resource type or "
        "fully qualified",
        "spec.overhead.limits[gpu]: Invalid value: \"gpu\": must be a standard resource for "
        "containers"}},
  });
  EXPECT_THAT(
      Errors(Pod(R"("containers":[{"name":"a","image":"i"}])",
                 R"("annotations":{"controller.kubernetes.io/pod-deletion-cost":"01",
                    "container.apparmor.security.beta.kubernetes.io/b":"none"})")),
      ElementsAreArray(
          {"metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "
           "\"01\": must be a 32bit integer",
           "metadata.annotations[container.apparmor.security.beta.kubernetes.io/b]: Invalid "
           "value: \"b\": container not found",
           "metadata.annotations[container.apparmor.security.beta.kubernetes.io/b]: Invalid "
           "value: \"none\": invalid AppArmor profile name: \"none\""}));
}

// A pod's spec is fixed, with the exceptions below.
class PodUpdateErrorsTest : public PodErrorsTest {
 protected:
  std::vector<std::string> Patch(std::string_view patch, std::string subresource = "") {
    Request request = RequestFor(Verb::kPatch, Pod(""), AdminUser());
    request.object = nullptr;
    request.patch = PatchKind::kMerge;
    request.text = patch;
    request.subresource = std::move(subresource);
    request.dry_run = true;
    return ErrorsOf(Handle(std::move(request)));
  }
};

TEST_F(PodUpdateErrorsTest, ARunningPodChangesLittle) {
  Create(Pod(R"("containers":[{"name":"a","image":"i"}],"tolerations":[{"key":"k",
                "operator":"Exists","effect":"NoExecute","tolerationSeconds":9}])"));
  EXPECT_THAT(Patch(R"({"spec":{"tolerations":[{"key":"k","operator":"Exists","effect":"NoExecute",
                        "tolerationSeconds":1},{"key":"l"}],"activeDeadlineSeconds":5}})"),
              IsEmpty());
  EXPECT_THAT(Patch(R"({"spec":{"tolerations":[{"key":"l","operator":"Exists"}]}})"),
              ElementsAreArray({"spec.tolerations: Forbidden: existing toleration can not be "
                                "modified except its tolerationSeconds"}));
  EXPECT_THAT(
      Patch(R"({"spec":{"containers":[{"name":"a","image":"i"},{"name":"b","image":"i"}]}})"),
      ElementsAreArray({"spec.containers: Forbidden: pod updates may not add or remove "
                        "containers"}));
  EXPECT_THAT(Patch(R"({"spec":{"containers":[{"name":"a","image":" i"}]}})"),
              ElementsAreArray({"spec.containers[0].image: Invalid value: \" i\": must not have "
                                "leading or trailing whitespace"}));
  EXPECT_THAT(Patch(R"({"spec":{"schedulingGates":[{"name":"g"}]}})"),
              ElementsAreArray({"spec.schedulingGates[0].name: Forbidden: only deletion is "
                                "allowed, but found new scheduling gate 'g'"}));
  EXPECT_THAT(Patch(R"({"metadata":{"annotations":{"kubernetes.io/config.mirror":"x"}}})"),
              ElementsAreArray(
                  {"metadata.annotations[kubernetes.io/config.mirror]: Invalid value: \"x\": must "
                   "set spec.nodeName if mirror pod annotation is set",
                   "metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not add "
                   "mirror pod annotation"}));
  EXPECT_EQ(Patch(R"({"spec":{"nodeSelector":{"a":"b"}}})").size(), 1u);
}

TEST_F(PodUpdateErrorsTest, AppArmorAnnotationsStay) {
  constexpr std::string_view kOld = "container.apparmor.security.beta.kubernetes.io/a";
  Create(Pod(R"("containers":[{"name":"a","image":"i"}])",
             StrCat(R"("annotations":{")", kOld, R"(":"unconfined"})")));
  EXPECT_THAT(Patch(StrCat(R"({"metadata":{"annotations":{")", kOld, R"(":null,"x":"y"}}})")),
              ElementsAreArray({StrCat("metadata.annotations[", kOld,
                                       "]: Forbidden: may not remove or update AppArmor "
                                       "annotations")}));
  EXPECT_THAT(Patch(R"({"metadata":{"annotations":{"x":"y"}}})"), IsEmpty());
}

TEST_F(PodUpdateErrorsTest, StatusesAreConsistent) {
  Create(Pod(R"("containers":[{"name":"a","image":"i","resources":{"requests":{"x.io/y":"1"},
                "limits":{"x.io/y":"1"}}}])"));
  const auto errors = [&](std::string_view status) {
    return Patch(StrCat(R"({"status":{)", status, "}}"), "status");
  };
  EXPECT_THAT(errors(R"("podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"},{"ip":"fd00::1"}],
                        "conditions":[{"type":"Ready","status":"True"},{"type":"a.io/b",
                        "status":"True"}],"nominatedNodeName":"n","containerStatuses":[{"name":"a",
                        "image":"i","imageID":"","ready":true,"restartCount":0,
                        "user":{"linux":{"uid":4294967295,"gid":0}}}],
                        "extendedResourceClaimStatus":{"resourceClaimName":"c","requestMappings":[
                        {"containerName":"a","resourceName":"x.io/y","requestName":"r"}]})"),
              IsEmpty());
  EXPECT_THAT(errors(R"("conditions":[{"type":"a b","status":"True","observedGeneration":-1}],
                        "observedGeneration":-2)"),
              ElementsAreArray(
                  {"status.conditions[0].observedGeneration: Invalid value: -1: must be a "
                   "non-negative integer",
                   "status.conditions[0].Type: Invalid value: \"a b\": name part must consist of "
                   "alphanumeric characters, '-', '_' or '.', and must start and end with an "
                   "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex "
                   "used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                   "status.observedGeneration: Invalid value: -2: must be a non-negative "
                   "integer"}));
  EXPECT_EQ(errors(R"("podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"},{"ip":"10.0.0.2"}])").size(),
            1u);
  EXPECT_EQ(errors(R"("podIP":"x","podIPs":[{"ip":"x"}])").size(), 1u);
  EXPECT_EQ(errors(R"("nominatedNodeName":"A")").size(), 1u);
  EXPECT_THAT(errors(R"("containerStatuses":[{"name":"a","image":"i","imageID":"","ready":true,
                        "restartCount":0,"user":{"linux":{"uid":-1,"gid":0}}}])"),
              ElementsAreArray({"status.containerStatuses[0].user.linux.uid: Invalid value: -1: "
                                "must be between 0 and 4294967295, inclusive"}));
  EXPECT_THAT(
      errors(R"("extendedResourceClaimStatus":{"requestMappings":[
                {"containerName":"a","resourceName":"cpu","requestName":"r"},
                {"containerName":"b","resourceName":"cpu","requestName":"r"}]})"),
      ElementsAreArray(
          {"status.extendedResourceClaimStatus.requestMappings[0].resourceName: Invalid value: "
           "\"cpu\": must match the extended resource name of an entry in "
           "spec.initContainers.resources.requests or spec.containers.resources.requests",
           "status.extendedResourceClaimStatus.requestMappings[1].containerName: Invalid value: "
           "\"b\": must match the name of an entry in spec.initContainers.name or "
           "spec.containers.name",
           "status.extendedResourceClaimStatus.resourceClaimName: Required value"}));
}

TEST_F(PodUpdateErrorsTest, WhereAGatedPodMayRunIsNarrowed) {
  Create(Pod(R"("containers":[{"name":"a","image":"i"}],"schedulingGates":[{"name":"g"}],
                "nodeSelector":{"a":"b"},"affinity":{"nodeAffinity":
                {"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":
                [{"matchExpressions":[{"key":"k","operator":"Exists"}]}]}}})"));
  EXPECT_THAT(Patch(R"({"spec":{"nodeSelector":{"c":"d"}}})"), IsEmpty());
  EXPECT_THAT(Patch(R"({"spec":{"nodeSelector":{"a":null}}})"),
              ElementsAreArray(
                  {"spec.nodeSelector: Invalid value: null: only additions to spec.nodeSelector "
                   "are allowed (no mutations or deletions)"}));
  const auto terms = [&](std::string_view list) {
    return Patch(StrCat(R"({"spec":{"affinity":{"nodeAffinity":)",
                        R"({"requiredDuringSchedulingIgnoredDuringExecution":)",
                        R"({"nodeSelectorTerms":)", list, "}}}}}"));
  };
  EXPECT_THAT(terms(R"([{"matchExpressions":[{"key":"k","operator":"Exists"},
                         {"key":"l","operator":"Exists"}]}])"),
              IsEmpty());
  EXPECT_EQ(terms(R"([{"matchExpressions":[{"key":"l","operator":"Exists"}]}])").size(), 1u);
  EXPECT_EQ(terms(R"([{"matchExpressions":[{"key":"k","operator":"Exists"}]},
                      {"matchExpressions":[{"key":"l","operator":"Exists"}]}])")
                .size(),
            1u);
}

}  // namespace
}  // namespace drakkar::apiserver
