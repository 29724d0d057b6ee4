#include "node/health/update_channel.h"

#include <gtest/gtest.h>

#include "base/testing/seeded_loop.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::node {
namespace {

TEST(UpdateChannel, APodNamedByTwoSourcesIsUpdatedOnce) {
  SeededLoop loop;
  Metrics metrics;
  std::vector<std::string> seen;
  UpdateChannel channel(loop, &metrics, [&](const std::string& uid) { seen.push_back(uid); });
  channel.Send("dra", {"a", "b"});
  channel.Send("device-plugins", {"b", "c"});
  EXPECT_TRUE(seen.empty()) << "never inside the call";
  loop.RunUntilIdle();
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_NE(metrics.Text().find("drakkar_node_resource_updates_total{source=\"device-plugins\"} 2"),
            std::string::npos);
}

TEST(UpdateChannel, ABurstIsCoalescedAndNobodyStarves) {
  SeededLoop loop;
  std::map<std::string, int> looks;
  std::function<void()> again;
  UpdateChannel channel(loop, nullptr, [&](const std::string& uid) {
    ++looks[uid];
    if (again) again();
  });
  // One pod's devices flap: every update queues the pod again.
  int turns = 0;
  again = [&] {
    if (turns++ < 1'000) channel.Send("noisy", {"noisy"});
  };
  for (int i = 0; i < 50; ++i) channel.Send("noisy", {"noisy"});
  std::set<std::string> many;
  for (int i = 0; i < 500; ++i) many.insert("pod-" + std::to_string(i));
  channel.Send("dra", many);
  int steps = 0;
  while (looks.size() < 501u && loop.RunOne()) ++steps;
  EXPECT_EQ(looks.size(), 501u);
  EXPECT_LE(looks["noisy"], 12) << "served in turn with the others";
  EXPECT_LE(steps, 20);
  again = nullptr;
  loop.Advance(UpdateChannel::kWindow);
  EXPECT_EQ(channel.waiting(), 0u);
}

TEST(UpdateChannel, APodWhoseDevicesFlapIsUpdatedALimitedNumberOfTimesAndLastAtTheEnd) {
  SeededLoop loop;
  int noisy = 0;
  int quiet = 0;
  UpdateChannel channel(loop, nullptr,
                        [&](const std::string& uid) { ++(uid == "noisy" ? noisy : quiet); });
  for (int i = 0; i < 500; ++i) {
    channel.Send("dra", {"noisy"});
    loop.RunUntilIdle();
  }
  EXPECT_EQ(noisy, UpdateChannel::kMaxPerWindow);
  EXPECT_EQ(channel.waiting(), 1u) << "the last change is not lost";
  channel.Send("dra", {"quiet"});
  loop.RunUntilIdle();
  EXPECT_EQ(quiet, 1) << "others do not wait";
  loop.Advance(UpdateChannel::kWindow);
  EXPECT_EQ(noisy, UpdateChannel::kMaxPerWindow + 1);
  EXPECT_EQ(channel.waiting(), 0u);
}

TEST(UpdateChannel, APodQueuedDuringADeliveryCausesNoTurnOfItsOwn) {
  SeededLoop loop;
  int looks = 0;
  std::function<void()> first;
  UpdateChannel channel(loop, nullptr, [&](const std::string&) {
    if (++looks == 1) first();
  });
  first = [&] { channel.Send("dra", {"again"}); };
  std::set<std::string> many;
  for (std::size_t i = 0; i < UpdateChannel::kMaxPodsPerTurn + 1; ++i) {
    many.insert("pod-" + std::to_string(i));
  }
  channel.Send("dra", many);
  int turns = 0;
  while (loop.RunOne()) ++turns;
  EXPECT_EQ(looks, static_cast<int>(many.size()) + 1);
  EXPECT_EQ(turns, 2);
}

TEST(UpdateChannel, NothingIsDeliveredAfterItIsDestroyed) {
  SeededLoop loop;
  int looks = 0;
  {
    UpdateChannel channel(loop, nullptr, [&](const std::string&) { ++looks; });
    channel.Send("dra", {"a"});
  }
  loop.RunUntilIdle();
  EXPECT_EQ(looks, 0);
}

}  // namespace
}  // namespace drakkar::node
