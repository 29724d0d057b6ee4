#include "sdk/driver/registration/socket_names.h"

#include <gtest/gtest.h>

namespace drakkar::driver {
namespace {

constexpr char kRegistry[] = "/var/lib/kubelet/plugins_registry";
constexpr char kUid[] = "ad4af911-5bcd-47c5-a554-f35cea869472";

TEST(SocketNames, AreThoseOfKubernetes) {
  EXPECT_EQ(RegistrarSocketName("gpu.example.com"), "gpu.example.com-reg.sock");
  EXPECT_EQ(PluginSocketName(""), "dra.sock");
  EXPECT_EQ(PluginSocketName(kUid), "dra-ad4af911-5bcd-47c5-a554-f35cea869472.sock");
}

TEST(SocketNames, AShortDriverNameKeepsThePodUid) {
  EXPECT_EQ(RollingUpdateRegistrarSocketName(kRegistry, "gpu.example.com", kUid),
            "gpu.example.com-ad4af911-5bcd-47c5-a554-f35cea869472-reg.sock");
}

TEST(SocketNames, ALongerOneKeepsAHashOfIt) {
  EXPECT_EQ(RollingUpdateRegistrarSocketName(kRegistry, "gpu.dra-example-driver.sigs.k8s.io", kUid),
            "gpu.dra-example-driver.sigs.k8s.io-Jk8-oymVURI-reg.sock");
}

TEST(SocketNames, TheLongestIsAHashOfBoth) {
  EXPECT_EQ(RollingUpdateRegistrarSocketName(kRegistry, std::string(100, 'a'), kUid),
            "dra-0XAjsR3nLFWHa0HL1OOe6g-reg.sock");
  // The directory is too long for any name: the shortest is used, and opening it fails.
  EXPECT_EQ(RollingUpdateRegistrarSocketName("/" + std::string(107, 'd'),
                                             "gpu.dra-example-driver.sigs.k8s.io", kUid),
            "dra-i1uYBA3g7FMHZvgPIxSbNw-reg.sock");
}

TEST(SocketNames, APathOfExactlyTheLimitIsUsable) {
  const std::string name = RollingUpdateRegistrarSocketName("/d", "gpu", kUid);
  const std::string fits = "/" + std::string(kMaxSocketPathBytes - name.size() - 2, 'd');
  EXPECT_EQ(RollingUpdateRegistrarSocketName(fits, "gpu", kUid), name);
  EXPECT_NE(RollingUpdateRegistrarSocketName(fits + "d", "gpu", kUid), name);
}

}  // namespace
}  // namespace drakkar::driver
