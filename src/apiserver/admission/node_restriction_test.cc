#include "apiserver/admission/node_restriction.h"

#include <gmock/gmock.h>

#include "api/tree/draft.h"
#include "apiserver/auth/pod_references.h"
#include "apiserver/request/node_identity.h"
#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

// Allows everything except "arbitrary-node:" verbs, which need `allowed`.
class ArbitraryNodes final : public Authorizer {
 public:
  Decision Check(const Attributes& attributes) override {
    if (!attributes.verb.starts_with("arbitrary-node:") || allowed) {
      return Decision::Allow();
    }
    return Decision::Deny("no");
  }
  bool allowed = false;
};

// The authorizer allows almost everything, so rejections come from the admission step.
class NodeRestrictionTest : public CoreFixture {
 protected:
  NodeRestrictionTest() {
    std::vector<std::unique_ptr<AdmissionStep>> steps;
    steps.push_back(std::make_unique<NodeRestriction>());
    steps.push_back(std::make_unique<DriverConfinement>());
    StartCore(&arbitrary_, std::move(steps));
  }

  // For all nodes if `node` is "".
  static std::string Slice(std::string_view name, std::string_view node) {
    return StrCat(
        R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice",)", R"("metadata":{"name":")",
        name, R"("},"spec":{"driver":"d.example.com",)",
        node.empty() ? std::string(R"("allNodes":true)") : StrCat(R"("nodeName":")", node, R"(")"),
        R"(,"pool":{"name":"p","generation":1,"resourceSliceCount":1},"devices":[]}})");
  }

  static std::string MessageOf(const Response& response) {
    return response.failure ? response.failure->message : "allowed";
  }

  // Changes an object as `user`; returns "allowed" or the error message.
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

  ArbitraryNodes arbitrary_;
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

class DriverConfinementTest : public NodeRestrictionTest {
 protected:
  DriverConfinementTest() {
    Pod("agent", "DaemonSet");
    Pod("controller", "ReplicaSet");
    Create(Slice("of-n1", "n1"));
    Create(Slice("of-n2", "n2"));
    Create(Slice("of-all", ""));
  }
  void Pod(std::string_view name, std::string_view owner) {
    Create(StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
                  R"(","ownerReferences":[{"apiVersion":"apps/v1","kind":")", owner,
                  R"(","name":"o","uid":"u","controller":true}]},"spec":{"nodeName":"n1",
                  "containers":[{"name":"c","image":"i"}]}})"));
  }
  // A service account whose token is bound to a pod on n1.
  static UserInfo Account(std::string pod) {
    UserInfo user = PlainUser("system:serviceaccount:default:driver");
    user.extra[std::string(kNodeNameExtra)] = {"n1"};
    user.extra[std::string(kPodNameExtra)] = {std::move(pod)};
    return user;
  }
  static UserInfo Certificate(std::string name) {
    return PlainUser(std::move(name), {std::string(kNodeDriversGroup)});
  }
  // Writes slices of a node (of no node if empty) in every possible way. All must have the same
  // result, which is returned.
  std::string Write(const UserInfo& user, std::string_view node, std::string_view existing) {
    const std::string create = MessageOf(TryCreate(Slice(StrCat("new-", ++number_), node), user));
    const api::ObjectPtr slice =
        core_->Find("resource.k8s.io", "resourceslices", std::string(existing));
    const auto touch = [](api::Draft& draft) {
      draft["spec"]["pool"]["generation"] = draft["spec"]["pool"]["generation"].integer() + 1;
    };
    const std::string update = Change(slice, user, "", touch);
    Request patch;
    patch.user = user;
    patch.verb = Verb::kPatch;
    patch.patch = PatchKind::kMerge;
    patch.kind = api::FindKind("resource.k8s.io", "v1", "ResourceSlice");
    patch.name = existing;
    patch.text = R"({"metadata":{"labels":{"a":"b"}}})";
    const std::string patched = MessageOf(Handle(patch));
    patch.verb = Verb::kDelete;
    patch.text = "";
    patch.dry_run = true;
    const std::string deleted = MessageOf(Handle(patch));
    patch.verb = Verb::kDeleteCollection;
    patch.name = "";
    patch.field_selector = StrCat("metadata.name=", existing);
    const std::string collected = MessageOf(Handle(patch));
    std::string all;
    for (const std::string& each : {create, update, patched, deleted, collected}) {
      all += each == "allowed" ? "y" : each.find("acts from node") != each.npos ? "n" : each;
    }
    return all;
  }

  int number_ = 0;
};

TEST_F(DriverConfinementTest, ADriverOnOneNodeWritesNoSlicesOfAnother) {
  for (const UserInfo& user :
       {Account("agent"), Account("controller"), Certificate("drakkar:node-driver:n1")}) {
    EXPECT_EQ(Write(user, "n1", "of-n1"), "yyyyy") << user.name;
    EXPECT_EQ(Write(user, "n2", "of-n2"), "nnnnn") << user.name;
  }
  EXPECT_EQ(Write(PlainUser("somebody"), "n2", "of-n2"), "yyyyy");
}

TEST_F(DriverConfinementTest, TheNodePartOfADriverWritesNoClusterWideSlices) {
  EXPECT_EQ(Write(Account("agent"), "", "of-all"), "nnnnn");
  EXPECT_EQ(Write(Certificate("drakkar:node-driver:n1"), "", "of-all"), "nnnnn");
  EXPECT_EQ(Write(Account("controller"), "", "of-all"), "yyyyy") << "publishes for the cluster";
}

TEST_F(DriverConfinementTest, ADriverWhoseNodeIsUnknownWritesNoSlices) {
  for (const char* name : {"d", "drakkar:node-driver:", "drakkar:node-driver"}) {
    EXPECT_EQ(Write(Certificate(name), "n1", "of-n1"), "nnnnn") << name;
    EXPECT_EQ(Write(Certificate(name), "", "of-all"), "nnnnn") << name;
  }
}

TEST_F(DriverConfinementTest, ASliceCannotBeMovedToOrFromAnotherNode) {
  const api::ObjectPtr own = core_->Find("resource.k8s.io", "resourceslices", "of-n1");
  const std::string message = Change(own, Account("agent"), "",
                                     [](api::Draft& draft) { draft["spec"]["nodeName"] = "n2"; });
  EXPECT_EQ(message,
            "resourceslices.resource.k8s.io \"of-n1\" is forbidden: user "
            "\"system:serviceaccount:default:driver\" acts from node \"n1\" and can only update "
            "ResourceSlices with that nodeName; others need the verb \"arbitrary-node:update\"");
}

TEST_F(DriverConfinementTest, ASeparateVerbLiftsTheConfinement) {
  arbitrary_.allowed = true;
  EXPECT_EQ(Write(Account("agent"), "n2", "of-n2"), "yyyyy");
  EXPECT_EQ(Write(Account("agent"), "", "of-all"), "yyyyy");
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

TEST_F(NodeRestrictionTest, MirrorPodsReferenceNothingAndAreOwnedByTheirNode) {
  const api::ObjectPtr node =
      Create(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}})");
  const std::string owner = StrCat(R"({"apiVersion":"v1","kind":"Node","name":"n1","uid":")",
                                   node->uid(), R"(","controller":true})");
  int number = 0;
  const auto create = [&](std::string_view owners, std::string_view container,
                          std::string_view more) {
    const std::string name = StrCat("m", ++number);
    const std::string message = MessageOf(TryCreate(
        StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
               R"(","annotations":{"kubernetes.io/config.mirror":"x"},"ownerReferences":[)", owners,
               R"(]},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i")", container,
               "}]", more, "}}"),
        NodeUser("n1")));
    const std::string prefix = StrCat("pods \"", name, "\" is forbidden: node \"n1\" ");
    return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
  };
  EXPECT_EQ(create(owner, "", ""), "allowed");

  constexpr char kOwner[] = "can only create pods with an owner reference set to itself";
  EXPECT_EQ(create("", "", ""), kOwner);
  EXPECT_EQ(create(R"({"apiVersion":"v1","kind":"Node","name":"n2","uid":"u","controller":true})",
                   "", ""),
            kOwner);
  EXPECT_EQ(create(R"({"apiVersion":"apps/v1","kind":"Node","name":"n1","uid":"u"})", "", ""),
            kOwner);
  EXPECT_EQ(
      create(StrCat(owner, R"(,{"apiVersion":"v1","kind":"Pod","name":"n1","uid":"u"})"), "", ""),
      "can only create pods with a single owner reference set to itself");
  EXPECT_EQ(create(StrCat(R"({"apiVersion":"v1","kind":"Node","name":"n1","uid":")", node->uid(),
                          R"("})"),
                   "", ""),
            "can only create pods with a controller owner reference set to itself");
  EXPECT_EQ(create(StrCat(R"({"apiVersion":"v1","kind":"Node","name":"n1","uid":")", node->uid(),
                          R"(","controller":true,"blockOwnerDeletion":true})"),
                   "", ""),
            "must not set blockOwnerDeletion on an owner reference");
  EXPECT_THAT(create(R"({"apiVersion":"v1","kind":"Node","name":"n1","uid":"u","controller":true})",
                     "", ""),
              ::testing::HasSubstr("UID mismatch"));

  constexpr char kSecrets[] = "can not create pods that reference secrets";
  constexpr char kMaps[] = "can not create pods that reference configmaps";
  constexpr char kClaims[] = "can not create pods that reference persistentvolumeclaims";
  const auto volume = [&](std::string_view source) {
    return create(owner, "", StrCat(R"(,"volumes":[{"name":"v",)", source, "}]"));
  };
  EXPECT_EQ(create(owner, R"(,"env":[{"name":"E","valueFrom":{"secretKeyRef":{"name":"s",
      "key":"k"}}}])",
                   ""),
            kSecrets);
  EXPECT_EQ(create(owner, R"(,"env":[{"name":"E","valueFrom":{"configMapKeyRef":{"name":"s",
      "key":"k"}}}])",
                   ""),
            kMaps);
  EXPECT_EQ(create(owner, R"(,"envFrom":[{"secretRef":{"name":"s"}}])", ""), kSecrets);
  EXPECT_EQ(create(owner, R"(,"envFrom":[{"configMapRef":{"name":"s"}}])", ""), kMaps);
  EXPECT_EQ(create(owner, "", R"(,"imagePullSecrets":[{"name":"s"}])"), kSecrets);
  EXPECT_EQ(create(owner, "", R"(,"initContainers":[{"name":"i","image":"i",
      "envFrom":[{"secretRef":{"name":"s"}}]}])"),
            kSecrets);
  EXPECT_EQ(volume(R"("secret":{"secretName":"s"})"), kSecrets);
  EXPECT_EQ(volume(R"("configMap":{"name":"s"})"), kMaps);
  EXPECT_EQ(volume(R"("projected":{"sources":[{"secret":{"name":"s"}}]})"), kSecrets);
  EXPECT_EQ(volume(R"("projected":{"sources":[{"configMap":{"name":"s"}}]})"), kMaps);
  EXPECT_EQ(volume(R"("projected":{"sources":[{"serviceAccountToken":{"path":"t"}}]})"),
            "can not create pods that reference serviceaccounttokens");
  EXPECT_EQ(volume(R"("persistentVolumeClaim":{"claimName":"s"})"), kClaims);
  EXPECT_EQ(volume(R"("ephemeral":{"volumeClaimTemplate":{"spec":{"accessModes":["ReadWriteOnce"],
      "resources":{"requests":{"storage":"1Gi"}}}}})"),
            kClaims);
  EXPECT_EQ(volume(R"("csi":{"driver":"d","nodePublishSecretRef":{"name":"s"}})"), kSecrets);
  EXPECT_EQ(create(owner, "", R"(,"serviceAccountName":"default")"),
            "can not create pods that reference a service account");
  EXPECT_EQ(create(owner, "", R"(,"resourceClaims":[{"name":"r","resourceClaimName":"c"}])"),
            "can not create pods that reference resourceclaims");
}

TEST_F(NodeRestrictionTest, AStatusUpdateGivesAPodNoNewReferencesOrOwners) {
  const api::ObjectPtr pod =
      Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"nodeName":"n1",
          "containers":[{"name":"c","image":"i"}]}})");
  Change(pod, NodeUser("n1"), "status", [](api::Draft& draft) {
    draft["spec"]["imagePullSecrets"].Append(api::Draft({{"name", "s"}}));
    draft["spec"]["serviceAccountName"] = "admin";
    draft["metadata"]["ownerReferences"].Append(
        api::Draft({{"apiVersion", "v1"}, {"kind", "Node"}, {"name", "n1"}, {"uid", "u"}}));
  });
  const api::ObjectPtr after = core_->Find("", "pods", "default/p");
  EXPECT_EQ(ReferencesOf(*after), ReferencesOf(*pod));
  EXPECT_TRUE((*after)["metadata"]["ownerReferences"].empty());
}

TEST_F(NodeRestrictionTest, ANodeCannotSetItsOwners) {
  constexpr std::string_view kOwner =
      R"("ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"u"}])";
  constexpr char kRefusal[] =
      "nodes \"n1\" is forbidden: node \"n1\" is not allowed to modify ownerReferences";
  EXPECT_EQ(
      MessageOf(TryCreate(
          StrCat(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n1",)", kOwner, "}}"),
          NodeUser("n1"))),
      kRefusal);
  const api::ObjectPtr node =
      Create(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}})");
  const auto own = [](api::Draft& draft) {
    draft["metadata"]["ownerReferences"].Append(
        api::Draft({{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"name", "gone"}, {"uid", "u"}}));
  };
  EXPECT_EQ(Change(node, NodeUser("n1"), "", own), kRefusal);
  EXPECT_EQ(Change(node, NodeUser("n1"), "status", own), kRefusal);
  EXPECT_EQ(Change(node, AdminUser(), "", own), "allowed");
  EXPECT_EQ(Change(node, NodeUser("n1"), "",
                   [](api::Draft& draft) { draft["metadata"].Remove("ownerReferences"); }),
            kRefusal);
}

TEST_F(NodeRestrictionTest, AStatusUpdateAddsNoLabelsOrTaints) {
  const api::ObjectPtr node =
      Create(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"},"spec":{"taints":[
          {"key":"k","effect":"NoSchedule"}]}})");
  EXPECT_EQ(Change(node, NodeUser("n1"), "status",
                   [](api::Draft& draft) {
                     draft["metadata"]["labels"].Entry("node-role.kubernetes.io/infra") = "";
                   }),
            "nodes \"n1\" is forbidden: node \"n1\" is not allowed to modify labels: "
            "node-role.kubernetes.io/infra");
  Change(node, NodeUser("n1"), "status", [](api::Draft& draft) { draft["spec"].Remove("taints"); });
  EXPECT_EQ((*core_->Find("", "nodes", "n1"))["spec"]["taints"].size(), 1u);
}

TEST_F(NodeRestrictionTest, NodesMayWriteOnlyTheirOwnNodeAndUnrestrictedLabels) {
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
                     draft["metadata"]["labels"].Entry("node-restriction.kubernetes.io/x") = "y";
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
                   [](api::Draft& draft) { draft["metadata"]["labels"].Entry("mine") = "y"; }),
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
