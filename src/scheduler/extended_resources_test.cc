// KEP-5004: pods that ask for devices as extended resources.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "claims/claim.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/cluster.h"
#include "tests/support/faulty_client.h"

namespace drakkar::scheduler {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr char kGpu[] = "example.com/gpu";
constexpr char kNic[] = "deviceclass.resource.kubernetes.io/nic";

class ExtendedResources : public ::testing::Test {
 protected:
  ExtendedResources() {
    cluster_.scheduler_client = &client_;
    CreateClassFor("gpu", kGpu);
    cluster_.CreateClass("nic");
  }
  ~ExtendedResources() override { cluster_.KillScheduler(); }

  void CreateClassFor(std::string name, std::string_view resource) {
    cluster_.Create("DeviceClass",
                    StrCat(R"({"metadata":{"name":")", name,
                           R"("},"spec":{"extendedResourceName":")", resource, R"("}})"));
  }
  // "name resource=count,..."
  static std::string Container(std::string_view text) {
    const std::vector<std::string_view> words = Split(text, ' ');
    std::vector<std::string> amounts;
    for (const std::string_view entry : Split(words[1], ',')) {
      const std::size_t at = entry.find('=');
      amounts.push_back(StrCat(Quote(entry.substr(0, at)), ":", Quote(entry.substr(at + 1))));
    }
    const std::string all = Join(amounts, ",");
    return StrCat(R"({"name":)", Quote(words[0]), R"(,"image":"i","resources":{"requests":{)", all,
                  R"(},"limits":{)", all, "}}}");
  }
  void CreatePod(std::string name, std::vector<std::string> containers, std::string spec = "",
                 std::vector<std::string> init = {}) {
    for (std::string& each : containers) each = Container(each);
    for (std::string& each : init) each = Container(each);
    cluster_.Create("Pod", StrCat(R"({"metadata":{"name":")", name, R"("},"spec":{"containers":[)",
                                  Join(containers, ","), R"(],"initContainers":[)", Join(init, ","),
                                  "]", spec, "}}"));
    cluster_.Settle();
  }
  void CreateNodeWith(std::string name, std::string_view resource, int amount) {
    cluster_.Create("Node",
                    StrCat(R"({"metadata":{"name":")", name,
                           R"("},"status":{"allocatable":{"cpu":"4","memory":"32Gi",)",
                           R"("pods":"110",)", Quote(resource), R"(:")", amount, R"("}}})"));
  }
  // Names of all claims.
  std::vector<std::string> Claims() {
    std::vector<std::string> names;
    cluster_.client().List(
        {api::FindKind("resource.k8s.io", "v1", "ResourceClaim"), "default", "", ""}, {},
        [&](client::ListReply reply) {
          for (const api::ObjectPtr& claim : reply.items) {
            names.emplace_back(claim->name());
          }
        });
    cluster_.loop().RunUntilIdle();
    return names;
  }
  // The claim in the pod's status.
  std::string ClaimOf(std::string pod) {
    return std::string(cluster_.Find("Pod", std::move(pod))
                           ->root()["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
                           .str());
  }
  std::vector<std::string> MappingsOf(std::string pod) {
    std::vector<std::string> texts;
    for (api::Value mapping :
         cluster_.Find("Pod", std::move(pod))
             ->root()["status"]["extendedResourceClaimStatus"]["requestMappings"]
             .elements()) {
      texts.push_back(StrCat(mapping["containerName"].str(), " ", mapping["resourceName"].str(),
                             " ", mapping["requestName"].str()));
    }
    return texts;
  }
  std::vector<std::string> RequestsOf(std::string claim) {
    std::vector<std::string> texts;
    for (api::Value request : cluster_.Find("ResourceClaim", std::move(claim))
                                  ->root()["spec"]["devices"]["requests"]
                                  .elements()) {
      texts.push_back(StrCat(request["name"].str(), " ",
                             request["exactly"]["deviceClassName"].str(), " ",
                             request["exactly"]["count"].integer()));
    }
    return texts;
  }
  static auto Picks(std::string_view verb, std::string_view kind, std::string_view subresource) {
    return [=](std::string_view asked, const client::ResourceRef& ref, const api::TreePtr&) {
      return asked == verb && ref.kind->kind == kind && ref.subresource == subresource;
    };
  }

  TestCluster cluster_;
  testing::FaultyClient client_{cluster_.loop(), cluster_.client()};
};

TEST_F(ExtendedResources, APodGetsDevicesThroughAClaimOfItsOwn) {
  cluster_.CreateNode("n1");
  cluster_.CreateSlice("n1", 4);
  cluster_.StartScheduler();
  CreatePod("p", {StrCat("a cpu=1,", kGpu, "=2"), StrCat("b ", kNic, "=1")});
  ASSERT_EQ(cluster_.NodeOf("p"), "n1");
  ASSERT_THAT(Claims(), ElementsAre(StartsWith("p-extended-resources-")));
  const std::string name = Claims().front();
  EXPECT_EQ(ClaimOf("p"), name);
  EXPECT_THAT(MappingsOf("p"), ElementsAre(StrCat("b ", kNic, " container-1-request-0"),
                                           StrCat("a ", kGpu, " container-0-request-1")));
  EXPECT_THAT(RequestsOf(name),
              ElementsAre("container-0-request-1 gpu 2", "container-1-request-0 nic 1"));
  EXPECT_THAT(
      cluster_.DevicesOf(name),
      ElementsAre("d.example.com/n1/dev-0", "d.example.com/n1/dev-1", "d.example.com/n1/dev-2"));
  EXPECT_THAT(cluster_.ReservedFor(name), ElementsAre("p"));
  const api::ObjectPtr claim = cluster_.Find("ResourceClaim", name);
  EXPECT_TRUE(claims::IsForExtendedResources(claim->root()));
  EXPECT_TRUE(claims::IsMadeFor(claim->root(), cluster_.Find("Pod", "p")->uid()));
  EXPECT_EQ(claim->root()["metadata"]["finalizers"].at(0).str(), claims::kFinalizer);
  EXPECT_THAT(cluster_.Events("p", "FailedScheduling"), IsEmpty());
}

TEST_F(ExtendedResources, AnInitContainerUsesTheDevicesOfTheContainers) {
  cluster_.CreateNode("n1");
  cluster_.CreateSlice("n1", 2);
  cluster_.StartScheduler();
  CreatePod("p", {StrCat("a ", kGpu, "=2")}, "", {StrCat("i ", kGpu, "=1")});
  ASSERT_EQ(cluster_.NodeOf("p"), "n1");
  EXPECT_THAT(RequestsOf(ClaimOf("p")), ElementsAre("container-1-request-0 gpu 2"));
  EXPECT_THAT(MappingsOf("p"), ElementsAre(StrCat("a ", kGpu, " container-1-request-0"),
                                           StrCat("i ", kGpu, " container-1-request-0")));
}

TEST_F(ExtendedResources, ANodeThatOffersTheResourceNeedsNoClaim) {
  CreateNodeWith("plugin", kGpu, 1);
  cluster_.StartScheduler();
  CreatePod("p", {StrCat("a ", kGpu, "=1")});
  EXPECT_EQ(cluster_.NodeOf("p"), "plugin");
  EXPECT_THAT(Claims(), IsEmpty());
  EXPECT_EQ(ClaimOf("p"), "");
  CreatePod("q", {StrCat("a ", kGpu, "=1")});
  EXPECT_EQ(cluster_.ConditionMessage("q"),
            "0/1 nodes are available: 1 Insufficient example.com/gpu.")
      << "its devices are not taken in addition";
}

TEST_F(ExtendedResources, OnlyWhatTheNodeDoesNotOfferNeedsDevices) {
  CreateNodeWith("plugin", kGpu, 2);
  cluster_.CreateSlice("plugin", 1);
  cluster_.StartScheduler();
  CreatePod("p", {StrCat("a ", kGpu, "=2,", kNic, "=1")});
  ASSERT_EQ(cluster_.NodeOf("p"), "plugin");
  EXPECT_THAT(RequestsOf(ClaimOf("p")), ElementsAre("container-0-request-0 nic 1"));
  EXPECT_THAT(MappingsOf("p"), ElementsAre(StrCat("a ", kNic, " container-0-request-0")));
}

TEST_F(ExtendedResources, EachKindOfNodeIsJudgedByWhatItLacks) {
  cluster_.CreateNode("bare");
  CreateNodeWith("plugin", kGpu, 1);
  CreateNodeWith("small", kGpu, 1);
  cluster_.CreateSlice("bare", 3);
  cluster_.CreateSlice("small", 1);
  cluster_.StartScheduler();
  CreatePod("p", {StrCat("a ", kGpu, "=2,", kNic, "=1")});
  EXPECT_EQ(cluster_.NodeOf("p"), "bare");
  CreatePod("q", {StrCat("a ", kGpu, "=1,", kNic, "=1")});
  EXPECT_EQ(cluster_.NodeOf("q"), "small");
  CreatePod("r", {StrCat("a ", kGpu, "=1")});
  EXPECT_EQ(cluster_.NodeOf("r"), "plugin");
  EXPECT_THAT(Claims(), SizeIs(2));
}

TEST_F(ExtendedResources, ItsOwnClaimsAndExtendedResourcesGoToOneNode) {
  for (const char* node : {"n1", "n2"}) cluster_.CreateNode(node);
  cluster_.CreateSlice("n1", 2);
  cluster_.CreateSlice("n2", 3);
  cluster_.CreateClaim("c", 2);
  cluster_.StartScheduler();
  CreatePod("p", {StrCat("a ", kGpu, "=1")},
            R"(,"resourceClaims":[{"name":"r","resourceClaimName":"c"}])");
  EXPECT_EQ(cluster_.NodeOf("p"), "n2");
  EXPECT_THAT(cluster_.DevicesOf("c"), SizeIs(2));
  EXPECT_THAT(cluster_.DevicesOf(ClaimOf("p")), SizeIs(1));
}

TEST_F(ExtendedResources, APodWaitsForDevicesAndForAClass) {
  cluster_.CreateNode("n1");
  cluster_.StartScheduler();
  CreatePod("p", {StrCat("a ", kGpu, "=1")});
  CreatePod("q", {"a example.com/fpga=1"});
  EXPECT_EQ(cluster_.ConditionMessage("p"),
            "0/1 nodes are available: 1 cannot allocate all claims.");
  EXPECT_EQ(cluster_.ConditionMessage("q"),
            "0/1 nodes are available: 1 Insufficient example.com/fpga.");
  EXPECT_THAT(Claims(), IsEmpty()) << "a claim is created only for a pod that fits";
  cluster_.CreateSlice("n1", 2);
  cluster_.LetPauseEnd();
  EXPECT_EQ(cluster_.NodeOf("p"), "n1");
  EXPECT_EQ(cluster_.NodeOf("q"), "");
  CreateClassFor("fpga", "example.com/fpga");
  cluster_.LetPauseEnd();
  EXPECT_EQ(cluster_.NodeOf("q"), "n1");
}

TEST_F(ExtendedResources, APodWaitsUntilTheClaimOfAnotherIsGone) {
  cluster_.CreateNode("n1");
  cluster_.CreateSlice("n1", 1);
  cluster_.StartScheduler();
  CreatePod("p", {StrCat("a ", kGpu, "=1")});
  CreatePod("q", {StrCat("a ", kGpu, "=1")});
  EXPECT_EQ(cluster_.NodeOf("q"), "");
  const std::string claim = ClaimOf("p");
  cluster_.Update("ResourceClaim", claim, "",
                  [](api::Draft& draft) { draft["metadata"].Remove("finalizers"); });
  cluster_.Delete("ResourceClaim", claim);
  cluster_.LetPauseEnd();
  EXPECT_EQ(cluster_.NodeOf("q"), "n1");
}

TEST_F(ExtendedResources, WithoutTheGateANodeMustOfferTheResource) {
  cluster_.SetGates(FeatureGates().With(Gate::kDRAExtendedResource, false));
  cluster_.CreateNode("n1");
  cluster_.CreateSlice("n1", 1);
  cluster_.StartScheduler();
  for (const char* resource : {kGpu, kNic}) {
    const std::string name = resource == kGpu ? "p" : "q";
    CreatePod(name, {StrCat("a ", resource, "=1")});
    EXPECT_EQ(cluster_.ConditionMessage(name),
              StrCat("0/1 nodes are available: 1 Insufficient ", resource, "."));
  }
}

TEST_F(ExtendedResources, AFailedBindingDeletesTheClaimAndTheNextAttemptMakesAnother) {
  cluster_.CreateNode("n1");
  cluster_.CreateSlice("n1", 1);
  cluster_.StartScheduler();
  client_.loses = Picks("create", "Pod", "binding");
  CreatePod("p", {StrCat("a ", kGpu, "=1")});
  EXPECT_EQ(cluster_.NodeOf("p"), "");
  EXPECT_THAT(Claims(), IsEmpty());
  const std::string first = ClaimOf("p");
  EXPECT_THAT(first, StartsWith("p-extended-resources-"));
  client_.loses = nullptr;
  cluster_.LetPauseEnd();
  EXPECT_EQ(cluster_.NodeOf("p"), "n1");
  EXPECT_THAT(Claims(), ElementsAre(ClaimOf("p")));
  EXPECT_NE(ClaimOf("p"), first);
  EXPECT_THAT(cluster_.DevicesOf(ClaimOf("p")), SizeIs(1));
}

TEST_F(ExtendedResources, DevicesAreFreeAgainIfAWriteFails) {
  cluster_.CreateNode("n1");
  cluster_.CreateSlice("n1", 1);
  cluster_.StartScheduler();
  for (const auto& [verb, kind, subresource] :
       std::vector<std::tuple<const char*, const char*, const char*>>{
           {"create", "ResourceClaim", ""}, {"patch", "Pod", "status"}}) {
    SCOPED_TRACE(StrCat(verb, " ", kind));
    client_.loses = Picks(verb, kind, subresource);
    CreatePod("p", {StrCat("a ", kGpu, "=1")});
    cluster_.loop().Advance(minutes(2));
    EXPECT_EQ(cluster_.NodeOf("p"), "");
    cluster_.Delete("Pod", "p");
    client_.loses = nullptr;
    cluster_.loop().Advance(minutes(1));
    EXPECT_THAT(Claims(), IsEmpty());
    cluster_.CreateClaim("c");
    cluster_.CreatePodWithClaims("other", {"c"});
    cluster_.Settle();
    EXPECT_EQ(cluster_.NodeOf("other"), "n1");
    cluster_.Delete("Pod", "other");
    cluster_.Update("ResourceClaim", "c", "",
                    [](api::Draft& draft) { draft["metadata"].Remove("finalizers"); });
    cluster_.Delete("ResourceClaim", "c");
  }
}

TEST_F(ExtendedResources, TheClaimOfAnUnfinishedAttemptIsReplaced) {
  cluster_.CreateNode("n1");
  cluster_.CreateSlice("n1", 1);
  cluster_.StartScheduler();
  client_.holds = [](std::string_view, const client::ResourceRef& ref, const api::TreePtr&) {
    return ref.kind->kind == "ResourceClaim";
  };
  CreatePod("p", {StrCat("a ", kGpu, "=1")});
  ASSERT_THAT(Claims(), SizeIs(1));
  const std::string first = Claims().front();
  cluster_.KillScheduler();
  client_.holds = nullptr;
  cluster_.StartScheduler();
  cluster_.LetPauseEnd();
  ASSERT_EQ(cluster_.NodeOf("p"), "n1");
  EXPECT_THAT(Claims(), ElementsAre(ClaimOf("p")));
  EXPECT_NE(ClaimOf("p"), first);
  EXPECT_THAT(cluster_.Events("p", "FailedScheduling"),
              ElementsAre("0/1 nodes are available: 1 cannot schedule extended resource claim. "
                          "deletion of ResourceClaim completed"));
}

TEST_F(ExtendedResources, TheClaimOfABoundPodIsNotDeleted) {
  cluster_.CreateNode("n1");
  cluster_.CreateSlice("n1", 2);
  // The scheduler does not notice that somebody else bound the pod.
  client_.hides = [](const client::WatchEvent& event) {
    return event.object->kind() == "Pod" && !event.object->root()["spec"]["nodeName"].str().empty();
  };
  cluster_.StartScheduler();
  client_.loses = Picks("create", "ResourceClaim", "");
  CreatePod("p", {StrCat("a ", kGpu, "=1")});
  client_.loses = nullptr;
  const std::string uid(cluster_.Find("Pod", "p")->uid());
  cluster_.Create("ResourceClaim",
                  StrCat(R"({"metadata":{"name":"made","annotations":{)",
                         R"("resource.kubernetes.io/extended-resource-claim":"true"},)",
                         R"("ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p",)",
                         R"("uid":")", uid, R"(","controller":true}]},"spec":{"devices":{}}})"));
  api::Draft binding{{"target", api::Draft{{"kind", "Node"}, {"name", "n1"}}}};
  binding["metadata"]["name"] = "p";
  cluster_.client().Create({api::FindKind("", "v1", "Pod"), "default", "p", "binding"},
                           binding.Freeze(), {},
                           [](client::Reply reply) { EXPECT_TRUE(reply.ok()); });
  cluster_.loop().Advance(seconds(30));
  EXPECT_THAT(Claims(), ElementsAre("made"));
}

TEST_F(ExtendedResources, ThePodMayBeDeletedAtAnyTime) {
  cluster_.CreateNode("n1");
  cluster_.CreateSlice("n1", 1);
  cluster_.StartScheduler();
  client_.holds = [](std::string_view, const client::ResourceRef& ref, const api::TreePtr&) {
    return ref.kind->kind == "ResourceClaim";
  };
  CreatePod("p", {StrCat("a ", kGpu, "=1")});
  cluster_.Delete("Pod", "p");
  client_.holds = nullptr;
  client_.LetGo();
  cluster_.Settle();
  EXPECT_THAT(Claims(), IsEmpty());
  CreatePod("q", {StrCat("a ", kGpu, "=1")});
  EXPECT_EQ(cluster_.NodeOf("q"), "n1");
  EXPECT_EQ(cluster_.scheduler().counts().binding, 0u);
}

TEST_F(ExtendedResources, DevicesThatFailToAttachAreReplaced) {
  cluster_.CreateNode("n1");
  cluster_.CreateSlice("n1", 2, kConditions);
  cluster_.StartScheduler();
  CreatePod("p", {StrCat("a ", kGpu, "=1")});
  ASSERT_THAT(Claims(), SizeIs(1));
  EXPECT_EQ(cluster_.scheduler().counts().waiting_for_conditions, 1u);
  EXPECT_THAT(cluster_.DevicesOf(Claims().front()), ElementsAre("d.example.com/n1/dev-0"));
  cluster_.SetDeviceCondition(Claims().front(), kFailed, "True");
  cluster_.loop().Advance(seconds(15));
  ASSERT_THAT(Claims(), SizeIs(1));
  EXPECT_THAT(cluster_.DevicesOf(Claims().front()), ElementsAre("d.example.com/n1/dev-1"));
  cluster_.SetDeviceCondition(Claims().front(), kAttached, "True");
  EXPECT_EQ(cluster_.NodeOf("p"), "n1");
  EXPECT_EQ(ClaimOf("p"), Claims().front());
}

TEST_F(ExtendedResources, AClaimThatTheWatchDoesNotShowIsNotUsed) {
  cluster_.CreateNode("n1");
  cluster_.CreateSlice("n1", 1);
  cluster_.StartScheduler();
  client_.hides = [](const client::WatchEvent& event) {
    return event.object->kind() == "ResourceClaim";
  };
  CreatePod("p", {StrCat("a ", kGpu, "=1")});
  EXPECT_EQ(cluster_.scheduler().counts().binding, 1u);
  cluster_.loop().Advance(minutes(2) + seconds(1));
  EXPECT_EQ(cluster_.NodeOf("p"), "");
  EXPECT_THAT(cluster_.Events("p", "FailedScheduling"),
              ::testing::Contains(HasSubstr("was created but has not been observed")));
  ASSERT_THAT(Claims(), ::testing::Not(IsEmpty()));
  EXPECT_TRUE(cluster_.Find("ResourceClaim", Claims().front())->is_being_deleted());
}

}  // namespace
}  // namespace drakkar::scheduler
