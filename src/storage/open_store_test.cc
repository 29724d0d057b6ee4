#include "storage/open_store.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "base/env/file_system.h"
#include "base/exec/uv_loop.h"

namespace drakkar::storage {
namespace {

TEST(OpenStore, AnEngineIsOpenedByItsName) {
  char directory[] = "/tmp/drakkar-open-store-XXXXXX";
  ASSERT_NE(::mkdtemp(directory), nullptr);
  LoopThread thread("open-store");
  thread.RunSync([&] {
    Result<std::unique_ptr<Store>> store =
        OpenStore(thread.loop(), {.engine = "sqlite", .directory = directory});
    ASSERT_TRUE(store.ok()) << store.error().message;
    EXPECT_EQ((*store)->applied_revision(), 1);
  });
  EXPECT_TRUE(RealFileSystem().RemoveTree(directory).ok());
}

TEST(OpenStore, AnUnknownEngineIsRefusedWithTheNamesThereAre) {
  LoopThread thread("open-store");
  thread.RunSync([&] {
    Result<std::unique_ptr<Store>> store = OpenStore(thread.loop(), {.engine = "paper"});
    ASSERT_FALSE(store.ok());
    EXPECT_EQ(store.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(store.error().message,
              "there is no store engine \"paper\"; use one of: sqlite, etcd");
  });
}

TEST(OpenStore, EtcdIsOpenedWithWhatItsFlagsSay) {
  LoopThread thread("open-store");
  thread.RunSync([&] {
    const auto message = [&](StoreLocation location) {
      location.engine = "etcd";
      Result<std::unique_ptr<Store>> store = OpenStore(thread.loop(), location);
      return store.ok() ? "opened" : store.error().message;
    };
    EXPECT_EQ(message({.etcd_servers = {"http://127.0.0.1:1"}}), "opened");
    EXPECT_EQ(message({}), "no etcd server is given");
    EXPECT_EQ(message({.etcd_servers = {"http://127.0.0.1"}}),
              "\"http://127.0.0.1\" is not an etcd server: the port is missing; write it as "
              "https://HOST:PORT");
    EXPECT_NE(message({.etcd_servers = {"https://a:1"}, .etcd_ca_file = "/none/ca.pem"})
                  .find("/none/ca.pem"),
              std::string::npos);
  });
}

}  // namespace
}  // namespace drakkar::storage
