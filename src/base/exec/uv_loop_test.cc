#include "base/exec/uv_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include "base/exec/worker_pool.h"

namespace drakkar {
namespace {

TEST(UvLoop, RunsPostedTasksFromOtherThreadsInOrder) {
  LoopThread thread("test");
  std::vector<int> order;
  for (int i = 0; i < 1000; ++i) thread.loop().Post([&order, i] { order.push_back(i); });
  thread.RunSync([&] {
    EXPECT_EQ(order.size(), 1000u);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
    EXPECT_TRUE(thread.loop().IsInLoop());
  });
  EXPECT_FALSE(thread.loop().IsInLoop());
}

TEST(UvLoop, TimersFireUnlessCancelled) {
  UvLoop loop;
  bool cancelled_ran = false;
  TimerHandle cancelled = loop.RunAfter(Duration(0), [&] { cancelled_ran = true; });
  cancelled.reset();
  TimerHandle timer = loop.RunAfter(std::chrono::milliseconds(1), [&] { loop.Stop(); });
  loop.Run();
  EXPECT_FALSE(cancelled_ran);
  timer.reset();
}

TEST(UvLoop, TasksPostedBeforeStopStillRun) {
  UvLoop loop;
  int ran = 0;
  loop.Post([&] {
    loop.Post([&] { ++ran; });
    loop.Stop();
  });
  loop.Run();
  EXPECT_EQ(ran, 1);
}

TEST(UvLoop, StartedWorkIsFinishedBeforeNewWorkBegins) {
  UvLoop loop;
  std::vector<std::string> order;
  // Each piece of work has two steps.
  for (int i = 0; i < 50; ++i) {
    loop.PostNew([&loop, &order, i] {
      order.push_back("begin " + std::to_string(i));
      loop.Post([&loop, &order, i] {
        order.push_back("end " + std::to_string(i));
        if (i == 49) loop.Stop();
      });
    });
  }
  loop.Run();
  ASSERT_EQ(order.size(), 100u);
  // A few are in flight at a time, never all.
  const auto first_end = std::find(order.begin(), order.end(), "end 0");
  EXPECT_LT(first_end - order.begin(), 10);
}

TEST(UvLoop, NewWorkRunsHoweverMuchElseIsQueued) {
  UvLoop loop;
  int rounds = 0;
  std::function<void()> again = [&] {
    ++rounds;
    ASSERT_LT(rounds, 1'000) << "the new task never runs";
    loop.Post(again);
  };
  loop.Post(again);
  loop.PostNew([&] {
    again = [] {};
    loop.Stop();
  });
  loop.Run();
}

TEST(UvLoop, NewTasksKeepTheirOrderAndRunBeforeStop) {
  LoopThread thread("test");
  std::vector<int> order;
  for (int i = 0; i < 1000; ++i) thread.loop().PostNew([&order, i] { order.push_back(i); });
  thread.Stop();
  EXPECT_EQ(order.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(UvLoop, CanRunAgainAfterStop) {
  UvLoop loop;
  int ran = 0;
  for (int i = 0; i < 3; ++i) {
    loop.Post([&] {
      ++ran;
      loop.Stop();
    });
    loop.Run();
  }
  EXPECT_EQ(ran, 3);
}

TEST(UvLoop, NoTaskIsLostBetweenLoopsThatPostToEachOther) {
  constexpr int kRounds = 5'000;
  LoopThread a("a"), b("b");
  std::atomic<int> ended = 0;
  const auto play = [&](int lane) {
    // Each lane's ball goes back and forth between the loops.
    struct Ball {
      LoopThread& a;
      LoopThread& b;
      std::atomic<int>& ended;
      void Hit(int left) const {
        if (left == 0) {
          ++ended;
          return;
        }
        (left % 2 == 0 ? a : b).loop().Post([ball = *this, left] { ball.Hit(left - 1); });
      }
    };
    Ball{a, b, ended}.Hit(kRounds + lane);
  };
  for (int lane = 0; lane < 7; ++lane) play(lane);
  while (ended < 7) std::this_thread::yield();
  EXPECT_EQ(ended, 7);
}

TEST(UvLoop, ALoopMayWaitForAnotherThatItHasPostedTo) {
  LoopThread a("a"), b("b");
  int ran = 0;
  a.RunSync([&] {
    b.loop().Post([&] { ++ran; });
    b.RunSync([&] { ++ran; });
    EXPECT_EQ(ran, 2);
  });
}

TEST(UvLoop, TasksPostedToTheOwnLoopDoNotDelayTimers) {
  UvLoop loop;
  bool fired = false;
  TimerHandle timer = loop.RunAfter(std::chrono::milliseconds(1), [&] { fired = true; });
  std::function<void()> again = [&] {
    if (fired) return loop.Stop();
    loop.Post(again);
  };
  loop.Post(again);
  loop.Run();
  EXPECT_TRUE(fired);
}

TEST(WorkerPool, StopFinishesQueuedTasksAndRejectsNewOnes) {
  std::atomic<int> done{0};
  WorkerPool pool(2, 100);
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(pool.Run([&] { ++done; }));
  pool.Stop();
  EXPECT_EQ(done, 50);
  EXPECT_FALSE(pool.Run([&] { ++done; }));
  pool.Stop();
  EXPECT_EQ(done, 50);
}

TEST(WorkerPool, RejectsTasksBeyondItsLimitAndFinishesTheOthers) {
  std::atomic<int> ran = 0;
  std::atomic<bool> release = false;
  int accepted = 0;
  {
    WorkerPool pool(1, 2);
    for (int i = 0; i < 10; ++i) {
      accepted += pool.Run([&] {
        release.wait(false);
        ++ran;
      });
    }
    EXPECT_LE(accepted, 3);
    EXPECT_GE(accepted, 2);
    release = true;
    release.notify_all();
  }
  EXPECT_EQ(ran, accepted);
}

}  // namespace
}  // namespace drakkar
