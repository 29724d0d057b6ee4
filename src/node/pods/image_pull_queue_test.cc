#include "node/pods/image_pull_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "node/runtime/hollow/hollow_runtime.h"

namespace drakkar::node {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ImagePullQueueTest : public ::testing::Test {
 protected:
  ImagePullQueueTest() {
    machine_.pull_takes = std::chrono::seconds(10);
    for (const char* name : {"a", "b", "c"}) {
      const std::string full = StrCat("docker.io/library/", name, ":latest");
      machine_.registry[full] = {
          .id = StrCat("sha256:", std::string(64, *name)), .names = {full}, .size_bytes = 1};
    }
    runtime_ = MakeHollowRuntime(loop_, machine_);
    runtime_->Open([](Result<void>) {});
    loop_.RunUntilIdle();
  }
  void Pull(ImagePullQueue& queue, const std::string& name) {
    queue.Pull({.image = name, .credentials = {}}, [this, name](Result<Image> pulled) {
      ended_.push_back(pulled.ok() ? name : StrCat(name, ": ", pulled.error().message));
    });
  }
  std::vector<std::string> Asked() {
    std::vector<std::string> names;
    for (const PullRequest& each : machine_.pulls) names.push_back(each.image);
    return names;
  }

  SeededLoop loop_{1};
  HollowMachine machine_;
  std::unique_ptr<Runtime> runtime_;
  std::vector<std::string> ended_;
};

TEST_F(ImagePullQueueTest, PullsAsManyAtATimeAsAllowedInTheirOrder) {
  ImagePullQueue queue(loop_, *runtime_, {.max_parallel = 2});
  for (const char* name : {"a", "b", "missing", "c"}) Pull(queue, name);
  EXPECT_THAT(Asked(), ElementsAre("a", "b"));
  loop_.Advance(std::chrono::seconds(11));
  EXPECT_THAT(ended_, ElementsAre("a", "b"));
  EXPECT_THAT(Asked(), ElementsAre("a", "b", "missing", "c"));
  loop_.Advance(std::chrono::seconds(11));
  EXPECT_EQ(ended_.size(), 4u) << "a failed pull gives its place away, too";
}

TEST_F(ImagePullQueueTest, MorePullsThanAllowedPerSecondAreRefused) {
  ImagePullQueue queue(loop_, *runtime_, {.per_second = 1, .burst = 2});
  for (const char* name : {"a", "b", "c"}) Pull(queue, name);
  EXPECT_THAT(ended_, IsEmpty()) << "not inside the call";
  loop_.RunUntilIdle();
  EXPECT_THAT(ended_, ElementsAre("c: pull QPS exceeded"));
  loop_.Advance(std::chrono::seconds(1));
  Pull(queue, "c");
  loop_.Advance(std::chrono::seconds(11));
  EXPECT_THAT(Asked(), ElementsAre("a", "b", "c"));
}

TEST_F(ImagePullQueueTest, NothingHappensAfterItsEnd) {
  {
    ImagePullQueue queue(loop_, *runtime_, {.max_parallel = 1});
    Pull(queue, "a");
    Pull(queue, "b");
  }
  loop_.Advance(std::chrono::seconds(30));
  EXPECT_THAT(ended_, IsEmpty());
}

}  // namespace
}  // namespace drakkar::node
