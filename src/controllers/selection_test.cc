#include "controllers/selection.h"

#include <gtest/gtest.h>

namespace drakkar::controllers {
namespace {

Result<Selection> Parse(std::vector<std::string> words) {
  return Selection::Parse(words);
}

TEST(Selection, AStarIsEverythingAndNamesAreAddedOrTakenAway) {
  EXPECT_TRUE(Selection().Runs("deployment-controller"));
  EXPECT_TRUE(Parse({})->Runs("deployment-controller"));
  EXPECT_TRUE(Parse({"*"})->Runs("deployment-controller"));
  EXPECT_FALSE(Parse({"*", "-deployment-controller"})->Runs("deployment-controller"));
  EXPECT_TRUE(Parse({"*", "-deployment-controller"})->Runs("replicaset-controller"));
  EXPECT_TRUE(Parse({"replicaset-controller"})->Runs("replicaset-controller"));
  EXPECT_FALSE(Parse({"replicaset-controller"})->Runs("deployment-controller"));
}

TEST(Selection, OlderNamesAreUnderstood) {
  EXPECT_FALSE(Parse({"*", "-garbagecollector"})->Runs("garbage-collector-controller"));
  EXPECT_TRUE(Parse({"podgc"})->Runs("pod-garbage-collector-controller"));
}

TEST(Selection, OnlyWhatIsOursCanBeAskedFor) {
  EXPECT_TRUE(Parse({"*", "-nodeipam"}).ok()) << "not there, and not wanted";
  EXPECT_EQ(Parse({"nodeipam"}).error().message,
            "--controllers: Drakkar has no node-ipam-controller; leave it out, or run it in a "
            "kube-controller-manager");
  EXPECT_EQ(Parse({"deploy"}).error().message,
            "--controllers: \"deploy\" is not in the list of known controllers");
}

}  // namespace
}  // namespace drakkar::controllers
