#include "api/metadata/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/text.h"

namespace drakkar::metadata {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<std::string> kAlpha = {std::string(kV1alpha1)};
const std::vector<std::string> kBoth = {std::string(kV1beta1), std::string(kV1alpha1)};

DeviceMetadata Example() {
  DeviceMetadata metadata;
  metadata.claim_name = "my-claim";
  metadata.claim_namespace = "default";
  metadata.claim_uid = "abc-123-def-456";
  metadata.generation = 1;
  Device device;
  device.driver = "example.com";
  device.pool = "node-1-gpus";
  device.name = "gpu-0";
  device.attributes = {{"driverVersion", Version{"1.0.0"}},
                       {"index", std::int64_t{1}},
                       {"model", std::string("LATEST-GPU-MODEL")},
                       {"virtual", false},
                       {"resource.k8s.io/pciBusID", std::string("0000:00:01.0")}};
  metadata.requests = {{"gpu-request", {device}}};
  return metadata;
}

std::string ErrorOf(std::string_view stream) {
  const auto decoded = DecodeMetadata(stream);
  return decoded.ok() ? "" : decoded.error().message;
}

TEST(MetadataDocument, IsOneV1alpha1ObjectAsTheKepShowsIt) {
  const std::string text = EncodeMetadata(Example(), kAlpha);
  EXPECT_EQ(text, R"({
  "kind": "DeviceMetadata",
  "apiVersion": "metadata.resource.k8s.io/v1alpha1",
  "metadata": {
    "name": "my-claim",
    "namespace": "default",
    "uid": "abc-123-def-456",
    "generation": 1
  },
  "requests": [
    {
      "name": "gpu-request",
      "devices": [
        {
          "driver": "example.com",
          "pool": "node-1-gpus",
          "name": "gpu-0",
          "attributes": {
            "driverVersion": {
              "version": "1.0.0"
            },
            "index": {
              "int": 1
            },
            "model": {
              "string": "LATEST-GPU-MODEL"
            },
            "resource.k8s.io/pciBusID": {
              "string": "0000:00:01.0"
            },
            "virtual": {
              "bool": false
            }
          }
        }
      ]
    }
  ]
}
)");
}

TEST(MetadataDocument, ComesBackAsItWasWritten) {
  DeviceMetadata metadata = Example();
  metadata.pod_claim_name = "gpu";
  Device& device = metadata.requests[0].devices[0];
  device.attributes["ints"] = std::vector<std::int64_t>{1, -2};
  device.attributes["bools"] = std::vector<bool>{true, false};
  device.attributes["strings"] = std::vector<std::string>{"a", "<b>"};
  device.attributes["versions"] = std::vector<Version>{{"1.2.3"}};
  device.network_data = NetworkDeviceData{"eth0", {"10.0.0.5/24", "2001:db8::1/64"}, "aa:bb"};
  metadata.requests.push_back({"empty", {}});
  for (const auto& versions : {kAlpha, kBoth}) {
    const auto decoded = DecodeMetadata(EncodeMetadata(metadata, versions));
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    EXPECT_EQ(*decoded, metadata);
  }
}

TEST(MetadataDocument, NetworkDataMayHaveTheKeysOfTheKepsExamplesToo) {
  DeviceMetadata metadata = Example();
  metadata.requests[0].devices[0].network_data =
      NetworkDeviceData{"eth0", {"10.0.0.5/24"}, "aa:bb"};
  const std::string text = EncodeMetadata(metadata, kAlpha, Dialect::kKep);
  EXPECT_NE(text.find(R"("networkData": {
            "interfaceName": "eth0",
            "ips": [
              "10.0.0.5/24"
            ],
            "hardwareAddress": "aa:bb",
            "addresses": [
              "10.0.0.5/24"
            ],
            "hwAddress": "aa:bb"
          })"),
            std::string::npos)
      << text;
  for (const Dialect dialect : {Dialect::kKep, Dialect::kKubernetes}) {
    const auto decoded = DecodeMetadata(text, {.dialect = dialect});
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    EXPECT_EQ(*decoded, metadata);
  }
  const std::string api = EncodeMetadata(metadata, kAlpha);
  EXPECT_EQ(api.find("addresses"), std::string::npos);
  EXPECT_EQ(api.find("hwAddress"), std::string::npos);
}

TEST(MetadataDocument, TellsAFalseOrZeroAttributeFromNone) {
  DeviceMetadata metadata = Example();
  metadata.requests[0].devices[0].attributes = {
      {"no", false}, {"zero", std::int64_t{0}}, {"none", std::string()}};
  const auto decoded = DecodeMetadata(EncodeMetadata(metadata, kAlpha));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->requests[0].devices[0].attributes.size(), 3u);
}

TEST(MetadataDocument, NetworkDataIsWrittenWithTheKeysOfTheApiAndReadWithBoth) {
  DeviceMetadata metadata = Example();
  metadata.requests[0].devices[0].network_data =
      NetworkDeviceData{"eth0", {"10.0.0.5/24"}, "aa:bb"};
  std::string text = EncodeMetadata(metadata, kAlpha);
  EXPECT_THAT(text, HasSubstr("\"ips\""));
  EXPECT_THAT(text, HasSubstr("\"hardwareAddress\""));
  text.replace(text.find("\"ips\""), 5, "\"addresses\"");
  text.replace(text.find("\"hardwareAddress\""), 17, "\"hwAddress\"");
  const auto decoded = DecodeMetadata(text);
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(*decoded, metadata);
  const auto as_kubernetes = DecodeMetadata(text, {.dialect = Dialect::kKubernetes});
  ASSERT_TRUE(as_kubernetes.ok());
  EXPECT_TRUE(as_kubernetes->requests[0].devices[0].network_data->ips.empty());
}

TEST(MetadataDocument, FieldsThatAVersionDoesNotHaveAreIgnored) {
  const auto decoded = DecodeMetadata(
      R"({"apiVersion":"metadata.resource.k8s.io/v1alpha1","kind":"DeviceMetadata","future":{"a":[1]},
          "metadata":{"name":"c","generation":2,"later":true},
          "requests":[{"name":"r","mode":"x","devices":[{"driver":"d","pool":"p","name":"n","temperature":5,
          "attributes":{"a":{"string":"x"},"b":{"quantity":"5Gi"}}}]}]})");
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(decoded->generation, 2);
  // An attribute of an unknown type has no value here.
  EXPECT_EQ(decoded->requests[0].devices[0].attributes, (Attributes{{"a", std::string("x")}}));
}

TEST(MetadataDocument, TheFirstKnownVersionOfAStreamCounts) {
  DeviceMetadata newer = Example();
  newer.generation = 7;
  const std::string future =
      R"({"apiVersion":"metadata.resource.k8s.io/v2","kind":"DeviceMetadata","all":"new"})";
  const auto decoded = DecodeMetadata(future + "\n" + EncodeMetadata(newer, kBoth) + "garbage");
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(decoded->generation, 7);
}

TEST(MetadataDocument, UnknownVersionsAndMalformedTextAreClearErrors) {
  EXPECT_EQ(ErrorOf(R"({"apiVersion":"metadata.resource.k8s.io/v2","kind":"DeviceMetadata"})"),
            "no compatible metadata version found in stream (unknown versions: "
            "metadata.resource.k8s.io/v2)");
  EXPECT_EQ(ErrorOf("{not-json"),
            "read metadata object from stream: invalid character 'n' looking "
            "for beginning of object key string");
  EXPECT_EQ(ErrorOf(R"({"apiVersion":"metadata.resource.k8s.io/v1alpha1",)"),
            "read metadata object from stream: unexpected EOF");
  EXPECT_EQ(ErrorOf(R"({"apiVersion":"a/b/c","kind":"DeviceMetadata"})"),
            "decode metadata object: unexpected GroupVersion string: a/b/c");
  EXPECT_THAT(ErrorOf(R"({"apiVersion":7,"kind":"DeviceMetadata"})"),
              HasSubstr("cannot unmarshal number into Go struct field .apiVersion of type string"));
  EXPECT_EQ(ErrorOf(R"({"apiVersion":"other/v9"})"),
            R"(decode other/v9: Object 'Kind' is missing in '{"apiVersion":"other/v9"}')");
  EXPECT_EQ(ErrorOf(R"({"apiVersion":"metadata.resource.k8s.io/v1alpha1","kind":"DeviceMetadata",
                  "requests":[{"name":"r","devices":[{"attributes":{"a":{"int":1,"bool":true}}}]}]})"),
            "attribute \"a\" has more than one value");
}

TEST(MetadataDocument, AnEmptyStreamHasNoMetadata) {
  for (const char* text : {"", " \n", "]"}) {
    const auto decoded = DecodeMetadata(text);
    ASSERT_FALSE(decoded.ok());
    EXPECT_EQ(decoded.error().code, ErrorCode::kNotFound);
    EXPECT_EQ(decoded.error().message, "no metadata objects found in stream");
  }
}

TEST(MetadataDocument, TooLargeAFileIsRefused) {
  EXPECT_THAT(ErrorOf(std::string(kMaxFileBytes + 1, ' ')), HasSubstr("more than the limit"));
}

TEST(MetadataDocument, FilesOfSeveralDriversBecomeOne) {
  DeviceMetadata first = Example();
  DeviceMetadata second = Example();
  second.requests[0].devices[0].driver = "bar.com";
  second.requests.push_back({"other", {}});
  second.pod_claim_name = "gpu";
  const DeviceMetadata merged = MergeMetadata({first, second});
  EXPECT_EQ(merged.claim_name, "my-claim");
  EXPECT_EQ(merged.pod_claim_name, "gpu");
  ASSERT_EQ(merged.requests.size(), 2u);
  EXPECT_EQ(merged.requests[0].devices.size(), 2u);
  EXPECT_EQ(merged.requests[0].devices[1].driver, "bar.com");
  EXPECT_EQ(MergeMetadata({first}, Dialect::kKubernetes).claim_name, "");
}

}  // namespace
}  // namespace drakkar::metadata
