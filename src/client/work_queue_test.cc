#include "client/work_queue.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/testing/seeded_loop.h"

namespace drakkar::client {
namespace {

TEST(WorkQueue, AKeyAddedTwiceIsProcessedOnce) {
  SeededLoop loop;
  std::vector<std::string> worked;
  WorkQueue queue(loop, loop.random(), {"test"}, [&](const std::string& key, WorkQueue::Done done) {
    worked.push_back(key);
    done(Ok());
  });
  queue.Add("a");
  queue.Add("b");
  queue.Add("a");
  loop.RunUntilIdle();
  EXPECT_EQ(worked, (std::vector<std::string>{"a", "b"}));
}

TEST(WorkQueue, AKeyAddedWhileInFlightIsProcessedAgain) {
  SeededLoop loop;
  int worked = 0;
  WorkQueue::Done finish;
  WorkQueue queue(loop, loop.random(), {"test"}, [&](const std::string&, WorkQueue::Done done) {
    ++worked;
    finish = std::move(done);
  });
  queue.Add("a");
  loop.RunUntilIdle();
  queue.Add("a");
  loop.RunUntilIdle();
  EXPECT_EQ(worked, 1) << "never two at a time";
  finish(Ok());
  loop.RunUntilIdle();
  EXPECT_EQ(worked, 2);
}

TEST(WorkQueue, FailuresBackOffAndSuccessResetsTheBackoff) {
  SeededLoop loop;
  int worked = 0;
  WorkQueue queue(loop, loop.random(), {"test"}, [&](const std::string&, WorkQueue::Done done) {
    ++worked;
    done(worked < 4 ? Result<void>(Error{ErrorCode::kConflict, "lost"}) : Ok());
  });
  queue.Add("a");
  loop.RunUntilIdle();
  EXPECT_EQ(worked, 1);
  loop.Advance(std::chrono::milliseconds(4));
  EXPECT_EQ(worked, 1);
  loop.Advance(std::chrono::milliseconds(100));
  EXPECT_EQ(worked, 4);
  loop.Advance(std::chrono::minutes(5));
  EXPECT_EQ(worked, 4);
}

TEST(WorkQueue, AddingADelayedKeyProcessesItAtOnceAndOnlyOnce) {
  SeededLoop loop;
  int worked = 0;
  WorkQueue queue(loop, loop.random(), {"test"}, [&](const std::string&, WorkQueue::Done done) {
    ++worked;
    done(Ok());
  });
  queue.AddAfter("a", std::chrono::seconds(1));
  loop.Advance(std::chrono::milliseconds(500));
  EXPECT_EQ(worked, 0);
  EXPECT_EQ(queue.size(), 1u);
  queue.Add("a");
  loop.RunUntilIdle();
  EXPECT_EQ(worked, 1);
  EXPECT_EQ(queue.size(), 0u);
  loop.Advance(std::chrono::seconds(2));
  EXPECT_EQ(worked, 1);
}

}  // namespace
}  // namespace drakkar::client
