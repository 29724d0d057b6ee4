#include "apiserver/admission/node_restriction.h"

#include "api/tree/draft.h"
#include "apiserver/auth/bootstrap_policy.h"
#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

// No authorizer: what is refused is refused by the admission step.
class NodeRestrictionTest : public CoreFixture {
 protected:
  NodeRestrictionTest() {
    std::vector<std::unique_ptr<AdmissionStep>> steps;
    steps.push_back(std::make_unique<NodeRestriction>());
    StartCore(nullptr, std::move(steps));
  }

  static std::string Slice(std::string_view name, std::string_view node) {
    return StrCat(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice",)",
                  R"("metadata":{"name":")", name,
                  R"("},"spec":{"driver":"d.example.com","nodeName":")", node,
                  R"(","pool":{"name":"p","generation":1,"resourceSliceCount":1},"devices":[]}})");
  }

  static std::string MessageOf(const Response& response) {
    return response.failure ? response.failure->message : "allowed";
  }

  // Changes an object as `user` and says what came of it.
  std::string Change(const api::ObjectPtr& object, UserInfo user, std::string subresource,
                     const std::function<void(api::Draft&)>& change) {
    const api::ObjectPtr newest =
        core_->Find(api::FindKindByApiVersion(object->api_version(), object->kind())->group,
                    api::FindKindByApiVersion(object->api_version(), object->kind())->plural,
                    object->qualified_name());
    api::Draft draft(newest->tree());
    change(draft);
    Request request;
    request.user = std::move(user);
    request.verb = Verb::kUpdate;
    request.kind = api::FindKindByApiVersion(object->api_version(), object->kind());
    request.namespace_ = object->namespace_();
    request.name = object->name();
    request.subresource = std::move(subresource);
    request.object = draft.Freeze();
    return MessageOf(Handle(std::move(request)));
  }
};

TEST_F(NodeRestrictionTest, SlicesBelongToTheNodeThatPublishesThem) {
  EXPECT_EQ(MessageOf(TryCreate(Slice("s1", "n1"), NodeUser("n1"))), "allowed");
  EXPECT_EQ(MessageOf(TryCreate(Slice("s2", "n2"), NodeUser("n1"))),
            "resourceslices.resource.k8s.io \"s2\" is forbidden: can only create ResourceSlice "
            "with the same NodeName as the requesting node");
  EXPECT_EQ(MessageOf(Delete("resource.k8s.io/v1", "ResourceSlice", "", "s1", NodeUser("n2"))),
            "resourceslices.resource.k8s.io \"s1\" is forbidden: can only delete ResourceSlice "
            "with the same NodeName as the requesting node");
  EXPECT_EQ(MessageOf(Delete("resource.k8s.io/v1", "ResourceSlice", "", "s1", NodeUser("n1"))),
            "allowed");
}

TEST_F(NodeRestrictionTest, DriversThatAreTiedToANodePublishForThatNode) {
  UserInfo driver = PlainUser("d", {std::string(kNodeDriversGroup)});
  driver.extra["authentication.kubernetes.io/node-name"] = {"n1"};
  EXPECT_EQ(MessageOf(TryCreate(Slice("s1", "n1"), driver)), "allowed");
  EXPECT_EQ(TryCreate(Slice("s2", "n2"), driver).http_status, 403);
  EXPECT_EQ(MessageOf(TryCreate(Slice("s3", "n2"), PlainUser("somebody"))), "allowed");
}

TEST_F(NodeRestrictionTest, NodesDoNotTouchTheClaimStatusesOfTheirPods) {
  const api::ObjectPtr pod = Create(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"nodeName":"n1",
          "containers":[{"name":"c","image":"i"}],
          "resourceClaims":[{"name":"r","resourceClaimTemplateName":"t"}]}})");
  const auto phase = [](api::Draft& draft) { draft["status"]["phase"] = "Running"; };
  EXPECT_EQ(Change(pod, NodeUser("n1"), "status", phase), "allowed");
  EXPECT_EQ(Change(pod, NodeUser("n2"), "status", phase),
            "pods \"p\" is forbidden: node \"n2\" can only update pod status for pods with "
            "spec.nodeName set to itself");
  EXPECT_EQ(Change(pod, NodeUser("n1"), "status",
                   [](api::Draft& draft) {
                     draft["status"]["resourceClaimStatuses"].Append(
                         api::Draft({{"name", "r"}, {"resourceClaimName", "stolen"}}));
                   }),
            "pods \"p\" is forbidden: node \"n1\" cannot update resource claim statues");
  EXPECT_EQ(Change(pod, NodeUser("n1"), "status",
                   [](api::Draft& draft) {
                     draft["status"]["extendedResourceClaimStatus"]["resourceClaimName"] = "x";
                   }),
            "pods \"p\" is forbidden: node \"n1\" cannot update extended resource claim status");
  EXPECT_EQ(MessageOf(Delete("v1", "Pod", "default", "p", NodeUser("n2"))),
            "pods \"p\" is forbidden: node \"n2\" can only delete pods with spec.nodeName set to "
            "itself");
  EXPECT_EQ(MessageOf(Delete("v1", "Pod", "default", "p", NodeUser("n1"))), "allowed");
}

TEST_F(NodeRestrictionTest, NodesCreateOnlyMirrorPodsOfTheirOwn) {
  constexpr std::string_view kPod =
      R"(,"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}]}})";
  EXPECT_EQ(MessageOf(TryCreate(
                StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"})", kPod),
                NodeUser("n1"))),
            "pods \"a\" is forbidden: pod does not have \"kubernetes.io/config.mirror\" "
            "annotation, node \"n1\" can only create mirror pods");
  EXPECT_EQ(TryCreate(StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"b",
                "annotations":{"kubernetes.io/config.mirror":"x"}})",
                             kPod),
                      NodeUser("n2"))
                .http_status,
            403);
}

TEST_F(NodeRestrictionTest, NodesKeepToTheirNodeAndItsHarmlessLabels) {
  EXPECT_EQ(MessageOf(TryCreate(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n2"}})",
                                NodeUser("n1"))),
            "nodes \"n2\" is forbidden: node \"n1\" is not allowed to modify node \"n2\"");
  EXPECT_EQ(MessageOf(TryCreate(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n1",
                "labels":{"node-role.kubernetes.io/control-plane":""}}})",
                                NodeUser("n1"))),
            "nodes \"n1\" is forbidden: node \"n1\" is not allowed to set the following labels: "
            "node-role.kubernetes.io/control-plane");
  Response created = TryCreate(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n1",
      "labels":{"kubernetes.io/hostname":"n1","kubernetes.io/os":"linux","mine":"x"}}})",
                               NodeUser("n1"));
  ASSERT_EQ(MessageOf(created), "allowed");
  EXPECT_EQ(Change(created.object, NodeUser("n1"), "",
                   [](api::Draft& draft) {
                     draft["metadata"]["labels"]["node-restriction.kubernetes.io/x"] = "y";
                   }),
            "nodes \"n1\" is forbidden: node \"n1\" is not allowed to modify labels: "
            "node-restriction.kubernetes.io/x");
  EXPECT_EQ(
      Change(created.object, NodeUser("n1"), "",
             [](api::Draft& draft) {
               draft["spec"]["taints"].Append(api::Draft({{"key", "k"}, {"effect", "NoSchedule"}}));
             }),
      "nodes \"n1\" is forbidden: node \"n1\" is not allowed to modify taints");
  EXPECT_EQ(Change(created.object, NodeUser("n1"), "",
                   [](api::Draft& draft) { draft["metadata"]["labels"]["mine"] = "y"; }),
            "allowed");
}

TEST_F(NodeRestrictionTest, LeasesAreNamedAfterTheirNode) {
  constexpr std::string_view kLease =
      R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"n1",
          "namespace":"kube-node-lease"},"spec":{}})";
  EXPECT_EQ(MessageOf(TryCreate(kLease, NodeUser("n2"))),
            "leases.coordination.k8s.io \"n1\" is forbidden: can only access node lease with the "
            "same name as the requesting node");
  EXPECT_EQ(MessageOf(TryCreate(kLease, NodeUser("n1"))), "allowed");
}

}  // namespace
}  // namespace drakkar::apiserver
