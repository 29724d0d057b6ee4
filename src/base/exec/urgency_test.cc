#include "base/exec/urgency.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>

#include "base/exec/uv_loop.h"
#include "base/exec/worker_pool.h"

namespace drakkar {
namespace {

int Niceness() { return getpriority(PRIO_PROCESS, 0); }

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

TEST(Urgency, IsOfTheThreadAloneAndNotOfItsChildren) {
  if (!MayPrefer()) GTEST_SKIP() << "this user may not raise priorities";
  const int ordinary = Niceness();
  LoopThread thread("urgency");
  int child = -1;
  thread.RunSync([&] {
    PreferThisThread();
    const pid_t pid = fork();
    if (pid == 0) _exit(Niceness() < 0 ? 1 : 0);
    int status = 0;
    waitpid(pid, &status, 0);
    child = WEXITSTATUS(status);
  });
  EXPECT_EQ(child, 0);
  EXPECT_EQ(Niceness(), ordinary);
}

TEST(Urgency, AWorkerPoolCanBePreferred) {
  if (!MayPrefer()) GTEST_SKIP() << "this user may not raise priorities";
  WorkerPool pool(1, 8, WorkerPool::Urgency::kPreferred);
  std::promise<int> seen;
  ASSERT_TRUE(pool.Run([&] { seen.set_value(Niceness()); }));
  EXPECT_LT(seen.get_future().get(), 0);
}

}  // namespace
}  // namespace drakkar
