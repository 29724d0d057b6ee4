#include "net/socket/address_kind.h"

#include <gtest/gtest.h>

namespace drakkar::net {
namespace {

TEST(AddressKind, DistinguishesAddresses) {
  EXPECT_EQ(KindOfAddress("10.0.0.7"), AddressKind::kOther);
  EXPECT_EQ(KindOfAddress("2001:db8::7"), AddressKind::kOther);
  EXPECT_EQ(KindOfAddress("127.0.0.1"), AddressKind::kLoopback);
  EXPECT_EQ(KindOfAddress("127.9.9.9"), AddressKind::kLoopback);
  EXPECT_EQ(KindOfAddress("::1"), AddressKind::kLoopback);
  EXPECT_EQ(KindOfAddress("::ffff:127.0.0.1"), AddressKind::kLoopback);
  EXPECT_EQ(KindOfAddress("0.0.0.0"), AddressKind::kUnspecified);
  EXPECT_EQ(KindOfAddress("::"), AddressKind::kUnspecified);
  EXPECT_EQ(KindOfAddress("169.254.169.254"), AddressKind::kLinkLocal);
  EXPECT_EQ(KindOfAddress("::ffff:169.254.169.254"), AddressKind::kLinkLocal);
  EXPECT_EQ(KindOfAddress("fe80::1"), AddressKind::kLinkLocal);
  EXPECT_EQ(KindOfAddress("224.0.0.1"), AddressKind::kMulticast);
  EXPECT_EQ(KindOfAddress("255.255.255.255"), AddressKind::kMulticast);
  EXPECT_EQ(KindOfAddress("ff02::1"), AddressKind::kMulticast);
}

TEST(AddressKind, AHostNameIsNotAnAddress) {
  for (const char* text : {"", "localhost", "0177.0.0.1", "127.1", "2130706433", "0x7f000001",
                           "127.0.0.1:6443", "[::1]", "fe80::1%lo", "10.0.0.7/x", " 10.0.0.7"}) {
    EXPECT_EQ(KindOfAddress(text), AddressKind::kNoAddress) << text;
  }
}

TEST(AddressKind, RecognizesTheServicesThatGiveMachinesTheirCredentials) {
  for (const char* text : {"169.254.169.254", "::ffff:169.254.169.254", "fd00:ec2::254",
                           "fd00:0ec2:0:0::254", "fd20:ce::254", "100.100.100.200", "168.63.129.16",
                           "192.0.0.192", "::ffff:100.100.100.200"}) {
    EXPECT_TRUE(IsMetadataService(text)) << text;
  }
  for (const char* text : {"", "metadata", "10.0.0.7", "100.100.100.201", "fd00:ec2::253"}) {
    EXPECT_FALSE(IsMetadataService(text)) << text;
  }
}

TEST(AddressKind, AMappedAddressIsPlainlyThatOfIpv4) {
  EXPECT_EQ(PlainAddress("::ffff:10.0.0.7"), "10.0.0.7");
  EXPECT_EQ(PlainAddress("::ffff:a00:7"), "10.0.0.7");
  EXPECT_EQ(PlainAddress("10.0.0.7"), "10.0.0.7");
  EXPECT_EQ(PlainAddress("FD00:0::7"), "fd00::7");
  EXPECT_EQ(PlainAddress("::fffe:10.0.0.7"), CanonicalAddress("::fffe:a00:7"));
  EXPECT_EQ(PlainAddress("name"), "");
}

TEST(AddressKind, RecognizesThisMachine) {
  EXPECT_TRUE(IsThisMachine("127.0.0.1"));
  EXPECT_TRUE(IsThisMachine("0.0.0.0"));
  EXPECT_TRUE(IsThisMachine("::ffff:127.0.0.1"));
  EXPECT_FALSE(IsThisMachine("192.0.2.1"));  // reserved for documentation
  EXPECT_FALSE(IsThisMachine("localhost"));
}

}  // namespace
}  // namespace drakkar::net
