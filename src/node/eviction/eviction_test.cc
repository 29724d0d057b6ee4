#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "node/eviction/eviction_manager.h"
#include "node/eviction/eviction_rank.h"
#include "node/eviction/storage_limits.h"

namespace drakkar::node {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kMiB = 1 << 20;

api::ObjectPtr MakePod(const std::string& name, const std::string& spec,
                       const std::string& qos = "Burstable") {
  auto tree =
      api::ParseJson(StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
                            R"(","namespace":"default","uid":"uid-)", name, R"("},"spec":{)", spec,
                            R"(},"status":{"qosClass":")", qos, R"("}})"));
  EXPECT_TRUE(tree.ok());
  return std::make_shared<const api::Object>(*std::move(tree));
}

std::string Container(const std::string& memory_request, int priority = 0) {
  return StrCat(R"("priority":)", priority,
                R"(,"containers":[{"name":"a","resources":{"requests":{"memory":")", memory_request,
                R"("}}}])");
}

PodUsage Using(const std::string& name, std::uint64_t memory, std::uint64_t disk = 0,
               std::uint64_t processes = 1) {
  PodUsage pod;
  pod.name = name;
  pod.uid = "uid-" + name;
  pod.memory.working_set_bytes = memory;
  pod.processes = processes;
  ContainerUsage each;
  each.name = "a";
  each.memory.working_set_bytes = memory;
  each.root_fs = {.used_bytes = disk, .inodes_used = disk};
  pod.containers.push_back(each);
  return pod;
}

std::vector<std::string> Names(const std::vector<api::ObjectPtr>& pods) {
  std::vector<std::string> names;
  for (const api::ObjectPtr& pod : pods) names.emplace_back((*pod)["metadata"]["name"].str());
  return names;
}

std::string ErrorOf(const EvictionSettings& settings) {
  const auto parsed = ParseThresholds(settings);
  return parsed.ok() ? "" : parsed.error().message;
}

TEST(Thresholds, AreQuantitiesOrPartsOfTheCapacity) {
  const auto parsed = ParseThresholds({.hard = {{"memory.available", "100Mi"},
                                                {"nodefs.available", "10%"},
                                                {"pid.available", "0%"}},
                                       .soft = {{"memory.available", "300Mi"}},
                                       .soft_grace_period = {{"memory.available", "1m30s"}},
                                       .minimum_reclaim = {{"nodefs.available", "500Mi"}}});
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  ASSERT_EQ(parsed->size(), 3u);  // 0 % disables
  EXPECT_EQ((*parsed)[0].least.Of(1), 100 * kMiB);
  EXPECT_EQ((*parsed)[1].least.Of(1'000), 100u);
  EXPECT_TRUE((*parsed)[1].reclaim);
  EXPECT_EQ((*parsed)[2].grace, seconds(90));
  EXPECT_FALSE((*parsed)[2].is_hard);
  EXPECT_EQ(HardReservation(*parsed, Signal::kMemoryAvailable, 1), 100 * kMiB);
  EXPECT_EQ(HardReservation(*parsed, Signal::kImageFsAvailable, 1), 0u);
}

TEST(Thresholds, MistakesAreNamed) {
  EXPECT_THAT(ErrorOf({.hard = {{"memory.free", "1Mi"}}}), HasSubstr("memory.free"));
  EXPECT_THAT(ErrorOf({.hard = {{"memory.available", "110%"}}}), HasSubstr("between 0% and 100%"));
  EXPECT_THAT(ErrorOf({.hard = {{"memory.available", "much"}}}), HasSubstr("memory.available"));
  EXPECT_THAT(ErrorOf({.hard = {{"memory.available", "-1"}}}), HasSubstr("negative"));
  EXPECT_THAT(ErrorOf({.soft = {{"memory.available", "1Mi"}}}), HasSubstr("grace period"));
}

TEST(Thresholds, AKubeletsDefaultsCanBeParsed) {
  EXPECT_EQ(ParseThresholds({.hard = EvictionSettings::DefaultHard()})->size(), 5u);
}

TEST(EvictionRank, MemoryHogsOfLowPriorityGoFirst) {
  NodeUsage usage;
  usage.pods = {Using("modest", 10 * kMiB), Using("over", 60 * kMiB), Using("more", 90 * kMiB),
                Using("important", 500 * kMiB)};
  const std::vector<api::ObjectPtr> pods = {
      MakePod("modest", Container("20Mi")), MakePod("over", Container("20Mi")),
      MakePod("important", Container("20Mi", 100)), MakePod("more", Container("20Mi"))};
  EXPECT_THAT(Names(RankForEviction(pods, usage, Signal::kMemoryAvailable)),
              ElementsAre("more", "over", "important", "modest"));
}

TEST(EvictionRank, ProcessesCountByPriorityAndNumber) {
  NodeUsage usage;
  usage.pods = {Using("few", 0, 0, 2), Using("many", 0, 0, 9), Using("important", 0, 0, 99)};
  const std::vector<api::ObjectPtr> pods = {MakePod("few", Container("1")),
                                            MakePod("important", Container("1", 5)),
                                            MakePod("many", Container("1"))};
  EXPECT_THAT(Names(RankForEviction(pods, usage, Signal::kPidAvailable)),
              ElementsAre("many", "few", "important"));
}

TEST(EvictionRank, DiskCountsLayersLogsAndEmptyDirs) {
  NodeUsage usage;
  usage.pods = {Using("layer", 0, 30), Using("volume", 0, 1)};
  usage.volumes["uid-volume"] = {{"v", "kubernetes.io~empty-dir", {.used_bytes = 90}},
                                 {"c", "kubernetes.io~configmap", {.used_bytes = 900}}};
  const std::vector<api::ObjectPtr> pods = {MakePod("layer", Container("1")),
                                            MakePod("volume", Container("1"))};
  EXPECT_THAT(Names(RankForEviction(pods, usage, Signal::kNodeFsAvailable)),
              ElementsAre("volume", "layer"));
}

TEST(EvictionRank, TheMessageIsKubernetes) {
  NodeUsage usage;
  usage.pods = {Using("p", 64 * kMiB)};
  EXPECT_EQ(EvictionMessage(MakePod("p", Container("16Mi"))->root(), usage,
                            {.signal = Signal::kMemoryAvailable, .least = {.quantity = 100 * kMiB}},
                            {.available = 40 * kMiB, .capacity = 1024 * kMiB}),
            "The node was low on resource: memory. Threshold quantity: 100Mi, available: 40Mi. "
            "Container a was using 64Mi, request is 16Mi, has larger consumption of memory. ");
}

// A node whose memory and disk the test sets.
class EvictionTest : public ::testing::Test {
 protected:
  void Start(EvictionSettings settings) {
    auto thresholds = ParseThresholds(settings);
    ASSERT_TRUE(thresholds.ok());
    manager_ = std::make_unique<EvictionManager>(EvictionManager::Options{
        .loop = loop_,
        .thresholds = *thresholds,
        .transition_period = settings.transition_period,
        .max_pod_grace_seconds = settings.max_pod_grace_seconds,
        .read_machine = [this](auto done) { Answer(done); },
        .read_all = [this](auto done) { Answer(done); },
        .active_pods = [this] { return pods_; },
        .evict =
            [this](const std::string& uid, PodVerdict verdict, Duration grace) {
              evicted_.push_back(uid.substr(4));
              messages_.push_back(verdict.message);
              grace_ = grace;
              std::erase_if(pods_, [&](const auto& pod) { return pod->uid() == uid; });
              going_.insert(uid);
            },
        .is_gone = [this](const std::string& uid) { return !going_.contains(uid); },
        .free_images =
            [this](std::function<void()> done) {
              ++image_collections_;
              usage_.image_fs.available_bytes = usage_.node_fs.available_bytes =
                  *usage_.node_fs.available_bytes + freed_by_images_;
              loop_.Post(done);
            },
        .on_reclaim = [this](std::string_view resource) { reclaims_.emplace_back(resource); },
        .on_conditions = [this] { ++changes_; }});
    manager_->Start();
    loop_.RunUntilIdle();
  }
  void Answer(const UsageCollector::Done& done) {
    auto copy = std::make_shared<const NodeUsage>(usage_);
    loop_.Post([done, copy] { done(NodeUsagePtr(copy)); });
  }
  EvictionTest() {
    usage_.memory_capacity_bytes = 1'000 * kMiB;
    SetMemory(500);
    usage_.node_fs = {.capacity_bytes = 1'000, .available_bytes = 500};
    usage_.image_fs = usage_.container_fs = usage_.node_fs;
    pods_ = {MakePod("small", Container("64Mi")), MakePod("large", Container("64Mi")),
             MakePod("system", Container("1Mi", 2'000'001'000))};
    usage_.pods = {Using("small", 32 * kMiB), Using("large", 128 * kMiB),
                   Using("system", 700 * kMiB)};
  }
  void SetMemory(std::uint64_t mebibytes) {
    usage_.machine.memory.available_bytes = mebibytes * kMiB;
  }

  SeededLoop loop_;
  NodeUsage usage_;
  std::vector<api::ObjectPtr> pods_;
  std::set<std::string> going_;
  std::vector<std::string> evicted_, messages_, reclaims_;
  Duration grace_{};
  int image_collections_ = 0;
  int changes_ = 0;
  std::uint64_t freed_by_images_ = 0;
  std::unique_ptr<EvictionManager> manager_;
};

TEST_F(EvictionTest, EvictsOnePodAtATimeUntilThereIsEnough) {
  Start({.hard = {{"memory.available", "100Mi"}}});
  loop_.Advance(minutes(1));
  EXPECT_THAT(evicted_, IsEmpty());
  SetMemory(50);
  loop_.Advance(seconds(10));
  EXPECT_THAT(evicted_, ElementsAre("large"));
  EXPECT_EQ(grace_, seconds(1));
  EXPECT_THAT(messages_[0], HasSubstr("available: 50Mi"));
  EXPECT_THAT(reclaims_, ElementsAre("memory"));
  EXPECT_TRUE(manager_->HasCondition("MemoryPressure"));
  EXPECT_EQ(changes_, 1);
  // While it is going, nobody else has to.
  loop_.Advance(seconds(20));
  EXPECT_THAT(evicted_, ElementsAre("large"));
  going_.clear();
  loop_.Advance(seconds(2));
  EXPECT_THAT(evicted_, ElementsAre("large", "small"));
}

TEST_F(EvictionTest, CriticalPodsStay) {
  Start({.hard = {{"memory.available", "100Mi"}}});
  SetMemory(50);
  for (int i = 0; i < 10; ++i) {
    loop_.Advance(seconds(10));
    going_.clear();
  }
  EXPECT_THAT(evicted_, ElementsAre("large", "small"));
  EXPECT_EQ(pods_.size(), 1u);
}

TEST_F(EvictionTest, ASoftThresholdWaitsAndIsGentle) {
  Start({.soft = {{"memory.available", "200Mi"}},
         .soft_grace_period = {{"memory.available", "1m"}},
         .max_pod_grace_seconds = 20});
  SetMemory(150);
  loop_.Advance(seconds(50));
  EXPECT_THAT(evicted_, IsEmpty());
  EXPECT_TRUE(manager_->HasCondition("MemoryPressure"));
  loop_.Advance(seconds(25));
  EXPECT_THAT(evicted_, ElementsAre("large"));
  EXPECT_EQ(grace_, seconds(20));
}

TEST_F(EvictionTest, AShortDipDoesNotCountForASoftThreshold) {
  Start(
      {.soft = {{"memory.available", "200Mi"}}, .soft_grace_period = {{"memory.available", "1m"}}});
  for (int i = 0; i < 4; ++i) {
    SetMemory(150);
    loop_.Advance(seconds(40));
    SetMemory(500);
    loop_.Advance(seconds(20));
  }
  EXPECT_THAT(evicted_, IsEmpty());
}

TEST_F(EvictionTest, TheConditionStaysForTheTransitionPeriod) {
  Start({.hard = {{"memory.available", "100Mi"}}, .transition_period = minutes(2)});
  pods_.clear();
  SetMemory(50);
  loop_.Advance(seconds(10));
  EXPECT_TRUE(manager_->HasCondition("MemoryPressure"));
  SetMemory(500);
  loop_.Advance(seconds(100));
  EXPECT_TRUE(manager_->HasCondition("MemoryPressure"));
  loop_.Advance(seconds(40));
  EXPECT_FALSE(manager_->HasCondition("MemoryPressure"));
}

TEST_F(EvictionTest, MinimumReclaimGoesBeyondTheThreshold) {
  Start({.hard = {{"memory.available", "100Mi"}},
         .minimum_reclaim = {{"memory.available", "100Mi"}}});
  SetMemory(50);
  loop_.Advance(seconds(10));
  EXPECT_THAT(evicted_, ElementsAre("large"));
  SetMemory(150);  // above the threshold, but not by enough
  going_.clear();
  loop_.Advance(seconds(10));
  EXPECT_THAT(evicted_, ElementsAre("large", "small"));
}

TEST_F(EvictionTest, ImagesGoBeforePods) {
  Start({.hard = {{"nodefs.available", "10%"}}});
  usage_.node_fs.available_bytes = usage_.image_fs.available_bytes = 50;
  freed_by_images_ = 100;
  loop_.Advance(seconds(10));
  EXPECT_EQ(image_collections_, 1);
  EXPECT_THAT(evicted_, IsEmpty());
  EXPECT_TRUE(manager_->HasCondition("DiskPressure"));
  usage_.node_fs.available_bytes = usage_.image_fs.available_bytes = 50;
  freed_by_images_ = 0;
  loop_.Advance(seconds(10));
  EXPECT_EQ(evicted_.size(), 1u);
  EXPECT_THAT(messages_[0], HasSubstr("low on resource: ephemeral-storage"));
}

TEST_F(EvictionTest, ProcessIdsRunOutToo) {
  Start({.hard = {{"pid.available", "10%"}}});
  usage_.machine.max_processes = 1'000;
  usage_.machine.processes = 950;
  loop_.Advance(seconds(10));
  EXPECT_EQ(evicted_.size(), 1u);
  EXPECT_TRUE(manager_->HasCondition("PIDPressure"));
}

TEST_F(EvictionTest, UnderMemoryPressureOnlyBestEffortPodsAreRejected) {
  Start({.hard = {{"memory.available", "100Mi"}}});
  const auto best_effort = MakePod("b", R"("containers":[{"name":"a"}])", "BestEffort");
  EXPECT_FALSE(manager_->Admit(best_effort->root()));
  pods_.clear();
  SetMemory(50);
  loop_.Advance(seconds(10));
  const auto verdict = manager_->Admit(best_effort->root());
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->reason, "Evicted");
  EXPECT_EQ(verdict->message, "The node had condition: [MemoryPressure]. ");
  EXPECT_FALSE(manager_->Admit(MakePod("c", Container("1Mi"))->root()));
  EXPECT_FALSE(manager_->Admit(
      MakePod(
          "d",
          R"("containers":[{"name":"a"}],"tolerations":[{"key":"node.kubernetes.io/memory-pressure","operator":"Exists"}])",
          "BestEffort")
          ->root()));
}

TEST_F(EvictionTest, UnderDiskPressureOnlyCriticalPodsAreAdmitted) {
  Start({.hard = {{"nodefs.available", "10%"}}});
  pods_.clear();
  usage_.node_fs.available_bytes = usage_.image_fs.available_bytes = 50;
  loop_.Advance(seconds(10));
  EXPECT_TRUE(manager_->Admit(MakePod("c", Container("1Mi"))->root()));
  EXPECT_FALSE(manager_->Admit(MakePod("d", Container("1Mi", 2'000'000'000))->root()));
}

api::ObjectPtr Limited(const std::string& containers) {
  auto tree = api::ParseJson(
      StrCat(R"({"metadata":{"name":"l","namespace":"n","uid":"uid-l"},"spec":{"containers":[)",
             containers, "]}}"));
  return std::make_shared<const api::Object>(*std::move(tree));
}
std::string Storing(std::string_view name, std::string_view limit) {
  return StrCat(R"({"name":")", name, R"(","resources":{"limits":{)",
                limit.empty() ? "" : StrCat(R"("ephemeral-storage":")", limit, R"(")"), "}}}");
}

TEST(StorageLimits, ContainersTheirLogsAndEmptyDirsCount) {
  NodeUsage usage;
  PodUsage pod{.uid = "uid-l"};
  pod.containers = {
      {.name = "a", .root_fs = {.used_bytes = 60 * kMiB}, .log = {.used_bytes = 10 * kMiB}},
      {.name = "b", .root_fs = {.used_bytes = 20 * kMiB}}};
  usage.pods = {pod};
  usage.volumes["uid-l"] = {
      {.plugin = "kubernetes.io~empty-dir", .files = {.used_bytes = 30 * kMiB}},
      {.plugin = "kubernetes.io~configmap", .files = {.used_bytes = 99 * kMiB}}};
  const auto why = [&](const std::string& containers) {
    const auto verdict = ExceedsStorageLimit(Limited(containers)->root(), usage);
    return verdict ? verdict->message : "(stays)";
  };
  EXPECT_EQ(why(Storing("a", "") + "," + Storing("b", "")), "(stays)");
  EXPECT_EQ(why(Storing("a", "70Mi") + "," + Storing("b", "50Mi")), "(stays)");
  EXPECT_EQ(why(Storing("a", "69Mi") + "," + Storing("b", "100Mi")),
            "Container a exceeded its local ephemeral storage limit \"69Mi\". ");
  EXPECT_EQ(why(Storing("a", "70Mi") + "," + Storing("b", "49Mi")),
            "Pod ephemeral local storage usage exceeds the total limit of containers 119Mi. ");
  usage.pods.clear();
  EXPECT_EQ(why(Storing("a", "1")), "(stays)") << "not measured";
}

TEST_F(EvictionTest, APodBeyondItsStorageLimitGoesEvenWithoutPressure) {
  pods_.push_back(Limited(Storing("a", "10Mi")));
  PodUsage pod{.uid = "uid-l"};
  pod.containers = {{.name = "a", .root_fs = {.used_bytes = 9 * kMiB}}};
  usage_.pods.push_back(pod);
  EvictionSettings none;
  none.hard.clear();
  Start(none);
  EXPECT_TRUE(evicted_.empty());
  usage_.pods.back().containers[0].root_fs.used_bytes = 11 * kMiB;
  loop_.Advance(EvictionManager::kEvery);
  EXPECT_EQ(evicted_, std::vector<std::string>{"l"});
  EXPECT_EQ(grace_, EvictionManager::kHardGrace);
}

}  // namespace
}  // namespace drakkar::node
