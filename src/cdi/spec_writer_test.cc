#include "cdi/spec_writer.h"

#include <gtest/gtest.h>

#include "cdi/spec_reader.h"

namespace drakkar::cdi {
namespace {

TEST(SpecWriter, WritesTheMetadataSpecAsDriversDo) {
  Spec spec{.cdi_version = "0.5.0", .kind = "gpu.example.com/metadata"};
  spec.devices = {{.name = "0a_req",
                   .container_edits = {.mounts = {{.host_path = "/h/metadata.json",
                                                   .container_path = "/c/x-metadata.json",
                                                   .options = {"ro", "bind"}}}}}};
  EXPECT_EQ(WriteSpecJson(spec), R"({
  "cdiVersion": "0.5.0",
  "kind": "gpu.example.com/metadata",
  "devices": [
    {
      "name": "0a_req",
      "containerEdits": {
        "mounts": [
          {
            "hostPath": "/h/metadata.json",
            "containerPath": "/c/x-metadata.json",
            "options": [
              "ro",
              "bind"
            ]
          }
        ]
      }
    }
  ],
  "containerEdits": {}
}
)");
}

TEST(SpecWriter, RoundTripsThroughTheReader) {
  Spec spec{.cdi_version = "1.1.0", .kind = "v.com/c", .annotations = {{"a", "1"}, {"b", "2"}}};
  ContainerEdits edits;
  edits.env = {"A=\"<&>\\\x01\x7f\xc3\xa9\xe2\x80\xa8\t"};
  edits.device_nodes = {{.path = "/dev/a",
                         .host_path = "/dev/b",
                         .type = "b",
                         .major = 8,
                         .minor = 0,
                         .file_mode = 0,
                         .permissions = "none",
                         .uid = 0,
                         .gid = 7},
                        {.path = "/dev/c"}};
  edits.net_devices = {{.host_interface_name = "e", .name = "n"}};
  edits.hooks = {
      {.hook_name = "poststop", .path = "/p", .args = {"p"}, .env = {"X="}, .timeout_seconds = 0}};
  edits.mounts = {
      {.host_path = "/h", .container_path = "/c", .options = {"rbind"}, .type = "bind"}};
  edits.intel_rdt = IntelRdt{.clos_id = "/", .enable_cmt = true, .schemata = {"MB:0=10"}};
  edits.additional_gids = {0, 1};
  spec.devices = {{.name = "d", .annotations = {{"x", "y"}}, .container_edits = edits},
                  {.name = "e", .container_edits = edits}};
  spec.container_edits = edits;
  spec.container_edits.intel_rdt = IntelRdt();
  const std::string text = WriteSpecJson(spec);
  const Result<Spec> again = ReadSpecJson(text);
  ASSERT_TRUE(again.ok()) << again.error().message << "\n" << text;
  EXPECT_EQ(*again, spec);
  EXPECT_NE(text.find(R"(A=\"\u003c\u0026\u003e\\\u0001)"), std::string::npos) << text;
  EXPECT_NE(text.find("\\u2028\\t"), std::string::npos);
}

TEST(SpecWriter, ReplacesInvalidUtf8) {
  Spec spec{.cdi_version = "1.1.0", .kind = "v.com/c"};
  spec.devices = {{.name = "d", .container_edits = {.env = {"A=\xff\xc3(\xe2\x82"}}}};
  const Result<Spec> again = ReadSpecJson(WriteSpecJson(spec));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->devices[0].container_edits.env[0],
            "A=\xEF\xBF\xBD\xEF\xBF\xBD(\xEF\xBF\xBD\xEF\xBF\xBD");
}

}  // namespace
}  // namespace drakkar::cdi
