// Server-side apply and managedFields through the verbs.
#include <gtest/gtest.h>

#include "api/json/writer.h"
#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

class ApplyTest : public CoreFixture {
 protected:
  ApplyTest() { StartCore(nullptr); }

  using CoreFixture::Apply;
  Response Apply(std::string_view yaml, std::string manager, std::string subresource = "",
                 bool force = false, bool dry_run = false) {
    Request request;
    request.user = AdminUser();
    request.verb = Verb::kPatch;
    request.patch = PatchKind::kApply;
    request.kind = api::FindKindByApiVersion("v1", "Pod");
    request.namespace_ = "default";
    request.name = "p";
    request.subresource = std::move(subresource);
    request.text = yaml;
    request.field_manager = std::move(manager);
    request.force = force;
    request.dry_run = dry_run;
    return Handle(std::move(request));
  }
  static std::string Managers(const api::ObjectPtr& object) {
    std::string out;
    for (api::Value entry : (*object)["metadata"]["managedFields"].elements()) {
      out += StrCat(entry["manager"].str(), "/", entry["operation"].str(), "/",
                    entry["subresource"].str(), " ");
    }
    return out;
  }
};

constexpr std::string_view kPod =
    "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
    "spec: {containers: [{name: c, image: 'busybox:1'}]}\n";

TEST_F(ApplyTest, CreatesMissingObjectsAndIsANoOpTheSecondTime) {
  const Response made = Apply(kPod, "me");
  ASSERT_FALSE(made.failure) << made.failure->message;
  EXPECT_EQ(made.http_status, 201);
  EXPECT_EQ(Managers(made.object), "me/Apply/ ");
  EXPECT_EQ(
      (*made.object)["metadata"]["managedFields"].at(0)["fieldsV1"].str(),
      R"({"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:name":{}}}}})");
  const Response again = Apply(kPod, "me");
  ASSERT_FALSE(again.failure);
  EXPECT_EQ(again.http_status, 200);
  EXPECT_EQ(again.object->resource_version(), made.object->resource_version());
}

TEST_F(ApplyTest, ReportsTheOwnerOfAFieldAndTakesItOverByForce) {
  Apply(kPod, "me");
  constexpr std::string_view other =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
      "spec: {containers: [{name: c, image: 'busybox:2'}]}\n";
  const Response refused = Apply(other, "you");
  ASSERT_TRUE(refused.failure.has_value());
  EXPECT_EQ(refused.failure->code, 409);
  EXPECT_EQ(refused.failure->message,
            "Apply failed with 1 conflict: conflict with \"me\": "
            ".spec.containers[name=\"c\"].image");
  const Response forced = Apply(other, "you", "", /*force=*/true);
  ASSERT_FALSE(forced.failure) << forced.failure->message;
  EXPECT_EQ((*forced.object)["spec"]["containers"].at(0)["image"].str(), "busybox:2");
}

TEST_F(ApplyTest, SkipNodeOperationsDoesNotConflictWithItsOtherForm) {
  gates_ = FeatureGates().With(Gate::kDRAOptionalNodePreparation, true);
  auto apply = [&](std::string_view skip, std::string manager) {
    const std::string yaml = StrCat(
        "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\n"
        "spec: {driver: d.example.com, nodeName: n1, pool: {name: p, generation: 1, "
        "resourceSliceCount: 1}, skipNodeOperations: ",
        skip, "}\n");
    Request request;
    request.user = AdminUser();
    request.verb = Verb::kPatch;
    request.patch = PatchKind::kApply;
    request.kind = api::FindKindByApiVersion("resource.k8s.io/v1", "ResourceSlice");
    request.name = "s";
    request.text = yaml;
    request.field_manager = std::move(manager);
    return Handle(std::move(request));
  };
  const Response first = apply("true", "a");
  ASSERT_FALSE(first.failure) << first.failure->message;
  const Response other = apply("['*']", "b");
  ASSERT_FALSE(other.failure) << other.failure->message;
  EXPECT_EQ(Managers(other.object), "a/Apply/ b/Apply/ ") << "both own the field";
  EXPECT_FALSE(apply("true", "a").failure);
  const Response differs = apply("[NodeUnprepareResources]", "b");
  ASSERT_TRUE(differs.failure);
  EXPECT_EQ(differs.failure->code, 409);
}

TEST_F(ApplyTest, StatusIsAppliedThroughItsSubresourceOnly) {
  Apply(kPod, "me");
  const Response status =
      Apply("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nstatus: {message: hello}\n", "agent",
            "status");
  ASSERT_FALSE(status.failure) << status.failure->message;
  EXPECT_EQ((*status.object)["status"]["message"].str(), "hello");
  EXPECT_EQ(Managers(status.object), "agent/Apply/status me/Apply/ ");
  const Response ignored = Apply(StrCat(kPod, "status: {message: other}\n"), "me", "", false);
  ASSERT_FALSE(ignored.failure) << ignored.failure->message;
  EXPECT_EQ((*ignored.object)["status"]["message"].str(), "hello");
}

TEST_F(ApplyTest, ADryRunLeavesNothingBehind) {
  const Response tried = Apply(kPod, "me", "", false, /*dry_run=*/true);
  ASSERT_FALSE(tried.failure) << tried.failure->message;
  EXPECT_EQ(core_->Find("", "pods", "default/p"), nullptr);
}

TEST_F(ApplyTest, NeedsAManagerAndForceNeedsApply) {
  const Response nameless = Apply(kPod, "");
  ASSERT_TRUE(nameless.failure.has_value());
  EXPECT_EQ(nameless.failure->message,
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required "
            "for apply patch");
  EXPECT_EQ(nameless.failure->code, 422);
}

TEST_F(ApplyTest, EveryWriteIsTrackedUnderTheNameOfItsClient) {
  Request create = RequestFor(
      Verb::kCreate,
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"a":"1"}})",
      AdminUser());
  create.user_agent = "kubectl/v1.37.0 (linux/amd64)";
  const Response made = Handle(std::move(create));
  ASSERT_FALSE(made.failure);
  EXPECT_EQ(Managers(made.object), "kubectl/Update/ ");
  Request patch =
      RequestFor(Verb::kPatch, R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"}})",
                 AdminUser());
  patch.object = nullptr;
  patch.text = R"({"data":{"b":"2"}})";
  patch.field_manager = "tool";
  const Response patched = Handle(std::move(patch));
  ASSERT_FALSE(patched.failure) << patched.failure->message;
  EXPECT_EQ(Managers(patched.object), "kubectl/Update/ tool/Update/ ");
  EXPECT_EQ((*patched.object)["metadata"]["managedFields"].at(1)["fieldsV1"].str(),
            R"({"f:data":{"f:b":{}}})");
}

TEST_F(ApplyTest, AnEmptyListRemovesWhatItsManagerApplied) {
  Create(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"c"},)"
         R"("spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"x"}}]}}})");
  auto apply = [&](std::string devices, std::string manager) {
    return Apply(*api::FindKind("resource.k8s.io", "v1", "ResourceClaim"), "c", "status",
                 std::move(manager),
                 StrCat("apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\n"
                        "status: {devices: ",
                        devices, "}\n"));
  };
  Request allocate = RequestFor(
      Verb::kUpdate,
      R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"c"},)"
      R"("spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"x"}}]}},"status":{)"
      R"("allocation":{"devices":{"results":[{"request":"r","driver":"a.io","pool":"p","device":"d"},)"
      R"({"request":"r","driver":"b.io","pool":"p","device":"d"}]}}}})",
      AdminUser());
  allocate.subresource = "status";
  ASSERT_FALSE(Handle(std::move(allocate)).failure);
  for (const std::string driver : {"a.io", "b.io"}) {
    const Response told =
        apply(StrCat("[{driver: ", driver,
                     ", pool: p, device: d, conditions: [{type: Ready, status: 'True', ",
                     "reason: Up, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}]}]"),
              driver);
    ASSERT_FALSE(told.failure) << told.failure->message;
  }
  const Response one = apply("[]", "a.io");
  ASSERT_FALSE(one.failure) << one.failure->message;
  ASSERT_EQ((*one.object)["status"]["devices"].size(), 1u) << *one.object->json();
  EXPECT_EQ((*one.object)["status"]["devices"].at(0)["driver"].str(), "b.io");
  const Response none = apply("[]", "b.io");
  ASSERT_FALSE(none.failure) << none.failure->message;
  EXPECT_EQ((*none.object)["status"]["devices"].size(), 0u);
  EXPECT_EQ((*none.object)["status"]["allocation"]["devices"]["results"].size(), 2u)
      << "others' stay";
}

}  // namespace
}  // namespace drakkar::apiserver
