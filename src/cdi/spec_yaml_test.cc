#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/text.h"
#include "cdi/spec_reader.h"
#include "cdi/spec_writer.h"

namespace drakkar::cdi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// As written by Go's CDI library: a document marker, keys in alphabetical order, lists at the
// column of their key, strings quoted only where they would be ambiguous.
constexpr char kFromGo[] = R"yaml(---
cdiVersion: 0.6.0
containerEdits:
  deviceNodes:
  - path: /dev/acmectl
  hooks:
  - args:
    - acme-hook
    - chmod
    - --mode
    - "755"
    hookName: createContainer
    path: /usr/bin/acme-hook
    timeout: 5
  mounts:
  - containerPath: /usr/lib64/libacme.so.1
    hostPath: /usr/lib64/libacme.so.1
    options:
    - ro
    - nosuid
    - bind
devices:
- annotations:
    acme.example.com/slot: "3"
  containerEdits:
    deviceNodes:
    - fileMode: 438
      major: 195
      path: /dev/acme0
      permissions: rw
      type: c
    env:
    - ACME_VISIBLE=0
    - 'ACME_NOTE=it''s: fine'
  name: "0"
kind: acme.example.com/gpu
)yaml";

TEST(SpecYaml, ReadsASpecAsGoWritesIt) {
  const Result<Spec> spec = ReadSpecYaml(kFromGo);
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_EQ(spec->kind, "acme.example.com/gpu");
  EXPECT_EQ(spec->cdi_version, "0.6.0");
  ASSERT_EQ(spec->devices.size(), 1u);
  const Device& device = spec->devices.front();
  EXPECT_EQ(device.name, "0");
  EXPECT_EQ(device.annotations.at("acme.example.com/slot"), "3");
  EXPECT_THAT(device.container_edits.env, ElementsAre("ACME_VISIBLE=0", "ACME_NOTE=it's: fine"));
  ASSERT_EQ(device.container_edits.device_nodes.size(), 1u);
  EXPECT_EQ(device.container_edits.device_nodes.front().file_mode, 0666u);
  EXPECT_EQ(device.container_edits.device_nodes.front().major, 195);
  ASSERT_EQ(spec->container_edits.hooks.size(), 1u);
  EXPECT_THAT(spec->container_edits.hooks.front().args,
              ElementsAre("acme-hook", "chmod", "--mode", "755"));
  EXPECT_EQ(spec->container_edits.hooks.front().timeout_seconds, 5);
  ASSERT_EQ(spec->container_edits.mounts.size(), 1u);
  EXPECT_THAT(spec->container_edits.mounts.front().options, ElementsAre("ro", "nosuid", "bind"));
}

TEST(SpecYaml, SaysTheSameAsItsJson) {
  const Result<Spec> spec = ReadSpecYaml(kFromGo);
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  const std::string json = WriteSpecJson(*spec);
  EXPECT_EQ(*ReadSpecJson(json), *spec);
  EXPECT_EQ(*ReadSpecYaml(json), *spec);  // JSON is YAML
}

TEST(SpecYaml, ScalarsWithoutQuotesAreTextsWhereTextsAreExpected) {
  const Result<Spec> spec = ReadSpecYaml(
      "cdiVersion: 0.6.0\nkind: v.com/c\ndevices:\n- name: 0\n  annotations: {v.com/on: true}\n"
      "  containerEdits: {env: [A=1], deviceNodes: [{path: /dev/x, fileMode: 0660}]}\n");
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_EQ(spec->devices.front().name, "0");
  EXPECT_EQ(spec->devices.front().annotations.at("v.com/on"), "true");
  EXPECT_EQ(spec->devices.front().container_edits.device_nodes.front().file_mode, 0660u);
  // Quoting makes a string, and JSON has no plain scalars.
  EXPECT_EQ(ReadSpecYaml("cdiVersion: 0.5.0\nkind: v.com/c\ndevices:\n- name: d\n"
                         "  containerEdits: {deviceNodes: [{path: /dev/x, major: \"1\"}]}\n")
                .error()
                .message,
            "devices[0].containerEdits.deviceNodes[0].major: must be an integer");
  EXPECT_EQ(ReadSpecJson(R"({"cdiVersion":"0.5.0","kind":1})").error().message,
            "kind: must be a string");
}

TEST(SpecYaml, RefusesWhatIsNoSpecAndSaysWhere) {
  EXPECT_THAT(ReadSpecYaml("kind: [").error().message, HasSubstr("line "));
  EXPECT_THAT(ReadSpecYaml("kind: a\nkind: b\n").error().message, HasSubstr("line 2, column 1"));
  EXPECT_EQ(ReadSpecYaml("knid: v.com/c\n").error().message, "unknown field \"knid\"");
  EXPECT_EQ(ReadSpecYaml("").error().message, "the document is empty");
  EXPECT_EQ(ReadSpecYaml("# nothing\n").error().message, "the document is empty");
  EXPECT_EQ(ReadSpecYaml("kind: \xff\n").error().message, "the document is not valid UTF-8");
}

TEST(SpecYaml, DepthSizeAndAliasesAreBounded) {
  EXPECT_THAT(ReadSpecYaml(std::string(33, '[') + std::string(33, ']')).error().message,
              HasSubstr("depth"));
  EXPECT_THAT(ReadSpecYaml(std::string(kMaxSpecBytes + 1, ' ')).error().message,
              HasSubstr("4194305 bytes"));
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    bomb += StrCat("a", i, ": &a", i, " [");
    for (int j = 0; j < 8; ++j) bomb += StrCat(j > 0 ? ", " : "", "*a", i - 1);
    bomb += "]\n";
  }
  EXPECT_THAT(ReadSpecYaml(bomb).error().message, HasSubstr("bytes"));
}

}  // namespace
}  // namespace drakkar::cdi
