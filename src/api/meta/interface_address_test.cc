#include "api/meta/interface_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drakkar::api {
namespace {

TEST(InterfaceAddress, IsAnAddressWithItsPrefixInTheOneFormThatIsPrinted) {
  for (const char* fine :
       {"10.9.8.7/24", "0.0.0.0/0", "2001:db8::1/64", "::/0", "fe80::1:0:0:1/128"}) {
    EXPECT_TRUE(CheckInterfaceAddress(fine).ok()) << fine;
  }
  for (const char* wrong :
       {"", "10.9.8.7", "10.9.8.7/33", "10.9.8/24", "256.0.0.1/8", "2001:db8::1/129", "nonsense/1",
        "10.9.8.7/", "/24", "10.9.8.7/24/24"}) {
    const Result<void> checked = CheckInterfaceAddress(wrong);
    ASSERT_FALSE(checked.ok()) << wrong;
    EXPECT_THAT(checked.error().message,
                ::testing::HasSubstr("must be a valid address in CIDR form"))
        << wrong;
  }
  EXPECT_EQ(CheckInterfaceAddress("010.9.8.7/24").error().message,
            "must be in canonical form (\"10.9.8.7/24\")");
  EXPECT_EQ(CheckInterfaceAddress("2001:DB8:0::1/64").error().message,
            "must be in canonical form (\"2001:db8::1/64\")");
}

}  // namespace
}  // namespace drakkar::api
