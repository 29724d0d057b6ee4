#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash/base64.h"
#include "base/text/text.h"
#include "node/testing/node_harness.h"

namespace drakkar::node {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kName[] = "registry.example.com/app:1";

struct PullNode : NodeHarness {
  PullNode() { StartAgent(); }
  void Publish(const std::string& name = kName) {
    machine.registry[name] = {
        .id = "sha256:" + std::string(64, 'a'), .names = {name}, .size_bytes = 1000};
  }
  void Create(const std::string& pod, const std::string& more = "", const std::string& spec = "",
              const std::string& image = kName) {
    CreatePod(pod,
              StrCat(spec, R"("containers":[{"name":"a","image":")", image, R"(")", more, "}]"));
    Run();
  }
  std::string Waiting(const std::string& pod, api::FieldName field = "reason") {
    const api::ObjectPtr object = Pod(pod);
    for (api::Value status : (*object)["status"]["containerStatuses"].elements()) {
      return std::string(status["state"]["waiting"][field].str());
    }
    return "(none)";
  }
};

TEST(ImagePull, AMissingImageIsPulledOnceAndThePodStarts) {
  PullNode node;
  node.Publish();
  node.Create("p");
  EXPECT_EQ(node.Phase("p"), "Running");
  ASSERT_EQ(node.machine.pulls.size(), 1u);
  EXPECT_EQ(node.machine.pulls[0].image, kName);
  EXPECT_THAT(node.Events("Pulling"), ElementsAre(StrCat("Pulling image \"", kName, "\"")));
  ASSERT_EQ(node.Events("Pulled").size(), 1u);
  EXPECT_THAT(node.Events("Pulled")[0], HasSubstr("Image size: 1000 bytes."));
  node.Create("q");
  EXPECT_EQ(node.machine.pulls.size(), 1u) << "it is here now";
}

TEST(ImagePull, AnImageVolumeIsPulledBeforeTheContainerThatMountsItStarts) {
  PullNode node;
  const std::string volume = StrCat(R"("volumes":[{"name":"v","image":{"reference":")", kName,
                                    R"(","pullPolicy":"IfNotPresent"}}],)");
  const char* mount = R"(,"volumeMounts":[{"name":"v","mountPath":"/v","subPath":"dir"}])";
  node.Create("p", mount, volume, "busybox:1");
  EXPECT_EQ(node.Waiting("p"), "ErrImagePull");
  EXPECT_THAT(node.Waiting("p", "message"), HasSubstr(kName));
  ASSERT_EQ(node.machine.pulls.size(), 1u);
  node.Publish();
  node.Advance(seconds(15));
  EXPECT_EQ(node.Phase("p"), "Running");
  EXPECT_EQ(node.machine.pulls.size(), 2u);
  node.Create("q", mount, volume, "busybox:1");
  EXPECT_EQ(node.Phase("q"), "Running");
  EXPECT_EQ(node.machine.pulls.size(), 2u) << "it is here now";
}

TEST(ImagePull, ThePolicyAlwaysAsksTheRegistryForEachStart) {
  PullNode node;
  node.Publish();
  node.Create("p", R"(,"imagePullPolicy":"Always")");
  node.Create("q", R"(,"imagePullPolicy":"Always")");
  EXPECT_EQ(node.machine.pulls.size(), 2u);
  EXPECT_EQ(node.Phase("q"), "Running");
}

TEST(ImagePull, AnImportedImageSatisfiesThePolicyAlways) {
  PullNode node;
  node.Create("p", R"(,"imagePullPolicy":"Always")", "", "busybox:1");
  EXPECT_EQ(node.Phase("p"), "Running");
  EXPECT_TRUE(node.machine.pulls.empty());
}

TEST(ImagePull, ThePolicyNeverDoesNotPull) {
  PullNode node;
  node.Publish();
  node.Create("p", R"(,"imagePullPolicy":"Never")");
  EXPECT_EQ(node.Waiting("p"), "ErrImageNeverPull");
  EXPECT_TRUE(node.machine.pulls.empty());
}

TEST(ImagePull, NamesOfTheRegistryLocalhostAreOnlyImported) {
  PullNode node;
  node.Create("p", "", "", "localhost/app:1");
  EXPECT_EQ(node.Waiting("p"), "ErrImagePull");
  EXPECT_THAT(node.Waiting("p", "message"), HasSubstr("drakkar image import"));
  EXPECT_TRUE(node.machine.pulls.empty());
}

TEST(ImagePull, AFailureIsRetriedWithAKubeletsBackoff) {
  PullNode node;
  node.Create("p");
  EXPECT_EQ(node.Waiting("p"), "ErrImagePull");
  EXPECT_THAT(node.Waiting("p", "message"), HasSubstr("not found"));
  EXPECT_EQ(node.machine.pulls.size(), 1u);
  node.Advance(seconds(4));
  EXPECT_EQ(node.Waiting("p"), "ImagePullBackOff");
  EXPECT_THAT(node.Events("BackOff"),
              ElementsAre(StrCat("Back-off pulling image \"", kName, "\"")));
  EXPECT_EQ(node.machine.pulls.size(), 1u);
  node.Advance(seconds(7));
  EXPECT_EQ(node.machine.pulls.size(), 2u) << "after 10 s";
  node.Advance(seconds(15));
  EXPECT_EQ(node.machine.pulls.size(), 2u) << "then 20 s";
  node.Publish();
  node.Advance(seconds(6));
  EXPECT_EQ(node.machine.pulls.size(), 3u);
  EXPECT_EQ(node.Phase("p"), "Running");
}

TEST(ImagePull, ImagesOfSeveralContainersArePulledAtOnceAndAPodCanBeDeletedMeanwhile) {
  PullNode node;
  node.Publish();
  node.Publish("registry.example.com/b:1");
  node.CreatePod("p", R"("containers":[{"name":"a","image":"registry.example.com/app:1"},
                                       {"name":"b","image":"registry.example.com/b:1"}])");
  node.Run();
  EXPECT_EQ(node.Phase("p"), "Running");
  EXPECT_EQ(node.machine.pulls.size(), 2u);
  node.Create("stuck", "", "", "registry.example.com/none:1");
  node.DeletePod("stuck");
  node.Advance(seconds(2));
  EXPECT_EQ(node.Pod("stuck"), nullptr);
}

TEST(ImagePull, CredentialsComeFromTheSecretsOfThePod) {
  PullNode node;
  node.Publish();
  const std::string auths = Base64Encode(
      R"({"auths":{"registry.example.com":{"username":"u","password":"p"},"other.com":{"username":"x","password":"y"}}})");
  ASSERT_NE(
      node.api.Create(StrCat(
          R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"login","namespace":"default"},)"
          R"("type":"kubernetes.io/dockerconfigjson","data":{".dockerconfigjson":")",
          auths, R"("}})")),
      nullptr);
  node.Create("p", "", R"("imagePullSecrets":[{"name":"login"},{"name":"missing"}],)");
  ASSERT_EQ(node.machine.pulls.size(), 1u);
  EXPECT_THAT(node.machine.pulls[0].credentials, ElementsAre(RegistryCredential{"u", "p"}));
  EXPECT_THAT(
      node.Events("FailedToRetrieveImagePullSecret"),
      ElementsAre("Unable to retrieve some image pull secrets (missing); attempting to pull "
                  "the image may not succeed."));
  EXPECT_EQ(node.Phase("p"), "Running");
}

}  // namespace
}  // namespace drakkar::node
