#include "cdi/spec_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drakkar::cdi {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string WithEdits(const std::string& edits) {
  return R"({"cdiVersion":"1.1.0","kind":"v.com/c","devices":[{"name":"d","containerEdits":)" +
         edits + "}]}";
}

TEST(SpecReader, ReadsEveryField) {
  const Result<Spec> spec = ReadSpecJson(R"({
    "cdiVersion": "1.1.0", "kind": "vendor.com/gpu", "annotations": {"whose": "ours"},
    "devices": [{"name": "gpu0", "annotations": {"a": "b"}, "containerEdits": {
      "env": ["A=B"],
      "deviceNodes": [{"path": "/dev/g", "hostPath": "/dev/h", "type": "c", "major": 195,
                       "minor": 1, "fileMode": 438, "permissions": "rw", "uid": 0, "gid": 4294967295}],
      "netDevices": [{"hostInterfaceName": "eth1", "name": "net0"}],
      "hooks": [{"hookName": "createContainer", "path": "/bin/h", "args": ["h", "x"],
                 "env": ["C=D"], "timeout": 5}],
      "mounts": [{"hostPath": "/h", "containerPath": "/c", "options": ["ro", "bind"], "type": "none"}],
      "intelRdt": {"closID": "c", "l3CacheSchema": "l", "memBwSchema": "m", "enableCMT": true,
                   "enableMBM": true, "schemata": ["s"], "enableMonitoring": true},
      "additionalGids": [5, 0]}}],
    "containerEdits": {"env": ["E=F"]}})");
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  Spec expected{
      .cdi_version = "1.1.0", .kind = "vendor.com/gpu", .annotations = {{"whose", "ours"}}};
  ContainerEdits edits;
  edits.env = {"A=B"};
  edits.device_nodes = {{.path = "/dev/g",
                         .host_path = "/dev/h",
                         .type = "c",
                         .major = 195,
                         .minor = 1,
                         .file_mode = 0666,
                         .permissions = "rw",
                         .uid = 0,
                         .gid = 4294967295}};
  edits.net_devices = {{.host_interface_name = "eth1", .name = "net0"}};
  edits.hooks = {{.hook_name = "createContainer",
                  .path = "/bin/h",
                  .args = {"h", "x"},
                  .env = {"C=D"},
                  .timeout_seconds = 5}};
  edits.mounts = {
      {.host_path = "/h", .container_path = "/c", .options = {"ro", "bind"}, .type = "none"}};
  edits.intel_rdt = IntelRdt{.clos_id = "c",
                             .l3_cache_schema = "l",
                             .mem_bw_schema = "m",
                             .enable_cmt = true,
                             .enable_mbm = true,
                             .schemata = {"s"},
                             .enable_monitoring = true};
  edits.additional_gids = {5, 0};
  expected.devices = {{.name = "gpu0", .annotations = {{"a", "b"}}, .container_edits = edits}};
  expected.container_edits.env = {"E=F"};
  EXPECT_EQ(*spec, expected);
}

TEST(SpecReader, NullReadsAsAbsent) {
  EXPECT_TRUE(ReadSpecJson(WithEdits(R"({"env":["A=B"],"mounts":null,"intelRdt":null})")).ok());
}

TEST(SpecReader, ErrorsIncludeThePath) {
  const std::pair<std::string, std::string> cases[] = {
      {"[]", "must be an object"},
      {R"({"cdiVersion":"1.1.0","kind":"v/c","more":1})", "unknown field \"more\""},
      {R"({"cdiVersion":1})", "cdiVersion: must be a string"},
      {R"({"devices":{}})", "devices: must be an array"},
      {R"({"annotations":{"a":1}})", "annotations[\"a\"]: must be a string"},
      {WithEdits(R"({"Env":["A=B"]})"), "devices[0].containerEdits: unknown field \"Env\""},
      {WithEdits(R"({"env":["A=B",2]})"), "devices[0].containerEdits.env[1]: must be a string"},
      {WithEdits(R"({"mounts":[{"hostPath":"/a","path":"/b"}]})"),
       "devices[0].containerEdits.mounts[0]: unknown field \"path\""},
      {WithEdits(R"({"deviceNodes":[{"path":"/a","major":1.5}]})"),
       "devices[0].containerEdits.deviceNodes[0].major: must be an integer"},
      {WithEdits(R"({"deviceNodes":[{"path":"/a","uid":-1}]})"),
       "devices[0].containerEdits.deviceNodes[0].uid: must be between 0 and 4294967295"},
      {WithEdits(R"({"additionalGids":[4294967296]})"),
       "devices[0].containerEdits.additionalGids[0]: must be between 0 and 4294967295"},
      {WithEdits(R"({"intelRdt":{"enableMonitoring":"yes"}})"),
       "devices[0].containerEdits.intelRdt.enableMonitoring: must be true or false"},
      {WithEdits("{}"), "device \"d\" has no edits"},
      {WithEdits("null"), "device \"d\" has no edits"},
  };
  for (const auto& [text, message] : cases) {
    const Result<Spec> spec = ReadSpecJson(text);
    ASSERT_FALSE(spec.ok()) << text;
    EXPECT_EQ(spec.error().message, message) << text;
  }
}

TEST(SpecReader, RefusesWhatIsNotStrictJsonAndSaysWhere) {
  for (const char* bad : {"", " ", "{", "[1,]", "{\"kind\":1,}", "{kind:1}", "{'kind':1}", "01",
                          "tru", "\"\\x\"", "\"a\nb\"", "1 2", "{} x", "// no\n1"}) {
    EXPECT_THAT(ReadSpecJson(bad).error().message, HasSubstr("line ")) << bad;
  }
  EXPECT_THAT(ReadSpecJson("{\n  \"kind\": 1,\n  \"kind\": 2}").error().message,
              AllOf(HasSubstr("\"kind\""), HasSubstr("line 3, column ")));
  EXPECT_EQ(ReadSpecJson("\"\xff\"").error().message, "the document is not valid UTF-8");
}

TEST(SpecReader, BoundsDepthAndSize) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(ReadSpecJson(nested(32)).error().message, "must be an object");
  EXPECT_THAT(ReadSpecJson(nested(33)).error().message, HasSubstr("depth"));
  EXPECT_THAT(ReadSpecJson(nested(1'000'000)).error().message, HasSubstr("depth"));
  EXPECT_EQ(ReadSpecJson(std::string(kMaxSpecBytes + 1, ' ')).error().message,
            "the document has 4194305 bytes, more than 4194304");
}

}  // namespace
}  // namespace drakkar::cdi
