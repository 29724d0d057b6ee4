#include "cli/manifest.h"

#include <gtest/gtest.h>

#include "api/scheme/scheme.h"
#include "cli/testing/fake_console.h"

namespace drakkar::cli {
namespace {

using testing::FakeConsole;

Manifests Parse(std::string_view text) {
  return ParseManifests(text, "f.yaml", api::Strictness::kStrict);
}

constexpr std::string_view kMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\n";

TEST(Manifest, DocumentsAreSplitAndEmptyOnesSkipped) {
  const std::string text =
      "# nothing\n---\n" + std::string(kMap) + "---\n\n--- # comment\n" + std::string(kMap);
  const Manifests manifests = Parse(text);
  ASSERT_TRUE(manifests.problems.empty()) << manifests.problems[0].message;
  ASSERT_EQ(manifests.objects.size(), 2u);
  EXPECT_EQ(manifests.objects[0].source, "f.yaml: document 1, line 3");
  EXPECT_EQ(manifests.objects[1].source, "f.yaml: document 2, line 10");
  EXPECT_EQ(manifests.objects[1].kind->kind, "ConfigMap");
}

TEST(Manifest, JsonAndListsAreRead) {
  const Manifests manifests = Parse(
      R"({"apiVersion":"v1","kind":"List","items":[
        {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}},
        {"apiVersion":"v1","kind":"Pot","metadata":{"name":"b"}}]})");
  EXPECT_EQ(manifests.objects.size(), 1u);
  ASSERT_EQ(manifests.problems.size(), 1u);
  EXPECT_NE(manifests.problems[0].message.find("did you mean \"Pod\""), std::string::npos)
      << manifests.problems[0].message;
}

TEST(Manifest, ErrorsIncludeTheLine) {
  auto problem = [](std::string_view text) {
    const Manifests manifests = Parse(text);
    return manifests.problems.size() == 1
               ? manifests.problems[0].message
               : "there are " + std::to_string(manifests.problems.size());
  };
  EXPECT_EQ(problem("kind: Pod\n"), "f.yaml: document 1, line 1: apiVersion is missing");
  EXPECT_EQ(problem("apiVersion: v1\n"), "f.yaml: document 1, line 1: kind is missing");
  EXPECT_EQ(
      problem("- 1\n"),
      "f.yaml: document 1, line 1: not an object; a manifest has apiVersion, kind and metadata");
  EXPECT_EQ(
      problem("apiVersion: v2\nkind: Pod\nmetadata: {name: x}\n"),
      "f.yaml: document 1, line 1: no matches for kind \"Pod\" in version \"v2\", it is in v1");
  EXPECT_EQ(problem("apiVersion: v1\nkind: Pod\nmetadata:\n  labels: {}\n"),
            "f.yaml: document 1, line 3: metadata.name is missing or empty");
  EXPECT_EQ(problem(std::string(kMap) + "data:\n  a: '1'\nimmutabel: true\n"),
            "f.yaml: document 1, line 7: unknown field \"immutabel\" in ConfigMap");
  EXPECT_EQ(problem(std::string(kMap) + "immutable: very\n"),
            "f.yaml: document 1, line 5: immutable must be bool, not string");
  const std::string twice =
      problem(std::string(kMap) + "---\n" + std::string(kMap) + "data:\n  a: '1'\n  a: '2'\n");
  EXPECT_TRUE(twice.starts_with("f.yaml: document 2, line 12: ")) << twice;
}

TEST(Manifest, LinesOfFieldsAreFoundInListsAsWell) {
  constexpr std::string_view kPod =
      "spec:\n"            // 1
      "  containers:\n"    // 2
      "  - name: a\n"      // 3
      "    env:\n"         // 4
      "    - name: X\n"    // 5
      "      value: y\n"   // 6
      "  - name: b\n"      // 7
      "    image: i\n"     // 8
      "    env:\n"         // 9
      "    - name: X\n"    // 10
      "      valeu: y\n";  // 11
  EXPECT_EQ(FindFieldLine(kPod, "spec.containers[1].env[0].valeu"), 11u);
  EXPECT_EQ(FindFieldLine(kPod, "spec.containers[1].name"), 7u);
  EXPECT_EQ(FindFieldLine(kPod, "spec.containers[0].env[0].value"), 6u);
  EXPECT_EQ(FindFieldLine(kPod, "spec.nope"), 1u);
}

TEST(Manifest, PathsAreFilesDirectoriesAndStandardInput) {
  FakeConsole console;
  ASSERT_TRUE(console.memory.MakeDirectories("/d/sub", 0755).ok());
  for (const char* path : {"/d/b.yaml", "/d/a.yml", "/d/notes.txt", "/d/sub/c.json"}) {
    ASSERT_TRUE(console.memory.WriteFile(path, kMap, 0644).ok());
  }
  console.input = kMap;
  EXPECT_EQ(ReadManifests(console, {"/d"}, {}).objects.size(), 2u);
  EXPECT_EQ(ReadManifests(console, {"/d"}, {.recursive = true}).objects.size(), 3u);
  EXPECT_EQ(ReadManifests(console, {"-", "/d/b.yaml"}, {}).objects.size(), 2u);
  const Manifests missing = ReadManifests(console, {"/nope.yaml"}, {});
  ASSERT_EQ(missing.problems.size(), 1u);
  EXPECT_EQ(missing.problems[0].message, "the path \"/nope.yaml\" does not exist");
}

TEST(Manifest, KindsOfOtherGroupsAreLeftToTheServerIfAskedFor) {
  constexpr char kBoat[] = "apiVersion: example.com/v1\nkind: Boat\nmetadata: {name: argo}\n";
  EXPECT_EQ(ParseManifests(kBoat, "f.yaml", api::Strictness::kStrict).problems.size(), 1u);
  const Manifests read =
      ParseManifests(kBoat, "f.yaml", api::Strictness::kStrict, /*foreign_kinds=*/true);
  EXPECT_TRUE(read.problems.empty());
  ASSERT_EQ(read.objects.size(), 1u);
  EXPECT_EQ(read.objects[0].kind, nullptr);
  // A kind that a group of ours does not have is a mistake all the same.
  EXPECT_EQ(ParseManifests("apiVersion: apps/v1\nkind: Boat\nmetadata: {name: argo}\n", "f.yaml",
                           api::Strictness::kStrict, /*foreign_kinds=*/true)
                .problems.size(),
            1u);
}

}  // namespace
}  // namespace drakkar::cli
