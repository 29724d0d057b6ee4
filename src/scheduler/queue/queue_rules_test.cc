// What each event and each kind of return does to pods, with two plugins and with metrics.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "scheduler/framework/metrics.h"
#include "scheduler/queue/scheduling_queue.h"

namespace drakkar::scheduler {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Listens for `mask`, and records what it is asked.
class Listener final : public Plugin {
 public:
  explicit Listener(EventMask mask) : mask_(mask) {}
  EventMask events() const override { return mask_; }
  bool MayHelp(const PodInfo& pod, const ClusterEvent&) override {
    asked.push_back(std::string(pod.name()));
    return helps;
  }
  Status PreEnqueue(const PodInfo&) override {
    return closed ? Status::Unresolvable("closed") : Status::Success();
  }
  bool helps = true;
  bool closed = false;
  std::vector<std::string> asked;

 private:
  const EventMask mask_;
};

class QueueRules : public ::testing::Test {
 protected:
  static constexpr PluginSet kFirst = 1, kSecond = 2;

  QueueRules() {
    first_ = Add("First", MaskOf(EventKind::kNodeAdd, EventKind::kClaimUpdate,
                                 EventKind::kClaimDelete, EventKind::kTargetPodChange));
    second_ = Add("Second", MaskOf(EventKind::kNodeLabel, EventKind::kNodeAdd));
    queue_.emplace(SchedulingQueue::Options{.loop = loop_,
                                            .plugins = plugins_,
                                            .plugins_of = {},
                                            .pauses = {},
                                            .metrics = &metrics_,
                                            .metrics_of = {},
                                            .on_active = [this] { ++ready_; }});
  }

  Listener* Add(std::string_view name, EventMask mask) {
    auto plugin = std::make_unique<Listener>(mask);
    plugin->Register({.name = name,
                      .id = static_cast<PluginId>(plugins_.size()),
                      .points = PointsOf<Listener>()});
    Listener* added = plugin.get();
    plugins_.push_back(std::move(plugin));
    return added;
  }
  // `more` are members of the pod, each preceded by a comma.
  PodInfoPtr Pod(std::string name, std::string claim = "", std::string more = "") {
    const std::string claims =
        claim.empty()
            ? ""
            : StrCat(R"("resourceClaims":[{"name":"c","resourceClaimName":")", claim, R"("}])");
    auto tree =
        api::ParseJson(StrCat(R"({"metadata":{"namespace":"d","name":")", name, R"(","uid":")",
                              name, R"("},"spec":{)", claims, "}", more, "}"));
    EXPECT_TRUE(tree.ok());
    return MakePodInfo(std::make_shared<const api::Object>(*tree));
  }
  std::vector<std::string> PopAll() {
    std::vector<std::string> names;
    while (QueuedPod* pod = queue_->Pop()) names.push_back(std::string(pod->info->name()));
    return names;
  }
  void Refuse(std::string name, PluginSet by, std::string claim = "") {
    queue_->Add(Pod(name, std::move(claim)));
    ASSERT_THAT(PopAll(), ElementsAre(name));
    queue_->ReturnRefused(name, by);
  }
  void Tell(EventKind kind, std::string only_claim = "") {
    queue_->OnEvent({kind, nullptr, nullptr, std::move(only_claim)});
  }
  std::string Metric(std::string_view name) {
    const std::string text = registry_.Text();
    const std::size_t at = text.find(StrCat("\n", name, " "));
    if (at == std::string::npos) return "absent";
    const std::size_t value = at + name.size() + 2;
    return text.substr(value, text.find('\n', value) - value);
  }
  std::string Incoming(std::string_view queue, std::string_view event) {
    return Metric(
        StrCat("scheduler_queue_incoming_pods_total{event=\"", event, "\",queue=\"", queue, "\"}"));
  }
  std::string Pending(std::string_view queue) {
    return Metric(StrCat("scheduler_pending_pods{queue=\"", queue, "\"}"));
  }
  std::string Unschedulable(std::string_view plugin) {
    return Metric(StrCat("scheduler_unschedulable_pods{plugin=\"", plugin, "\",profile=\"test\"}"));
  }

  SeededLoop loop_;
  Metrics registry_;
  SchedulerMetrics metrics_{registry_, "test"};
  int ready_ = 0;
  Listener* first_;
  Listener* second_;
  std::vector<std::unique_ptr<Plugin>> plugins_;
  std::optional<SchedulingQueue> queue_;
};

TEST_F(QueueRules, OnlyThePluginsThatRejectedAPodAndListenForTheEventAreAsked) {
  Refuse("both", kFirst | kSecond);
  Refuse("second", kSecond);
  first_->helps = false;
  second_->helps = false;
  Tell(EventKind::kNodeLabel);
  EXPECT_THAT(first_->asked, IsEmpty());
  EXPECT_THAT(second_->asked, ElementsAre("both", "second"));
  second_->asked.clear();
  Tell(EventKind::kNodeAdd);
  EXPECT_THAT(first_->asked, ElementsAre("both"));
  EXPECT_THAT(second_->asked, ElementsAre("both", "second"));
  EXPECT_EQ(queue_->unschedulable_count(), 2u);
  second_->helps = true;
  Tell(EventKind::kNodeAdd);
  EXPECT_EQ(queue_->unschedulable_count(), 0u) << "one plugin that the event helps is enough";
}

TEST_F(QueueRules, PodsThatAnEventWakesKeepTheirOrder) {
  Refuse("a", kSecond);
  Refuse("b", kFirst);
  Refuse("c", kFirst | kSecond);
  first_->closed = true;
  queue_->Add(Pod("gated"));
  first_->closed = false;
  Tell(EventKind::kNodeAdd);
  EXPECT_THAT(first_->asked, ElementsAre("b", "c", "gated"));
  EXPECT_THAT(second_->asked, ElementsAre("a"));
  EXPECT_EQ(queue_->unschedulable_count() + queue_->gated_count(), 0u);
}

TEST_F(QueueRules, AnEventAboutOneClaimReachesOnlyItsUsers) {
  Refuse("user", kFirst, "c1");
  Refuse("other", kFirst, "c2");
  Refuse("rejected-otherwise", kSecond, "c1");
  Tell(EventKind::kClaimUpdate, "d/c1");
  EXPECT_THAT(first_->asked, ElementsAre("user"));
  EXPECT_EQ(queue_->unschedulable_count(), 2u);
  Tell(EventKind::kClaimUpdate, "d/unused");
  EXPECT_EQ(queue_->unschedulable_count(), 2u);
}

TEST_F(QueueRules, FreedDevicesWakeOnlyPodsThatWereTried) {
  for (const EventKind kind : {EventKind::kClaimUpdate, EventKind::kClaimDelete}) {
    const std::string name = StrCat("tried", static_cast<int>(kind));
    Refuse(name, kFirst);
    first_->closed = true;
    queue_->Add(Pod("gated"));
    first_->asked.clear();
    Tell(kind);
    EXPECT_THAT(first_->asked, ElementsAre(name));
    EXPECT_EQ(queue_->gated_count(), 1u);
    first_->closed = false;
    queue_->Remove("gated");
    queue_->Remove(name);
  }
}

TEST_F(QueueRules, AWokenPodThatIsStillGatedStaysOut) {
  first_->closed = true;
  queue_->Add(Pod("a", "c1"));
  EXPECT_EQ(queue_->gated_count(), 1u);
  Tell(EventKind::kClaimUpdate, "d/c1");
  EXPECT_EQ(queue_->gated_count(), 1u);
  first_->closed = false;
  Tell(EventKind::kClaimUpdate, "d/c1");
  EXPECT_EQ(queue_->gated_count(), 0u);
  EXPECT_EQ(queue_->active_count(), 1u) << "it was never tried, so there is no backoff";
}

TEST_F(QueueRules, AnyOfThePluginsMayGateAPod) {
  second_->closed = true;
  queue_->Add(Pod("a"));
  EXPECT_EQ(queue_->gated_count(), 1u);
  first_->closed = true;
  Tell(EventKind::kClaimUpdate);
  EXPECT_THAT(first_->asked, IsEmpty()) << "the first did not reject it";
  second_->closed = false;
  Tell(EventKind::kNodeLabel);
  EXPECT_EQ(queue_->gated_count(), 1u) << "now the first does";
  EXPECT_EQ(Unschedulable("First"), "1");
  EXPECT_EQ(Unschedulable("Second"), "0");
}

TEST_F(QueueRules, AGatedPodIsFlushedIntoNoOtherState) {
  first_->closed = true;
  queue_->Add(Pod("a"));
  loop_.Advance(minutes(6));
  EXPECT_EQ(queue_->gated_count(), 1u);
  first_->closed = false;
  loop_.Advance(minutes(6));
  EXPECT_THAT(PopAll(), ElementsAre("a"));
}

TEST_F(QueueRules, ARejectedPodIsRetriedAfterFiveMinutesAndTheOthersLater) {
  Refuse("a", kFirst);
  loop_.Advance(minutes(2));
  Refuse("b", kFirst);
  loop_.Advance(minutes(3) - seconds(1));
  EXPECT_EQ(queue_->unschedulable_count(), 2u);
  loop_.Advance(seconds(31));
  EXPECT_THAT(PopAll(), ElementsAre("a"));
  loop_.Advance(minutes(2));
  EXPECT_THAT(PopAll(), ElementsAre("b"));
  EXPECT_EQ(Incoming("active", "UnschedulableTimeout"), "2");
}

TEST_F(QueueRules, AFailedAttemptIsRetriedAtOnceSoonOrLater) {
  queue_->Add(Pod("a"));
  for (int i = 0; i < 3; ++i) {
    ASSERT_THAT(PopAll(), ElementsAre("a"));
    queue_->ReturnFailed("a");
    loop_.Advance(seconds(10));
  }
  ASSERT_THAT(PopAll(), ElementsAre("a"));
  queue_->ReturnFailed("a", {.when = Retry::When::kSoon});
  loop_.Advance(seconds(1) - milliseconds(1));
  EXPECT_THAT(PopAll(), IsEmpty());
  loop_.Advance(milliseconds(1));
  ASSERT_THAT(PopAll(), ElementsAre("a")) << "the shortest backoff, despite three failures";
  queue_->ReturnFailed("a");
  loop_.Advance(seconds(2) - milliseconds(1));
  EXPECT_THAT(PopAll(), IsEmpty()) << "it counts as the first failure";
  loop_.Advance(milliseconds(1));
  ASSERT_THAT(PopAll(), ElementsAre("a"));
  queue_->ReturnFailed("a", {.when = Retry::When::kAtOnce});
  ASSERT_THAT(PopAll(), ElementsAre("a"));
  queue_->ReturnFailed("a");
  loop_.Advance(seconds(1));
  EXPECT_THAT(PopAll(), ElementsAre("a")) << "failures before an immediate retry are forgotten";
}

TEST_F(QueueRules, EveryBackoffEndsAtItsOwnTime) {
  for (const char* name : {"a", "b"}) {
    queue_->Add(Pod(name));
    ASSERT_THAT(PopAll(), ElementsAre(name));
    queue_->ReturnFailed(name);
    loop_.Advance(milliseconds(500));
  }
  EXPECT_THAT(PopAll(), ElementsAre("a"));
  loop_.Advance(seconds(1));
  EXPECT_THAT(PopAll(), ElementsAre("b"));
}

TEST_F(QueueRules, AnImmediateRetryStillHasToPassTheGates) {
  queue_->Add(Pod("a"));
  ASSERT_THAT(PopAll(), ElementsAre("a"));
  first_->closed = true;
  queue_->ReturnFailed("a", {.when = Retry::When::kAtOnce});
  EXPECT_EQ(queue_->gated_count(), 1u);
}

TEST_F(QueueRules, ARejectionForgetsEarlierErrors) {
  queue_->Add(Pod("a"));
  for (int i = 0; i < 3; ++i) {
    ASSERT_THAT(PopAll(), ElementsAre("a"));
    queue_->ReturnFailed("a");
    loop_.Advance(seconds(10));
  }
  ASSERT_THAT(PopAll(), ElementsAre("a"));
  queue_->ReturnRefused("a", kFirst);
  Tell(EventKind::kNodeAdd);
  EXPECT_EQ(queue_->backoff_count(), 1u);
  EXPECT_THAT(PopAll(), ElementsAre("a")) << "only backoffs after errors last in an idle queue";
}

TEST_F(QueueRules, AnEventEndsTheBackoffsThatNameIt) {
  queue_->Add(Pod("named"));
  queue_->Add(Pod("other"));
  queue_->Add(Pod("second"));
  ASSERT_THAT(PopAll(), ElementsAre("named", "other", "second"));
  const EventMask slices = MaskOf(EventKind::kSliceChange);
  queue_->ReturnFailed("named", {.ended_by = slices});
  queue_->ReturnFailed("other", {.ended_by = MaskOf(EventKind::kClassChange)});
  queue_->ReturnFailed("second", {.ended_by = slices});
  Tell(EventKind::kNodeAdd);
  EXPECT_THAT(PopAll(), IsEmpty());
  Tell(EventKind::kSliceChange);
  EXPECT_THAT(PopAll(), ElementsAre("named", "second"));
  EXPECT_EQ(Incoming("active", "ResourceSliceUpdate"), "2");
  loop_.Advance(seconds(1));
  EXPECT_THAT(PopAll(), ElementsAre("other"));
}

TEST_F(QueueRules, ABackoffIsCutShortOncePerShortestBackoff) {
  queue_->Add(Pod("a"));
  const Retry retry{.ended_by = MaskOf(EventKind::kSliceChange)};
  for (int i = 0; i < 4; ++i) {
    ASSERT_THAT(PopAll(), ElementsAre("a"));
    queue_->ReturnFailed("a", retry);
    Tell(EventKind::kSliceChange);
    if (i == 0) continue;
    EXPECT_THAT(PopAll(), IsEmpty()) << i;
    Tell(EventKind::kSliceChange);
    loop_.Advance(seconds(1) - milliseconds(1));
    EXPECT_THAT(PopAll(), IsEmpty()) << i;
    loop_.Advance(milliseconds(1));
  }
  EXPECT_THAT(PopAll(), ElementsAre("a"));
}

TEST_F(QueueRules, TheNextBackoffIsNotCutByTheEventsOfTheLastOne) {
  queue_->Add(Pod("a"));
  ASSERT_THAT(PopAll(), ElementsAre("a"));
  queue_->ReturnFailed("a", {.ended_by = MaskOf(EventKind::kSliceChange)});
  loop_.Advance(seconds(1));
  ASSERT_THAT(PopAll(), ElementsAre("a"));
  queue_->ReturnFailed("a");
  Tell(EventKind::kSliceChange);
  EXPECT_THAT(PopAll(), IsEmpty());
}

TEST_F(QueueRules, APodRemovedFromAnyStateIsGone) {
  queue_->Add(Pod("active"));
  queue_->Remove("active");
  Refuse("unschedulable", kFirst, "c1");
  queue_->Remove("unschedulable");
  Tell(EventKind::kClaimUpdate, "d/c1");
  queue_->Add(Pod("failed"));
  ASSERT_THAT(PopAll(), ElementsAre("failed"));
  queue_->ReturnFailed("failed", {.ended_by = MaskOf(EventKind::kSliceChange)});
  queue_->Remove("failed");
  Tell(EventKind::kSliceChange);
  Refuse("refused", kFirst);
  Tell(EventKind::kNodeAdd);
  EXPECT_EQ(queue_->backoff_count(), 1u);
  queue_->Remove("refused");
  first_->closed = true;
  queue_->Add(Pod("gated"));
  queue_->Remove("gated");
  queue_->Remove("never seen");
  queue_->OnBindingBegins("never seen");
  queue_->Done("never seen");
  for (const char* queue : {"active", "backoff", "unschedulable", "gated"}) {
    EXPECT_EQ(Pending(queue), "0") << queue;
  }
  EXPECT_EQ(Unschedulable("First"), "0");
  loop_.Advance(minutes(20));
  EXPECT_THAT(PopAll(), IsEmpty());
}

TEST_F(QueueRules, AnUpdateIsSeenInEveryState) {
  const auto labelled = [&](std::string name) {
    return MakePodInfo(std::make_shared<const api::Object>(
        *api::ParseJson(StrCat(R"({"metadata":{"namespace":"d","name":")", name, R"(","uid":")",
                               name, R"(","labels":{"x":"1"}}})"))));
  };
  const auto is_new = [&](std::string name) {
    return queue_->Find(name)->info->labels().Entry("x").str() == "1";
  };
  queue_->Update(Pod("unknown"));
  EXPECT_EQ(queue_->active_count(), 1u) << "an unknown pod is added";
  queue_->Update(labelled("unknown"));
  EXPECT_TRUE(is_new("unknown"));
  EXPECT_EQ(queue_->active_count(), 1u);
  QueuedPod* popped = queue_->Pop();
  ASSERT_NE(popped, nullptr);
  queue_->Update(Pod("unknown"));
  EXPECT_FALSE(is_new("unknown"));
  queue_->ReturnRefused("unknown", kFirst);
  EXPECT_EQ(queue_->backoff_count(), 1u) << "the change may help";
  queue_->Update(labelled("unknown"));
  EXPECT_TRUE(is_new("unknown"));
  EXPECT_EQ(queue_->backoff_count(), 1u);
}

TEST_F(QueueRules, ARejectedPodIsWokenByItsOwnSpecLabelsAndClaimsIfThatMayHelp) {
  const auto pod = [&](std::string more) { return Pod("a", "", std::move(more)); };
  Refuse("a", kFirst);
  queue_->Update(pod(R"(,"status":{"phase":"Pending"})"));
  EXPECT_THAT(first_->asked, IsEmpty()) << "the status alone cannot help";
  first_->helps = false;
  queue_->Update(pod(R"(,"status":{"resourceClaimStatuses":[{"name":"c"}]})"));
  EXPECT_EQ(first_->asked.size(), 1u);
  queue_->Update(Pod("a", "c1"));
  EXPECT_EQ(first_->asked.size(), 2u);
  EXPECT_EQ(queue_->unschedulable_count(), 1u);
  first_->helps = true;
  queue_->Update(Pod("a"));
  EXPECT_EQ(queue_->unschedulable_count(), 0u);
  queue_->Remove("a");
  Refuse("b", kSecond);
  queue_->Update(Pod("b", "c1"));
  EXPECT_EQ(queue_->unschedulable_count(), 1u) << "the second does not listen for it";
}

TEST_F(QueueRules, AnotherPodsChangeInFlightDoesNotWakeAPod) {
  queue_->Add(Pod("a"));
  queue_->Add(Pod("b"));
  ASSERT_THAT(PopAll(), ElementsAre("a", "b"));
  queue_->Update(Pod("b", "c1"));
  queue_->ReturnRefused("a", kFirst);
  EXPECT_EQ(queue_->unschedulable_count(), 1u);
  queue_->ReturnRefused("b", kFirst);
  EXPECT_EQ(queue_->backoff_count(), 1u);
}

TEST_F(QueueRules, EventsAreKeptUntilTheLastPodThatNeedsThemLands) {
  queue_->Add(Pod("a"));
  ASSERT_THAT(PopAll(), ElementsAre("a"));
  Tell(EventKind::kNodeAdd);
  queue_->Add(Pod("b"));
  ASSERT_THAT(PopAll(), ElementsAre("b"));
  Tell(EventKind::kNodeLabel);
  EXPECT_EQ(queue_->kept_event_count(), 2u);
  queue_->Done("a");
  EXPECT_EQ(queue_->kept_event_count(), 1u);
  first_->helps = second_->helps = true;
  queue_->ReturnRefused("b", kFirst);
  EXPECT_EQ(queue_->unschedulable_count(), 1u) << "it was popped after the first event";
  EXPECT_EQ(queue_->kept_event_count(), 0u);
  EXPECT_EQ(queue_->in_flight_count(), 0u);
}

TEST_F(QueueRules, AnAttemptIsCountedAndKeepsTheTimeOfTheFirst) {
  queue_->Add(Pod("a"));
  const MonotonicTime added = loop_.clock().Monotonic();
  loop_.Advance(seconds(3));
  QueuedPod* pod = queue_->Pop();
  ASSERT_NE(pod, nullptr);
  EXPECT_EQ(pod->attempts, 1);
  EXPECT_EQ(pod->first_attempt_at, added + seconds(3));
  queue_->ReturnFailed("a");
  loop_.Advance(seconds(5));
  pod = queue_->Pop();
  ASSERT_NE(pod, nullptr);
  EXPECT_EQ(pod->attempts, 2);
  EXPECT_EQ(pod->first_attempt_at, added + seconds(3));
}

TEST_F(QueueRules, TheSchedulerIsToldWheneverAPodBecomesReady) {
  queue_->Add(Pod("a"));
  EXPECT_EQ(ready_, 1);
  ASSERT_THAT(PopAll(), ElementsAre("a"));
  queue_->ReturnFailed("a");
  EXPECT_EQ(ready_, 1) << "a backoff after an error lasts";
  EXPECT_FALSE(queue_->HasReady());
  loop_.Advance(seconds(1));
  EXPECT_EQ(ready_, 2);
  ASSERT_THAT(PopAll(), ElementsAre("a"));
  queue_->ReturnRefused("a", kFirst);
  EXPECT_EQ(ready_, 2);
  Tell(EventKind::kNodeAdd);
  EXPECT_EQ(ready_, 3) << "a backoff after a rejection ends early in an idle queue";
  EXPECT_TRUE(queue_->HasReady());
}

TEST_F(QueueRules, MetricsShowWherePodsAreAndHowTheyGotThere) {
  queue_->Add(Pod("active"));
  EXPECT_EQ(Pending("active"), "1");
  EXPECT_EQ(Incoming("active", "PodAdd"), "1");
  ASSERT_THAT(PopAll(), ElementsAre("active"));
  EXPECT_EQ(Pending("active"), "0");
  queue_->ReturnFailed("active");
  EXPECT_EQ(Pending("backoff"), "1");
  EXPECT_EQ(Incoming("backoff", "ScheduleAttemptFailure"), "1");
  loop_.Advance(seconds(1));
  EXPECT_EQ(Incoming("active", "BackoffComplete"), "1");
  ASSERT_THAT(PopAll(), ElementsAre("active"));
  queue_->ReturnRefused("active", kFirst | kSecond);
  EXPECT_EQ(Pending("unschedulable"), "1");
  EXPECT_EQ(Incoming("unschedulable", "ScheduleAttemptFailure"), "1");
  EXPECT_EQ(Unschedulable("First"), "1");
  EXPECT_EQ(Unschedulable("Second"), "1");
  queue_->Update(Pod("active", "", R"(,"status":{"phase":"Pending"})"));
  EXPECT_EQ(Incoming("unschedulable", "PodUpdate"), "absent") << "it did not move";
  EXPECT_EQ(Unschedulable("First"), "1");
  Tell(EventKind::kNodeAdd);
  EXPECT_EQ(Pending("unschedulable"), "0");
  EXPECT_EQ(Unschedulable("First"), "0");
  EXPECT_EQ(Incoming("backoff", "NodeAdd"), "1");
  first_->closed = true;
  queue_->Add(Pod("gated"));
  EXPECT_EQ(Pending("gated"), "1");
  EXPECT_EQ(Pending("unschedulable"), "0");
  EXPECT_EQ(Incoming("gated", "PodAdd"), "1");
  first_->closed = false;
  queue_->Update(Pod("gated"));
  EXPECT_EQ(Pending("gated"), "0");
  EXPECT_EQ(Incoming("active", "PodUpdate"), "1");
  queue_->Remove("gated");
  EXPECT_EQ(Pending("active"), "0");
}

TEST_F(QueueRules, EachProfileHasItsOwnPluginsAndMetrics) {
  Metrics other_registry;
  SchedulerMetrics other(other_registry, "other");
  std::vector<std::unique_ptr<Plugin>> others;
  auto plugin = std::make_unique<Listener>(MaskOf(EventKind::kNodeAdd));
  plugin->Register({.name = "First", .id = 0, .points = PointsOf<Listener>()});
  Listener* own = plugin.get();
  others.push_back(std::move(plugin));
  const auto is_other = [](const PodInfo& pod) { return pod.name() == "other"; };
  queue_.emplace(SchedulingQueue::Options{
      .loop = loop_,
      .plugins = plugins_,
      .plugins_of =
          [&](const PodInfo& pod) {
            return is_other(pod) ? std::span<const std::unique_ptr<Plugin>>(others) : plugins_;
          },
      .pauses = {},
      .metrics = &metrics_,
      .metrics_of = [&](const PodInfo& pod) { return is_other(pod) ? &other : &metrics_; },
      .on_active = {}});
  Refuse("a", kFirst);
  Refuse("other", kFirst);
  EXPECT_EQ(Unschedulable("First"), "1");
  EXPECT_THAT(other_registry.Text(),
              HasSubstr("scheduler_unschedulable_pods{plugin=\"First\",profile=\"other\"} 1"));
  own->helps = false;
  Tell(EventKind::kNodeAdd);
  EXPECT_THAT(own->asked, ElementsAre("other"));
  EXPECT_THAT(first_->asked, ElementsAre("a"));
  EXPECT_EQ(queue_->unschedulable_count(), 1u);
}

}  // namespace
}  // namespace drakkar::scheduler
