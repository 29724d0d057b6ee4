#include "cmd/drakkar/etcd_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/testing/fake_console.h"

namespace drakkar::cmd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<EtcdFlagValues> Read(std::vector<std::string> words) {
  Result<EtcdFlagValues> values = InvalidArgument("the command line was refused");
  cli::App app("drakkar", "");
  cli::Command command;
  command.name = "read";
  command.flags = EtcdFlags();
  command.run = [&](const cli::Arguments& given, cli::Console&) {
    values = ReadEtcdFlags(given);
    return 0;
  };
  app.Add(command);
  words.insert(words.begin(), "read");
  cli::testing::FakeConsole console;
  app.Run(words, console);
  return values;
}

std::string ErrorOf(std::vector<std::string> words) {
  const Result<EtcdFlagValues> values = Read(std::move(words));
  return values.ok() ? "(accepted)" : values.error().message;
}

TEST(EtcdFlagsTest, WithoutServersTheStoreIsEmbedded) {
  const Result<EtcdFlagValues> values = Read({});
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(values->location.engine, "sqlite");
  EXPECT_FALSE(values->layout.is_kubernetes);
}

TEST(EtcdFlagsTest, ServersMayBeRepeatedAndSeparatedByCommas) {
  const Result<EtcdFlagValues> values =
      Read({"--etcd-servers", "https://a:2379, https://b:2379", "--etcd-servers=https://c:2379",
            "--etcd-prefix", "clusters/one/", "--etcd-compaction-interval=0"});
  ASSERT_TRUE(values.ok()) << values.error().message;
  EXPECT_EQ(values->location.engine, "etcd");
  EXPECT_THAT(values->location.etcd_servers,
              ElementsAre("https://a:2379", "https://b:2379", "https://c:2379"));
  EXPECT_EQ(values->location.etcd_compaction_interval, Duration(0));
  EXPECT_TRUE(values->layout.is_kubernetes);
  EXPECT_EQ(values->layout.root, "/clusters/one");
  EXPECT_EQ(values->layout.media_type, apiserver::StoreLayout::MediaType::kProtobuf);
}

TEST(EtcdFlagsTest, MistakesAreNamed) {
  EXPECT_EQ(ErrorOf({"--etcd-cafile=ca.crt"}), "--etcd-cafile needs --etcd-servers");
  EXPECT_THAT(ErrorOf({"--etcd-servers=,"}), HasSubstr("names no server"));
  EXPECT_THAT(ErrorOf({"--etcd-servers=https://a:1", "--etcd-certfile=c"}),
              HasSubstr("must be given together"));
  EXPECT_THAT(ErrorOf({"--etcd-servers=https://a:1", "--etcd-prefix=/"}),
              HasSubstr("--etcd-prefix must not be empty"));
  EXPECT_THAT(ErrorOf({"--etcd-servers=https://a:1", "--etcd-prefix=/a/../b"}),
              HasSubstr("must not contain"));
  EXPECT_THAT(ErrorOf({"--etcd-servers=https://a:1", "--storage-media-type=application/yaml"}),
              HasSubstr("--storage-media-type must be"));
}

}  // namespace
}  // namespace drakkar::cmd
