#include "apiserver/auth/node_authorizer.h"

#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

// There is no other authorizer, so only the node authorizer's decisions show.
class NodeAuthorizerTest : public CoreFixture {
 protected:
  NodeAuthorizerTest() {
    StartCore(nullptr);
    nodes_.Attach(*core_);
    Create(R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}})");
  }

  Decision Ask(std::string_view node, std::string_view verb, std::string_view group,
               std::string_view resource, std::string_view namespace_, std::string_view name,
               std::string_view selector = "", std::string_view sub = "") {
    const UserInfo user = NodeUser(node);
    return nodes_.Check({user, verb, group, resource, sub, namespace_, name, selector});
  }
  bool May(std::string_view node, std::string_view verb, std::string_view group,
           std::string_view resource, std::string_view namespace_, std::string_view name,
           std::string_view selector = "", std::string_view sub = "") {
    return Ask(node, verb, group, resource, namespace_, name, selector, sub).allowed;
  }

  void CreatePod(std::string_view name, std::string_view node, std::string_view extra = "") {
    Create(StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
                  R"("},"spec":{"nodeName":")", node,
                  R"(","containers":[{"name":"c","image":"i"}])", extra, "}}"));
  }

  NodeAuthorizer nodes_;
};

TEST_F(NodeAuthorizerTest, HasNoOpinionOnOtherUsers) {
  const UserInfo user = PlainUser("system:node:n");  // not in the group
  EXPECT_EQ(nodes_.Check({user, "get", "", "nodes", "", "", "n", ""}), Decision::Deny());
}

TEST_F(NodeAuthorizerTest, MayReadOnlyWhatItsPodsReference) {
  EXPECT_EQ(Ask("n1", "get", "", "secrets", "default", "s"),
            Decision::Deny("no relationship found between node 'n1' and this object"));
  CreatePod("p", "n1",
            R"(,"imagePullSecrets":[{"name":"s"}],
               "resourceClaims":[{"name":"r","resourceClaimName":"c"}],
               "volumes":[{"name":"v","configMap":{"name":"m"}}])");
  EXPECT_TRUE(May("n1", "get", "", "secrets", "default", "s")) << "after the first look too";
  EXPECT_TRUE(May("n1", "watch", "", "secrets", "default", "", "metadata.name=s"));
  EXPECT_TRUE(May("n1", "get", "", "configmaps", "default", "m"));
  EXPECT_TRUE(May("n1", "get", "resource.k8s.io", "resourceclaims", "default", "c"));
  EXPECT_FALSE(May("n2", "get", "resource.k8s.io", "resourceclaims", "default", "c"));
  EXPECT_FALSE(May("n1", "get", "resource.k8s.io", "resourceclaims", "other", "c"));
  EXPECT_FALSE(May("n1", "list", "", "secrets", "default", ""));
  EXPECT_EQ(Ask("n1", "delete", "", "secrets", "default", "s"),
            Decision::Deny("can only read resources of this type"));
  EXPECT_EQ(Ask("n1", "update", "resource.k8s.io", "resourceclaims", "default", "c"),
            Decision::Deny("can only get individual resources of this type"));
  Delete("v1", "Pod", "default", "p");
  EXPECT_FALSE(May("n1", "get", "", "secrets", "default", "s")) << "the pod is gone";
}

TEST_F(NodeAuthorizerTest, ClaimsFromTemplatesAreFoundThroughThePodStatus) {
  CreatePod("p", "n1", R"(,"resourceClaims":[{"name":"r","resourceClaimTemplateName":"t"}])");
  EXPECT_FALSE(May("n1", "get", "resource.k8s.io", "resourceclaims", "default", "p-r-x"));
  Request request = RequestFor(
      Verb::kPatch, R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}})", AdminUser());
  request.object = nullptr;
  request.subresource = "status";
  request.patch = PatchKind::kMerge;
  request.text =
      R"({"status":{"resourceClaimStatuses":[{"name":"r","resourceClaimName":"p-r-x"}]}})";
  Response patched = Handle(std::move(request));
  ASSERT_FALSE(patched.failure.has_value()) << patched.failure->message;
  EXPECT_TRUE(May("n1", "get", "resource.k8s.io", "resourceclaims", "default", "p-r-x"));
}

TEST_F(NodeAuthorizerTest, MayAccessItsOwnNodeLeaseAndPods) {
  CreatePod("p", "n1");
  EXPECT_TRUE(May("n1", "get", "", "nodes", "", "n1"));
  EXPECT_TRUE(May("n1", "patch", "", "nodes", "", "n1", "", "status"));
  EXPECT_TRUE(May("n1", "watch", "", "nodes", "", "", "metadata.name=n1"));
  EXPECT_EQ(Ask("n1", "get", "", "nodes", "", "n2"),
            Decision::Deny("node 'n1' cannot read 'n2', only its own Node object"));
  EXPECT_FALSE(May("n1", "list", "", "nodes", "", ""));
  EXPECT_TRUE(May("n1", "update", "coordination.k8s.io", "leases", "kube-node-lease", "n1"));
  EXPECT_EQ(Ask("n1", "update", "coordination.k8s.io", "leases", "kube-node-lease", "n2"),
            Decision::Deny("can only access node lease with the same name as the requesting node"));
  EXPECT_EQ(Ask("n1", "get", "coordination.k8s.io", "leases", "default", "n1"),
            Decision::Deny("can only access leases in the \"kube-node-lease\" system namespace"));
  EXPECT_TRUE(May("n1", "watch", "", "pods", "", "", "spec.nodeName=n1"));
  EXPECT_FALSE(May("n1", "watch", "", "pods", "", "", "spec.nodeName=n2"));
  EXPECT_FALSE(May("n1", "watch", "", "pods", "", "", "spec.nodeName!=n1"));
  EXPECT_FALSE(May("n1", "list", "", "pods", "default", ""));
  EXPECT_TRUE(May("n1", "patch", "", "pods", "default", "p", "", "status"));
  EXPECT_FALSE(May("n2", "patch", "", "pods", "default", "p", "", "status"));
  EXPECT_FALSE(May("n1", "update", "", "pods", "default", "p"));
  EXPECT_TRUE(May("n1", "create", "", "events", "default", ""));
  EXPECT_FALSE(May("n1", "delete", "", "namespaces", "", "default"));
}

TEST_F(NodeAuthorizerTest, MayAccessItsOwnSlices) {
  Create(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":"s1"},
             "spec":{"driver":"d.example.com","nodeName":"n1","pool":{"name":"n1","generation":1,
             "resourceSliceCount":1},"devices":[]}})");
  constexpr std::string_view kGroup = "resource.k8s.io";
  EXPECT_TRUE(May("n1", "create", kGroup, "resourceslices", "", ""));
  EXPECT_TRUE(May("n1", "update", kGroup, "resourceslices", "", "s1"));
  EXPECT_EQ(Ask("n2", "delete", kGroup, "resourceslices", "", "s1"),
            Decision::Deny("no relationship found between node 'n2' and this object"));
  EXPECT_FALSE(May("n1", "get", kGroup, "resourceslices", "", "s2"));
  EXPECT_TRUE(May("n1", "list", kGroup, "resourceslices", "", "", "spec.nodeName=n1"));
  EXPECT_TRUE(May("n1", "deletecollection", kGroup, "resourceslices", "", "",
                  "spec.driver=d,spec.nodeName=n1"));
  EXPECT_EQ(
      Ask("n1", "watch", kGroup, "resourceslices", "", ""),
      Decision::Deny(
          "can only list/watch/deletecollection resourceslices with nodeName field selector"));
}

TEST_F(NodeAuthorizerTest, ServiceAccountsOfItsPodsGetTokens) {
  CreatePod("p", "n1", R"(,"serviceAccountName":"sa")");
  EXPECT_TRUE(May("n1", "create", "", "serviceaccounts", "default", "sa", "", "token"));
  EXPECT_FALSE(May("n2", "create", "", "serviceaccounts", "default", "sa", "", "token"));
  EXPECT_FALSE(May("n1", "update", "", "serviceaccounts", "default", "sa"));
}

TEST(PodReferencesTest, FindsEveryReferenceInAPod) {
  const api::Object pod(
      api::ParseJson(R"({"metadata":{"name":"p","namespace":"ns"},"spec":{"nodeName":"n",
        "containers":[{"env":[{"valueFrom":{"secretKeyRef":{"name":"a"}}},
                              {"valueFrom":{"configMapKeyRef":{"name":"b"}}}],
                       "envFrom":[{"secretRef":{"name":"c"}},{"configMapRef":{"name":"b"}}]}],
        "volumes":[{"name":"v","ephemeral":{}},{"secret":{"secretName":"d"}},
                   {"projected":{"sources":[{"secret":{"name":"e"}}]}},
                   {"persistentVolumeClaim":{"claimName":"f"}}]},
        "status":{"extendedResourceClaimStatus":{"resourceClaimName":"x"}}})")
          .value());
  EXPECT_EQ(
      ReferencesOf(pod),
      (std::vector<std::string>{"configmaps/ns/b", "persistentvolumeclaims/ns/f",
                                "persistentvolumeclaims/ns/p-v", "pods/ns/p", "resourceclaims/ns/x",
                                "secrets/ns/a", "secrets/ns/c", "secrets/ns/d", "secrets/ns/e"}));
  PodReferences references;
  references.Add(pod);
  references.Add(pod);
  references.Remove(pod);
  EXPECT_TRUE(references.Has("n", "secrets", "ns", "a")) << "one is left";
  references.Remove(pod);
  EXPECT_FALSE(references.Has("n", "secrets", "ns", "a"));
}

}  // namespace
}  // namespace drakkar::apiserver
