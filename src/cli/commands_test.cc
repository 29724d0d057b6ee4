#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/testing/test_server.h"

namespace drakkar::cli {
namespace {

using testing::CommandTest;
using testing::PodManifest;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(CommandTest, ApplyCreatesThenLeavesAloneThenChanges) {
  Outcome created = Run("apply -f -", PodManifest("a"));
  EXPECT_EQ(created.out, "pod/a created\n") << created.err;
  EXPECT_EQ(created.code, 0);
  EXPECT_EQ(Run("apply -f -", PodManifest("a")).out, "pod/a unchanged\n");
  EXPECT_EQ(Run("apply -f -", PodManifest("a", "busybox:2")).out, "pod/a configured\n");
  EXPECT_EQ(Run("get pod a -o jsonpath={.spec.containers[0].image}").out, "busybox:2");
}

TEST_F(CommandTest, ApplyRemovesWhatTheManifestHasNoMore) {
  const std::string with =
      "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\ndata:\n  a: '1'\n  b: '2'\n";
  const std::string without = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\ndata:\n  a: '1'\n";
  EXPECT_EQ(Run("apply -f -", with).out, "configmap/m created\n");
  EXPECT_EQ(Run("apply -f -", without).out, "configmap/m configured\n");
  EXPECT_EQ(Run("get cm m -o jsonpath={.data}").out, R"({"a":"1"})");
}

TEST_F(CommandTest, GetShowsATableOfTheServer) {
  Run("apply -f -", PodManifest("a"));
  Run("apply -f -", PodManifest("bbbbbbbbbb"));
  Outcome table = Run("get pods");
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, StartsWith("NAME         READY   STATUS    RESTARTS   AGE\n"
                                    "a            0/1     Pending   0          "));
  EXPECT_THAT(table.out, HasSubstr("\nbbbbbbbbbb   0/1     Pending   0          "));
  EXPECT_THAT(Run("get po -A").out, StartsWith("NAMESPACE   NAME         READY"));
  EXPECT_THAT(Run("get pods a bbbbbbbbbb --no-headers").out, StartsWith("a            0/1"));
  EXPECT_THAT(Run("get pod/a --show-labels").out, HasSubstr("app=a\n"));
  EXPECT_THAT(Run("get pods -l app=a").out, Not(HasSubstr("bbbb")));
  EXPECT_THAT(Run("get pods -o wide").out, HasSubstr("NOMINATED NODE"));
}

TEST_F(CommandTest, GetOfSeveralTypesShowsOneTableEach) {
  Run("apply -f -", PodManifest("a"));
  EXPECT_THAT(Run("get namespaces,pods").out,
              ::testing::MatchesRegex("NAME +STATUS +AGE\nnamespace/default .*\n\nNAME .*\npod/a .*\n"));
}

TEST_F(CommandTest, GetPrintsObjectsInOtherForms) {
  Run("apply -f -", PodManifest("a"));
  EXPECT_THAT(Run("get pod a -o yaml").out, StartsWith("apiVersion: v1\nkind: Pod\nmetadata:\n"));
  EXPECT_THAT(Run("get pods -o yaml").out, StartsWith("apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n"));
  EXPECT_THAT(Run("get pod a -o json").out, StartsWith("{\n    \"apiVersion\": \"v1\",\n"));
  EXPECT_EQ(Run("get pods -o name").out, "pod/a\n");
  EXPECT_EQ(Run("get pods -o custom-columns=N:.metadata.name,X:.x").out, "N   X\na   <none>\n");
}

TEST_F(CommandTest, GetSaysWhatIsNotThere) {
  Outcome missing = Run("get pod nope");
  EXPECT_EQ(missing.code, 1);
  EXPECT_EQ(missing.err, "Error from server (NotFound): pods \"nope\" not found\n");
  Outcome none = Run("get pods");
  EXPECT_EQ(none.code, 0);
  EXPECT_EQ(none.err, "No resources found in default namespace.\n");
  Outcome type = Run("get podz");
  EXPECT_EQ(type.code, 1);
  EXPECT_EQ(type.err,
            "error: the server doesn't have a resource type \"podz\", did you mean \"pods\"?\n");
  EXPECT_EQ(Run("get pod nope --ignore-not-found").code, 0);
}

TEST_F(CommandTest, DeleteWaitsUntilTheObjectIsGone) {
  Run("apply -f -", PodManifest("a"));
  Outcome deleted = Run("delete pod a");
  EXPECT_EQ(deleted.out, "pod \"a\" deleted from default namespace\n");
  EXPECT_EQ(deleted.code, 0) << deleted.err;
  EXPECT_EQ(Run("get pods").out, "");
  Outcome again = Run("delete pod a");
  EXPECT_EQ(again.code, 1);
  EXPECT_EQ(again.err, "Error from server (NotFound): pods \"a\" not found\n");
}

TEST_F(CommandTest, DeleteOfAHeldObjectEndsWhenItsFinalizerGoes) {
  Run("apply -f -",
      "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: held\n  finalizers: [example.com/x]\n");
  Outcome timed_out = Run("delete cm held --timeout 50ms");
  EXPECT_EQ(timed_out.code, 1);
  EXPECT_THAT(timed_out.err, HasSubstr("timed out waiting for configmap/held to be deleted"));
  std::future<Outcome> deleting = Start("delete cm held");
  Run("apply -f -", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: held\n");
  EXPECT_EQ(deleting.get().code, 0);
}

TEST_F(CommandTest, DeleteTakesFilesSelectorsAndAll) {
  files_["/m/a.yaml"] = PodManifest("a");
  files_["/m/b.yaml"] = PodManifest("b") + "---\n" + PodManifest("c");
  EXPECT_EQ(Run("apply -f /m").out, "pod/a created\npod/b created\npod/c created\n");
  EXPECT_EQ(Run("delete -f /m/a.yaml").out, "pod \"a\" deleted from default namespace\n");
  EXPECT_EQ(Run("delete pods -l app=b -o name").out, "pod/b\n");
  EXPECT_EQ(Run("delete pods --all").out, "pod \"c\" deleted from default namespace\n");
  EXPECT_EQ(Run("delete pods").code, 2);
}

TEST_F(CommandTest, MistakesInManifestsAreToldByFileDocumentAndLine) {
  files_["/bad.yaml"] = PodManifest("good") + "---\n" +
                        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\nspec:\n  containers:\n"
                        "  - name: c\n    image: i\n    colour: red\n---\n"
                        "apiVersion: v1\nkind: Pot\nmetadata:\n  name: y\n---\na: [1\n";
  Outcome outcome = Run("apply -f /bad.yaml");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "pod/good created\n");
  EXPECT_THAT(outcome.err, HasSubstr("error: /bad.yaml: document 2, line 19: unknown field "
                                     "\"spec.containers[0].colour\" in Pod\n"));
  EXPECT_THAT(outcome.err, HasSubstr("error: /bad.yaml: document 3, line 22: no matches for kind "
                                     "\"Pot\" in version \"v1\", did you mean \"Pod\"?\n"));
  EXPECT_THAT(outcome.err, HasSubstr("error: /bad.yaml: document 4, line "));
}

TEST_F(CommandTest, WhatTheServerRefusesIsToldInItsWords) {
  Outcome outcome = Run("apply -f -", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: A_b\nspec:\n  containers:\n  - name: c\n    image: i\n");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, StartsWith("The Pod \"A_b\" is invalid: "));
  EXPECT_THAT(outcome.err, HasSubstr("(standard input: document 1, line 1)"));
}

TEST_F(CommandTest, DryRunChangesNothing) {
  EXPECT_EQ(Run("apply -f - --dry-run=client", PodManifest("a")).out, "pod/a created (dry run)\n");
  EXPECT_EQ(Run("apply -f - --dry-run=server", PodManifest("a")).out,
            "pod/a created (server dry run)\n");
  EXPECT_EQ(Run("get pods -o name").out, "");
}

TEST_F(CommandTest, ServerThatIsNotThereIsSaidSo) {
  kubeconfig_ = apiserver::MakeKubeconfig("https://127.0.0.1:1", "", {}, "nobody");
  Outcome outcome = Run("get pods");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, StartsWith("error: cannot reach the server https://127.0.0.1:1 ("));
}

}  // namespace
}  // namespace drakkar::cli
