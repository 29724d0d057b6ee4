#include "apiserver/validation/admission_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/codec/yaml_reader.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Texts(const api::FieldErrors& errors) {
  std::vector<std::string> texts;
  for (const api::FieldError& error : errors) texts.push_back(error.ToString());
  return texts;
}

api::TreePtr Read(const std::string& yaml) {
  const auto documents = api::ParseYaml(yaml);
  EXPECT_TRUE(documents.ok()) << documents.error().message;
  return documents->at(0);
}

// Errors of a policy whose only rule has these resources.
std::vector<std::string> Resources(std::string_view resources) {
  return Texts(ValidateValidatingPolicy(
      Read(StrCat("metadata: {name: p}\nspec:\n  validations: [{expression: 'true'}]\n"
                  "  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], "
                  "operations: [CREATE], resources: ",
                  resources, "}]}\n"))
          ->root()));
}

// Errors of a policy with these members in addition to a rule and a validation.
std::vector<std::string> Policy(std::string_view rest) {
  return Texts(ValidateValidatingPolicy(
      Read(StrCat("metadata: {name: p}\nspec:\n"
                  "  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], "
                  "operations: [CREATE], resources: [pods]}]}\n",
                  rest, "\n"))
          ->root()));
}

std::vector<std::string> Binding(std::string_view rest) {
  return Texts(
      ValidateValidatingPolicyBinding(Read(StrCat("spec: {policyName: p, ", rest, "}\n"))->root()));
}

std::vector<std::string> Webhook(std::string_view client, std::string_view name = "a.b.c") {
  return Texts(ValidateWebhookConfiguration(
      Read(StrCat("webhooks: [{name: ", name,
                  ", sideEffects: None, admissionReviewVersions: [v1], clientConfig: ", client,
                  "}]\n"))
          ->root()));
}

TEST(AdmissionPolicy, ResourcesDoNotOverlap) {
  const std::string at = "spec.matchConstraints.resourceRules[0].resources";
  EXPECT_THAT(Resources("[pods, pods/status]"), IsEmpty());
  EXPECT_THAT(Resources("['*']"), IsEmpty());
  EXPECT_THAT(Resources("['*/*']"), IsEmpty());
  EXPECT_THAT(Resources("['*', pods/status]"), IsEmpty());
  EXPECT_THAT(Resources("['pods/*', 'services/*']"), IsEmpty());
  EXPECT_THAT(Resources("['pods/*', pods/status]"),
              ElementsAre(at + "[1]: Invalid value: \"pods/status\": if 'pods/*' is present, must "
                               "not specify pods/status"));
  EXPECT_THAT(Resources("['*/scale', pods/scale]"),
              ElementsAre(at + "[1]: Invalid value: \"pods/scale\": if '*/scale' is present, must "
                               "not specify pods/scale"));
  EXPECT_THAT(Resources("['*/*', pods]"),
              ElementsAre(at + ": Invalid value: [\"*/*\",\"pods\"]: if '*/*' is present, must not "
                               "specify other resources"));
  EXPECT_THAT(Resources("['*', pods]"),
              ElementsAre(at + ": Invalid value: [\"*\",\"pods\"]: if '*' is present, must not "
                               "specify other resources without subresources"));
  EXPECT_THAT(Resources("['']"), ElementsAre(at + "[0]: Required value"));
  EXPECT_THAT(Resources("[]"), ElementsAre(at + ": Required value"));
}

TEST(AdmissionPolicy, APolicyChecksOrRecordsSomething) {
  EXPECT_THAT(Policy("  validations: [{expression: 'true'}]"), IsEmpty());
  EXPECT_THAT(Policy("  auditAnnotations: [{key: a, valueExpression: \"'x'\"}]"), IsEmpty());
  EXPECT_THAT(
      Policy(""),
      ElementsAre("spec.validations: Required value: validations or auditAnnotations must contain "
                  "at least one item",
                  "spec.auditAnnotations: Required value: validations or auditAnnotations must "
                  "contain at least one item"));
  EXPECT_THAT(Texts(ValidateValidatingPolicy(
                  Read("spec: {validations: [{expression: 'true'}]}\n")->root())),
              ElementsAre("spec.matchConstraints: Required value"));
}

TEST(AdmissionPolicy, MessagesAreOneLineAndNotBlank) {
  const auto message = [](std::string_view text) {
    return Policy(StrCat("  validations: [{expression: 'true', message: ", text, "}]"));
  };
  EXPECT_THAT(message("\"fine\""), IsEmpty());
  EXPECT_THAT(message("\"fine\\n\""), IsEmpty()) << "white space at the end does not count";
  EXPECT_THAT(message("\"\""), IsEmpty());
  EXPECT_EQ(message("\"  \"").size(), 1u);
  EXPECT_EQ(message("\"two\\nlines\"").size(), 1u);
  EXPECT_EQ(message("\"two\\rlines\"").size(), 1u);
  EXPECT_EQ(Policy("  validations: [{expression: 'true', messageExpression: '  '}]").size(), 1u);
  EXPECT_EQ(Policy("  validations: [{expression: '  '}]").size(), 1u);
  EXPECT_EQ(Policy("  validations: [{expression: 'true', messageExpression: '1'}]").size(), 1u)
      << "a message is a text";
  EXPECT_EQ(Policy("  validations: [{expression: '1'}]").size(), 1u) << "a rule is a bool";
}

TEST(AdmissionPolicy, ReasonsAreThoseOfTheApi) {
  const auto reason = [](std::string_view text) {
    return Policy(StrCat("  validations: [{expression: 'true', reason: ", text, "}]")).size();
  };
  for (const char* each : {"Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized"}) {
    EXPECT_EQ(reason(each), 0u) << each;
  }
  EXPECT_EQ(reason("Teapot"), 1u);
}

TEST(AdmissionPolicy, VariablesAreIdentifiers) {
  const auto variable = [](std::string_view name) {
    return Policy(StrCat("  validations: [{expression: 'true'}]\n  variables: [{name: \"", name,
                         "\", expression: '1'}]"))
        .size();
  };
  for (const char* good : {"a", "_", "A9", "a_b"}) EXPECT_EQ(variable(good), 0u) << good;
  for (const char* bad : {"", " ", "9a", "a-b", "true", "while", "namespace"}) {
    EXPECT_EQ(variable(bad), 1u) << bad;
  }
  EXPECT_EQ(Policy("  validations: [{expression: 'variables.b'}]\n  variables: [{name: a, "
                   "expression: 'true'}, {name: b, expression: 'variables.a'}]")
                .size(),
            0u)
      << "a variable may use those before it";
}

TEST(AdmissionPolicy, IdentifiersHaveLettersDigitsAndUnderscores) {
  const auto problems = [](std::string_view name) {
    return Policy(StrCat("  validations: [{expression: 'true'}]\n  variables: [{name: '", name,
                         "', expression: '1'}]"))
        .size();
  };
  for (const char* good : {"a", "z", "A", "Z", "_", "a0", "a9", "aZ_z", "whiles"}) {
    EXPECT_EQ(problems(good), 0u) << good;
  }
  for (const char* bad : {"0", "9a", "a-b", "a~", "a{",    "a`", "a[",   "a@",   "a:",   "a/",
                          "{", "[",  "`",   "@",  "while", "in", "true", "null", "void", "as"}) {
    EXPECT_EQ(problems(bad), 1u) << bad;
  }
}

TEST(AdmissionPolicy, ConditionsAndAnnotationsHaveUniqueNamesAndALimit) {
  const auto conditions = [](std::string_view list) {
    return Policy(StrCat("  validations: [{expression: 'true'}]\n  matchConditions: ", list));
  };
  EXPECT_THAT(conditions("[{name: a, expression: 'true'}, {name: b, expression: 'true'}]"),
              IsEmpty());
  EXPECT_THAT(conditions("[{name: a, expression: 'true'}, {name: a, expression: 'true'}]"),
              ElementsAre("spec.matchConditions[1].name: Duplicate value: \"a\""));
  EXPECT_THAT(conditions("[{expression: 'true'}, {expression: 'true'}]"),
              ElementsAre("spec.matchConditions[0].name: Required value",
                          "spec.matchConditions[1].name: Required value"));
  EXPECT_THAT(conditions("[{name: a, expression: ' '}]"),
              ElementsAre("spec.matchConditions[0].expression: Required value"));
  std::string many = "[";
  for (int i = 0; i < 64; ++i) many += StrCat("{name: n", i, ", expression: 'true'},");
  EXPECT_THAT(conditions(many + "]"), IsEmpty());
  EXPECT_EQ(conditions(many + "{name: more, expression: 'true'}]").size(), 1u);

  std::string annotations = "  auditAnnotations: [";
  for (int i = 0; i < 20; ++i) annotations += StrCat("{key: k", i, ", valueExpression: \"'x'\"},");
  EXPECT_THAT(Policy(annotations + "]"), IsEmpty());
  EXPECT_EQ(Policy(annotations + "{key: more, valueExpression: \"'x'\"}]").size(), 1u);
  EXPECT_THAT(Policy("  auditAnnotations: [{key: a, valueExpression: 'null'}, {key: a, "
                     "valueExpression: 'null'}]"),
              ElementsAre("spec.auditAnnotations[1].key: Duplicate value: \"a\""));
  const auto value = [](std::size_t bytes) {
    return Policy(StrCat("  auditAnnotations: [{key: a, valueExpression: \"'",
                         std::string(bytes - 2, 'x'), "'\"}]"))
        .size();
  };
  EXPECT_EQ(value(5 * 1024), 0u);
  EXPECT_EQ(value(5 * 1024 + 1), 1u);
}

TEST(AdmissionPolicy, TheKindOfParametersHasAGroupAndAVersion) {
  const auto kind = [](std::string_view version, std::string_view name = "Limits") {
    return Policy(StrCat("  validations: [{expression: 'true'}]\n  paramKind: {apiVersion: ",
                         version, ", kind: ", name, "}"));
  };
  EXPECT_THAT(kind("v1", "ConfigMap"), IsEmpty());
  EXPECT_THAT(kind("rules.example.com/v1"), IsEmpty());
  EXPECT_THAT(kind("a/b/c"), ElementsAre("spec.paramKind.apiVersion: Invalid value: \"a/b/c\": "
                                         "unexpected GroupVersion string: a/b/c"));
  EXPECT_THAT(kind("rules.example.com/"),
              ElementsAre("spec.paramKind.apiVersion: Invalid value: \"rules.example.com/\": "
                          "version must be specified"));
  EXPECT_EQ(kind("rules_example/v1").size(), 1u);
  EXPECT_EQ(kind("rules.example.com/V.1").size(), 1u);
  EXPECT_EQ(kind("v1", "Not-A_Kind").size(), 1u);
  EXPECT_THAT(kind("''"), ElementsAre("spec.paramKind.apiVersion: Required value"));
  EXPECT_THAT(kind("v1", "''"), ElementsAre("spec.paramKind.kind: Required value"));
}

TEST(AdmissionPolicy, ABindingNamesOrSelectsItsParameters) {
  const auto ref = [](std::string_view text) {
    return Binding(StrCat("validationActions: [Deny], paramRef: ", text));
  };
  EXPECT_THAT(ref("{name: p, parameterNotFoundAction: Allow}"), IsEmpty());
  EXPECT_THAT(ref("{selector: {}, parameterNotFoundAction: Deny}"), IsEmpty());
  EXPECT_THAT(ref("{name: p, selector: {}, parameterNotFoundAction: Deny}"),
              ElementsAre("spec.paramRef.name: Forbidden: name and selector are mutually exclusive",
                          "spec.paramRef.selector: Forbidden: name and selector are mutually "
                          "exclusive"));
  EXPECT_THAT(ref("{parameterNotFoundAction: Deny}"),
              ElementsAre("spec.paramRef: Required value: one of name or selector must be "
                          "specified"));
  EXPECT_THAT(ref("{name: p}"),
              ElementsAre("spec.paramRef.parameterNotFoundAction: Required value"));
  EXPECT_EQ(ref("{name: p, parameterNotFoundAction: Shrug}").size(), 1u);
  EXPECT_EQ(ref("{name: a/b, parameterNotFoundAction: Deny}").size(), 1u);
}

TEST(AdmissionPolicy, ABindingHasDistinctActionsAndNotBothDenyAndWarn) {
  EXPECT_THAT(Binding("validationActions: [Deny, Audit]"), IsEmpty());
  EXPECT_THAT(Binding("validationActions: [Warn, Audit]"), IsEmpty());
  EXPECT_EQ(Binding("validationActions: [Deny, Warn]").size(), 1u);
  EXPECT_THAT(Binding("validationActions: [Deny, Deny]"),
              ElementsAre("spec.validationActions[1]: Duplicate value: \"Deny\""));
  EXPECT_EQ(Binding("validationActions: [Shout]").size(), 1u);
  EXPECT_THAT(Binding("validationActions: []"),
              ElementsAre("spec.validationActions: Required value: at least one validation action "
                          "is required"));
}

TEST(AdmissionPolicy, AWebhookIsReachedByHttpsOrAsAService) {
  EXPECT_THAT(Webhook("{url: 'https://h/p'}"), IsEmpty());
  EXPECT_THAT(Webhook("{url: 'https://h'}"), IsEmpty());
  EXPECT_EQ(Webhook("{url: 'http://h/p'}").size(), 1u);
  EXPECT_EQ(Webhook("{url: 'https:///p'}").size(), 1u);
  EXPECT_EQ(Webhook("{url: 'https://me@h/p'}").size(), 1u);
  EXPECT_EQ(Webhook("{url: 'https://h/p#x'}").size(), 1u);
  EXPECT_EQ(Webhook("{url: 'https://h/p?x'}").size(), 1u);
  EXPECT_THAT(Webhook("{url: 'https://h/@'}"), IsEmpty()) << "an @ in the path is no user";
  EXPECT_THAT(Webhook("{service: {name: s, namespace: home}}"), IsEmpty());
  EXPECT_THAT(Webhook("{service: {name: s, namespace: home, port: 65535, path: /x}}"), IsEmpty());
  EXPECT_THAT(Webhook("{service: {name: s, namespace: home, port: 1}}"), IsEmpty());
  EXPECT_EQ(Webhook("{service: {name: s, namespace: home, port: 65536}}").size(), 1u);
  EXPECT_EQ(Webhook("{service: {name: s, namespace: home, port: 0}}").size(), 1u);
  EXPECT_EQ(Webhook("{service: {name: s, namespace: home, path: x}}").size(), 1u);
  EXPECT_EQ(Webhook("{service: {namespace: home}}").size(), 1u);
  EXPECT_EQ(Webhook("{service: {name: s}}").size(), 1u);
  EXPECT_EQ(Webhook("{}").size(), 1u);
  EXPECT_EQ(Webhook("{url: 'https://h', service: {name: s, namespace: home}}").size(), 1u);
}

TEST(AdmissionPolicy, AWebhooksNameHasThreeSegments) {
  EXPECT_THAT(Webhook("{url: 'https://h'}", "a.b.c"), IsEmpty());
  EXPECT_EQ(Webhook("{url: 'https://h'}", "a.b").size(), 1u);
  EXPECT_EQ(Webhook("{url: 'https://h'}", "A.b.c").size(), 1u);
  EXPECT_EQ(Webhook("{url: 'https://h'}", "''").size(), 1u);
  const auto two = [](std::string_view first, std::string_view second) {
    const auto hook = [](std::string_view name) {
      return StrCat("{name: ", name,
                    ", sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: "
                    "'https://h'}}");
    };
    return ValidateWebhookConfiguration(
               Read(StrCat("webhooks: [", hook(first), ", ", hook(second), "]\n"))->root())
        .size();
  };
  EXPECT_EQ(two("a.b.c", "a.b.d"), 0u);
  EXPECT_EQ(two("a.b.c", "a.b.c"), 1u);
}

TEST(AdmissionPolicy, AWebhookStatesItsEffectsVersionsAndTimeout) {
  const auto hook = [](std::string_view rest) {
    return ValidateWebhookConfiguration(
               Read(StrCat("webhooks: [{name: a.b.c, clientConfig: {url: 'https://h'}, ", rest,
                           "}]\n"))
                   ->root())
        .size();
  };
  EXPECT_EQ(hook("sideEffects: None, admissionReviewVersions: [v1]"), 0u);
  EXPECT_EQ(hook("sideEffects: NoneOnDryRun, admissionReviewVersions: [v2, v1beta1]"), 0u);
  EXPECT_EQ(hook("sideEffects: Some, admissionReviewVersions: [v1]"), 1u);
  EXPECT_EQ(hook("admissionReviewVersions: [v1]"), 1u);
  EXPECT_EQ(hook("sideEffects: None, admissionReviewVersions: [v2]"), 1u);
  EXPECT_EQ(hook("sideEffects: None"), 1u);
  for (const auto& [seconds, errors] : {std::pair(1, 0u), {30, 0u}, {0, 1u}, {31, 1u}}) {
    EXPECT_EQ(
        hook(StrCat("sideEffects: None, admissionReviewVersions: [v1], timeoutSeconds: ", seconds)),
        errors)
        << seconds;
  }
}

}  // namespace
}  // namespace drakkar::apiserver
