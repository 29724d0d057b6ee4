#include "node/runtime/network/cni_executor.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include <filesystem>

#include "base/exec/uv_loop.h"
#include "base/text/text.h"

namespace drakkar::node {
namespace {

// Real processes: shell scripts in a directory.
struct Plugins {
  Plugins() {
    // A plugin may end before it has read its input. The programs ignore it, too.
    ::signal(SIGPIPE, SIG_IGN);
    std::string pattern = testing::TempDir() + "/cni-XXXXXX";
    directory = ::mkdtemp(pattern.data());
  }
  ~Plugins() { std::filesystem::remove_all(directory); }
  void Write(const std::string& name, const std::string& script, std::uint32_t mode = 0755) {
    ASSERT_TRUE(
        RealFileSystem().WriteFile(directory + "/" + name, "#!/bin/sh\n" + script, mode).ok());
    ASSERT_TRUE(RealFileSystem().SetMode(directory + "/" + name, mode).ok());
  }
  Result<std::string> Run(const std::string& name, std::string input = "{}") {
    std::optional<Result<std::string>> answer;
    loop.Post([&] {
      spawner = MakeSpawner(loop);
      executor = MakeCniExecutor({.loop = loop,
                                  .files = RealFileSystem(),
                                  .spawner = *spawner,
                                  .directories = {"/nowhere", directory},
                                  .timeout = timeout});
      executor->Run({.plugin = name,
                     .command = "ADD",
                     .container_id = "c1",
                     .namespace_path = "/run/netns/c1",
                     .interface = "eth0",
                     .arguments = "A=1",
                     .input = std::move(input)},
                    [&](Result<std::string> output) {
                      answer = std::move(output);
                      loop.Stop();
                    });
    });
    loop.Run();
    executor.reset();
    return *std::move(answer);
  }
  UvLoop loop;
  Duration timeout = std::chrono::seconds(30);
  std::string directory;
  std::unique_ptr<Spawner> spawner;
  std::unique_ptr<CniExecutor> executor;
};

TEST(CniExecutor, APluginGetsItsEnvironmentAndInput) {
  Plugins plugins;
  plugins.Write("show",
                "echo $CNI_COMMAND $CNI_CONTAINERID $CNI_NETNS $CNI_IFNAME $CNI_ARGS; cat; "
                "echo; echo ${CNI_PATH#/nowhere:}; echo $SECRET");
  ASSERT_EQ(::setenv("SECRET", "of the agent", 1), 0);
  const auto output = plugins.Run("show", R"({"name":"net"})");
  ASSERT_TRUE(output.ok()) << output.error().message;
  EXPECT_EQ(*output, StrCat("ADD c1 /run/netns/c1 eth0 A=1\n{\"name\":\"net\"}\n",
                            plugins.directory, "\n\n"));
}

TEST(CniExecutor, AFailureIsReportedWithThePluginsWords) {
  Plugins plugins;
  plugins.Write("full", R"(echo '{"code":11,"msg":"no free address"}'; exit 1)");
  const auto output = plugins.Run("full");
  ASSERT_FALSE(output.ok());
  EXPECT_EQ(output.error().message, "plugin full (ADD) failed: no free address");
}

TEST(CniExecutor, OnlyProgramsInTheDirectoriesRun) {
  Plugins plugins;
  plugins.Write("data", "exit 0", 0644);
  for (const char* name : {"data", "missing", "../../bin/true"}) {
    const auto output = plugins.Run(name);
    ASSERT_FALSE(output.ok()) << name;
    EXPECT_EQ(output.error().code, ErrorCode::kNotFound) << name;
  }
}

TEST(CniExecutor, APluginThatHangsIsKilledWithItsChildren) {
  Plugins plugins;
  plugins.timeout = std::chrono::milliseconds(200);
  const std::string note = plugins.directory + "/child";
  plugins.Write("hang", StrCat("sleep 1000 & echo $! > ", note, "; wait"));
  const auto output = plugins.Run("hang");
  ASSERT_FALSE(output.ok());
  EXPECT_EQ(output.error().code, ErrorCode::kDeadlineExceeded);
  const auto child = ParseInt64(Trim(*RealFileSystem().ReadFile(note)));
  ASSERT_TRUE(child.has_value());
  // It was adopted by init, or is a zombie of whoever adopts orphans here.
  auto state = RealFileSystem().ReadFile(StrCat("/proc/", *child, "/stat"));
  for (int i = 0; i < 1'000'000 && state.ok() && state->find(") Z") == std::string::npos; ++i) {
    ::sched_yield();
    state = RealFileSystem().ReadFile(StrCat("/proc/", *child, "/stat"));
  }
  EXPECT_TRUE(!state.ok() || state->find(") Z") != std::string::npos);
}

TEST(CniExecutor, APluginThatFloodsItsOutputDoesNotFillTheMemory) {
  Plugins plugins;
  plugins.Write("flood", "head -c 64000000 /dev/zero");
  const auto output = plugins.Run("flood");
  ASSERT_TRUE(output.ok());
  EXPECT_LE(output->size(), 2 * kMaxProcessOutput);
}

}  // namespace
}  // namespace drakkar::node
