// Rules of single kinds, asked directly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/scheme/scheme.h"
#include "apiserver/registry/certificate_strategy.h"
#include "apiserver/registry/cluster_strategies.h"
#include "apiserver/registry/kept_members.h"
#include "apiserver/registry/resource_fields.h"
#include "apiserver/registry/strategy.h"
#include "apiserver/validation/value_rules.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "features/gates/feature_gates.h"

namespace drakkar::apiserver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

api::TreePtr Tree(std::string_view json) {
  auto tree = api::ParseJson(json);
  EXPECT_TRUE(tree.ok()) << json;
  return *std::move(tree);
}

class StrategiesTest : public ::testing::Test {
 protected:
  StrategyContext Context() {
    return {.clock = loop_.clock(),
            .random = loop_.random(),
            .gates = gates_,
            .user = user_,
            .verb = Verb::kUpdate,
            .lookup = [](std::string_view, std::string_view, const std::string&) -> api::ObjectPtr {
              return nullptr;
            },
            .authorize = [](std::string_view, std::string_view, std::string_view, std::string_view,
                            std::string_view, std::string_view) { return Decision::Deny(); },
            .visit =
                [this](std::string_view, std::string_view, std::string_view,
                       const std::function<void(const api::ObjectPtr&)>& each) {
                  for (const api::ObjectPtr& object : others_) each(object);
                }};
  }
  const Strategy& Of(std::string_view group, std::string_view version, std::string_view kind) {
    const api::KindSchema* schema = api::FindKind(group, version, kind);
    EXPECT_NE(schema, nullptr) << kind;
    return StrategyFor(*schema);
  }
  static std::vector<std::string> Texts(const api::FieldErrors& errors) {
    std::vector<std::string> texts;
    for (const api::FieldError& error : errors) texts.push_back(error.ToString());
    return texts;
  }
  std::vector<std::string> Made(const Strategy& strategy, std::string_view json) {
    const api::TreePtr object = Tree(json);
    return Texts(strategy.Validate(object->root(), Context()));
  }
  std::vector<std::string> Updated(const Strategy& strategy, std::string_view json,
                                   std::string_view before, std::string_view subresource = "") {
    const api::TreePtr object = Tree(json), old = Tree(before);
    return Texts(strategy.ValidateUpdate(object->root(), old->root(), subresource, Context()));
  }
  api::TreePtr Prepared(const Strategy& strategy, std::string_view json, std::string_view before,
                        std::string_view subresource = "") {
    api::Draft draft(Tree(json));
    const api::TreePtr old = Tree(before);
    strategy.PrepareForUpdate(draft, old->root(), subresource, Context());
    return draft.Freeze();
  }

  SeededLoop loop_;
  FeatureGates gates_;
  UserInfo user_{.name = "alice"};
  std::vector<api::ObjectPtr> others_;
};

TEST_F(StrategiesTest, DeclaredFeaturesAreSortedNamesInCamelCase) {
  const auto problems = [](std::string_view list) {
    const api::TreePtr tree = Tree(list);
    return ValidateDeclaredFeatures(tree->root()).size();
  };
  for (const char* good : {"A", "Z", "Az", "AZ09", "A/z", "A/Z/a9"}) {
    EXPECT_EQ(problems(StrCat("[\"", good, "\"]")), 0u) << good;
  }
  for (const char* bad :
       {"", "a", "@", "[", "A@", "A[", "A`", "A{", "A/", "/A", "A//B", "0A", "A/0", "A-b", "A:"}) {
    EXPECT_EQ(problems(StrCat("[\"", bad, "\"]")), 1u) << bad;
  }
  EXPECT_EQ(problems(StrCat("[\"", std::string(253, 'A'), "\"]")), 0u);
  EXPECT_EQ(problems(StrCat("[\"", std::string(254, 'A'), "\"]")), 1u);
  EXPECT_EQ(problems(R"(["A","B","C"])"), 0u);
  EXPECT_EQ(problems(R"(["A","A"])"), 1u);
  EXPECT_EQ(problems(R"(["B","A"])"), 1u);
}

TEST_F(StrategiesTest, DeclaredFeaturesAreDroppedWhileTheirGateIsOffUnlessTheyAreThere) {
  const Strategy& node = Of("", "v1", "Node");
  const char* kJson = R"({"status":{"declaredFeatures":["A"]}})";
  const auto created = [&] {
    api::Draft draft(Tree(kJson));
    node.PrepareForCreate(draft, Context());
    return !draft.Freeze()->root()["status"]["declaredFeatures"].empty();
  };
  const auto updated = [&](std::string_view before) {
    return !Prepared(node, kJson, before)->root()["status"]["declaredFeatures"].empty();
  };
  gates_ = gates_.With(Gate::kNodeDeclaredFeatures, true);
  EXPECT_TRUE(created());
  EXPECT_TRUE(updated("{}"));
  gates_ = gates_.With(Gate::kNodeDeclaredFeatures, false);
  EXPECT_FALSE(created());
  EXPECT_FALSE(updated("{}"));
  EXPECT_TRUE(updated(kJson));
}

TEST_F(StrategiesTest, OnlyFinalizeChangesTheSpecOfANamespace) {
  const Strategy& space = Of("", "v1", "Namespace");
  const char* kBefore = R"({"spec":{"finalizers":["kubernetes"]}})";
  EXPECT_EQ(Prepared(space, "{}", kBefore)->root()["spec"]["finalizers"].size(), 1u);
  EXPECT_EQ(
      Prepared(space, R"({"spec":{}})", kBefore, "finalize")->root()["spec"]["finalizers"].size(),
      0u);
  EXPECT_FALSE(Prepared(space, R"({"spec":{}})", "{}")->root()["spec"].exists());
  for (const char* kept : {"default", "kube-system", "kube-public"}) {
    EXPECT_NE(space.WhyKept(kept), "") << kept;
  }
  EXPECT_EQ(space.WhyKept("mine"), "");
  EXPECT_TRUE(space.HoldsDeletion(Tree(kBefore)->root()));
  EXPECT_FALSE(space.HoldsDeletion(Tree("{}")->root()));
}

TEST(KeptMembers, AStatusUpdateChangesNothingElse) {
  api::Draft draft(Tree(R"({"apiVersion":"v1","kind":"K","metadata":{"name":"new"},)"
                        R"("spec":{"a":1},"status":{"b":1},"data":{}})"));
  const api::TreePtr before =
      Tree(R"({"apiVersion":"v1","kind":"K","metadata":{"name":"old"},"spec":{"a":2},"type":"t"})");
  KeepAllBut("status", before->root(), draft);
  const api::TreePtr kept = draft.Freeze();
  EXPECT_EQ(kept->root()["metadata"]["name"].str(), "new") << "metadata is handled elsewhere";
  EXPECT_EQ(kept->root()["spec"].Entry("a").integer(), 2);
  EXPECT_EQ(kept->root()["status"].Entry("b").integer(), 1);
  EXPECT_EQ(kept->root()["type"].str(), "t");
  EXPECT_FALSE(kept->root()["data"].exists());
  EXPECT_EQ(kept->root()["kind"].str(), "K");
}

TEST_F(StrategiesTest, DefinitionsOfAGroupHaveDifferentNames) {
  const Strategy& strategy = Of("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
  const auto names = [](std::string_view plural, std::string_view singular, std::string_view shorts,
                        std::string_view kind, std::string_view list) {
    return StrCat(R"({"plural":")", plural, R"(","singular":")", singular, R"(","shortNames":[)",
                  shorts, R"(],"kind":")", kind, R"(","listKind":")", list, "\"}");
  };
  others_ = {std::make_shared<api::Object>(
      Tree(StrCat(R"({"metadata":{"name":"taken.g"},"spec":{"group":"g"},"status":{)",
                  R"("acceptedNames":)", names("many", "one", "\"m\"", "One", "OneList"), "}}")))};
  const auto condition = [&](std::string_view group, std::string_view given) {
    api::Draft draft(Tree(StrCat(R"({"metadata":{"name":"x.g"},"spec":{"group":")", group,
                                 R"(","names":)", given, "}}")));
    strategy.PrepareForCreate(draft, Context());
    const api::TreePtr made = draft.Freeze();
    const api::Value accepted = made->root()["status"]["conditions"].at(0);
    return StrCat(accepted["status"].str(), " ", accepted["reason"].str(), " ",
                  accepted["message"].str());
  };
  const std::string fine = "True NoConflicts no conflicts found";
  EXPECT_EQ(condition("g", names("xs", "x", "\"s\"", "X", "XList")), fine);
  EXPECT_EQ(condition("h", names("many", "one", "\"m\"", "One", "OneList")), fine)
      << "another group";
  EXPECT_EQ(condition("g", names("many", "x", "", "X", "XList")),
            "False PluralConflict \"many\" is already in use");
  EXPECT_EQ(condition("g", names("one", "x", "", "X", "XList")),
            "False PluralConflict \"one\" is already in use");
  EXPECT_EQ(condition("g", names("xs", "m", "", "X", "XList")),
            "False SingularConflict \"m\" is already in use");
  EXPECT_EQ(condition("g", names("xs", "x", "\"s\",\"many\"", "X", "XList")),
            "False ShortNamesConflict \"many\" is already in use");
  EXPECT_EQ(condition("g", names("xs", "x", "", "One", "XList")),
            "False KindConflict \"One\" is already in use");
  EXPECT_EQ(condition("g", names("xs", "x", "", "X", "OneList")),
            "False ListKindConflict \"OneList\" is already in use");
  EXPECT_EQ(condition("g", names("many", "one", "\"m\"", "One", "OneList")),
            "False PluralConflict \"many\" is already in use")
      << "the first of several";
}

TEST_F(StrategiesTest, ADefinitionsStatusFollowsItsSpec) {
  const Strategy& strategy = Of("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
  api::Draft draft(
      Tree(R"({"metadata":{"name":"xs.g"},"spec":{"group":"g","names":{"plural":"xs","kind":"X"},)"
           R"("versions":[{"name":"v1"},{"name":"v2","storage":true}]}})"));
  strategy.Default(draft, Context());
  strategy.PrepareForCreate(draft, Context());
  const api::TreePtr made = draft.Freeze();
  EXPECT_EQ(made->root()["spec"]["names"]["singular"].str(), "x");
  EXPECT_EQ(made->root()["spec"]["names"]["listKind"].str(), "XList");
  EXPECT_EQ(made->root()["status"]["storedVersions"].size(), 1u);
  EXPECT_EQ(made->root()["status"]["storedVersions"].at(0).str(), "v2");
  EXPECT_EQ(made->root()["metadata"]["finalizers"].size(), 1u);
  const std::string since(made->root()["status"]["conditions"].at(0)["lastTransitionTime"].str());
  EXPECT_NE(since, "");

  loop_.Advance(std::chrono::hours(1));
  api::Draft again(made);
  strategy.PrepareForUpdate(again, made->root(), "", Context());
  const api::TreePtr updated = again.Freeze();
  EXPECT_EQ(updated->root()["metadata"]["finalizers"].size(), 1u) << "added once";
  EXPECT_EQ(updated->root()["status"]["storedVersions"].size(), 1u);
  EXPECT_EQ(updated->root()["status"]["conditions"].size(), 2u);
  EXPECT_EQ(updated->root()["status"]["conditions"].at(0)["lastTransitionTime"].str(), since)
      << "nothing has changed";

  api::Draft ending(made);
  ending["metadata"]["finalizers"] = api::Draft::Array();
  ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  strategy.PrepareForUpdate(ending, made->root(), "", Context());
  EXPECT_EQ(ending.Freeze()->root()["metadata"]["finalizers"].size(), 0u);

  api::Draft nameless(Tree(R"({"spec":{"names":{}}})"));
  strategy.Default(nameless, Context());
  EXPECT_EQ(nameless.Freeze()->root()["spec"]["names"]["listKind"].str(), "");
}

TEST_F(StrategiesTest, StatusUpdatesOfMostKindsMayChangeLabels) {
  const auto keeps = [this](std::string_view group, std::string_view kind) {
    return Of(group, "v1", kind).StatusUpdateKeepsMetadata();
  };
  for (const std::string_view kind : {"Pod", "Node", "Namespace", "Service", "ResourceQuota",
                                      "PersistentVolume", "ReplicationController"}) {
    EXPECT_TRUE(keeps("", kind)) << kind;
  }
  EXPECT_TRUE(keeps("batch", "Job"));
  EXPECT_TRUE(keeps("apps", "StatefulSet"));
  EXPECT_TRUE(keeps("networking.k8s.io", "Ingress"));
  EXPECT_FALSE(keeps("resource.k8s.io", "ResourceClaim"));
  EXPECT_FALSE(keeps("storage.k8s.io", "VolumeAttachment"));
  EXPECT_FALSE(keeps("networking.k8s.io", "ServiceCIDR"));
  EXPECT_FALSE(keeps("flowcontrol.apiserver.k8s.io", "FlowSchema"));
  EXPECT_FALSE(keeps("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"));
}

TEST_F(StrategiesTest, AStatusUpdateKeepsTheOwnersAndTheQosClassOfAPod) {
  const Strategy& pod = Of("", "v1", "Pod");
  const api::TreePtr kept = Prepared(
      pod, R"({"metadata":{},"status":{"qosClass":"Guaranteed"}})",
      R"({"metadata":{"ownerReferences":[{"name":"o"}]},"status":{"qosClass":"Burstable"}})",
      "status");
  EXPECT_EQ(kept->root()["metadata"]["ownerReferences"].size(), 1u);
  EXPECT_EQ(kept->root()["status"]["qosClass"].str(), "Burstable");
  const api::TreePtr none =
      Prepared(pod, R"({"metadata":{"ownerReferences":[{"name":"o"}]},"status":{}})",
               R"({"metadata":{}})", "status");
  EXPECT_FALSE(none->root()["metadata"]["ownerReferences"].exists());
}

TEST_F(StrategiesTest, OnlyAPodThatRunsHasAGracePeriod) {
  const auto period = [&](std::string_view json, std::optional<std::int64_t> asked = {}) {
    const api::TreePtr tree = Tree(json);
    return Of("", "v1", "Pod").GracePeriod(tree->root(), asked);
  };
  const std::string bound = R"({"spec":{"nodeName":"n","terminationGracePeriodSeconds":7}})";
  EXPECT_EQ(period(bound), 7);
  EXPECT_EQ(period(bound, 3), 3);
  EXPECT_EQ(period(bound, 0), 0);
  EXPECT_EQ(period(bound, -1), 1);
  EXPECT_EQ(period(R"({"spec":{"nodeName":"n"}})"), 30);
  EXPECT_EQ(period(R"({"spec":{}})"), 0);
  EXPECT_EQ(period(R"({"spec":{"nodeName":"n"},"status":{"phase":"Running"}})"), 30);
  EXPECT_EQ(period(R"({"spec":{"nodeName":"n"},"status":{"phase":"Failed"}})"), 0);
  EXPECT_EQ(period(R"({"spec":{"nodeName":"n"},"status":{"phase":"Succeeded"}})"), 0);
}

TEST_F(StrategiesTest, EveryScopeOfAQuotaConcernsCertainResources) {
  const Strategy& quota = Of("", "v1", "ResourceQuota");
  const auto scope = [&](std::string_view name, std::string_view resource) {
    return Made(quota,
                StrCat(R"({"spec":{"hard":{")", resource, R"(":"1"},"scopes":[")", name, "\"]}}"))
        .size();
  };
  EXPECT_EQ(scope("BestEffort", "pods"), 0u);
  EXPECT_EQ(scope("BestEffort", "requests.cpu"), 1u);
  EXPECT_EQ(scope("BestEffort", "example.com/gpu"), 0u) << "not a standard resource";
  EXPECT_EQ(scope("VolumeAttributesClass", "requests.storage"), 0u);
  EXPECT_EQ(scope("VolumeAttributesClass", "persistentvolumeclaims"), 0u);
  EXPECT_EQ(scope("VolumeAttributesClass", "pods"), 1u);
  EXPECT_EQ(scope("Terminating", "limits.memory"), 0u);
  EXPECT_EQ(scope("Terminating", "secrets"), 1u);
  EXPECT_EQ(scope("Terminating", "hugepages-2Mi"), 1u) << "a standard resource";
  EXPECT_EQ(scope("Terminating", "requests.hugepages-2Mi"), 1u);
  EXPECT_EQ(scope("Terminating", "ephemeral-storage"), 1u);
  for (const char* resource : {"hugepages-2Mi", "requests.hugepages-2Mi", "requests.storage"}) {
    EXPECT_THAT(Made(quota, StrCat(R"({"spec":{"hard":{")", resource, R"(":"1"}}})")), IsEmpty());
  }
  for (const auto& [a, b] :
       {std::pair("BestEffort", "NotBestEffort"), std::pair("Terminating", "NotTerminating")}) {
    EXPECT_THAT(
        Made(quota, StrCat(R"({"spec":{"hard":{"pods":"1"},"scopes":[")", a, "\",\"", b, "\"]}}")),
        ElementsAre(HasSubstr("conflicting scopes")));
    EXPECT_THAT(
        Made(quota, StrCat(R"({"spec":{"hard":{"pods":"1"},"scopeSelector":{"matchExpressions":[)",
                           R"({"scopeName":")", a, R"(","operator":"Exists"},{"scopeName":")", b,
                           R"(","operator":"Exists"}]}}})")),
        ElementsAre(HasSubstr("conflicting scopes")));
  }
}

TEST_F(StrategiesTest, ALimitMayBeAsFarFromARequestAsTheRangeAllows) {
  const Strategy& range = Of("", "v1", "LimitRange");
  const auto ratio = [&](std::string_view text) {
    return Made(range, StrCat(R"({"spec":{"limits":[{"type":"Container","min":{"cpu":"1"},"max":{)",
                              R"("cpu":"4"},"maxLimitRequestRatio":{"cpu":")", text, "\"}}]}}"))
        .size();
  };
  EXPECT_EQ(ratio("1"), 0u);
  EXPECT_EQ(ratio("4"), 0u);
  EXPECT_EQ(ratio("5"), 1u);
  EXPECT_EQ(ratio("500m"), 1u);
}

TEST_F(StrategiesTest, WebhooksOfBothKindsAreChecked) {
  for (const char* kind : {"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}) {
    EXPECT_FALSE(
        Made(Of("admissionregistration.k8s.io", "v1", kind), R"({"webhooks":[{"name":"short"}]})")
            .empty())
        << kind;
  }
  EXPECT_THAT(Made(Of("admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicyBinding"),
                   R"({"spec":{"policyName":"p"},"webhooks":[{"name":"short"}]})"),
              IsEmpty())
      << "it has no webhooks";
}

TEST_F(StrategiesTest, APolicyThatDoesNotChangeIsNotCheckedAgain) {
  const Strategy& policy = Of("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy");
  const char* kOld = R"({"spec":{"validations":[]}})";  // of a server with other rules
  EXPECT_FALSE(Made(policy, kOld).empty());
  EXPECT_THAT(Updated(policy, kOld, kOld), IsEmpty());
  EXPECT_FALSE(Updated(policy, R"({"spec":{"validations":[{}]}})", kOld).empty());
  EXPECT_THAT(Updated(policy, R"({"spec":{"validations":[{}]}})", kOld, "status"), IsEmpty());
  const Strategy& hooks =
      Of("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration");
  EXPECT_FALSE(Updated(hooks, R"({"webhooks":[{"name":"x"}]})", R"({"webhooks":[]})").empty());
}

TEST_F(StrategiesTest, TheStatusOfAClaimNeedsPermissionsForItsParts) {
  const Strategy& claim = Of("resource.k8s.io", "v1", "ResourceClaim");
  const char* kBefore = R"({"metadata":{"name":"c","namespace":"ns"},"spec":{},"status":{)"
                        R"("allocation":{"devices":{"results":[{"driver":"d","pool":"p",)"
                        R"("device":"x","request":"r"}]}}}})";
  const char* kDevices = R"({"metadata":{"name":"c","namespace":"ns"},"spec":{},"status":{)"
                         R"("allocation":{"devices":{"results":[{"driver":"d","pool":"p",)"
                         R"("device":"x","request":"r"}]}},"devices":[{"driver":"d","pool":"p",)"
                         R"("device":"x"}]}})";
  const char* kFree = R"({"metadata":{"name":"c","namespace":"ns"},"spec":{},"status":{}})";
  const auto permissions = [&](std::string_view now, std::string_view before) {
    std::vector<std::string> needed;
    for (const std::string& error : Updated(claim, now, before, "status")) {
      for (const char* each : {"resourceclaims/binding", "resourceclaims/driver"}) {
        if (error.find(StrCat("requires resource=\"", each)) != std::string::npos) {
          needed.push_back(each);
        }
      }
    }
    return needed;
  };
  gates_ = gates_.With(Gate::kDRAResourceClaimGranularStatusAuthorization, true);
  EXPECT_THAT(permissions(kBefore, kFree), ElementsAre("resourceclaims/binding"));
  EXPECT_THAT(permissions(kDevices, kBefore), ElementsAre("resourceclaims/driver"));
  EXPECT_THAT(permissions(kDevices, kFree),
              UnorderedElementsAre("resourceclaims/binding", "resourceclaims/driver"));
  EXPECT_THAT(permissions(kFree, kDevices), ElementsAre("resourceclaims/binding"))
      << "the devices' entries go with the allocation";
  gates_ = gates_.With(Gate::kDRAResourceClaimDeviceStatus, false);
  EXPECT_THAT(permissions(kDevices, kBefore), IsEmpty());
  gates_ = gates_.With(Gate::kDRAResourceClaimDeviceStatus, true)
               .With(Gate::kDRAResourceClaimGranularStatusAuthorization, false);
  EXPECT_THAT(permissions(kDevices, kFree), IsEmpty());
}

TEST_F(StrategiesTest, ATaintThatChangesItsEffectIsNew) {
  const Strategy& rule = Of("resource.k8s.io", "v1beta2", "DeviceTaintRule");
  const auto taint = [](std::string_view effect, std::string_view time) {
    return StrCat(R"({"spec":{"taint":{"key":"k","effect":")", effect, R"(","timeAdded":")", time,
                  "\"}}}");
  };
  const std::string old = "2020-01-01T00:00:00Z", other = "2021-01-01T00:00:00Z";
  const auto time = [&](const std::string& now, std::string_view subresource = "") {
    const api::TreePtr after = Prepared(rule, now, taint("NoSchedule", old), subresource);
    return std::string(after->root()["spec"]["taint"]["timeAdded"].str());
  };
  EXPECT_EQ(time(taint("NoSchedule", old)), old);
  EXPECT_EQ(time(taint("NoSchedule", other)), other);
  EXPECT_EQ(time(taint("NoExecute", other)), other) << "the client sets it";
  EXPECT_NE(time(taint("NoExecute", old)), old);
  EXPECT_EQ(time(taint("NoExecute", old), "status"), old);
  EXPECT_EQ(
      Prepared(rule, R"({"spec":{}})", taint("NoSchedule", old))->root()["spec"]["taint"].exists(),
      false);
}

TEST(ResourceFields, ConsumableCapacityIsDroppedUnlessTheStoredSliceUsesIt) {
  const FeatureGates off = FeatureGates().With(Gate::kDRAConsumableCapacity, false);
  const char* kSent = R"({"spec":{"devices":[{"name":"a","allowMultipleAllocations":true,)"
                      R"("capacity":{"m":{"value":"1","requestPolicy":{"default":"1"}}}}]}})";
  const auto kept = [&](std::string_view before) {
    api::Draft draft(Tree(kSent));
    const api::TreePtr old = Tree(before);
    DropDisabledSliceFields(draft, old->root(), off);
    const api::TreePtr now = draft.Freeze();
    const api::Value device = now->root()["spec"]["devices"].at(0);
    const bool policy = device["capacity"].Entry("m")["requestPolicy"].exists();
    EXPECT_EQ(device["allowMultipleAllocations"].exists(), policy);
    return policy;
  };
  EXPECT_FALSE(kept("{}"));
  EXPECT_FALSE(kept(R"({"spec":{"devices":[{"name":"a","capacity":{"m":{"value":"1"}}}]}})"));
  EXPECT_TRUE(kept(R"({"spec":{"devices":[{"name":"a","allowMultipleAllocations":false}]}})"));
  EXPECT_TRUE(kept(R"({"spec":{"devices":[{"name":"x"},{"name":"a","capacity":{"l":{"value":"1"},)"
                   R"("m":{"value":"1","requestPolicy":{}}}}]}})"));
}

TEST(ResourceFields, SharesInAClaimsStatusAreDroppedUnlessTheStoredClaimUsesThem) {
  const FeatureGates off = FeatureGates().With(Gate::kDRAConsumableCapacity, false);
  const char* kSent =
      R"({"status":{"allocation":{"devices":{"results":[{"device":"a","shareID":"s",)"
      R"("consumedCapacity":{"m":"1"}}]}},"devices":[{"device":"a","shareID":"s"}]}})";
  const auto kept = [&](std::string_view before) {
    api::Draft draft(Tree(kSent));
    const api::TreePtr old = Tree(before);
    DropDisabledClaimStatusFields(draft, old->root(), off);
    const api::TreePtr now = draft.Freeze();
    const api::Value status = now->root()["status"];
    const bool share = status["allocation"]["devices"]["results"].at(0)["shareID"].exists();
    EXPECT_EQ(status["devices"].at(0)["shareID"].exists(), share);
    return share;
  };
  EXPECT_FALSE(kept("{}"));
  EXPECT_TRUE(kept(R"({"status":{"devices":[{"device":"b"},{"device":"a","shareID":"s"}]}})"));
  EXPECT_TRUE(kept(
      R"({"status":{"allocation":{"devices":{"results":[{"consumedCapacity":{"m":"1"}}]}}}})"));
  EXPECT_TRUE(kept(R"({"spec":{"devices":{"requests":[{"exactly":{"capacity":{"requests":{)"
                   R"("m":"1"}}}}]}}})"));
}

TEST(SignerName, IsADomainAndAPath) {
  const auto problems = [](std::string_view name) {
    std::string text;
    api::FieldErrors errors;
    CheckSignerName(errors, api::FieldPath("f"), name);
    for (const api::FieldError& error : errors) {
      text += StrCat(text.empty() ? "" : "; ", error.ToString());
    }
    return text;
  };
  for (const char* good : {"example.com/a", "a.b.c/a.b-c", "1.2/3"}) EXPECT_EQ(problems(good), "");
  EXPECT_EQ(problems(""), "f: Required value");
  for (const char* bad : {"example.com", "example.com/a/b", "example.com/a/"}) {
    EXPECT_THAT(problems(bad), HasSubstr("of the form 'example.com/signer-name'")) << bad;
  }
  EXPECT_THAT(problems("nodots/a"), HasSubstr("at least two segments separated by dots"));
  EXPECT_THAT(problems("/a"), HasSubstr("validating label \"\""));
  EXPECT_THAT(problems("example.com/"), HasSubstr("validating label \"\""));
  EXPECT_EQ(problems("x_.y_.com/a").find("\"y_\""), std::string::npos)
      << "only the first bad label is reported";
  std::string domain(62, 'a');
  while (domain.size() < 254) domain += ".a";
  EXPECT_EQ(problems(domain.substr(0, 252) + "/a"), "");
  EXPECT_THAT(problems(domain + "/a"), HasSubstr("f: Too long: may not be more than 253"));
  std::string path(domain);
  while (path.size() < 700) path += ".a";
  EXPECT_EQ(problems("example.com/" + path.substr(0, 500)), "");
  EXPECT_THAT(problems("example.com/" + path), HasSubstr("f: Too long: may not be more than 571"));
}

TEST_F(StrategiesTest, ConditionsOfASigningRequestAreNamedOnceAndDecideOneWay) {
  const Strategy& strategy = Of("certificates.k8s.io", "v1", "CertificateSigningRequest");
  const auto with = [](std::string_view conditions) {
    return StrCat(R"({"status":{"conditions":[)", conditions, "]}}");
  };
  const auto approval = [&](std::string_view conditions, std::string_view before = "") {
    return Updated(strategy, with(conditions), with(before), "approval");
  };
  constexpr std::string_view kApproved = R"({"type":"Approved","status":"True","reason":"a"})";
  constexpr std::string_view kDenied = R"({"type":"Denied","status":"True"})";
  constexpr std::string_view kUnnamed = R"({"type":"","status":"True"})";
  for (const char* status : {"True", "False", "Unknown"}) {
    EXPECT_THAT(approval(StrCat(R"({"type":"Seen","status":")", status, "\"}")), IsEmpty());
  }
  EXPECT_THAT(approval(R"({"type":"Seen","status":"Other"})"),
              ElementsAre(HasSubstr(R"(supported values: "False", "True", "Unknown")")));
  EXPECT_THAT(approval(R"({"type":"Seen"})"),
              ElementsAre("status.conditions[0].status: Required value"));
  for (const char* type : {"Approved", "Denied", "Failed"}) {
    for (const char* status : {"False", "Unknown"}) {
      EXPECT_THAT(approval(StrCat(R"({"type":")", type, R"(","status":")", status, "\"}")),
                  ElementsAre(HasSubstr(
                      StrCat("Unsupported value: \"", status, "\": supported values: \"True\""))));
    }
  }
  EXPECT_THAT(approval(kUnnamed), ElementsAre("status.conditions[0].type: Required value"));
  EXPECT_THAT(approval(kUnnamed, kUnnamed), IsEmpty()) << "another server has let it pass";
  const std::string both = StrCat(kApproved, ",", kDenied);
  EXPECT_THAT(approval(both),
              ElementsAre(HasSubstr(R"(Invalid value: "Denied": Approved and Denied)")));
  EXPECT_THAT(approval(StrCat(kDenied, R"(,{"type":"Seen","status":"True"},)", kApproved)),
              ElementsAre(HasSubstr(R"(Invalid value: "Approved": Approved and Denied)")));
  EXPECT_THAT(approval(both, both), IsEmpty());
  const std::string twice = R"({"type":"Seen","status":"True"},{"type":"Seen","status":"False"})";
  EXPECT_THAT(approval(twice),
              ElementsAre(R"(status.conditions[1].type: Duplicate value: "Seen")"));
  EXPECT_THAT(approval(twice, twice), IsEmpty());
  // Approval may change a decision's details; the status may not.
  constexpr std::string_view kChanged = R"({"type":"Approved","status":"True","reason":"b"})";
  EXPECT_THAT(approval(kChanged, kApproved), IsEmpty());
  EXPECT_THAT(Updated(strategy, with(kChanged), with(kApproved), "status"),
              ElementsAre(HasSubstr(R"(updates may not modify a condition of type "Approved")")));
  EXPECT_THAT(Updated(strategy, with(kApproved), with(kApproved), "status"), IsEmpty());
  EXPECT_THAT(Updated(strategy, with(kDenied), with(""), "status"),
              ElementsAre(HasSubstr(R"(updates may not add a condition of type "Denied")")));
  EXPECT_THAT(Updated(strategy, with(""), with(R"({"type":"Failed","status":"True"})"), "status"),
              ElementsAre(HasSubstr(R"(updates may not remove a condition of type "Failed")")));
  EXPECT_THAT(Updated(strategy, with(R"({"type":"Failed","status":"True"})"), with(""), "status"),
              IsEmpty())
      << "the signer says that it failed";
}

TEST_F(StrategiesTest, TimesOfConditionsAreSetWhereTheClientLeavesThemOut) {
  const Strategy& strategy = Of("certificates.k8s.io", "v1", "CertificateSigningRequest");
  constexpr std::string_view kThen = "2026-01-02T03:04:05Z";
  const std::string before =
      StrCat(R"({"status":{"conditions":[{"type":"Other","status":"False","lastTransitionTime":)",
             R"("2020-01-01T00:00:00Z"},{"type":"Seen","status":"True","lastUpdateTime":")", kThen,
             R"(","lastTransitionTime":")", kThen, R"("}]}})");
  const auto times = [&](std::string_view condition) {
    const api::TreePtr made = Prepared(
        strategy, StrCat(R"({"status":{"conditions":[)", condition, "]}}"), before, "approval");
    const api::Value first = made->root()["status"]["conditions"].at(0);
    const auto shown = [&](std::string_view time) {
      return time == kThen ? "then" : time.starts_with("2025") ? "given" : "now";
    };
    return StrCat(shown(first["lastUpdateTime"].str()), " ",
                  shown(first["lastTransitionTime"].str()));
  };
  EXPECT_EQ(times(R"({"type":"Seen","status":"True"})"), "now then") << "it had this status";
  EXPECT_EQ(times(R"({"type":"Seen","status":"False"})"), "now now");
  EXPECT_EQ(times(R"({"type":"New","status":"True"})"), "now now");
  EXPECT_EQ(times(R"({"type":"Seen","status":"False","lastUpdateTime":"2025-01-01T00:00:00Z",
                      "lastTransitionTime":"2025-01-01T00:00:00Z"})"),
            "given given");
}

TEST_F(StrategiesTest, ASignerSendsBackDecisionsWithoutTheirDetails) {
  const Strategy& strategy = Of("certificates.k8s.io", "v1", "CertificateSigningRequest");
  const char* kBefore = R"({"status":{"conditions":[
      {"type":"Approved","status":"True","reason":"Fine","lastUpdateTime":"2026-01-02T03:04:05Z",
       "lastTransitionTime":"2026-01-02T03:04:05Z"}]}})";
  const auto reasons = [&](std::string_view conditions, std::string_view subresource) {
    const api::TreePtr made = Prepared(
        strategy, StrCat(R"({"status":{"conditions":[)", conditions, "]}}"), kBefore, subresource);
    std::string text;
    for (const api::Value each : made->root()["status"]["conditions"].elements()) {
      text += StrCat(each["type"].str(), ":", each["reason"].str(), " ");
    }
    return text;
  };
  constexpr std::string_view kBare = R"({"type":"Approved","status":"True"})";
  constexpr std::string_view kFailed = R"({"type":"Failed","status":"True"})";
  EXPECT_EQ(reasons(kBare, "status"), "Approved:Fine ");
  EXPECT_EQ(reasons(StrCat(kFailed, ",", kBare), "status"), "Failed: Approved:Fine ");
  EXPECT_EQ(reasons(StrCat(kBare, ",", kBare), "status"), "Approved: Approved: ")
      << "one too many is for validation to refuse";
  EXPECT_EQ(reasons(kBare, "approval"), "Approved: ") << "approval may change it";
}

TEST_F(StrategiesTest, ThePoolsOfAStatusNeedAGeneration) {
  const Strategy& strategy = Of("resource.k8s.io", "v1alpha3", "ResourcePoolStatusRequest");
  constexpr std::string_view kBefore = R"({"spec":{"driver":"d.example.com","limit":100}})";
  const auto problems = [&](std::string_view generation) {
    return Updated(
        strategy,
        StrCat(R"({"spec":{"driver":"d.example.com","limit":100},"status":{"poolCount":1,)",
               R"("pools":[{"driver":"d.example.com","poolName":"p")", generation, "}]}}"),
        kBefore, "status");
  };
  EXPECT_THAT(problems(R"(,"generation":1)"), IsEmpty());
  EXPECT_THAT(problems(R"(,"generation":0)"), IsEmpty()) << "a slice may have it, too";
  EXPECT_THAT(problems(""), ElementsAre("status.pools[0].generation: Required value"));
  EXPECT_THAT(problems(R"(,"generation":-1)"),
              ElementsAre(HasSubstr("must be greater than or equal to 0")));
}

}  // namespace
}  // namespace drakkar::apiserver
