#include "base/testing/seeded_loop.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace drakkar {
namespace {

using std::chrono::seconds;

TEST(SeededLoop, RunsTasksInTheOrderPosted) {
  SeededLoop loop;
  std::vector<int> order;
  loop.Post([&] {
    order.push_back(1);
    loop.Post([&] { order.push_back(3); });
  });
  loop.Post([&] { order.push_back(2); });
  EXPECT_EQ(loop.RunUntilIdle(), 3u);
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(SeededLoop, FiresTimersAtTheirTimeAndInOrder) {
  SeededLoop loop;
  std::vector<std::int64_t> fired;
  const MonotonicTime start = loop.clock().Monotonic();
  auto note = [&] {
    fired.push_back(std::chrono::duration_cast<seconds>(loop.clock().Monotonic() - start).count());
  };
  TimerHandle late = loop.RunAfter(seconds(5), note);
  TimerHandle early = loop.RunAfter(seconds(2), note);
  TimerHandle cancelled = loop.RunAfter(seconds(3), note);
  cancelled.reset();
  loop.Advance(seconds(4));
  EXPECT_EQ(fired, (std::vector<std::int64_t>{2}));
  loop.Advance(seconds(4));
  EXPECT_EQ(fired, (std::vector<std::int64_t>{2, 5}));
}

TEST(SeededLoop, ATimerMayDestroyItself) {
  SeededLoop loop;
  TimerHandle timer;
  int ran = 0;
  timer = loop.RunAfter(seconds(1), [&] {
    ++ran;
    timer.reset();
  });
  loop.Advance(seconds(2));
  EXPECT_EQ(ran, 1);
}

TEST(SeededLoop, ShufflingIsAFunctionOfTheSeedAndKeepsTheOrderOfEachLane) {
  auto run = [](std::uint64_t seed) {
    SeededLoop loop(seed, /*shuffle=*/true);
    EventLoop& a = loop.NewLane();
    EventLoop& b = loop.NewLane();
    std::vector<int> order;
    for (int i = 0; i < 20; ++i) {
      a.Post([&order, i] { order.push_back(i); });
      b.Post([&order, i] { order.push_back(100 + i); });
      loop.Post([&order, i] { order.push_back(200 + i); });
    }
    loop.RunUntilIdle();
    EXPECT_EQ(order.size(), 60u);
    for (int lane = 0; lane < 3; ++lane) {
      int last = -1;
      for (int each : order) {
        if (each / 100 != lane) continue;
        EXPECT_GT(each, last);
        last = each;
      }
    }
    return order;
  };
  EXPECT_EQ(run(7), run(7));
  EXPECT_NE(run(7), run(8));
}

TEST(SeededLoop, WithoutShufflingLanesShareOneOrder) {
  SeededLoop loop;
  EventLoop& lane = loop.NewLane();
  std::string order;
  lane.Post([&] { order += "a"; });
  loop.Post([&] { order += "b"; });
  lane.Post([&] { order += "c"; });
  loop.RunUntilIdle();
  EXPECT_EQ(order, "abc");
}

TEST(SeededLoop, ADueTimerMayRunBetweenTasks) {
  std::set<std::string> orders;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SeededLoop loop(seed, /*shuffle=*/true);
    std::string order;
    loop.Post([&] { order += "a"; });
    loop.Post([&] { order += "b"; });
    TimerHandle timer = loop.RunAfter(seconds(1), [&] { order += "t"; });
    loop.fake_clock().Advance(seconds(1));
    loop.RunUntilIdle();
    orders.insert(order);
  }
  EXPECT_EQ(orders, (std::set<std::string>{"abt", "atb", "tab"}));
}

}  // namespace
}  // namespace drakkar
