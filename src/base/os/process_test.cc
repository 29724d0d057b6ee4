#include "base/os/process.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "base/exec/uv_loop.h"

namespace drakkar {
namespace {

ProcessExit RunToEnd(ProcessOptions options) {
  UvLoop loop;
  auto spawner = MakeSpawner(loop);
  ProcessExit seen;
  auto process = spawner->Spawn(std::move(options), [&](ProcessExit exit) {
    seen = std::move(exit);
    loop.Stop();
  });
  EXPECT_TRUE(process.ok());
  loop.Run();
  return seen;
}

TEST(Spawner, ReportsOutputAndExitCode) {
  ProcessExit exit =
      RunToEnd({.arguments = {"sh", "-c", "cat; echo oops >&2; exit 3"}, .standard_input = "hi"});
  EXPECT_EQ(exit.exit_code, 3);
  EXPECT_EQ(exit.output, "hi");
  EXPECT_EQ(exit.error_output, "oops\n");
}

TEST(Spawner, ReportsTheSignalThatEndedTheChild) {
  ProcessExit exit = RunToEnd({.arguments = {"sh", "-c", "kill -9 $$"}});
  EXPECT_EQ(exit.signal, SIGKILL);
  EXPECT_EQ(exit.exit_code, 137);
}

TEST(Spawner, AMissingProgramIsAnErrorNotAnExit) {
  UvLoop loop;
  auto process = MakeSpawner(loop)->Spawn({.arguments = {"no-such-program-at-all"}},
                                          [](ProcessExit) { FAIL(); });
  ASSERT_FALSE(process.ok());
  EXPECT_EQ(process.error().code, ErrorCode::kNotFound);
}

TEST(Spawner, DrainsMoreOutputThanItKeeps) {
  ProcessExit exit = RunToEnd({.arguments = {"sh", "-c", "head -c 10000000 /dev/zero"}});
  EXPECT_EQ(exit.exit_code, 0);
  EXPECT_GE(exit.output.size(), kMaxProcessOutput);
  EXPECT_LE(exit.output.size(), 2 * kMaxProcessOutput);
}

}  // namespace
}  // namespace drakkar
