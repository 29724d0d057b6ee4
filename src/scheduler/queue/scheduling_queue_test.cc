#include "scheduler/queue/scheduling_queue.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"

namespace drakkar::scheduler {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// Listens for new nodes, and helps only pods that the test names.
class PickyPlugin final : public Plugin {
 public:
  EventMask events() const override { return MaskOf(EventKind::kNodeAdd, EventKind::kClaimUpdate); }
  bool MayHelp(const PodInfo& pod, const ClusterEvent&) override { return pod.name() == helps; }
  Status PreEnqueue(const PodInfo& pod) override {
    return pod.name() == closed ? Status::Unresolvable("closed") : Status::Success();
  }
  std::string helps;
  std::string closed;
};

class QueueTest : public ::testing::Test {
 protected:
  QueueTest() {
    auto plugin = std::make_unique<PickyPlugin>();
    plugin->Register({.name = "Picky", .points = PointsOf<PickyPlugin>()});
    picky_ = plugin.get();
    plugins_.push_back(std::move(plugin));
    queue_ = std::make_unique<SchedulingQueue>(
        SchedulingQueue::Options{.loop = loop_, .plugins = plugins_});
  }

  PodInfoPtr Pod(std::string name, int priority = 0) {
    auto tree =
        api::ParseJson(StrCat(R"({"metadata":{"namespace":"d","name":")", name, R"(","uid":")",
                              name, R"("},"spec":{"priority":)", priority, "}}"));
    return MakePodInfo(std::make_shared<const api::Object>(*tree));
  }
  std::string PopName() {
    QueuedPod* pod = queue_->Pop();
    return pod == nullptr ? "" : std::string(pod->info->name());
  }
  void NodeAdded() { queue_->OnEvent({EventKind::kNodeAdd, nullptr, nullptr, {}}); }

  static constexpr PluginSet kByPicky = 1;
  SeededLoop loop_;
  PickyPlugin* picky_;
  std::vector<std::unique_ptr<Plugin>> plugins_;
  std::unique_ptr<SchedulingQueue> queue_;
};

TEST_F(QueueTest, HigherPriorityComesFirstThenTheLongestWaiting) {
  queue_->Add(Pod("old"));
  loop_.Advance(seconds(1));
  queue_->Add(Pod("new"));
  queue_->Add(Pod("urgent", 5));
  EXPECT_EQ(PopName(), "urgent");
  EXPECT_EQ(PopName(), "old");
  EXPECT_EQ(PopName(), "new");
  EXPECT_EQ(PopName(), "");
}

TEST_F(QueueTest, AnEventWakesOnlyPodsItCanHelp) {
  for (const char* name : {"a", "b"}) {
    queue_->Add(Pod(name));
    queue_->ReturnRefused(PopName(), kByPicky);
  }
  picky_->helps = "b";
  loop_.Advance(seconds(20));
  NodeAdded();
  EXPECT_EQ(PopName(), "b");
  EXPECT_EQ(PopName(), "");
  EXPECT_EQ(queue_->unschedulable_count(), 1u);
}

TEST_F(QueueTest, AnEventOfAPluginThatDidNotRejectWakesNoPod) {
  queue_->Add(Pod("a"));
  queue_->ReturnRefused(PopName(), PluginSet{2});
  picky_->helps = "a";
  loop_.Advance(seconds(20));
  NodeAdded();
  EXPECT_EQ(PopName(), "");
}

TEST_F(QueueTest, AnEventThatArrivesInFlightIsNotLost) {
  queue_->Add(Pod("a"));
  ASSERT_EQ(PopName(), "a");
  picky_->helps = "a";
  NodeAdded();
  queue_->ReturnRefused("a", kByPicky);
  EXPECT_EQ(queue_->unschedulable_count(), 0u);
  EXPECT_EQ(queue_->backoff_count(), 1u);
}

TEST_F(QueueTest, APodThatMissedEventsInFlightIsRetried) {
  queue_->Add(Pod("a"));
  ASSERT_EQ(PopName(), "a");
  for (std::size_t i = 0; i <= SchedulingQueue::kMaxInFlightEvents; ++i) NodeAdded();
  queue_->ReturnRefused("a", kByPicky);
  EXPECT_EQ(queue_->backoff_count(), 1u);
}

TEST_F(QueueTest, NoEventsAreKeptForAPodThatIsBeingBound) {
  queue_->Add(Pod("waits"));
  queue_->Add(Pod("tried"));
  ASSERT_EQ(PopName(), "waits");
  ASSERT_EQ(PopName(), "tried");
  queue_->OnBindingBegins("waits");
  NodeAdded();
  EXPECT_EQ(queue_->kept_event_count(), 1u) << "for the other one";
  queue_->ReturnRefused("tried", PluginSet{2});
  NodeAdded();
  EXPECT_EQ(queue_->kept_event_count(), 0u);
  queue_->ReturnFailed("waits");
  EXPECT_EQ(queue_->backoff_count(), 1u);
}

TEST_F(QueueTest, BackoffAfterErrorsDoublesUpToTenSeconds) {
  queue_->Add(Pod("a"));
  for (const int pause : {1, 2, 4, 8, 10, 10}) {
    ASSERT_EQ(PopName(), "a");
    queue_->ReturnFailed("a");
    loop_.Advance(seconds(pause) - milliseconds(1));
    EXPECT_EQ(PopName(), "") << pause;
    loop_.Advance(milliseconds(1));
  }
  EXPECT_EQ(PopName(), "a");
}

TEST_F(QueueTest, AWokenPodInBackoffIsPoppedEarlyWhenNoOtherPodIsReady) {
  queue_->Add(Pod("a"));
  queue_->ReturnRefused(PopName(), kByPicky);
  picky_->helps = "a";
  NodeAdded();
  EXPECT_EQ(queue_->backoff_count(), 1u);
  queue_->Add(Pod("b"));
  EXPECT_EQ(PopName(), "b") << "active pods first";
  EXPECT_EQ(PopName(), "a");
}

TEST_F(QueueTest, NoPodWaitsForeverForAnEvent) {
  queue_->Add(Pod("a"));
  queue_->ReturnRefused(PopName(), kByPicky);
  loop_.Advance(minutes(4));
  EXPECT_EQ(PopName(), "");
  loop_.Advance(minutes(2));
  EXPECT_EQ(PopName(), "a");
}

TEST_F(QueueTest, AGatedPodEntersWhenTheGateOpens) {
  picky_->closed = "a";
  queue_->Add(Pod("a"));
  EXPECT_EQ(queue_->gated_count(), 1u);
  EXPECT_EQ(PopName(), "");
  picky_->closed = "";
  queue_->Update(Pod("a"));
  EXPECT_EQ(queue_->gated_count(), 0u);
  EXPECT_EQ(PopName(), "a");
}

TEST_F(QueueTest, APodRemovedInFlightDoesNotComeBack) {
  queue_->Add(Pod("a"));
  ASSERT_EQ(PopName(), "a");
  queue_->Remove("a");
  queue_->ReturnFailed("a");
  loop_.Advance(minutes(10));
  EXPECT_EQ(PopName(), "");
  EXPECT_EQ(queue_->Find("a"), nullptr);
}

// Random operations must preserve the invariant that a pod is in exactly one state.
TEST_F(QueueTest, NoPodIsLostOrDuplicatedByRandomOperations) {
  SeededRandom random(7);
  std::set<std::string> known, flying;
  for (int i = 0; i < 20'000; ++i) {
    const std::string name = StrCat("p", random.Below(20));
    switch (random.Below(9)) {
      case 0:
        queue_->Add(Pod(name, static_cast<int>(random.Below(3))));
        known.insert(name);
        break;
      case 1:
        queue_->Remove(name);
        if (!flying.contains(name)) known.erase(name);
        flying.erase(name) > 0 ? known.erase(name) : std::size_t{0};
        if (queue_->Find(name) != nullptr) queue_->Done(name);
        break;
      case 2:
        picky_->helps = name;
        NodeAdded();
        break;
      case 3:
        picky_->closed = random.Below(2) == 0 ? "" : name;
        break;
      case 4:
        loop_.Advance(milliseconds(random.Below(30'000)));
        break;
      case 5:
        if (known.contains(name)) queue_->Update(Pod(name));
        break;
      case 6:
        if (flying.erase(name) > 0) queue_->ReturnRefused(name, kByPicky);
        break;
      case 7:
        if (flying.erase(name) > 0) queue_->ReturnFailed(name);
        break;
      case 8:
        if (const std::string popped = PopName(); !popped.empty()) {
          EXPECT_TRUE(known.contains(popped));
          EXPECT_TRUE(flying.insert(popped).second) << "popped twice";
        }
        break;
    }
    ASSERT_EQ(queue_->active_count() + queue_->backoff_count() + queue_->unschedulable_count() +
                  queue_->gated_count() + queue_->in_flight_count(),
              known.size())
        << i;
    ASSERT_EQ(queue_->in_flight_count(), flying.size()) << i;
  }
}

}  // namespace
}  // namespace drakkar::scheduler
