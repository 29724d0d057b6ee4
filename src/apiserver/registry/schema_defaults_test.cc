#include "apiserver/registry/schema_defaults.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "apiserver/validation/schema_rules.h"

namespace drakkar::apiserver {
namespace {

api::TreePtr Parse(std::string_view json) {
  Result<api::TreePtr> tree = api::ParseJson(json);
  EXPECT_TRUE(tree.ok()) << json;
  return *tree;
}

std::string Defaulted(std::string_view structure, std::string_view json) {
  api::Draft draft(Parse(json));
  ApplySchemaDefaults(draft, *api::FindStruct(structure));
  return api::WriteJson(draft.Freeze()->root());
}

constexpr std::string_view kStrategy = "io.k8s.api.apps.v1.DeploymentStrategy";

TEST(SchemaDefaults, MissingFieldsGetTheirDefaultsAndStructsThatAreAlwaysThereAreMade) {
  EXPECT_EQ(Defaulted("io.k8s.api.apps.v1.DaemonSetSpec", "{}"),
            R"({"template":{"spec":{"restartPolicy":"Always","terminationGracePeriodSeconds":30,)"
            R"("dnsPolicy":"ClusterFirst","securityContext":{},"schedulerName":)"
            R"("default-scheduler"}},"updateStrategy":{"type":"RollingUpdate","rollingUpdate":)"
            R"({"maxUnavailable":1,"maxSurge":0}},"revisionHistoryLimit":10})");
}

TEST(SchemaDefaults, WhatIsThereStays) {
  constexpr std::string_view kGiven =
      R"({"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":3,"maxSurge":"10%"}})";
  EXPECT_EQ(Defaulted(kStrategy, kGiven), kGiven);
  EXPECT_EQ(Defaulted("io.k8s.api.apps.v1.ReplicaSetSpec",
                      R"({"replicas":0,"template":{"spec":{"terminationGracePeriodSeconds":0,)"
                      R"("restartPolicy":"Never","dnsPolicy":"None","schedulerName":"s",)"
                      R"("securityContext":{}}}})"),
            R"({"replicas":0,"template":{"spec":{"terminationGracePeriodSeconds":0,)"
            R"("restartPolicy":"Never","dnsPolicy":"None","schedulerName":"s",)"
            R"("securityContext":{}}}})")
      << "a pointer to zero is not missing";
}

TEST(SchemaDefaults, AZeroThatGoCannotTellFromNothingIsMissing) {
  EXPECT_EQ(Defaulted("io.k8s.api.core.v1.Probe",
                      R"({"timeoutSeconds":0,"periodSeconds":5,"successThreshold":null})"),
            R"({"timeoutSeconds":1,"periodSeconds":5,"successThreshold":1,"failureThreshold":3})");
}

TEST(SchemaDefaults, ADefaultWithAConditionLooksAtItsSibling) {
  EXPECT_EQ(Defaulted(kStrategy, R"({"type":"Recreate"})"), R"({"type":"Recreate"})");
  EXPECT_EQ(Defaulted(kStrategy, "{}"),
            R"({"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%","maxSurge":"25%"}})")
      << "the sibling's own default counts";
}

TEST(SchemaDefaults, ItemsOfListsAreLookedInto) {
  EXPECT_EQ(
      Defaulted(
          "io.k8s.api.core.v1.Container",
          R"({"resources":{},"terminationMessagePath":"/x","terminationMessagePolicy":"File",)"
          R"("ports":[{"protocol":"UDP"},{"containerPort":1}]})"),
      R"({"resources":{},"terminationMessagePath":"/x","terminationMessagePolicy":"File",)"
      R"("ports":[{"protocol":"UDP"},{"containerPort":1,"protocol":"TCP"}]})");
}

TEST(SchemaDefaults, WhatLacksNothingIsNotTouched) {
  const api::TreePtr tree =
      Parse(R"({"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":1,"maxSurge":1}})");
  api::Draft draft(tree);
  ApplySchemaDefaults(draft, *api::FindStruct(kStrategy));
  EXPECT_EQ(draft.borrowed().node(), tree->root().node());
}

std::vector<std::string> Refusals(std::string_view structure, std::string_view json,
                                  std::string_view before = "") {
  const api::TreePtr tree = Parse(json);
  const api::TreePtr old = before.empty() ? nullptr : Parse(before);
  api::FieldErrors errors;
  CheckSchemaRules(errors, api::FieldPath("spec"), tree->root(),
                   old == nullptr ? api::Value() : old->root(), *api::FindStruct(structure));
  std::vector<std::string> texts;
  for (const api::FieldError& error : errors) texts.push_back(error.ToString());
  return texts;
}

constexpr std::string_view kSpec = "io.k8s.api.apps.v1.ReplicaSetSpec";

TEST(SchemaRules, RefusalsAreInTheWordsOfKubernetes) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(Refusals(kSpec, R"({"replicas":-1})"),
            (Texts{"spec.replicas: Invalid value: -1: must be greater than or equal to 0",
                   "spec.selector: Required value"}));
  EXPECT_EQ(
      Refusals(kSpec, R"({"selector":{"matchExpressions":[{"key":"a","operator":"In"},)"
                      R"({"key":"b","operator":"Exists","values":["x"]},)"
                      R"({"key":"c","operator":"Near"}]}})"),
      (Texts{"spec.selector.matchExpressions[0].values: Required value: must be specified when "
             "`operator` is 'In' or 'NotIn'",
             "spec.selector.matchExpressions[1].values: Forbidden: may not be specified when "
             "`operator` is 'Exists' or 'DoesNotExist'",
             "spec.selector.matchExpressions[2].operator: Invalid value: \"Near\": not a valid "
             "selector operator"}));
  EXPECT_EQ(Refusals("io.k8s.api.apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy",
                     R"({"whenDeleted":"Keep","whenScaled":"Delete"})"),
            Texts{"spec.whenDeleted: Unsupported value: \"Keep\": supported values: \"Delete\", "
                  "\"Retain\""});
  EXPECT_EQ(Refusals("io.k8s.api.apps.v1.RollingUpdateDeployment",
                     R"({"maxSurge":"x%","maxUnavailable":-2})")
                .size(),
            2u);
}

TEST(SchemaRules, WhatDoesNotChangeIsNotLookedAt) {
  EXPECT_TRUE(Refusals(kSpec, R"({"replicas":-1})", R"({"replicas":-1})").empty());
  EXPECT_EQ(Refusals(kSpec, R"({"replicas":-2})", R"({"replicas":-1})").size(), 1u);
}

TEST(SchemaRules, AnImmutableFieldStays) {
  EXPECT_EQ(
      Refusals(kSpec, R"({"selector":{"matchLabels":{"a":"2"}}})",
               R"({"selector":{"matchLabels":{"a":"1"}}})"),
      std::vector<std::string>{"spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"2\"}}: "
                               "field is immutable"});
}

}  // namespace
}  // namespace drakkar::apiserver
