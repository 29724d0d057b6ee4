#include "apiserver/pki/cluster_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/memory_file_system.h"
#include "base/testing/seeded_loop.h"
#include "storage/memory/memory_store.h"
#include "storage/testing/linked_store.h"

namespace drakkar::apiserver {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kKey[] = "/registry/drakkar.io/cluster-keys";

class ClusterKeysTest : public ::testing::Test {
 protected:
  struct Server {
    explicit Server(ClusterKeysTest& test) : link(test.loop_, *test.store_, milliseconds(1), {}) {}
    storage::LinkedStore link;
    MemoryFileSystem files;
    std::optional<Result<void>> shared;
  };

  void Begin(Server& server) {
    ShareClusterKeys(server.link, kKey, server.files, loop_.clock(), "/pki",
                     [&server](Result<void> result) { server.shared = std::move(result); });
  }
  void Finish(Server& server) {
    while (!server.shared && (loop_.RunOne() || loop_.AdvanceToNextTimer(seconds(20)))) {
    }
    ASSERT_TRUE(server.shared.has_value());
  }
  static std::string Read(Server& server, const std::string& name) {
    Result<std::string> text = server.files.ReadFile("/pki/" + name);
    return text.ok() ? *text : "";
  }
  std::string Stored() {
    std::string value;
    store_->Range({.prefix = kKey}, [&](Result<storage::RangeResult> found) {
      if (found.ok() && !found->entries.empty()) value = *found->entries[0].value;
    });
    return value;
  }

  SeededLoop loop_;
  storage::MemoryDisk disk_;
  std::unique_ptr<storage::Store> store_ = storage::OpenMemoryStore(loop_, disk_);
};

TEST_F(ClusterKeysTest, ServersThatStartAtTheSameTimeGetTheSameKeys) {
  Server a(*this);
  Server b(*this);
  Begin(a);
  Begin(b);
  Finish(a);
  Finish(b);
  ASSERT_TRUE(a.shared->ok()) << a.shared->error().message;
  ASSERT_TRUE(b.shared->ok()) << b.shared->error().message;
  for (const char* name :
       {kCaFile, kCaKeyFile, kFrontProxyCaFile, kFrontProxyCaKeyFile, kTokenKeyFile}) {
    EXPECT_FALSE(Read(a, name).empty()) << name;
    EXPECT_EQ(Read(a, name), Read(b, name)) << name;
  }
  // What Pki::Open then reads.
  Result<ClusterKeys> opened = OpenClusterKeys(b.files, loop_.clock(), "/pki");
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened->at(kCaFile), Read(a, kCaFile));
}

TEST_F(ClusterKeysTest, KeysThatSomebodyProvidedStayOutOfTheStore) {
  Server a(*this);
  ASSERT_TRUE(OpenClusterKeys(a.files, loop_.clock(), "/pki").ok());
  Begin(a);
  Finish(a);
  ASSERT_TRUE(a.shared->ok()) << a.shared->error().message;
  EXPECT_THAT(Stored(), Not(HasSubstr("PRIVATE KEY")));

  Server b(*this);
  Begin(b);
  Finish(b);
  ASSERT_FALSE(b.shared->ok());
  EXPECT_THAT(b.shared->error().message, HasSubstr("ca.key"));
  EXPECT_EQ(Read(b, kCaFile), "");

  ASSERT_TRUE(b.files.MakeDirectories("/pki", 0700).ok());
  for (const char* name :
       {kCaFile, kCaKeyFile, kFrontProxyCaFile, kFrontProxyCaKeyFile, kTokenKeyFile}) {
    ASSERT_TRUE(b.files.WriteFile(std::string("/pki/") + name, Read(a, name), 0600).ok());
  }
  b.shared.reset();
  Begin(b);
  Finish(b);
  EXPECT_TRUE(b.shared->ok());
}

TEST_F(ClusterKeysTest, OtherKeysAreRefused) {
  Server a(*this);
  Begin(a);
  Finish(a);
  Server b(*this);
  ASSERT_TRUE(OpenClusterKeys(b.files, loop_.clock(), "/pki").ok());
  const std::string before = Read(b, kCaFile);
  Begin(b);
  Finish(b);
  ASSERT_FALSE(b.shared->ok());
  EXPECT_THAT(b.shared->error().message, HasSubstr("/pki/ca.key"));
  EXPECT_EQ(Read(b, kCaFile), before);
}

}  // namespace
}  // namespace drakkar::apiserver
