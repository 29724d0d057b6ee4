#include "tests/simulation/referee.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/scheme/scheme.h"
#include "base/text/text.h"

namespace drakkar::simulation {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

api::ObjectPtr Parse(std::string_view json) {
  return std::make_shared<const api::Object>(api::ParseJson(json).value());
}

storage::WatchEvent Stored(std::string key, storage::Revision revision, std::string uid = "u") {
  storage::WatchEvent event;
  event.key = std::move(key);
  event.revision = revision;
  event.value =
      std::make_shared<const std::string>(StrCat(R"({"metadata":{"uid":")", uid, R"("}})"));
  return event;
}

const api::KindSchema& Pods() {
  return *api::FindKind("", "v1", "Pod");
}

class RefereeTest : public ::testing::Test {
 protected:
  RefereeTest() {
    referee_.OnStored(
        {Stored("/registry/core/pods/default/a", 3, "uid-a"), Stored("/registry/core/nodes/n0", 4),
         Stored("/registry/core/pods/default/b", 5, "uid-b")},
        6);
  }
  void Watched(std::int64_t after, std::vector<std::int64_t> versions, std::int64_t up_to = 0) {
    if (up_to == 0) up_to = versions.back();
    referee_.OnWatched("somebody", Pods(), after, std::move(versions), up_to);
    referee_.CheckWatches();
  }
  void WrittenBy(std::string_view user, std::string_view group, std::string_view kind,
                 std::string_view json) {
    const api::ObjectPtr object = Parse(json);
    referee_.OnWritten(user, "update",
                       {api::FindKind(group, "v1", kind), "", std::string(object->name()), ""},
                       object);
  }

  Referee referee_;
};

TEST_F(RefereeTest, AcceptsAWatchThatShowsWhatWasStored) {
  Watched(1, {3, 5});
  Watched(3, {5});
  EXPECT_THAT(referee_.violations, IsEmpty());
}

TEST_F(RefereeTest, DetectsAMissedEvent) {
  Watched(1, {5});
  EXPECT_THAT(referee_.violations, ElementsAre(HasSubstr("shows 5 where the store has 3")));
}

TEST_F(RefereeTest, DetectsABookmarkThatSkipsAnEvent) {
  Watched(1, {3}, 6);
  EXPECT_THAT(referee_.violations, ElementsAre(HasSubstr("shows nothing where the store has 5")));
}

TEST_F(RefereeTest, DetectsADuplicateEvent) {
  Watched(1, {3, 3, 5});
  EXPECT_THAT(referee_.violations, ElementsAre(HasSubstr("shows 3 where the store has 5")));
}

TEST_F(RefereeTest, DetectsAnInventedEvent) {
  Watched(1, {3, 4, 5});
  EXPECT_THAT(referee_.violations, ElementsAre(HasSubstr("shows 4 where the store has 5")));
}

TEST_F(RefereeTest, ChecksLaterWhatTheStoreHasNotReportedYet) {
  Watched(5, {7});
  EXPECT_THAT(referee_.violations, IsEmpty());
  referee_.OnStored({}, 8);
  referee_.CheckWatches();
  EXPECT_THAT(referee_.violations, ElementsAre(HasSubstr("shows 7 where the store has nothing")));
}

TEST_F(RefereeTest, DetectsAStoreThatGoesBack) {
  referee_.OnStored({Stored("/registry/core/pods/default/c", 2)}, 2);
  EXPECT_THAT(referee_.violations, ElementsAre(HasSubstr("went back from revision 6 to 2")));
}

TEST_F(RefereeTest, KnowsThePodsThatExisted) {
  EXPECT_TRUE(referee_.HasBeenPod("uid-a"));
  EXPECT_FALSE(referee_.HasBeenPod("uid-c"));
}

TEST_F(RefereeTest, ANodeMayWriteItsOwnObjects) {
  WrittenBy("system:node:n0", "", "Node", R"({"metadata":{"name":"n0"}})");
  WrittenBy("system:node:n0", "", "Pod", R"({"metadata":{"name":"p"},"spec":{"nodeName":"n0"}})");
  EXPECT_THAT(referee_.violations, IsEmpty());
}

TEST_F(RefereeTest, DetectsANodeThatWritesForeignObjects) {
  WrittenBy("system:node:n0", "", "Node", R"({"metadata":{"name":"n1"}})");
  WrittenBy("system:node:n0", "", "Pod", R"({"metadata":{"name":"p"},"spec":{"nodeName":"n1"}})");
  WrittenBy("system:node:n0", "resource.k8s.io", "ResourceSlice",
            R"({"metadata":{"name":"s"},"spec":{"nodeName":"n1"}})");
  WrittenBy("system:node:n0", "resource.k8s.io", "ResourceClaim", R"({"metadata":{"name":"c"}})");
  referee_.OnWritten("system:node:n0", "deletecollection",
                     {api::FindKind("resource.k8s.io", "v1", "ResourceSlice"), "", "", ""}, nullptr,
                     "spec.driver=d");
  EXPECT_EQ(referee_.violations.size(), 5u);
}

TEST_F(RefereeTest, DetectsADriverThatWritesForeignSlices) {
  WrittenBy("fabric", "resource.k8s.io", "ResourceSlice",
            R"({"metadata":{"name":"s"},"spec":{"driver":"fabric.example.com"}})");
  EXPECT_THAT(referee_.violations, IsEmpty());
  WrittenBy("fabric", "resource.k8s.io", "ResourceSlice",
            R"({"metadata":{"name":"s"},"spec":{"driver":"local.example.com"}})");
  EXPECT_THAT(referee_.violations, ElementsAre(HasSubstr("of another driver")));
}

TEST_F(RefereeTest, DetectsASchedulerThatWritesSlices) {
  WrittenBy("system:kube-scheduler", "resource.k8s.io", "ResourceSlice",
            R"({"metadata":{"name":"s"}})");
  EXPECT_THAT(referee_.violations, ElementsAre(HasSubstr("resourceslices")));
}

TEST_F(RefereeTest, DetectsAPodBoundBeforeItsDevicesAreReady) {
  storage::Revision revision = 10;
  const auto store = [&](std::string key, std::string before, std::string after) {
    storage::WatchEvent event;
    event.key = "/registry/" + key;
    event.revision = ++revision;
    event.value = std::make_shared<const std::string>(std::move(after));
    if (!before.empty())
      event.previous_value = std::make_shared<const std::string>(std::move(before));
    referee_.OnStored({event}, revision);
  };
  const auto claim = [](std::string conditions) {
    return StrCat(
        R"({"status":{"allocation":{"devices":{"results":[{"driver":"d","pool":"p","device":"x",)",
        R"("bindingConditions":["ready"],"bindingFailureConditions":["bad"]}]}},"devices":[)",
        R"({"driver":"d","pool":"p","device":"x","conditions":[)", conditions, "]}]}}");
  };
  const auto bind = [&](std::string name) {
    const std::string head =
        StrCat(R"({"metadata":{"namespace":"default","name":")", name,
               R"("},"spec":{"resourceClaims":[{"name":"u","resourceClaimName":"c"}])");
    store("core/pods/default/" + name, head + "}}", head + R"(,"nodeName":"n0"}})");
  };
  const std::string ready = R"({"type":"ready","status":"True"})";
  store("resource.k8s.io/resourceclaims/default/c", "", claim(ready));
  bind("in-time");
  EXPECT_THAT(referee_.violations, IsEmpty());
  store("resource.k8s.io/resourceclaims/default/c", "",
        claim(R"({"type":"ready","status":"False"})"));
  bind("early");
  store("resource.k8s.io/resourceclaims/default/c", "",
        claim(ready + R"(,{"type":"bad","status":"True"})"));
  bind("broken");
  EXPECT_THAT(referee_.violations, ElementsAre("early is bound while ready of x in c is not True",
                                               "broken is bound while bad of x in c is True"));
}

}  // namespace
}  // namespace drakkar::simulation
