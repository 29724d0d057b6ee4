#include "client/kubeconfig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/memory_file_system.h"
#include "base/text/text.h"

namespace drakkar::client {
namespace {

using ::testing::HasSubstr;

class KubeconfigTest : public ::testing::Test {
 protected:
  KubeconfigTest() { EXPECT_TRUE(files_.MakeDirectories("/etc/x", 0755).ok()); }
  Result<ClusterAccess> Load(std::string_view user) {
    const std::string text =
        StrCat("apiVersion: v1\nkind: Config\ncurrent-context: c\n",
               "clusters: [{name: c, cluster: {server: \"https://127.0.0.1:1/\"}}]\n",
               "contexts: [{name: c, context: {cluster: c, user: u}}]\n",
               "users: [{name: u, user: ", user, "}]\n");
    EXPECT_TRUE(files_.WriteFile("/etc/x/kubeconfig", text, 0600).ok());
    return LoadKubeconfig(files_, "/etc/x/kubeconfig");
  }

  MemoryFileSystem files_;
};

TEST_F(KubeconfigTest, ATokenFileIsRelativeToTheKubeconfig) {
  ASSERT_TRUE(files_.WriteFile("/etc/x/token", "secret\n", 0600).ok());
  auto access = Load("{tokenFile: token}");
  ASSERT_TRUE(access.ok()) << access.error().message;
  EXPECT_EQ(access->server, "https://127.0.0.1:1");
  EXPECT_EQ(access->token, "secret");
  EXPECT_EQ(access->token_file, "/etc/x/token");
  access = Load("{token: beside, tokenFile: token}");
  EXPECT_EQ(access->token, "secret") << "the file counts";
  access = Load("{token: beside, tokenFile: /nowhere}");
  ASSERT_TRUE(access.ok());
  EXPECT_EQ(access->token, "beside");
  access = Load("{tokenFile: /nowhere}");
  ASSERT_FALSE(access.ok());
  EXPECT_THAT(access.error().message, HasSubstr("/nowhere"));
}

TEST_F(KubeconfigTest, AFixedTokenHasNoFile) {
  const auto access = Load("{token: fixed}");
  ASSERT_TRUE(access.ok());
  EXPECT_EQ(access->token, "fixed");
  EXPECT_EQ(access->token_file, "");
}

TEST_F(KubeconfigTest, TheServerMayBeAListAndIsReadAgain) {
  const auto write = [this](std::string_view server) {
    const std::string text = StrCat("apiVersion: v1\nkind: Config\ncurrent-context: c\n",
                                    "clusters: [{name: c, cluster: {server: \"", server, "\"}}]\n",
                                    "contexts: [{name: c, context: {cluster: c, user: u}}]\n");
    EXPECT_TRUE(files_.WriteFile("/etc/x/kubeconfig", text, 0600).ok());
  };
  write("https://a:1, https://b:2/,");
  const auto access = LoadKubeconfig(files_, "/etc/x/kubeconfig");
  ASSERT_TRUE(access.ok()) << access.error().message;
  EXPECT_EQ(access->server, "https://a:1");
  EXPECT_EQ(access->other_servers, std::vector<std::string>{"https://b:2"});
  write("https://c:3");
  EXPECT_EQ(access->read_servers(), std::vector<std::string>{"https://c:3"});
  write("");
  EXPECT_EQ(access->read_servers(), std::vector<std::string>{});
}

}  // namespace
}  // namespace drakkar::client
