#include "device/extended_resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/text/text.h"

namespace drakkar::device {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string Found(const ResourceClasses& classes, std::string_view resource) {
  const std::string* name = classes.Find(resource);
  return name == nullptr ? "" : *name;
}

TEST(ResourceClasses, AClassProvidesTheResourceItNamesAndTheImplicitOne) {
  ResourceClasses classes;
  classes.Set("gpu", "2026-01-01T00:00:00Z", "example.com/gpu");
  classes.Set("nic", "2026-01-01T00:00:00Z", "");
  EXPECT_EQ(Found(classes, "example.com/gpu"), "gpu");
  EXPECT_EQ(Found(classes, "deviceclass.resource.kubernetes.io/gpu"), "gpu");
  EXPECT_EQ(Found(classes, "deviceclass.resource.kubernetes.io/nic"), "nic");
  EXPECT_EQ(Found(classes, "deviceclass.resource.kubernetes.io/tpu"), "");
  EXPECT_EQ(Found(classes, "example.com/nic"), "");
  EXPECT_EQ(Found(classes, ""), "");
  EXPECT_EQ(classes.ResourceOf("gpu"), "example.com/gpu");
  EXPECT_EQ(classes.ResourceOf("nic"), "");
  EXPECT_EQ(classes.ResourceOf("tpu"), "");
}

TEST(ResourceClasses, TheNewestClassWinsAndTiesGoByName) {
  ResourceClasses classes;
  classes.Set("old", "2026-01-01T00:00:00Z", "example.com/gpu");
  classes.Set("c", "2026-01-02T00:00:00Z", "example.com/gpu");
  EXPECT_EQ(Found(classes, "example.com/gpu"), "c");
  classes.Set("b", "2026-01-02T00:00:00Z", "example.com/gpu");
  EXPECT_EQ(Found(classes, "example.com/gpu"), "b");
  classes.Remove("old");
  EXPECT_EQ(Found(classes, "example.com/gpu"), "b");
  classes.Set("b", "2026-01-02T00:00:00Z", "example.com/other");
  EXPECT_EQ(Found(classes, "example.com/gpu"), "c");
  EXPECT_EQ(Found(classes, "example.com/other"), "b");
  EXPECT_EQ(Found(classes, "deviceclass.resource.kubernetes.io/b"), "b");
  classes.Remove("c");
  classes.Remove("c");
  EXPECT_EQ(Found(classes, "example.com/gpu"), "");
}

class ResolveTest : public ::testing::Test {
 protected:
  // Containers as "name resource=count,...", of the kind of the list they are in. A sidecar's name
  // begins with "s".
  void Resolve(const std::vector<std::string>& init, const std::vector<std::string>& containers) {
    const auto list = [](const std::vector<std::string>& texts, bool is_init) {
      std::vector<std::string> parts;
      for (const std::string& text : texts) {
        const std::vector<std::string_view> words = Split(text, ' ');
        std::vector<std::string> amounts;
        for (const std::string_view entry : Split(words[1], ',')) {
          const std::size_t at = entry.find('=');
          amounts.push_back(StrCat(Quote(entry.substr(0, at)), ":", Quote(entry.substr(at + 1))));
        }
        parts.push_back(StrCat(R"({"name":)", Quote(words[0]),
                               is_init && words[0][0] == 's' ? R"(,"restartPolicy":"Always")" : "",
                               R"(,"resources":{"requests":{)", Join(amounts, ","), "}}}"));
      }
      return Join(parts, ",");
    };
    const auto spec = api::ParseJson(StrCat(R"({"initContainers":[)", list(init, true),
                                            R"(],"containers":[)", list(containers, false), "]}"));
    ASSERT_TRUE(spec.ok());
    resolved_ = ResolveExtendedResources((*spec)->root(), {{"e/gpu", "gpu"}, {"e/nic", "nic"}});
  }
  std::vector<std::string> Requests() const {
    std::vector<std::string> texts;
    for (const Request& request : resolved_.requests) {
      EXPECT_EQ(request.exactly->name, request.name);
      EXPECT_EQ(request.exactly->allocation_mode, "ExactCount");
      texts.push_back(
          StrCat(request.name, " ", request.exactly->device_class, " ", request.exactly->count));
    }
    return texts;
  }
  std::vector<std::string> Mappings() const {
    std::vector<std::string> texts;
    for (const RequestMapping& mapping : resolved_.mappings) {
      texts.push_back(StrCat(mapping.container, " ", mapping.resource, " ", mapping.request));
    }
    return texts;
  }

  ExtendedResources resolved_;
};

TEST_F(ResolveTest, EachContainerHasARequestPerResource) {
  Resolve({}, {"a cpu=1,e/gpu=2,e/nic=1,e/unknown=1", "b e/nic=3,a/other=1", "c cpu=1"});
  EXPECT_THAT(Requests(), ElementsAre("container-0-request-1 gpu 2", "container-0-request-2 nic 1",
                                      "container-1-request-1 nic 3"));
  EXPECT_THAT(Mappings(),
              ElementsAre("a e/gpu container-0-request-1", "a e/nic container-0-request-2",
                          "b e/nic container-1-request-1"));
}

TEST_F(ResolveTest, ResourcesWithoutAClassAndZeroAmountsNeedNothing) {
  Resolve({"i e/gpu=0"}, {"a cpu=1,e/gpu=0"});
  EXPECT_THAT(Requests(), IsEmpty());
  EXPECT_THAT(Mappings(), IsEmpty());
}

TEST_F(ResolveTest, AnInitContainerUsesTheDevicesOfLaterContainers) {
  Resolve({"i e/gpu=3"}, {"a e/gpu=2", "b e/gpu=2", "c e/gpu=2"});
  EXPECT_THAT(Requests(), ElementsAre("container-1-request-0 gpu 2", "container-2-request-0 gpu 2",
                                      "container-3-request-0 gpu 2"));
  EXPECT_THAT(Mappings(),
              ElementsAre("a e/gpu container-1-request-0", "b e/gpu container-2-request-0",
                          "c e/gpu container-3-request-0", "i e/gpu container-1-request-0",
                          "i e/gpu container-2-request-0"));
}

TEST_F(ResolveTest, InitContainersShareWhatTheyNeedInAddition) {
  Resolve({"i e/gpu=2", "j e/gpu=5", "k e/gpu=5", "l e/gpu=1"}, {"a e/gpu=1"});
  EXPECT_THAT(Requests(),
              ElementsAre("container-1-request-0 gpu 4", "container-4-request-0 gpu 1"));
  EXPECT_THAT(Mappings(),
              ElementsAre("a e/gpu container-4-request-0", "i e/gpu container-4-request-0",
                          "i e/gpu container-1-request-0", "j e/gpu container-4-request-0",
                          "j e/gpu container-1-request-0", "k e/gpu container-4-request-0",
                          "k e/gpu container-1-request-0", "l e/gpu container-4-request-0"));
}

TEST_F(ResolveTest, ASidecarKeepsItsDevicesSoOnlyEarlierInitContainersUseThem) {
  Resolve({"i e/gpu=1", "s e/gpu=1", "j e/gpu=2"}, {"a e/nic=1"});
  EXPECT_THAT(Requests(), ElementsAre("container-1-request-0 gpu 1", "container-2-request-0 gpu 2",
                                      "container-3-request-0 nic 1"));
  EXPECT_THAT(Mappings(),
              ElementsAre("s e/gpu container-1-request-0", "i e/gpu container-1-request-0",
                          "j e/gpu container-2-request-0", "a e/nic container-3-request-0"));
}

TEST_F(ResolveTest, RequestsAreSortedAsText) {
  std::vector<std::string> containers;
  for (int i = 0; i < 11; ++i) containers.push_back(StrCat("c", i, " e/gpu=1"));
  Resolve({}, containers);
  EXPECT_EQ(Requests()[1], "container-1-request-0 gpu 1");
  EXPECT_EQ(Requests()[2], "container-10-request-0 gpu 1");
  EXPECT_EQ(Requests()[3], "container-2-request-0 gpu 1");
}

}  // namespace
}  // namespace drakkar::device
