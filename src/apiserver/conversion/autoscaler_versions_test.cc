#include "apiserver/conversion/autoscaler_versions.h"

#include <gtest/gtest.h>

#include "api/codec/object_reader.h"
#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "api/testing/random_object.h"
#include "base/env/random.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::Value;

constexpr std::string_view kPrefix = "autoscaling.alpha.kubernetes.io/";

api::TreePtr Parse(std::string_view json) {
  const auto tree = api::ParseJson(json);
  EXPECT_TRUE(tree.ok()) << json;
  return tree.ok() ? *tree : Draft::Object().Freeze();
}

std::string Json(Value value) {
  return api::WriteJson(value);
}

std::string Annotation(const api::TreePtr& object, std::string_view name) {
  return std::string(
      object->root()["metadata"]["annotations"].Entry(StrCat(kPrefix, name)).str("none"));
}

api::TreePtr V2(std::string_view spec, std::string_view status = "{}",
                std::string_view metadata = R"({"name":"h"})") {
  return Parse(StrCat(R"({"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler",)",
                      R"("metadata":)", metadata, R"(,"spec":)", spec, R"(,"status":)", status,
                      "}"));
}

api::TreePtr V1(std::string_view spec, std::string_view annotations = "{}",
                std::string_view status = "{}") {
  return Parse(StrCat(R"({"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler",)",
                      R"("metadata":{"name":"h","annotations":)", annotations, R"(},"spec":)", spec,
                      R"(,"status":)", status, "}"));
}

TEST(AutoscalerVersions, TheUtilizationOfTheCpuIsAFieldOfV1) {
  const api::TreePtr v1 = AutoscalerToV1(
      V2(R"({"scaleTargetRef":{"kind":"D","name":"d"},"minReplicas":2,"maxReplicas":5,
             "metrics":[{"type":"Resource","resource":{"name":"cpu",
               "target":{"type":"Utilization","averageUtilization":60}}}]})",
         R"({"observedGeneration":3,"desiredReplicas":4,"currentMetrics":[{"type":"Resource",
             "resource":{"name":"cpu","current":{"averageValue":"10m","averageUtilization":50}}}]})"));
  EXPECT_EQ(v1->root()["apiVersion"].str(), "autoscaling/v1");
  EXPECT_EQ(Json(v1->root()["spec"]),
            R"({"scaleTargetRef":{"kind":"D","name":"d"},"minReplicas":2,"maxReplicas":5,)"
            R"("targetCPUUtilizationPercentage":60})");
  EXPECT_EQ(Json(v1->root()["status"]),
            R"({"observedGeneration":3,"currentReplicas":0,"desiredReplicas":4,)"
            R"("currentCPUUtilizationPercentage":50})");
  EXPECT_EQ(Annotation(v1, "metrics"), "none");
  EXPECT_EQ(Annotation(v1, "current-metrics"),
            R"([{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":50,)"
            R"("currentAverageValue":"10m"}}])")
      << "the raw value as well";
}

TEST(AutoscalerVersions, OtherMetricsAreAnnotationsOfV1) {
  const api::TreePtr v1 =
      AutoscalerToV1(V2(R"({"scaleTargetRef":{"kind":"D","name":"d"},"maxReplicas":5,"metrics":[
        {"type":"Object","object":{"describedObject":{"kind":"Ingress","name":"i",
          "apiVersion":"networking.k8s.io/v1"},"target":{"type":"AverageValue","averageValue":"3"},
          "metric":{"name":"hits","selector":{"matchLabels":{"a":"b"}}}}},
        {"type":"Pods","pods":{"metric":{"name":"q"},"target":{"type":"AverageValue",
          "averageValue":"1k"}}},
        {"type":"Resource","resource":{"name":"memory","target":{"type":"AverageValue",
          "averageValue":"1Gi"}}},
        {"type":"ContainerResource","containerResource":{"name":"cpu","container":"c",
          "target":{"type":"Utilization","averageUtilization":7}}},
        {"type":"External","external":{"metric":{"name":"e"},"target":{"type":"Value",
          "value":"9"}}}]})"));
  EXPECT_FALSE(v1->root()["spec"]["targetCPUUtilizationPercentage"].exists());
  EXPECT_EQ(Annotation(v1, "metrics"),
            R"([{"type":"Object","object":{"target":{"kind":"Ingress","name":"i",)"
            R"("apiVersion":"networking.k8s.io/v1"},"metricName":"hits","targetValue":"0",)"
            R"("selector":{"matchLabels":{"a":"b"}},"averageValue":"3"}},)"
            R"({"type":"Pods","pods":{"metricName":"q","targetAverageValue":"1k"}},)"
            R"({"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}},)"
            R"({"type":"ContainerResource","containerResource":{"name":"cpu",)"
            R"("targetAverageUtilization":7,"container":"c"}},)"
            R"({"type":"External","external":{"metricName":"e","targetValue":"9"}}])");
}

TEST(AutoscalerVersions, ConditionsAndBehaviorAreAnnotationsOfV1) {
  const api::TreePtr v2 =
      V2(R"({"scaleTargetRef":{"kind":"D","name":"d"},"maxReplicas":5,
             "metrics":[{"type":"Resource","resource":{"name":"cpu",
               "target":{"type":"Utilization","averageUtilization":80}}}],
             "behavior":{"scaleUp":{"stabilizationWindowSeconds":0,"selectPolicy":"Max","policies":
               [{"type":"Pods","value":4,"periodSeconds":15}],"tolerance":"50m"}}})",
         R"({"currentReplicas":1,"desiredReplicas":2,"conditions":[{"type":"AbleToScale",
             "status":"True","lastTransitionTime":"2025-06-07T08:09:10Z","reason":"R"}]})");
  const api::TreePtr v1 = AutoscalerToV1(v2);
  EXPECT_EQ(Annotation(v1, "conditions"),
            R"([{"type":"AbleToScale","status":"True",)"
            R"("lastTransitionTime":"2025-06-07T08:09:10Z","reason":"R"}])");
  EXPECT_EQ(Annotation(v1, "behavior"),
            R"({"ScaleUp":{"StabilizationWindowSeconds":0,"SelectPolicy":"Max",)"
            R"("Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":15}],"Tolerance":"50m"},)"
            R"("ScaleDown":null})");
  EXPECT_TRUE(api::Equal(AutoscalerToV2(v1)->root(), v2->root()))
      << Json(AutoscalerToV2(v1)->root());
}

TEST(AutoscalerVersions, V1WithoutATargetHasTheDefaultMetric) {
  const std::string cpu =
      R"([{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization",)";
  EXPECT_EQ(Json(AutoscalerToV2(V1(R"({"maxReplicas":3})"))->root()["spec"]["metrics"]),
            StrCat(cpu, R"("averageUtilization":80}}}])"));
  EXPECT_EQ(Json(AutoscalerToV2(V1(R"({"maxReplicas":3,"targetCPUUtilizationPercentage":5})"))
                     ->root()["spec"]["metrics"]),
            StrCat(cpu, R"("averageUtilization":5}}}])"));
  const std::string other = R"({"autoscaling.alpha.kubernetes.io/metrics":)"
                            R"("[{\"type\":\"Resource\",\"resource\":{\"name\":\"memory\",)"
                            R"(\"targetAverageUtilization\":9}}]"})";
  EXPECT_EQ(Json(AutoscalerToV2(V1(R"({"maxReplicas":3})", other))->root()["spec"]["metrics"]),
            R"([{"type":"Resource","resource":{"name":"memory","target":{"type":"Utilization",)"
            R"("averageUtilization":9}}}])")
      << "another metric is enough";
}

TEST(AutoscalerVersions, AnnotationsThatMakeNoSenseAreIgnored) {
  for (const std::string_view text : {"", "x", "{}", "5", R"([5])", R"([{\"type\":5}])"}) {
    std::string annotations = "{";
    for (const std::string_view name : {"metrics", "current-metrics", "conditions", "behavior"}) {
      annotations +=
          StrCat(annotations.size() > 1 ? "," : "", "\"", kPrefix, name, "\":\"", text, "\"");
    }
    const api::TreePtr v2 =
        AutoscalerToV2(V1(R"({"maxReplicas":3,"targetCPUUtilizationPercentage":5})",
                          annotations + "}", R"({"currentCPUUtilizationPercentage":6})"));
    const Value root = v2->root();
    EXPECT_EQ(root["spec"]["metrics"].size(), 1u) << text;
    EXPECT_FALSE(root["spec"]["behavior"].exists()) << text;
    EXPECT_EQ(root["status"]["currentMetrics"].size(), 1u) << text;
    EXPECT_FALSE(root["status"]["conditions"].exists()) << text;
    EXPECT_FALSE(root["metadata"]["annotations"].exists()) << text;
  }
}

TEST(AutoscalerVersions, AMetricWithoutAQuantityIsIgnoredWithAllOthers) {
  const api::TreePtr v2 =
      AutoscalerToV2(V1(R"({"maxReplicas":3})",
                        R"({"autoscaling.alpha.kubernetes.io/metrics":"[{\"type\":\"Resource\",)"
                        R"(\"resource\":{\"name\":\"memory\"}},{\"type\":\"Pods\",)"
                        R"(\"pods\":{\"metricName\":\"m\",\"targetAverageValue\":\"much\"}}]"})"));
  ASSERT_EQ(v2->root()["spec"]["metrics"].size(), 1u);
  EXPECT_EQ(v2->root()["spec"]["metrics"].at(0)["resource"]["name"].str(), "cpu");
}

TEST(AutoscalerVersions, OtherAnnotationsStay) {
  const api::TreePtr v1 =
      V1(R"({"maxReplicas":3})",
         R"({"a":"b","autoscaling.alpha.kubernetes.io/scale-up-tolerance":"1"})");
  EXPECT_EQ(Json(AutoscalerToV2(v1)->root()["metadata"]["annotations"]), R"({"a":"b"})");
  const api::TreePtr v2 = V2("{}", "{}", R"({"name":"h","annotations":{"a":"b"}})");
  EXPECT_EQ(Json(AutoscalerToV1(v2)->root()["metadata"]["annotations"]), R"({"a":"b"})");
  Draft written(
      V2("{}", "{}", R"({"annotations":{"autoscaling.alpha.kubernetes.io/metrics":""}})"));
  DropAutoscalerAnnotations(written);
  EXPECT_EQ(Json(written.Freeze()->root()["metadata"]), "{}");
}

TEST(AutoscalerVersions, RandomObjectsSurviveARoundTripThroughV1) {
  SeededRandom random(11);
  const api::KindSchema& v2 = *api::FindKind("autoscaling", "v2", "HorizontalPodAutoscaler");
  const api::KindSchema& v1 = *api::FindKind("autoscaling", "v1", "HorizontalPodAutoscaler");
  const auto normalized = [](const api::TreePtr& tree, const api::KindSchema& kind) {
    const auto read = api::ReadObject(Json(tree->root()), *kind.schema);
    EXPECT_TRUE(read.ok()) << read.error().message << Json(tree->root());
    return read.ok() ? read->tree : tree;
  };
  for (int i = 0; i < 200; ++i) {
    Draft draft = Draft::Object();
    draft["apiVersion"] = "autoscaling/v2";
    draft["kind"] = "HorizontalPodAutoscaler";
    draft["metadata"] = Draft({{"name", "x"}});
    draft["spec"] = api::RandomTypedStruct(*v2.schema->Find("spec")->type.structure, random, 8);
    // The annotation cannot tell an empty one from none.
    if (draft["spec"]["behavior"].size() == 0) draft["spec"].Remove("behavior");
    // The one-of-many of an element, as validation demands it, with a valid type of target.
    draft["spec"]["metrics"] = Draft::Array();
    draft["spec"]["metrics"].Append(
        {{"type", "Pods"},
         {"pods",
          {{"metric", {{"name", StrCat("m", i)}}},
           {"target", {{"type", "AverageValue"}, {"averageValue", StrCat(i + 1)}}}}}});
    draft["status"] = Draft({{"currentReplicas", i + 1}, {"desiredReplicas", i + 2}});
    const api::TreePtr object = normalized(draft.Freeze(), v2);
    const api::TreePtr there = normalized(AutoscalerToV1(object), v1);
    const api::TreePtr back = normalized(AutoscalerToV2(there), v2);
    EXPECT_TRUE(api::Equal(back->root(), object->root())) << Json(object->root()) << "\n"
                                                          << Json(back->root());
  }
}

}  // namespace
}  // namespace drakkar::apiserver
