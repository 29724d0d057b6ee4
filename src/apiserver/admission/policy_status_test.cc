#include "apiserver/admission/policy_status.h"

#include "api/json/writer.h"
#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

class PolicyStatusTest : public CoreFixture {
 protected:
  PolicyStatusTest() {
    StartCore(nullptr);
    keeper_.Start(*core_);
  }

  void Policy(std::string_view rules, std::string_view spec, std::string_view name = "p") {
    Create(StrCat(R"({"apiVersion":"admissionregistration.k8s.io/v1",)",
                  R"("kind":"ValidatingAdmissionPolicy","metadata":{"name":")", name,
                  R"("},"spec":{"matchConstraints":{"resourceRules":[)", rules, "]},", spec, "}}"));
    loop_.RunUntilIdle();
  }
  static std::string Rule(std::string_view group, std::string_view resources,
                          std::string_view version = "v1") {
    return StrCat(R"({"apiGroups":[")", group, R"("],"apiVersions":[")", version,
                  R"("],"operations":["*"],"resources":[)", resources, "]}");
  }
  api::Value Status(const std::string& name = "p") {
    held_ = core_->Find("admissionregistration.k8s.io", "validatingadmissionpolicies", name);
    return (*held_)["status"];
  }
  // "FIELD: the lines of the warnings that name a kind", one per warning.
  std::string Warnings(const std::string& name = "p") {
    std::string text;
    for (const api::Value each : Status(name)["typeChecking"]["expressionWarnings"].elements()) {
      text += StrCat(each["fieldRef"].str(), ":");
      for (const std::string_view line : Split(each["warning"].str(), '\n')) {
        if (line.find("Kind=") != std::string_view::npos) text += StrCat(" [", line, "]");
      }
      text += "\n";
    }
    return text;
  }

  PolicyStatusKeeper keeper_{loop_};
  api::ObjectPtr held_;
};

TEST_F(PolicyStatusTest, APolicyWithoutMistakesHasNoWarnings) {
  Policy(Rule("apps", R"("deployments")"),
         R"~("validations":[{"expression":"object.spec.replicas <= 5 && )~"
         R"~(object.metadata.namespace != 'a' && object.metadata.labels.all(l, l != 'x') && )~"
         R"~(object.spec.template.spec.containers.all(c, c.image.startsWith('r/'))"}])~");
  EXPECT_EQ(Warnings(), "");
  EXPECT_EQ(api::WriteJson(Status()), R"({"observedGeneration":1,"typeChecking":{}})");
}

TEST_F(PolicyStatusTest, AMisspeltFieldIsAWarningForEachKindThatLacksIt) {
  Policy(Rule("apps", R"("deployments","daemonsets")"),
         R"~("validations":[{"expression":"object.spec.replicas > 1"},)~"
         R"~({"expression":"object.spec.replica > 1",)~"
         R"~("messageExpression":"'has ' + object.spec.nothing"}])~");
  EXPECT_EQ(Warnings(),
            "spec.validations[0].expression: [apps/v1, Kind=DaemonSet: compilation failed: ERROR: "
            "<input>:1:12: undefined field 'replicas']\n"
            "spec.validations[1].expression: [apps/v1, Kind=DaemonSet: compilation failed: ERROR: "
            "<input>:1:12: undefined field 'replica'] [apps/v1, Kind=Deployment: compilation "
            "failed: ERROR: <input>:1:12: undefined field 'replica']\n"
            "spec.validations[1].messageExpression: [apps/v1, Kind=DaemonSet: compilation failed: "
            "ERROR: <input>:1:21: undefined field 'nothing'] [apps/v1, Kind=Deployment: "
            "compilation failed: ERROR: <input>:1:21: undefined field 'nothing']\n");
}

TEST_F(PolicyStatusTest, TypesAreCompared) {
  Policy(Rule("", R"("pods")"),
         R"~("variables":[{"name":"host","expression":"object.spec.hostNetwork"}],)~"
         R"~("validations":[{"expression":"object.spec.nodeName > 1"},)~"
         R"~({"expression":"variables.host == 'yes'"},{"expression":"variables.host == true"},)~"
         R"~({"expression":"object.spec.containers[0].resources.requests['cpu'] == '1'"}])~");
  const std::string warnings = Warnings();
  EXPECT_NE(warnings.find("spec.validations[0].expression: [/v1, Kind=Pod: compilation failed: "),
            std::string::npos)
      << warnings;
  EXPECT_NE(warnings.find("spec.validations[1].expression"), std::string::npos) << warnings;
  EXPECT_EQ(warnings.find("spec.validations[2].expression"), std::string::npos) << warnings;
  EXPECT_EQ(warnings.find("spec.validations[3].expression"), std::string::npos)
      << "quantities are texts or numbers: " << warnings;
}

TEST_F(PolicyStatusTest, WildcardsAndSubresourcesAreNotChecked) {
  const std::string_view wrong = R"~("validations":[{"expression":"object.nothing > 1"}])~";
  Policy(Rule("*", R"("pods")"), wrong, "a");
  Policy(Rule("", R"("*")"), wrong, "b");
  Policy(Rule("", R"("pods/status")"), wrong, "c");
  Policy(Rule("", R"("pods")", "*"), wrong, "d");
  Policy(Rule("example.com", R"("unknown")"), wrong, "e");
  for (const char* name : {"a", "b", "c", "d", "e"}) EXPECT_EQ(Warnings(name), "") << name;
}

TEST_F(PolicyStatusTest, CustomResourcesAndParametersHaveTheirTypes) {
  Create(R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
      "metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
      "names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1","served":true,
      "storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{
      "type":"object","properties":{"size":{"type":"integer"}}}}}}}]}})");
  Policy(Rule("example.com", R"("widgets")"),
         R"~("paramKind":{"apiVersion":"v1","kind":"ConfigMap"},"validations":[)~"
         R"~({"expression":"object.spec.size < 3 && object.metadata.name != ''"},)~"
         R"~({"expression":"object.spec.sizes < 3"},{"expression":"params.data['a'] == 'b'"},)~"
         R"~({"expression":"params.dater['a'] == 'b'"}])~");
  EXPECT_EQ(Warnings(),
            "spec.validations[1].expression: [example.com/v1, Kind=Widget: compilation failed: "
            "ERROR: <input>:1:12: undefined field 'sizes']\n"
            "spec.validations[3].expression: [example.com/v1, Kind=Widget: compilation failed: "
            "ERROR: <input>:1:7: undefined field 'dater']\n");
}

TEST_F(PolicyStatusTest, AChangedPolicyIsCheckedAgain) {
  Policy(Rule("", R"("pods")"), R"~("validations":[{"expression":"object.nothing > 1"}])~");
  EXPECT_NE(Warnings(), "");
  api::Draft changed(held_->tree());
  changed["spec"]["validations"].at(0)["expression"] = "object.metadata.name != 'a'";
  const Response updated =
      Handle(RequestFor(Verb::kUpdate, api::WriteJson(changed.Freeze()->root()), AdminUser()));
  ASSERT_FALSE(updated.failure) << updated.failure->message;
  loop_.RunUntilIdle();
  EXPECT_EQ(Warnings(), "");
  EXPECT_EQ(Status()["observedGeneration"].integer(), 2);
}

}  // namespace
}  // namespace drakkar::apiserver
