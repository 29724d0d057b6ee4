#include "storage/etcd/server_version.h"

#include <gtest/gtest.h>

namespace drakkar::storage {
namespace {

TEST(EtcdServerVersion, ProgressIsReliableFromTheReleasesThatFixedIt) {
  for (const char* version : {"3.4.31", "3.4.40", "3.5.13", "3.5.21", "3.6.0", "3.6.0-rc.1",
                              "3.7.0", "3.10.0", "4.0.0"}) {
    EXPECT_TRUE(HasReliableProgress(version)) << version;
  }
  for (const char* version : {"3.4.0", "3.4.23", "3.4.30", "3.5.0", "3.5.12", "3.3.10", "2.3.8", "",
                              "3", "3.x.1", "new"}) {
    EXPECT_FALSE(HasReliableProgress(version)) << version;
  }
}

}  // namespace
}  // namespace drakkar::storage
