#include "controllers/controllers.h"

#include <gtest/gtest.h>

#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "claims/claim.h"
#include "claims/pod_group.h"
#include "controllers/resource_claim/planner.h"
#include "controllers/workload/pod_facts.h"
#include "telemetry/metrics/metrics.h"
#include "tests/support/api_server.h"
#include "tests/support/faulty_client.h"

namespace drakkar::controllers {
namespace {

class ControllersTest : public ::testing::Test {
 protected:
  explicit ControllersTest(FeatureGates gates = FeatureGates(), bool pod_group_claims = false)
      : server_(loop_, std::move(gates)) {
    Start(pod_group_claims);
  }

  void Start(bool pod_group_claims = false) {
    controllers_.reset();
    controllers_ = std::make_unique<Controllers>(Controllers::Options{
        .loop = loop_,
        .random = loop_.random(),
        .client = faulty_,
        .metrics = metrics_,
        .warn =
            [this](const api::ObjectPtr&, std::string_view reason, std::string message) {
              warnings_.push_back(std::string(reason) + ": " + message);
            },
        .ca_pem = "the authority",
        .pod_group_claims = pod_group_claims});
    controllers_->Start();
    Settle();
  }

  void Settle(Duration time = std::chrono::milliseconds(200)) { loop_.Advance(time); }

  void CreateTemplate() {
    server_.Create(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaimTemplate",
      "metadata":{"name":"gpu"},"spec":{"metadata":{"labels":{"from":"template"}},
      "spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c"}}]}}}})");
  }

  void CreatePod(const std::string& name) {
    server_.Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name + R"("},
      "spec":{"containers":[{"name":"c","image":"i:1","resources":{"claims":[{"name":"dev"}]}}],
      "resourceClaims":[{"name":"dev","resourceClaimTemplateName":"gpu"}]}})");
    Settle();
  }

  // The claim that the pod's status names.
  api::ObjectPtr ClaimOf(const std::string& pod) {
    api::ObjectPtr object = server_.Get("Pod", "default/" + pod);
    if (object == nullptr) return nullptr;
    const api::Value status = object->root()["status"]["resourceClaimStatuses"].at(0);
    return server_.Get("ResourceClaim",
                       "default/" + std::string(status["resourceClaimName"].str()));
  }

  std::size_t ClaimCount() {
    return server_.core().FindCache("resource.k8s.io", "resourceclaims")->objects().size();
  }

  // Does what the scheduler does: allocates and reserves once the finalizer is set.
  void AllocateFor(const std::string& pod) {
    api::ObjectPtr object = server_.Get("Pod", "default/" + pod);
    api::ObjectPtr claim = ClaimOf(pod);
    ASSERT_NE(claim, nullptr);
    ASSERT_EQ(claim->root()["metadata"]["finalizers"].at(0).str(), claims::kFinalizer);
    api::Draft status(claim->tree());
    status["status"]["allocation"]["devices"] = api::Draft::Object();
    api::Draft consumer = api::Draft::Object();
    consumer["resource"] = "pods";
    consumer["name"] = pod;
    consumer["uid"] = object->uid();
    status["status"]["reservedFor"].Append(std::move(consumer));
    const client::Reply reply =
        server_.Update("ResourceClaim", claim->qualified_name(), "status", status.Freeze());
    ASSERT_TRUE(reply.ok()) << reply.error->message;
    Settle();
  }

  SeededLoop loop_;
  testing::TestApiServer server_;
  Metrics metrics_;
  std::vector<std::string> warnings_;
  std::unique_ptr<client::Client> client_ = server_.NewClient("system:kube-controller-manager");
  testing::FaultyClient faulty_{loop_, *client_};
  std::unique_ptr<Controllers> controllers_;
};

TEST_F(ControllersTest, APodGetsItsClaimFromTheTemplate) {
  CreateTemplate();
  CreatePod("p");
  api::ObjectPtr claim = ClaimOf("p");
  ASSERT_NE(claim, nullptr);
  EXPECT_TRUE(claim->name().starts_with("p-dev-")) << claim->name();
  EXPECT_EQ(claim->root()["metadata"]["annotations"].Entry(claims::kPodClaimAnnotation).str(),
            "dev");
  EXPECT_EQ(claim->root()["metadata"]["labels"]["from"].str(), "template");
  const api::Value owner = claim->root()["metadata"]["ownerReferences"].at(0);
  EXPECT_EQ(owner["kind"].str(), "Pod");
  EXPECT_EQ(owner["name"].str(), "p");
  EXPECT_TRUE(owner["controller"].boolean());
  EXPECT_FALSE(owner["blockOwnerDeletion"].exists());
  EXPECT_EQ(ClaimCount(), 1u);
}

TEST_F(ControllersTest, ObjectsListedBeforeTheOtherInformerHasSyncedAreProcessedAgain) {
  for (const char* late : {"Pod", "ResourceClaim"}) {
    controllers_.reset();
    const std::string name = std::string(late) == "Pod" ? "a" : "b";
    CreateTemplate();
    CreatePod(name);
    api::ObjectPtr claim = server_.Create(R"({"apiVersion":"resource.k8s.io/v1",
      "kind":"ResourceClaim","metadata":{"name":"of-)" +
                                          name + R"("},
      "spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c"}}]}}})");
    api::Draft status(claim->tree());
    status["status"]["allocation"]["devices"] = api::Draft::Object();
    status["status"]["reservedFor"].Append(
        {{"resource", "pods"}, {"name", "gone"}, {"uid", "gone-uid"}});
    ASSERT_TRUE(
        server_.Update("ResourceClaim", claim->qualified_name(), "status", status.Freeze()).ok());
    faulty_.loses = [late](std::string_view verb, const client::ResourceRef& ref,
                           const api::TreePtr&) {
      return verb == "list" && ref.kind->kind == late;
    };
    Start();
    Settle(std::chrono::seconds(5));
    faulty_.loses = nullptr;
    Settle(std::chrono::minutes(2));
    claim = server_.Get("ResourceClaim", claim->qualified_name());
    EXPECT_FALSE(claim->root()["status"]["allocation"].has_value()) << late << " came late";
    EXPECT_NE(ClaimOf(name), nullptr) << late << " came late";
    server_.Delete("ResourceClaimTemplate", "default/gpu");
  }
}

TEST_F(ControllersTest, AMissingTemplateIsReportedAndPodsContinueOnceItAppears) {
  CreatePod("p");
  ASSERT_FALSE(warnings_.empty());
  EXPECT_EQ(warnings_[0],
            "FailedResourceClaimCreation: PodResourceClaim dev: resource claim template \"gpu\": "
            "resourceclaimtemplate.resource.k8s.io \"gpu\" not found");
  CreateTemplate();
  Settle();
  EXPECT_NE(ClaimOf("p"), nullptr);
}

TEST_F(ControllersTest, ARestartedControllerDoesNotCreateASecondClaim) {
  CreateTemplate();
  CreatePod("p");
  for (int i = 0; i < 5; ++i) Start();
  EXPECT_EQ(ClaimCount(), 1u);
}

TEST_F(ControllersTest, ADeletedClaimIsCreatedAgain) {
  CreateTemplate();
  CreatePod("p");
  const std::string first(ClaimOf("p")->name());
  server_.Delete("ResourceClaim", "default/" + first);
  Settle();
  api::ObjectPtr second = ClaimOf("p");
  ASSERT_NE(second, nullptr);
  EXPECT_NE(second->name(), first);
}

TEST_F(ControllersTest, TheClaimOfAFinishedPodIsReleasedDeallocatedAndDeleted) {
  CreateTemplate();
  CreatePod("p");
  AllocateFor("p");
  ASSERT_EQ(ClaimCount(), 1u) << "in use: nothing happens";
  api::Draft pod(server_.Get("Pod", "default/p")->tree());
  pod["status"]["phase"] = "Succeeded";
  ASSERT_TRUE(server_.Update("Pod", "default/p", "status", pod.Freeze()).ok());
  Settle();
  EXPECT_EQ(ClaimCount(), 0u) << "released, finalizer removed, deleted";
}

TEST_F(ControllersTest, TheClaimForExtendedResourcesIsLeftToTheSchedulerUntilItsPodHasFinished) {
  const api::ObjectPtr pod = server_.Create(R"({"apiVersion":"v1","kind":"Pod",
    "metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}})");
  api::Draft claim = api::Draft::Object();
  claim["apiVersion"] = "resource.k8s.io/v1";
  claim["kind"] = "ResourceClaim";
  claim["metadata"]["name"] = "x";
  claim["metadata"]["annotations"].Entry(claims::kExtendedResourceAnnotation) = "true";
  claim["metadata"]["finalizers"].Append(claims::kFinalizer);
  claim["metadata"]["ownerReferences"].Append(claims::OwnerReference("p", pod->uid()));
  claim["spec"]["devices"] = api::Draft::Object();
  server_.Create(api::WriteJson(claim.Freeze()->root()));
  Settle();
  ASSERT_EQ(ClaimCount(), 1u);
  api::Draft status(server_.Get("ResourceClaim", "default/x")->tree());
  EXPECT_EQ(status["metadata"]["finalizers"].size(), 1u) << "it is about to be allocated";
  status["status"]["allocation"]["devices"] = api::Draft::Object();
  claims::AddReservation(status, {"p", std::string(pod->uid())});
  ASSERT_TRUE(server_.Update("ResourceClaim", "default/x", "status", status.Freeze()).ok());
  Settle();
  ASSERT_EQ(ClaimCount(), 1u);
  api::Draft done(server_.Get("Pod", "default/p")->tree());
  done["status"]["phase"] = "Succeeded";
  ASSERT_TRUE(server_.Update("Pod", "default/p", "status", done.Freeze()).ok());
  Settle();
  EXPECT_EQ(ClaimCount(), 0u);
}

class PodGroupClaims : public ControllersTest {
 protected:
  PodGroupClaims()
      : ControllersTest(FeatureGates()
                            .With(Gate::kGenericWorkload, true)
                            .With(Gate::kDRAWorkloadResourceClaims, true),
                        /*pod_group_claims=*/true) {}

  void CreateGroup() {
    server_.Create(R"({"apiVersion":"scheduling.k8s.io/v1beta1","kind":"PodGroup",
      "metadata":{"name":"g"},"spec":{"schedulingPolicy":{"basic":{}},"resourceClaims":[
      {"name":"shared","resourceClaimTemplateName":"gpu"}]}})");
    Settle();
  }
  // A pod of the group with a claim of its own and the shared one.
  void CreateMember(const std::string& name) {
    server_.Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name + R"("},
      "spec":{"containers":[{"name":"c","image":"i"}],"schedulingGroup":{"podGroupName":"g"},
      "resourceClaims":[{"name":"own","resourceClaimTemplateName":"gpu"},
                        {"name":"shared","resourceClaimTemplateName":"gpu"}]}})");
    Settle();
  }
  // "entry" of each claim in the status.
  std::map<std::string, std::string> Recorded(std::string_view kind, const std::string& name) {
    std::map<std::string, std::string> claims;
    for (const api::Value status : server_.Get(std::string(kind), "default/" + name)
                                       ->root()["status"]["resourceClaimStatuses"]
                                       .elements()) {
      claims[std::string(status["name"].str())] = status["resourceClaimName"].str();
    }
    return claims;
  }
  void Allocate(const std::string& claim, const std::optional<claims::Consumer>& consumer = {}) {
    api::Draft status(server_.Get("ResourceClaim", "default/" + claim)->tree());
    status["status"]["allocation"]["devices"] = api::Draft::Object();
    if (consumer) claims::AddReservation(status, *consumer);
    ASSERT_TRUE(
        server_.Update("ResourceClaim", "default/" + claim, "status", status.Freeze()).ok());
    Settle();
  }
};

TEST_F(PodGroupClaims, AreMadeOnceAndRecordedInTheGroupAndItsPods) {
  CreateTemplate();
  CreateMember("early");
  EXPECT_EQ(ClaimCount(), 0u) << "without its group nobody knows which claims the pod shares";
  CreateGroup();
  CreateMember("late");
  EXPECT_EQ(ClaimCount(), 3u);
  const std::string shared = Recorded("PodGroup", "g")["shared"];
  EXPECT_TRUE(shared.starts_with("g-shared-")) << shared;
  for (const char* pod : {"early", "late"}) {
    EXPECT_EQ(Recorded("Pod", pod)["shared"], shared) << pod;
    EXPECT_TRUE(Recorded("Pod", pod)["own"].starts_with(StrCat(pod, "-own-"))) << pod;
  }
  const api::ObjectPtr claim = server_.Get("ResourceClaim", "default/" + shared);
  const api::Value owner = claim->root()["metadata"]["ownerReferences"].at(0);
  EXPECT_EQ(owner["apiVersion"].str(), "scheduling.k8s.io/v1beta1");
  EXPECT_EQ(owner["kind"].str(), "PodGroup");
  EXPECT_TRUE(claims::IsMadeFor(claim->root(), server_.Get("PodGroup", "default/g")->uid()));
  EXPECT_EQ(claim->root()["metadata"]["annotations"].Entry(claims::kPodClaimAnnotation).str(),
            "shared");
}

TEST_F(PodGroupClaims, StayReservedUntilTheGroupIsGone) {
  CreateTemplate();
  CreateGroup();
  CreateMember("p");
  const std::string shared = Recorded("PodGroup", "g")["shared"];
  const std::string uid(server_.Get("PodGroup", "default/g")->uid());
  Allocate(shared, claims::Consumer{"g", uid, true});
  server_.Delete("Pod", "default/p");
  Settle(std::chrono::minutes(1));
  ASSERT_EQ(ClaimCount(), 1u) << "only the claim of the pod is deleted";
  EXPECT_EQ(
      server_.Get("ResourceClaim", "default/" + shared)->root()["status"]["reservedFor"].size(),
      1u);
  server_.Delete("PodGroup", "default/g");
  Settle(std::chrono::minutes(1));
  EXPECT_EQ(ClaimCount(), 0u);
}

TEST_F(PodGroupClaims, OfAPodBoundWithoutTheSchedulerAreReservedForTheGroup) {
  CreateTemplate();
  CreateGroup();
  const std::string shared = Recorded("PodGroup", "g")["shared"];
  Allocate(shared);
  server_.Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},
      "spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}],
      "schedulingGroup":{"podGroupName":"g"},
      "resourceClaims":[{"name":"shared","resourceClaimTemplateName":"gpu"}]}})");
  Settle(std::chrono::seconds(5));
  const api::ObjectPtr claim = server_.Get("ResourceClaim", "default/" + shared);
  EXPECT_TRUE(claims::IsReservedForGroup(claim->root(), "g"));
  EXPECT_FALSE(claims::IsReservedFor(claim->root(), server_.Get("Pod", "default/p")->uid()));
}

TEST_F(PodGroupClaims, WithoutTheGatePodsHaveTheirOwnAndReservationsOfGroupsStay) {
  Start(/*pod_group_claims=*/false);
  CreateTemplate();
  CreateMember("p");
  EXPECT_EQ(ClaimCount(), 2u) << "the pod does not wait for its group";
  const std::string shared = Recorded("Pod", "p")["shared"];
  EXPECT_TRUE(shared.starts_with("p-shared-")) << shared;
  CreateGroup();
  EXPECT_EQ(ClaimCount(), 2u);
  EXPECT_TRUE(Recorded("PodGroup", "g").empty());
  Allocate(shared, claims::Consumer{"gone", "gone-uid", true});
  Settle(std::chrono::minutes(1));
  EXPECT_TRUE(claims::IsReservedForGroup(server_.Get("ResourceClaim", "default/" + shared)->root(),
                                         "gone"));
}

TEST_F(PodGroupClaims, ThatCannotBeMadeAreReportedOnTheGroup) {
  CreateGroup();
  ASSERT_FALSE(warnings_.empty());
  EXPECT_TRUE(warnings_[0].starts_with(
      "FailedResourceClaimCreation: PodGroupResourceClaim shared: resource claim template "))
      << warnings_[0];
  CreateTemplate();
  Settle();
  EXPECT_EQ(ClaimCount(), 1u);
}

TEST_F(ControllersTest, ASharedClaimOutlivesItsConsumersButNotTheirReservations) {
  server_.Create(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim",
    "metadata":{"name":"shared","finalizers":["resource.kubernetes.io/delete-protection"]},
    "spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c"}}]}}})");
  CreateTemplate();
  CreatePod("a");
  CreatePod("b");
  api::Draft status(server_.Get("ResourceClaim", "default/shared")->tree());
  status["status"]["allocation"]["devices"] = api::Draft::Object();
  for (std::string_view pod : {"a", "b"}) {
    api::Draft consumer = api::Draft::Object();
    consumer["resource"] = "pods";
    consumer["name"] = pod;
    consumer["uid"] = server_.Get("Pod", "default/" + std::string(pod))->uid();
    status["status"]["reservedFor"].Append(std::move(consumer));
  }
  ASSERT_TRUE(server_.Update("ResourceClaim", "default/shared", "status", status.Freeze()).ok());
  server_.Delete("Pod", "default/a");
  Settle();
  api::ObjectPtr claim = server_.Get("ResourceClaim", "default/shared");
  EXPECT_EQ(claim->root()["status"]["reservedFor"].size(), 1u);
  EXPECT_TRUE(claim->root()["status"]["allocation"].has_value());
  server_.Delete("Pod", "default/b");
  Settle();
  claim = server_.Get("ResourceClaim", "default/shared");
  ASSERT_NE(claim, nullptr) << "nobody's pod owns it";
  EXPECT_FALSE(claim->root()["status"]["allocation"].exists());
  EXPECT_TRUE(claim->root()["metadata"]["finalizers"].empty());
}

TEST_F(ControllersTest, AClaimKeepsItsFinalizerUntilItIsDeleted) {
  CreateTemplate();
  CreatePod("p");
  api::ObjectPtr claim = ClaimOf("p");
  ASSERT_NE(claim, nullptr);
  EXPECT_EQ(claim->root()["metadata"]["finalizers"].size(), 1u);
  // Deleting the claim still removes it.
  server_.Delete("ResourceClaim", claim->qualified_name());
  Settle();
  EXPECT_EQ(server_.Get("ResourceClaim", claim->qualified_name()), nullptr);
}

TEST_F(ControllersTest, ObjectsOwnedByADeletedPodAreGarbageCollected) {
  CreateTemplate();
  CreatePod("p");
  server_.Delete("Pod", "default/p");
  Settle();
  EXPECT_EQ(ClaimCount(), 0u);
}

TEST_F(ControllersTest, TheClaimOfADeletedPodIsDeletedAtOnceInTwoWrites) {
  CreateTemplate();
  CreatePod("p");
  AllocateFor("p");
  const storage::Revision before = server_.core().revision();
  server_.Delete("Pod", "default/p");
  Settle();
  EXPECT_EQ(ClaimCount(), 0u);
  EXPECT_EQ(server_.core().revision() - before, 3) << "pod gone, claim deleted, finalizer removed";
}

TEST_F(ControllersTest, AClaimWithAForeignFinalizerIsDeallocatedBeforeItIsDeleted) {
  CreateTemplate();
  CreatePod("p");
  AllocateFor("p");
  const std::string name = ClaimOf("p")->qualified_name();
  api::Draft draft(server_.Get("ResourceClaim", name)->tree());
  draft["metadata"]["finalizers"].Append("x/hold");
  ASSERT_TRUE(server_.Update("ResourceClaim", name, "", draft.Freeze()).ok());
  server_.Delete("Pod", "default/p");
  Settle(std::chrono::seconds(2));
  const api::ObjectPtr claim = server_.Get("ResourceClaim", name);
  ASSERT_NE(claim, nullptr);
  EXPECT_TRUE(claim->is_being_deleted());
  EXPECT_FALSE(claim->root()["status"]["allocation"].exists());
  EXPECT_TRUE(claim->root()["status"]["reservedFor"].empty());
  EXPECT_EQ(claim->root()["metadata"]["finalizers"].size(), 1u);
}

TEST_F(ControllersTest, ForegroundDeletionWaitsForDependents) {
  api::ObjectPtr owner =
      server_.Create(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"owner"}})");
  server_.Create(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"child",
    "finalizers":["x/hold"],"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap",
    "name":"owner","blockOwnerDeletion":true,"uid":")" +
                 std::string(owner->uid()) + R"("}]}})");
  Settle();
  server_.Delete("ConfigMap", "default/owner", {.propagation_policy = "Foreground"});
  Settle();
  ASSERT_NE(server_.Get("ConfigMap", "default/owner"), nullptr);
  api::ObjectPtr child = server_.Get("ConfigMap", "default/child");
  ASSERT_TRUE(child != nullptr && child->is_being_deleted());
  api::Draft draft(child->tree());
  draft["metadata"].Remove("finalizers");
  server_.Update("ConfigMap", "default/child", "", draft.Freeze());
  Settle();
  EXPECT_EQ(server_.Get("ConfigMap", "default/child"), nullptr);
  EXPECT_EQ(server_.Get("ConfigMap", "default/owner"), nullptr);
}

TEST_F(ControllersTest, OrphaningRemovesTheOwnerFromItsDependents) {
  api::ObjectPtr owner =
      server_.Create(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"owner"}})");
  server_.Create(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"child",
    "ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap",
    "name":"owner","uid":")" +
                 std::string(owner->uid()) + R"("}]}})");
  Settle();
  server_.Delete("ConfigMap", "default/owner", {.propagation_policy = "Orphan"});
  Settle();
  EXPECT_EQ(server_.Get("ConfigMap", "default/owner"), nullptr);
  api::ObjectPtr child = server_.Get("ConfigMap", "default/child");
  ASSERT_NE(child, nullptr);
  EXPECT_TRUE(child->root()["metadata"]["ownerReferences"].empty());
}

TEST_F(ControllersTest, EveryNamespaceHasADefaultAccountThatIsRestored) {
  server_.Create(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team"}})");
  Settle();
  EXPECT_NE(server_.Get("ServiceAccount", "team/default"), nullptr);
  ASSERT_NE(server_.Get("ConfigMap", "team/kube-root-ca.crt"), nullptr);
  EXPECT_EQ((*server_.Get("ConfigMap", "team/kube-root-ca.crt"))["data"].Entry("ca.crt").str(),
            "the authority");
  server_.Delete("ServiceAccount", "team/default");
  Settle();
  EXPECT_NE(server_.Get("ServiceAccount", "team/default"), nullptr);
}

TEST_F(ControllersTest, TheCertificateThatPodsTrustIsRestored) {
  const auto authority = [this] {
    const auto map = server_.Get("ConfigMap", "default/kube-root-ca.crt");
    return map == nullptr ? "(none)" : std::string((*map)["data"].Entry("ca.crt").str());
  };
  Settle();
  EXPECT_EQ(authority(), "the authority");
  server_.Delete("ConfigMap", "default/kube-root-ca.crt");
  Settle();
  EXPECT_EQ(authority(), "the authority");
  api::Draft changed(server_.Get("ConfigMap", "default/kube-root-ca.crt")->tree());
  changed["data"].Entry("ca.crt") = "somebody else's";
  ASSERT_TRUE(server_.Update("ConfigMap", "default/kube-root-ca.crt", "", changed.Freeze()).ok());
  Settle();
  EXPECT_EQ(authority(), "the authority");
}

TEST_F(ControllersTest, TheContentsOfANamespaceAreDeletedBeforeTheNamespace) {
  server_.Create(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team"}})");
  server_.Create(
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"team"}})");
  Settle();
  server_.Delete("Namespace", "team");
  EXPECT_EQ(server_.Get("Namespace", "team")->root()["status"]["phase"].str(), "Terminating");
  EXPECT_FALSE(
      server_
          .TryCreate(
              R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b","namespace":"team"}})")
          .ok());
  Settle(std::chrono::seconds(3));
  EXPECT_EQ(server_.Get("ConfigMap", "team/a"), nullptr);
  EXPECT_EQ(server_.Get("Namespace", "team"), nullptr);
}

TEST_F(ControllersTest, ANamespaceThatCannotBeDeletedYetSaysWhy) {
  server_.Create(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team"}})");
  server_.Create(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a",
      "namespace":"team","finalizers":["example.com/wait"]}})");
  Settle();
  server_.Delete("Namespace", "team");
  Settle(std::chrono::seconds(3));
  const api::ObjectPtr team = server_.Get("Namespace", "team");
  ASSERT_NE(team, nullptr);
  const auto condition = [&](std::string_view type) {
    const api::Value found = FindCondition((*team)["status"], type);
    return StrCat(found["status"].str(), " ", found["reason"].str(), ": ", found["message"].str());
  };
  EXPECT_EQ(condition("NamespaceContentRemaining"),
            "True SomeResourcesRemain: Some resources are remaining: configmaps. has 1 resource "
            "instances");
  EXPECT_EQ(condition("NamespaceFinalizersRemaining"),
            "True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: "
            "example.com/wait in 1 resource instances");
  EXPECT_EQ(condition("NamespaceDeletionContentFailure"),
            "False ContentDeleted: All content successfully deleted, may be waiting on "
            "finalization");
}

// A pod may need until its end what the namespace has besides it (KEP-5080).
TEST_F(ControllersTest, ThePodsOfANamespaceGoBeforeTheRest) {
  server_.Create(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team"}})");
  server_.Create(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a",
      "namespace":"team"}})");
  server_.Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"team",
      "finalizers":["example.com/wait"]},"spec":{"containers":[{"name":"c","image":"i:1"}]}})");
  Settle();
  server_.Delete("Namespace", "team");
  Settle(std::chrono::seconds(5));
  EXPECT_TRUE(server_.Get("Pod", "team/p")->is_being_deleted());
  EXPECT_FALSE(server_.Get("ConfigMap", "team/a")->is_being_deleted());
  const api::ObjectPtr team = server_.Get("Namespace", "team");
  EXPECT_EQ(FindCondition((*team)["status"], "NamespaceContentRemaining")["message"].str(),
            "Some resources are remaining: pods. has 1 resource instances");
  EXPECT_EQ(FindCondition((*team)["status"], "NamespaceDeletionContentFailure")["status"].str(),
            "False");
  api::Draft released(server_.Get("Pod", "team/p")->tree());
  released["metadata"].Remove("finalizers");
  ASSERT_TRUE(server_.Update("Pod", "team/p", "", released.Freeze()).ok());
  Settle(std::chrono::seconds(5));
  EXPECT_EQ(server_.Get("ConfigMap", "team/a"), nullptr);
  EXPECT_EQ(server_.Get("Namespace", "team"), nullptr);
}

TEST_F(ControllersTest, WhatCannotBeDeletedFromANamespaceDoesNotKeepTheRest) {
  server_.Create(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team"}})");
  for (const char* kind : {"ConfigMap", "Secret"}) {
    server_.Create(StrCat(R"({"apiVersion":"v1","kind":")", kind,
                          R"(","metadata":{"name":"a","namespace":"team"}})"));
  }
  Settle();
  faulty_.loses = [](std::string_view verb, const client::ResourceRef& ref, const api::TreePtr&) {
    return verb == "deletecollection" && ref.kind->kind == "ConfigMap";
  };
  server_.Delete("Namespace", "team");
  Settle(std::chrono::seconds(5));
  EXPECT_EQ(server_.Get("Secret", "team/a"), nullptr);
  const api::ObjectPtr team = server_.Get("Namespace", "team");
  ASSERT_NE(team, nullptr);
  const api::Value failure = FindCondition((*team)["status"], "NamespaceDeletionContentFailure");
  EXPECT_EQ(failure["status"].str(), "True");
  EXPECT_EQ(failure["message"].str(),
            "Failed to delete all resource types, 2 remaining: connection closed, unexpected items "
            "still remain in namespace: team for gvr: /v1, Resource=configmaps");
  faulty_.loses = nullptr;
  Settle(std::chrono::seconds(30));
  EXPECT_EQ(server_.Get("Namespace", "team"), nullptr);
}

TEST_F(ControllersTest, ANamespaceStaysWhileAnApiGroupDoesNotAnswer) {
  bool answers = false;
  faulty_.serves = [&] {
    client::ServedKinds served;
    for (const api::KindSchema& kind : api::AllKinds()) {
      if (kind.storage_version) served.kinds.push_back(&kind);
    }
    served.fixed = false;
    if (!answers) served.unreachable = "metrics.example.com/v1";
    return served;
  };
  Start();
  server_.Create(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team"}})");
  server_.Create(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a",
      "namespace":"team"}})");
  server_.Delete("Namespace", "team");
  Settle(std::chrono::seconds(5));
  EXPECT_EQ(server_.Get("ConfigMap", "team/a"), nullptr) << "its kind is known";
  const api::ObjectPtr team = server_.Get("Namespace", "team");
  ASSERT_NE(team, nullptr);
  const api::Value failure = FindCondition((*team)["status"], "NamespaceDeletionDiscoveryFailure");
  EXPECT_EQ(failure["status"].str(), "True");
  EXPECT_EQ(failure["message"].str(),
            "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of "
            "server APIs: metrics.example.com/v1");
  answers = true;
  Settle(std::chrono::seconds(60));
  EXPECT_EQ(server_.Get("Namespace", "team"), nullptr);
}

// A server that does not serve storage capacities and would answer with 404.
client::ServedKinds WithoutCapacities() {
  client::ServedKinds served;
  for (const api::KindSchema& kind : api::AllKinds()) {
    if (kind.storage_version && kind.kind != "CSIStorageCapacity") {
      served.kinds.push_back(&kind);
    }
  }
  served.fixed = false;
  return served;
}

TEST_F(ControllersTest, AKindThatIsNotServedDoesNotBlockDeletion) {
  int asked = 0;
  faulty_.loses = [&](std::string_view, const client::ResourceRef& ref, const api::TreePtr&) {
    const bool unserved = ref.kind->kind == "CSIStorageCapacity";
    asked += unserved ? 1 : 0;
    return unserved;
  };
  faulty_.serves = [] { return WithoutCapacities(); };
  Start();
  server_.Create(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team"}})");
  server_.Create(
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"owner","namespace":"team"}})");
  const std::string uid(server_.Get("ConfigMap", "team/owner")->uid());
  server_.Create(
      R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"owned","namespace":"team",
    "ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":")" +
      uid + R"("}]}})");
  server_.Delete("ConfigMap", "team/owner");
  Settle(std::chrono::seconds(3));
  EXPECT_EQ(server_.Get("Secret", "team/owned"), nullptr);
  server_.Delete("Namespace", "team");
  Settle(std::chrono::seconds(3));
  EXPECT_EQ(server_.Get("Namespace", "team"), nullptr);
  EXPECT_EQ(asked, 0);
}

TEST_F(ControllersTest, AnOwnerOfAKindThatIsNotServedKeepsItsDependents) {
  faulty_.serves = [] { return WithoutCapacities(); };
  Start();
  server_.Create(R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"owned",
    "ownerReferences":[{"apiVersion":"resource.k8s.io/v1alpha3","kind":"CSIStorageCapacity",
      "name":"r","uid":"11111111-2222-3333-4444-555555555555"}]}})");
  Settle(std::chrono::seconds(3));
  EXPECT_NE(server_.Get("Secret", "default/owned"), nullptr);
}

TEST_F(ControllersTest, ANamespaceIsKeptWhileAnApiGroupDoesNotAnswer) {
  bool answers = false;
  faulty_.serves = [&] {
    client::ServedKinds served = WithoutCapacities();
    if (!answers) served.unreachable = "metrics.example.com/v1";
    return served;
  };
  Start();
  server_.Create(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team"}})");
  server_.Delete("Namespace", "team");
  Settle(std::chrono::seconds(5));
  EXPECT_NE(server_.Get("Namespace", "team"), nullptr);
  answers = true;
  Settle(std::chrono::minutes(2));
  EXPECT_EQ(server_.Get("Namespace", "team"), nullptr);
}

TEST_F(ControllersTest, DiscoveryIsRetriedAndFindsNewKinds) {
  int calls = 0;
  faulty_.serves = [&]() -> Result<client::ServedKinds> {
    if (++calls == 1) return Unavailable("connection closed");
    client::ServedKinds served = WithoutCapacities();
    if (calls == 2)
      std::erase_if(served.kinds, [](const auto* each) { return each->kind == "Secret"; });
    return served;
  };
  Start();
  server_.Create(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"owner"}})");
  const std::string uid(server_.Get("ConfigMap", "default/owner")->uid());
  server_.Create(R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"owned",
    "ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":")" +
                 uid + R"("}]}})");
  server_.Delete("ConfigMap", "default/owner");
  Settle(std::chrono::seconds(10));
  EXPECT_NE(server_.Get("Secret", "default/owned"), nullptr);
  Settle(std::chrono::seconds(40));
  EXPECT_EQ(server_.Get("Secret", "default/owned"), nullptr);
}

TEST_F(ControllersTest, PodsOfAMissingNodeAreDeletedAfterTheQuarantine) {
  server_.Create(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}})");
  server_.Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},
    "spec":{"nodeName":"n1","containers":[{"name":"c","image":"i:1"}]}})");
  Settle();
  server_.Delete("Node", "n1");
  Settle(std::chrono::seconds(39));
  EXPECT_NE(server_.Get("Pod", "default/p"), nullptr);
  Settle(std::chrono::seconds(3));
  EXPECT_EQ(server_.Get("Pod", "default/p"), nullptr);
}

TEST(ClaimGenerateName, ShortensBothPartsEvenly) {
  EXPECT_EQ(ClaimGenerateName("pod", "gpu"), "pod-gpu-");
  const std::string name = ClaimGenerateName(std::string(60, 'p'), std::string(60, 'c'));
  EXPECT_LE(name.size(), 57u);
  EXPECT_EQ(name, std::string(28, 'p') + "-" + std::string(28, 'c'));
}

}  // namespace
}  // namespace drakkar::controllers
