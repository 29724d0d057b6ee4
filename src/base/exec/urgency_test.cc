#include "base/exec/urgency.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>

#include "base/exec/uv_loop.h"
#include "base/exec/worker_pool.h"

namespace drakkar {
namespace {

int Niceness() {
  return getpriority(PRIO_PROCESS, 0);
}

int Policy() {
  return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

bool MayPrefer() {
  int before = 0;
  int after = 0;
  LoopThread thread("urgency");
  thread.RunSync([&] {
    before = Niceness();
    PreferThisThread();
    after = Niceness();
  });
  return after < before;
}

class UrgencyOf : public ::testing::TestWithParam<Preference> {};

TEST_P(UrgencyOf, TheThreadAloneIsNotThatOfItsChildren) {
  const Preference preference = GetParam();
  if (!MayPrefer()) GTEST_SKIP() << "this user may not raise priorities";
  const int ordinary = Niceness();
  LoopThread thread("urgency");
  int child = -1;
  thread.RunSync([&] {
    PreferThisThread(preference);
    const pid_t pid = fork();
    if (pid == 0) _exit(Niceness() < 0 || Policy() != SCHED_OTHER ? 1 : 0);
    int status = 0;
    waitpid(pid, &status, 0);
    child = WEXITSTATUS(status);
  });
  EXPECT_EQ(child, 0);
  EXPECT_EQ(Niceness(), ordinary);
}

INSTANTIATE_TEST_SUITE_P(Each, UrgencyOf,
                         ::testing::Values(Preference::kSoon, Preference::kNow,
                                           Preference::kFirst));

TEST(Urgency, AWorkerPoolCanBePreferred) {
  if (!MayPrefer()) GTEST_SKIP() << "this user may not raise priorities";
  WorkerPool pool(1, 8, WorkerPool::Urgency::kPreferred);
  std::promise<bool> seen;
  // Where there is no real time for it, as in some control groups, it is preferred all the same.
  ASSERT_TRUE(pool.Run([&] { seen.set_value(Policy() == SCHED_FIFO || Niceness() < 0); }));
  EXPECT_TRUE(seen.get_future().get());
}

}  // namespace
}  // namespace drakkar
