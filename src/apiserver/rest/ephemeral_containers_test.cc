// pods/ephemeralcontainers only adds containers and changes nothing else.
#include "apiserver/testing/core_fixture.h"

namespace drakkar::apiserver {
namespace {

class EphemeralContainersTest : public CoreFixture {
 protected:
  EphemeralContainersTest() {
    StartCore(nullptr);
    Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},)"
           R"("spec":{"containers":[{"name":"c","image":"i:1"}]}})");
  }
  Response Patch(std::string patch, PatchKind kind = PatchKind::kStrategicMerge,
                 std::string subresource = "ephemeralcontainers") {
    Request request;
    request.user = AdminUser();
    request.verb = Verb::kPatch;
    request.patch = kind;
    request.kind = api::FindKind("", "v1", "Pod");
    request.namespace_ = "default";
    request.name = "p";
    request.subresource = std::move(subresource);
    request.text = std::move(patch);
    return Handle(std::move(request));
  }
  static std::string Added(std::string_view more = "") {
    return std::string(R"({"spec":{"ephemeralContainers":[{"name":"debug","image":"busybox:1")") +
           std::string(more) + "}]}}";
  }
};

TEST_F(EphemeralContainersTest, AreAddedWithDefaultsAndNothingElseChanges) {
  const Response added = Patch(
      R"({"metadata":{"labels":{"x":"y"}},"spec":{"nodeName":"n","ephemeralContainers":[{"name":"debug",)"
      R"("image":"busybox:1","stdin":true,"tty":true,"targetContainerName":"c"}]}})");
  ASSERT_FALSE(added.failure) << added.failure->message;
  const api::Value container = (*added.object)["spec"]["ephemeralContainers"].at(0);
  EXPECT_EQ(container["terminationMessagePolicy"].str(), "File");
  EXPECT_TRUE(container["tty"].boolean());
  EXPECT_EQ((*added.object)["spec"]["nodeName"].str(), "");
  EXPECT_FALSE((*added.object)["metadata"]["labels"].exists());
}

TEST_F(EphemeralContainersTest, AreNeitherChangedNorRemoved) {
  ASSERT_FALSE(Patch(Added()).failure);
  const Response changed = Patch(Added(R"(,"tty":true)"));
  ASSERT_TRUE(changed.failure);
  EXPECT_EQ(
      changed.failure->message,
      "Pod \"p\" is invalid: spec.ephemeralContainers: Forbidden: existing ephemeral containers "
      "\"debug\" may not be changed\n");
  const Response removed = Patch(R"({"spec":{"ephemeralContainers":null}})", PatchKind::kMerge);
  ASSERT_TRUE(removed.failure);
  EXPECT_EQ(
      removed.failure->message,
      "Pod \"p\" is invalid: spec.ephemeralContainers: Forbidden: existing ephemeral containers "
      "\"debug\" may not be removed\n");
  EXPECT_EQ(Patch(Added(R"(,"tty":true)"), PatchKind::kMerge, "").failure->code, 422)
      << "not through the pod";
  EXPECT_FALSE(
      Patch(R"({"spec":{"ephemeralContainers":[{"name":"second","image":"busybox:1"}]}})").failure);
}

TEST_F(EphemeralContainersTest, MayNotHaveFieldsThatOthersCouldRelyOn) {
  EXPECT_EQ(Patch(Added(R"(,"ports":[{"containerPort":80}])")).failure->message,
            "Pod \"p\" is invalid: spec.ephemeralContainers[0].ports: Forbidden: cannot be set for "
            "an Ephemeral "
            "Container");
  EXPECT_EQ(Patch(Added(R"(,"restartPolicy":"Always")")).failure->code, 422);
  EXPECT_EQ(
      Patch(Added(R"(,"targetContainerName":"none")")).failure->message,
      "Pod \"p\" is invalid: spec.ephemeralContainers[0].targetContainerName: Not found: \"none\"");
  EXPECT_EQ(Patch(R"({"spec":{"ephemeralContainers":[{"name":"c","image":"busybox:1"}]}})")
                .failure->message,
            "Pod \"p\" is invalid: spec.ephemeralContainers[0].name: Duplicate value: \"c\"");
  EXPECT_EQ(
      TryCreate(
          R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"q"},"spec":{"containers":[{)"
          R"("name":"c","image":"i:1"}],"ephemeralContainers":[{"name":"d","image":"i:1"}]}})")
          .failure->message,
      "Pod \"q\" is invalid: spec.ephemeralContainers: Forbidden: cannot be set on create");
}

}  // namespace
}  // namespace drakkar::apiserver
