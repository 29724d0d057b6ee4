#include "base/testing/seeded_loop.h"

#include <gtest/gtest.h>

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
    fired.push_back(
        std::chrono::duration_cast<seconds>(loop.clock().Monotonic() - start).count());
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

TEST(SeededLoop, ShufflingIsAFunctionOfTheSeed) {
  auto run = [](std::uint64_t seed) {
    SeededLoop loop(seed, /*shuffle=*/true);
    std::vector<int> order;
    for (int i = 0; i < 20; ++i) loop.Post([&order, i] { order.push_back(i); });
    loop.RunUntilIdle();
    return order;
  };
  EXPECT_EQ(run(7), run(7));
  EXPECT_NE(run(7), run(8));
}

}  // namespace
}  // namespace drakkar
