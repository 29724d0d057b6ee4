#include <gtest/gtest.h>

#include "api/codec/object_reader.h"
#include "api/codec/yaml_reader.h"
#include "api/scheme/scheme.h"
#include "base/env/file_system.h"
#include "sdk/driver/reference/device_config.h"

namespace drakkar::driver {
namespace {

TEST(Examples, TheDriverCanReadTheDevicesFile) {
  auto text = RealFileSystem().ReadFile("examples/devices.yaml");
  ASSERT_TRUE(text.ok()) << text.error().message;
  auto config = ParseDeviceConfig(*text);
  ASSERT_TRUE(config.ok()) << config.error().message;
  ASSERT_EQ(config->devices.size(), 4u);
  EXPECT_EQ(config->driver_name, kDefaultReferenceDriverName);
  EXPECT_EQ(config->devices[2].device.capacity.at("memory"), "32Gi");
  EXPECT_EQ(config->devices[3].device.taints.size(), 1u);
}

TEST(Examples, TheManifestsOfHelloDeviceAreValid) {
  for (const char* name : {"class.yaml", "claim-template.yaml", "pod.yaml"}) {
    auto text = RealFileSystem().ReadFile(std::string("examples/hello-device/") + name);
    ASSERT_TRUE(text.ok()) << text.error().message;
    auto documents = api::ParseYaml(*text);
    ASSERT_TRUE(documents.ok()) << name << ": " << documents.error().message;
    ASSERT_EQ(documents->size(), 1u) << name;
    const api::Value root = documents->front()->root();
    const api::KindSchema* kind =
        api::FindKindByApiVersion(root["apiVersion"].str(), root["kind"].str());
    ASSERT_NE(kind, nullptr) << name;
    auto object = api::ConvertObject(root, *kind->schema);
    EXPECT_TRUE(object.ok()) << name << ": " << object.error().message;
  }
}

}  // namespace
}  // namespace drakkar::driver
