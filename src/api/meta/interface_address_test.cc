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

TEST(IpAddress, IsInTheFormThatAllProgramsRead) {
  for (const char* good : {"10.9.8.7", "0.0.0.0", "::", "2001:db8::1", "2001:DB8:0::1"}) {
    EXPECT_EQ(CheckIpAddress(good), Problems()) << good;
  }
  for (const char* bad : {"", "1.2.3", "1.2.3.256", "::1%eth0", "x", "10.0.0.0/8"}) {
    EXPECT_EQ(CheckIpAddress(bad),
              Problems{"must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"})
        << bad;
  }
  EXPECT_EQ(CheckIpAddress("10.09.8.7"), Problems{"must not have leading 0s"});
  EXPECT_EQ(CheckIpAddress("::ffff:10.9.8.07"), Problems{"must not have leading 0s"});
  EXPECT_EQ(CheckIpAddress("::ffff:10.9.8.7"), Problems{"must not be an IPv4-mapped IPv6 address"});
}

TEST(Network, HasNoBitsBeyondItsPrefix) {
  for (const char* good : {"10.9.8.0/24", "0.0.0.0/0", "1.2.3.4/32", "2001:db8::/64", "::/0"}) {
    EXPECT_EQ(CheckNetwork(good), Problems()) << good;
  }
  for (const char* bad : {"", "10.0.0.0", "10.0.0.0/33", "::/129", "10.0.0.0/-1", "x/8"}) {
    EXPECT_EQ(CheckNetwork(bad),
              Problems{"must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"})
        << bad;
  }
  for (const char* zeros : {"10.0.00.0/8", "10.0.0.0/08"}) {
    EXPECT_EQ(CheckNetwork(zeros), Problems{"must not have leading 0s in IP or prefix length"});
  }
  EXPECT_EQ(CheckNetwork("::ffff:1.2.3.0/120"),
            Problems{"must not have an IPv4-mapped IPv6 address"});
  for (const char* bits : {"10.0.0.1/8", "10.9.8.1/31", "2001:db8::1/64"}) {
    EXPECT_EQ(CheckNetwork(bits), Problems{"must not have bits set beyond the prefix length"});
  }
}

TEST(Network, ContainsSmallerOnes) {
  EXPECT_EQ(IsStrictSubnet("10.1.0.0/16", "10.0.0.0/8"), true);
  EXPECT_EQ(IsStrictSubnet("10.0.0.0/9", "10.0.0.0/8"), true);
  EXPECT_EQ(IsStrictSubnet("10.0.0.0/8", "10.0.0.0/8"), false);
  EXPECT_EQ(IsStrictSubnet("11.0.0.0/16", "10.0.0.0/8"), false);
  EXPECT_EQ(IsStrictSubnet("::/64", "0.0.0.0/0"), false);
  EXPECT_EQ(IsStrictSubnet("fe80::1/128", "fe80::/10"), true);
  EXPECT_EQ(IsStrictSubnet("x", "fe80::/10"), std::nullopt);
}

}  // namespace
}  // namespace drakkar::api
