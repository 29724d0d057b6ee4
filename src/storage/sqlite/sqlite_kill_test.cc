// Kills the writer with SIGKILL under load, repeatedly, over one directory. No acknowledged write
// may be lost, no transaction may be half written, and revisions may only rise. DRAKKAR_STORE_KILLS
// sets the number of kills.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

#include "base/env/file_system.h"
#include "base/env/random.h"
#include "base/exec/uv_loop.h"
#include "base/text/text.h"
#include "storage/sqlite/kill_workload.h"
#include "storage/sqlite/sqlite_store.h"

namespace drakkar::storage {
namespace {

constexpr int kKillsByDefault = 25;

int Kills() {
  const char* text = std::getenv("DRAKKAR_STORE_KILLS");
  return text == nullptr ? kKillsByDefault
                         : static_cast<int>(ParseInt64(text).value_or(kKillsByDefault));
}

// Runs the writer until it has acknowledged `acknowledgements` more transactions, kills it, and
// returns the last number it acknowledged (0: none).
std::int64_t WriteAndKill(const std::string& directory, std::uint64_t acknowledgements) {
  int pipe_ends[2];
  EXPECT_EQ(::pipe2(pipe_ends, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  const char* binary = std::getenv("DRAKKAR_STORE_KILL_WRITER");
  std::string path = binary == nullptr ? DRAKKAR_KILL_WRITER_PATH : binary;
  std::string argument = directory;
  char* arguments[] = {path.data(), argument.data(), nullptr};
  pid_t child = 0;
  EXPECT_EQ(::posix_spawn(&child, path.c_str(), &actions, nullptr, arguments, environ), 0) << path;
  posix_spawn_file_actions_destroy(&actions);
  ::close(pipe_ends[1]);

  std::int64_t last = 0;
  std::int64_t number = 0;
  bool killed = false;
  // Acknowledgements that were in the pipe when the process died count as well.
  while (::read(pipe_ends[0], &number, sizeof number) == sizeof number) {
    EXPECT_TRUE(last == 0 || number == last + 1) << "acknowledged out of order";
    last = number;
    if (!killed && acknowledgements-- == 0) {
      killed = true;
      ::kill(child, SIGKILL);
    }
  }
  ::close(pipe_ends[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "status " << status;
  return last;
}

std::map<std::string, std::string> ExpectedAfter(std::int64_t number) {
  std::map<std::string, std::string> state;
  const std::int64_t first = std::max<std::int64_t>(1, number - kKillWindow + 1);
  for (std::int64_t i = first; i <= number; ++i) {
    for (const Operation& operation : KillTransaction(i).operations) {
      if (operation.value != nullptr) state[operation.key] = *operation.value;
    }
  }
  return state;
}

// Opens the store, checks all of its contents, and returns the number of its last transaction.
std::int64_t Verify(const std::string& directory) {
  LoopThread thread("kill-test");
  std::unique_ptr<Store> store;
  std::int64_t number = 0;
  thread.RunSync([&] {
    auto opened = OpenSqliteStore(thread.loop(), {.directory = directory});
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    store = std::move(*opened);
    number = store->applied_revision() - 1;
    EXPECT_EQ(store->durable_revision(), store->applied_revision());
    store->Range({}, [&](Result<RangeResult> all) {
      ASSERT_TRUE(all.ok());
      std::map<std::string, std::string> state;
      for (const Entry& entry : all->entries) {
        state[entry.key] = *entry.value;
        EXPECT_LE(entry.mod_revision, all->revision);
      }
      EXPECT_TRUE(state == ExpectedAfter(number)) << "not the state after transaction " << number;
    });
  });
  thread.RunSync([&] { store.reset(); });
  return number;
}

static_assert(kKillWindow > kKillSlots, "the window covers every slot");

TEST(SqliteKill, NoAcknowledgedWriteIsLostAndNoneIsHalfThere) {
  char pattern[] = "/tmp/drakkar-kill-XXXXXX";
  const std::string directory = ::mkdtemp(pattern);
  SeededRandom random(11);
  std::int64_t before = 0;
  std::int64_t acknowledged_in_all = 0;
  const int kills = Kills();
  for (int i = 0; i < kills && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE("kill " + std::to_string(i));
    const std::int64_t acknowledged = WriteAndKill(directory, random.Below(1'500));
    // Every third time, the next writer has to recover the log.
    if (i % 3 == 2 && i + 1 < kills) {
      before = std::max(before, acknowledged);
      continue;
    }
    const std::int64_t number = Verify(directory);
    EXPECT_GE(number, acknowledged) << "an acknowledged write is lost";
    EXPECT_GE(number, before) << "revisions went back";
    acknowledged_in_all = acknowledged;
    before = number;
  }
  EXPECT_GT(acknowledged_in_all, 0);
  EXPECT_TRUE(RealFileSystem().RemoveTree(directory).ok());
}

TEST(SqliteKill, ASecondProcessIsToldWhoHoldsTheDirectory) {
  char pattern[] = "/tmp/drakkar-kill-XXXXXX";
  const std::string directory = ::mkdtemp(pattern);
  LoopThread thread("kill-test");
  std::unique_ptr<Store> store;
  thread.RunSync(
      [&] { store = std::move(*OpenSqliteStore(thread.loop(), {.directory = directory})); });
  thread.RunSync([&] {
    auto second = OpenSqliteStore(thread.loop(), {.directory = directory});
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().message, "data directory " + directory +
                                          " is in use by another drakkar (pid " +
                                          std::to_string(::getpid()) + ")");
    store.reset();
    EXPECT_TRUE(OpenSqliteStore(thread.loop(), {.directory = directory}).ok());
  });
  EXPECT_TRUE(RealFileSystem().RemoveTree(directory).ok());
}

}  // namespace
}  // namespace drakkar::storage
