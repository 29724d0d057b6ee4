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
    EXPECT_EQ(store.error().message, "there is no store engine \"paper\"; use one of: sqlite");
  });
}

}  // namespace
}  // namespace drakkar::storage
