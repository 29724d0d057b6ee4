#include "apiserver/registry/workload_strategies.h"

#include "api/json/writer.h"
#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

class WorkloadTest : public CoreFixture {
 protected:
  WorkloadTest() { StartCore(nullptr); }

  static std::string Workload(std::string_view kind, std::string_view spec) {
    return StrCat(R"({"apiVersion":"apps/v1","kind":")", kind,
                  R"(","metadata":{"name":"w"},"spec":{"selector":{"matchLabels":{"a":"b"}},)",
                  R"("template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":)",
                  R"([{"name":"c","image":"i"}]}})", spec.empty() ? "" : ",", spec, "}}");
  }
  void ExpectSpec(std::string_view plural, std::string_view json) {
    const api::Value spec = (*core_->Find("apps", plural, "default/w"))["spec"];
    EXPECT_TRUE(api::Equal(spec, (*api::ParseJson(json))->root()))
        << api::WriteJson(spec) << "\nis not\n"
        << json;
  }
  std::string Refusal(std::string_view json) {
    const Response response = TryCreate(json);
    return response.failure ? response.failure->message : "";
  }
  Response Put(std::string_view json, std::string subresource = "") {
    Request request = RequestFor(Verb::kUpdate, json, AdminUser());
    request.subresource = std::move(subresource);
    return Handle(std::move(request));
  }
  std::int64_t Generation(std::string_view plural) {
    return (*core_->Find("apps", plural, "default/w"))["metadata"]["generation"].integer();
  }
};

constexpr std::string_view kTemplate =
    R"("selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},)"
    R"("spec":{"containers":[{"name":"c","image":"i","resources":{},)"
    R"("terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File",)"
    R"("imagePullPolicy":"Always"}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,)"
    R"("dnsPolicy":"ClusterFirst","securityContext":{},"schedulerName":"default-scheduler"}})";

TEST_F(WorkloadTest, AMinimalObjectGetsEverythingAControllerManagerExpects) {
  Create(Workload("ReplicaSet", ""));
  ExpectSpec("replicasets", StrCat(R"({"replicas":1,)", kTemplate, "}"));
  Create(Workload("Deployment", ""));
  ExpectSpec(
      "deployments",
      StrCat(R"({"replicas":1,)", kTemplate,
             R"(,"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%",)"
             R"("maxSurge":"25%"}},"revisionHistoryLimit":10,"progressDeadlineSeconds":600})"));
  Create(Workload("DaemonSet", ""));
  ExpectSpec("daemonsets",
             StrCat("{", kTemplate,
                    R"(,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":)"
                    R"({"maxUnavailable":1,"maxSurge":0}},"revisionHistoryLimit":10})"));
  Create(Workload("StatefulSet", ""));
  ExpectSpec(
      "statefulsets",
      StrCat(R"({"replicas":1,)", kTemplate,
             R"(,"podManagementPolicy":"OrderedReady","updateStrategy":)"
             R"({"type":"RollingUpdate","rollingUpdate":{"partition":0,"maxUnavailable":1}},)"
             R"("revisionHistoryLimit":10,"persistentVolumeClaimRetentionPolicy":)"
             R"({"whenDeleted":"Retain","whenScaled":"Retain"}})"));
}

TEST_F(WorkloadTest, StrategiesAreNotMixed) {
  EXPECT_EQ(Refusal(Workload("Deployment",
                             R"("strategy":{"type":"Recreate","rollingUpdate":{"maxSurge":1}})")),
            "Deployment.apps \"w\" is invalid: spec.strategy.rollingUpdate: Forbidden: may not be "
            "specified when strategy `type` is 'Recreate'");
  EXPECT_EQ(Refusal(Workload("Deployment",
                             R"("strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":0}})")),
            "Deployment.apps \"w\" is invalid: spec.strategy.rollingUpdate.maxUnavailable: Invalid "
            "value: 0: may not be 0 when `maxSurge` is 0");
  EXPECT_EQ(Refusal(Workload("DaemonSet", R"("updateStrategy":{"rollingUpdate":{"maxSurge":1}})")),
            "DaemonSet.apps \"w\" is invalid: spec.updateStrategy.rollingUpdate.maxSurge: Invalid "
            "value: 1: may not be set when maxUnavailable is non-zero");
  EXPECT_EQ(Refusal(Workload("StatefulSet", R"("updateStrategy":{"type":"Now"})")),
            "StatefulSet.apps \"w\" is invalid: spec.updateStrategy: Invalid value: "
            "{\"type\":\"Now\"}: must be 'RollingUpdate' or 'OnDelete'");
}

TEST_F(WorkloadTest, NoMoreThanAllPodsAreUnavailable) {
  for (const auto& [kind, strategy, other] :
       {std::tuple("Deployment", "strategy", R"("maxSurge":1,)"),
        std::tuple("DaemonSet", "updateStrategy", "")}) {
    const auto refused = [&](std::string_view most) {
      return Refusal(Workload(kind, StrCat("\"", strategy, R"(":{"rollingUpdate":{)", other,
                                           R"("maxUnavailable":")", most, R"("}})")));
    };
    EXPECT_EQ(refused("101%"),
              StrCat(kind, ".apps \"w\" is invalid: spec.", strategy,
                     ".rollingUpdate.maxUnavailable: Invalid value: \"101%\": must not be greater "
                     "than 100%"));
    EXPECT_EQ(refused("100%"), "");
  }
  EXPECT_NE(Refusal(Workload("DaemonSet", R"("updateStrategy":{"rollingUpdate":)"
                                          R"({"maxUnavailable":0,"maxSurge":"101%"}})"))
                .find("maxSurge: Invalid value: \"101%\""),
            std::string::npos);
}

TEST_F(WorkloadTest, TheSelectorMustSelectTheTemplateAndStay) {
  EXPECT_EQ(Refusal(R"({"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"w"},
      "spec":{"selector":{"matchLabels":{"a":"c"}},"template":{"metadata":{"labels":{"a":"b"}},
      "spec":{"containers":[{"name":"c","image":"i"}]}}}})"),
            "ReplicaSet.apps \"w\" is invalid: spec.template.metadata.labels: Invalid value: "
            "{\"a\":\"b\"}: `selector` does not match template `labels`");
  EXPECT_EQ(Refusal(R"({"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"w"},
      "spec":{"selector":{},"template":{"metadata":{"labels":{"a":"b"}},
      "spec":{"containers":[{"name":"c","image":"i"}]}}}})"),
            "DaemonSet.apps \"w\" is invalid: spec.selector: Invalid value: {}: empty selector is "
            "invalid for daemonset");
  Create(Workload("Deployment", ""));
  const Response changed = Put(R"({"apiVersion":"apps/v1","kind":"Deployment",
      "metadata":{"name":"w"},"spec":{"selector":{"matchLabels":{"x":"y"}},
      "template":{"metadata":{"labels":{"a":"b","x":"y"}},
      "spec":{"containers":[{"name":"c","image":"i"}]}}}})");
  ASSERT_TRUE(changed.failure);
  EXPECT_EQ(changed.failure->message,
            "Deployment.apps \"w\" is invalid: spec.selector: Invalid value: "
            "{\"matchLabels\":{\"x\":\"y\"}}: field is immutable");
}

TEST_F(WorkloadTest, TheTemplateIsCheckedLikeAPod) {
  EXPECT_EQ(Refusal(R"({"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"w"},
      "spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
      "spec":{"restartPolicy":"Never","activeDeadlineSeconds":3,
      "containers":[{"name":"C","image":"i"}]}}}})"),
            "ReplicaSet.apps \"w\" is invalid: [spec.template.spec.containers[0].name: Invalid "
            "value: \"C\": a lowercase RFC 1123 label must consist of lower case alphanumeric "
            "characters or '-', and must start and end with an alphanumeric character (e.g. "
            "'my-name',  or '123-abc', regex used for validation is "
            "'[a-z0-9]([-a-z0-9]*[a-z0-9])?'), spec.template.spec.restartPolicy: Unsupported "
            "value: \"Never\": supported values: \"Always\", "
            "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in "
            "ReplicaSet is not Supported]");
}

TEST_F(WorkloadTest, ATemplateMayUseTheVolumesOfItsClaimTemplates) {
  EXPECT_EQ(Refusal(R"({"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"w"},
      "spec":{"selector":{"matchLabels":{"a":"b"}},"volumeClaimTemplates":[{"metadata":
      {"name":"data"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":
      {"storage":"1Gi"}}}}],"template":{"metadata":{"labels":{"a":"b"}},
      "spec":{"containers":[{"name":"c","image":"i","volumeMounts":[{"name":"data",
      "mountPath":"/d"}]}]}}}})"),
            "");
}

TEST_F(WorkloadTest, GenerationCountsSpecsAndOfDeploymentsAlsoAnnotations) {
  Create(Workload("ReplicaSet", R"("replicas":1)"));
  EXPECT_EQ(Generation("replicasets"), 1);
  Put(Workload("ReplicaSet", R"("replicas":1)"));
  EXPECT_EQ(Generation("replicasets"), 1) << "the same again, defaults left out";
  Put(Workload("ReplicaSet", R"("replicas":2)"));
  EXPECT_EQ(Generation("replicasets"), 2);
  const auto annotated = [](std::string_view kind) {
    std::string json = Workload(kind, R"("replicas":2)");
    return json.replace(json.find(R"("name":"w")"), 10, R"("name":"w","annotations":{"x":"y"})");
  };
  Put(annotated("ReplicaSet"));
  EXPECT_EQ(Generation("replicasets"), 2);
  Create(Workload("Deployment", R"("replicas":2)"));
  Put(annotated("Deployment"), "status");
  EXPECT_EQ(Generation("deployments"), 1) << "its controller notes the revision with the status";
  std::string other = annotated("Deployment");
  Put(other.replace(other.find(R"("x":"y")"), 7, R"("x":"z")"));
  EXPECT_EQ(Generation("deployments"), 2);
}

TEST_F(WorkloadTest, StatusIsTheControllersBusiness) {
  std::string with_status = Workload("ReplicaSet", "");
  with_status.insert(with_status.size() - 1, R"(,"status":{"replicas":7})");
  Create(with_status);
  const auto status = [&] { return (*core_->Find("apps", "replicasets", "default/w"))["status"]; };
  EXPECT_FALSE(status()["replicas"].has_value());
  Put(with_status);
  EXPECT_FALSE(status()["replicas"].has_value());
  ASSERT_FALSE(Put(with_status, "status").failure);
  EXPECT_EQ(status()["replicas"].integer(), 7);
  EXPECT_EQ(Generation("replicasets"), 1);
  std::string wrong = Workload("ReplicaSet", "");
  wrong.insert(wrong.size() - 1, R"(,"status":{"replicas":1,"readyReplicas":2})");
  EXPECT_EQ(Put(wrong, "status").failure->message,
            "ReplicaSet.apps \"w\" is invalid: status.readyReplicas: Invalid value: 2: cannot be "
            "greater than status.replicas");
}

TEST_F(WorkloadTest, ADaemonSetCountsItsTemplates) {
  Create(Workload("DaemonSet", ""));
  const auto count = [&] {
    return std::string((*core_->Find("apps", "daemonsets", "default/w"))["metadata"]["annotations"]
                           .Entry("deprecated.daemonset.template.generation")
                           .str());
  };
  EXPECT_EQ(count(), "1");
  Put(Workload("DaemonSet", R"("minReadySeconds":5)"));
  EXPECT_EQ(count(), "1");
  std::string other = Workload("DaemonSet", R"("minReadySeconds":5)");
  other.replace(other.find(R"("image":"i")"), 11, R"("image":"j")");
  Put(other);
  EXPECT_EQ(count(), "2");
}

TEST_F(WorkloadTest, ARevisionNeedsDataThatStays) {
  const auto revision = [](std::string_view data) {
    return StrCat(R"({"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"r"},)",
                  R"("revision":1)", data.empty() ? "" : R"(,"data":)", data, "}");
  };
  EXPECT_EQ(Refusal(revision("")),
            "ControllerRevision.apps \"r\" is invalid: data: Required value: data is mandatory");
  Create(revision(R"({"a":1})"));
  ASSERT_TRUE(Put(revision(R"({"a":2})")).failure);
  EXPECT_FALSE(Put(revision(R"({"a":1})")).failure);
}

TEST_F(WorkloadTest, ANameThatHostsCannotHaveWarns) {
  std::string json = Workload("Deployment", "");
  json.replace(json.find(R"("name":"w")"), 10, R"("name":"w.x")");
  const Response response = TryCreate(json);
  ASSERT_FALSE(response.failure);
  ASSERT_FALSE(response.warnings.empty());
  EXPECT_TRUE(response.warnings[0].starts_with("metadata.name: this is used in Pod names"))
      << response.warnings[0];
}

}  // namespace
}  // namespace drakkar::apiserver
