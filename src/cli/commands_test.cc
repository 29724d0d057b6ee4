#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/testing/test_server.h"

namespace drakkar::cli {
namespace {

using testing::CommandTest;
using testing::FakeConsole;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::PodManifest;
using ::testing::StartsWith;

TEST_F(CommandTest, ApplyCreatesThenLeavesUnchangedThenUpdates) {
  Outcome created = Run("apply -f -", PodManifest("a"));
  EXPECT_EQ(created.out, "pod/a created\n") << created.err;
  EXPECT_EQ(created.code, 0);
  EXPECT_EQ(Run("apply -f -", PodManifest("a")).out, "pod/a unchanged\n");
  EXPECT_EQ(Run("apply -f -", PodManifest("a", "busybox:2")).out, "pod/a configured\n");
  EXPECT_EQ(Run("get pod a -o jsonpath={.spec.containers[0].image}").out, "busybox:2");
}

TEST_F(CommandTest, ApplyRemovesFieldsNoLongerInTheManifest) {
  const std::string with =
      "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\ndata:\n  a: '1'\n  b: '2'\n";
  const std::string without =
      "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\ndata:\n  a: '1'\n";
  EXPECT_EQ(Run("apply -f -", with).out, "configmap/m created\n");
  EXPECT_EQ(Run("apply -f -", without).out, "configmap/m configured\n");
  EXPECT_EQ(Run("get cm m -o jsonpath={.data}").out, R"({"a":"1"})");
}

TEST_F(CommandTest, ApplyPrintsTheServersWarnings) {
  const Outcome applied = Run("apply -f -", R"(apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny}
spec: {podSelector: {}}
)");
  EXPECT_EQ(applied.out, "networkpolicy.networking.k8s.io/deny created\n");
  EXPECT_EQ(applied.err, "Warning: the NetworkPolicy is stored, but nothing enforces it\n");
}

TEST_F(CommandTest, GetShowsTheServersTable) {
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
  EXPECT_THAT(
      Run("get namespaces,pods").out,
      ::testing::MatchesRegex("NAME +STATUS +AGE\nnamespace/default .*\n\nNAME .*\npod/a .*\n"));
}

TEST_F(CommandTest, GetPrintsObjectsInOtherFormats) {
  Run("apply -f -", PodManifest("a"));
  EXPECT_THAT(Run("get pod a -o yaml").out, StartsWith("apiVersion: v1\nkind: Pod\nmetadata:\n"));
  EXPECT_THAT(Run("get pods -o yaml").out,
              StartsWith("apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n"));
  EXPECT_THAT(Run("get pod a -o json").out, StartsWith("{\n    \"apiVersion\": \"v1\",\n"));
  EXPECT_EQ(Run("get pods -o name").out, "pod/a\n");
  EXPECT_EQ(Run("get pods -o custom-columns=N:.metadata.name,X:.x").out, "N   X\na   <none>\n");
}

TEST_F(CommandTest, GetReportsMissingObjects) {
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

TEST_F(CommandTest, DeleteWaitsUntilTheObjectIsDeleted) {
  Run("apply -f -", PodManifest("a"));
  Outcome deleted = Run("delete pod a");
  EXPECT_EQ(deleted.out, "pod \"a\" deleted from default namespace\n");
  EXPECT_EQ(deleted.code, 0) << deleted.err;
  EXPECT_EQ(Run("get pods").out, "");
  Outcome again = Run("delete pod a");
  EXPECT_EQ(again.code, 1);
  EXPECT_EQ(again.err, "Error from server (NotFound): pods \"a\" not found\n");
}

TEST_F(CommandTest, DeleteWaitsForTheFinalizerToBeRemoved) {
  Run("apply -f -",
      "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: held\n  finalizers: [example.com/x]\n");
  Outcome timed_out = Run("delete cm held --timeout 50ms");
  EXPECT_EQ(timed_out.code, 1);
  EXPECT_THAT(timed_out.err, HasSubstr("timed out waiting for configmap/held to be deleted"));
  FakeConsole console;
  Prepare(console);
  std::promise<void> accepted;
  console.on_out = [&] { accepted.set_value(); };
  std::future<int> deleting = std::async(std::launch::async, [&] {
    return app_.Run({"delete", "cm", "held"}, console);
  });
  accepted.get_future().wait();
  Run("apply -f -", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: held\n");
  EXPECT_EQ(deleting.get(), 0) << console.err;
}

TEST_F(CommandTest, DeleteAcceptsFilesSelectorsAndAll) {
  files_["/m/a.yaml"] = PodManifest("a");
  files_["/m/b.yaml"] = PodManifest("b") + "---\n" + PodManifest("c");
  EXPECT_EQ(Run("apply -f /m").out, "pod/a created\npod/b created\npod/c created\n");
  EXPECT_EQ(Run("delete -f /m/a.yaml").out, "pod \"a\" deleted from default namespace\n");
  EXPECT_EQ(Run("delete pods -l app=b -o name").out, "pod/b\n");
  EXPECT_EQ(Run("delete pods --all").out, "pod \"c\" deleted from default namespace\n");
  EXPECT_EQ(Run("delete pods").code, 2);
}

TEST_F(CommandTest, MistakesInManifestsAreReportedWithFileDocumentAndLine) {
  files_["/bad.yaml"] = PodManifest("good") + "---\n" +
                        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\nspec:\n  containers:\n"
                        "  - name: c\n    image: i\n    colour: red\n---\n"
                        "apiVersion: v1\nkind: Pot\nmetadata:\n  name: y\n---\na: [1\n";
  Outcome outcome = Run("apply -f /bad.yaml");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "pod/good created\n");
  EXPECT_THAT(outcome.err, HasSubstr("error: /bad.yaml: document 2, line 20: unknown field "
                                     "\"spec.containers[0].colour\" in Pod\n"));
  EXPECT_THAT(outcome.err, HasSubstr("error: /bad.yaml: document 3, line 23: no matches for kind "
                                     "\"Pot\" in version \"v1\", did you mean \"Pod\"?\n"));
  EXPECT_THAT(outcome.err, HasSubstr("error: /bad.yaml: document 4, line "));
}

TEST_F(CommandTest, TheServersErrorIsPrintedUnchanged) {
  Outcome outcome = Run("apply -f -",
                        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: A_b\nspec:\n  containers:\n "
                        " - name: c\n    image: i\n");
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

TEST_F(CommandTest, AnUnreachableServerIsReported) {
  kubeconfig_ = apiserver::MakeKubeconfig("https://127.0.0.1:1", "", {}, "nobody");
  Outcome outcome = Run("get pods");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, StartsWith("error: cannot reach server https://127.0.0.1:1 ("));
}

TEST_F(CommandTest, AServerWithAnUnknownCertificateIsNotTrusted) {
  const net::testing::TestCertificates& certificates = net::testing::TestCertificates::Get();
  kubeconfig_ = apiserver::MakeKubeconfig(StrCat("https://127.0.0.1:", server_->port()),
                                          certificates.other_ca.certificate_pem,
                                          certificates.client, "admin");
  Outcome outcome = Run("get pods");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("the kubeconfig does not trust the certificate of server"));
  EXPECT_THAT(outcome.err, HasSubstr("check its certificate-authority\n"));
}

TEST_F(CommandTest, WaitEndsWhenTheConditionIsMet) {
  Run("apply -f -", PodManifest("a"));
  EXPECT_EQ(Run("wait --for=jsonpath={.spec.containers[0].name}=main pod/a").out,
            "pod/a condition met\n");
  EXPECT_EQ(Run("wait --for=create pod/a").code, 0);
  Outcome late = Run("wait --for=condition=Ready pod/a --timeout 20ms");
  EXPECT_EQ(late.code, 1);
  EXPECT_EQ(late.err, "error: timed out waiting for the condition on pods/a\n");
  EXPECT_EQ(Run("wait --for=condition=Ready pod/nope").err,
            "Error from server (NotFound): pods \"nope\" not found\n");
  EXPECT_EQ(Run("wait --for=delete pod/nope").code, 0);
  EXPECT_EQ(Run("wait --for=sunshine pod/a").code, 2);
  std::future<Outcome> waiting = Start("wait --for=jsonpath={.metadata.labels.done}=yes pod/a");
  EXPECT_EQ(Run("apply -f -",
                "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {done: 'yes'}}\n"
                "spec: {containers: [{name: main, image: 'busybox:1'}]}\n")
                .out,
            "pod/a configured\n");
  EXPECT_EQ(waiting.get().out, "pod/a condition met\n");
}

TEST_F(CommandTest, RunsACommandWithTheConsolesStreams) {
  ASSERT_EQ(Run("create -f -", PodManifest("a")).code, 0);
  const std::string input(100'000, 'x');
  Outcome exec = Run("exec -i a -- cat -u", input);
  EXPECT_EQ(exec.code, 7) << exec.err;
  EXPECT_EQ(exec.out, input);
  EXPECT_EQ(exec.err, "oh no\ncommand terminated with exit code 7\n");
  EXPECT_EQ(log_query_, "container=main&command=cat&command=-u&stdin=true&stdout=true&stderr=true");
  EXPECT_EQ(Run("exec a").err,
            "error: you must specify at least one command for the container: drakkar exec POD -- "
            "COMMAND\n");
  EXPECT_EQ(Run("exec nope -- true").err,
            "Error from server (NotFound): pods \"nope\" not found\n");
}

TEST_F(CommandTest, LogsAreStreamedWithTheGivenOptions) {
  Run("apply -f -", PodManifest("a"));
  log_text_ = "one\ntwo\n";
  Outcome logs = Run("logs a --tail=5 --since=90s --timestamps -f");
  EXPECT_EQ(logs.code, 0) << logs.err;
  EXPECT_EQ(logs.out, "one\ntwo\n");
  EXPECT_EQ(log_query_, "container=main&follow=true&timestamps=true&tailLines=5&sinceSeconds=90");
  EXPECT_EQ(Run("logs pod/a --prefix").out, "[pod/a/main] one\n[pod/a/main] two\n");
  EXPECT_EQ(Run("logs a -c other").err,
            "error: container other is not valid for pod a: valid are main\n");
  EXPECT_EQ(Run("logs nope").code, 1);
}

TEST_F(CommandTest, GetWatchShowsChangesAsTheyHappen) {
  Run("apply -f -", PodManifest("a"));
  FakeConsole console;
  Prepare(console);
  std::promise<void> listed;
  std::promise<void> changed;
  int outputs = 0;
  console.on_out = [&] {
    if (++outputs == 1) listed.set_value();
    if (outputs == 2) changed.set_value();
  };
  std::future<int> watching = std::async(std::launch::async, [&] {
    return app_.Run({"get", "pods", "-w"}, console);
  });
  listed.get_future().wait();
  Run("apply -f -", PodManifest("b"));
  changed.get_future().wait();
  // The server stops, which ends the watch.
  thread_.RunSync([this] { server_.reset(); });
  watching.get();
  EXPECT_THAT(console.out, ::testing::MatchesRegex("NAME .*\na .*\nb .*\n"));
}

TEST_F(CommandTest, DescribeShowsAPodWithItsClaimsAndDevices) {
  Outcome applied = Run("apply -f -", R"(
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu}
spec:
  devices:
    requests:
    - name: one
      exactly: {deviceClassName: gpu.example.com, selectors: [{cel: {expression: "device.driver == 'x'"}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  resourceClaims: [{name: dev, resourceClaimName: gpu}]
  containers:
  - name: main
    image: busybox
    command: [sh, -c]
    resources: {claims: [{name: dev}]}
)");
  ASSERT_EQ(applied.code, 0) << applied.err;
  const std::string uid = Run("get pod a -o jsonpath={.metadata.uid}").out;
  Outcome event =
      Run("create -f -", StrCat("apiVersion: v1\nkind: Event\nmetadata: {name: a.1}\n"
                                "involvedObject: {kind: Pod, name: a, namespace: default, uid: ",
                                uid,
                                "}\nreason: FailedScheduling\nmessage: no nodes\n"
                                "type: Warning\nlastTimestamp: '2025-01-01T00:00:00Z'\n"));
  ASSERT_EQ(event.code, 0) << event.err;
  Outcome pod = Run("describe pod a");
  EXPECT_EQ(pod.code, 0) << pod.err;
  EXPECT_THAT(pod.out, StartsWith("Name:             a\nNamespace:        default\n"));
  EXPECT_THAT(pod.out, HasSubstr("Resource Claims:\n  dev:\n    Claim:    gpu\n    State:    "
                                 "pending\n    Devices:  <none>\n"));
  EXPECT_THAT(pod.out, HasSubstr("Containers:\n  main:\n"));
  EXPECT_THAT(pod.out,
              ::testing::ContainsRegex(
                  "Events:\n +Type +Reason .*\n +Warning +FailedScheduling .* no nodes\n"));
  Outcome claim = Run("describe resourceclaim/gpu");
  EXPECT_THAT(
      claim.out,
      HasSubstr("Requests:\n  one:\n    Device Class:  gpu.example.com\n    Count:         1\n"
                "    Selectors:     device.driver == 'x'\n"));
  EXPECT_THAT(claim.out, HasSubstr("Reserved For:  <none>\n"));
  EXPECT_THAT(Run("describe ns default").out, HasSubstr("Events:"));
  EXPECT_EQ(Run("describe pod nope").code, 1);
}

TEST_F(CommandTest, VersionAsksTheServer) {
  Outcome version = Run("version");
  EXPECT_EQ(version.code, 0) << version.err;
  EXPECT_THAT(version.out, StartsWith("Client Version: v"));
  EXPECT_THAT(version.out, HasSubstr("\nServer Version: v1.37"));
}

TEST_F(CommandTest, CompletionKnowsAllCommands) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    Outcome script = Run(std::string("completion ") + shell);
    EXPECT_EQ(script.code, 0);
    for (const Command& command : app_.commands()) {
      // Shells complete "node forget-driver" word by word.
      EXPECT_THAT(script.out, HasSubstr(command.name.substr(command.name.rfind(' ') + 1))) << shell;
    }
    EXPECT_THAT(script.out, HasSubstr("resourceclaims")) << shell;
  }
  EXPECT_EQ(Run("completion tcsh").code, 2);
}

TEST_F(CommandTest, EveryCommandHasHelpWithExamples) {
  for (const Command& command : app_.commands()) {
    Outcome help = Run(command.name + " --help");
    EXPECT_EQ(help.code, 0);
    EXPECT_THAT(help.out, HasSubstr("Examples:\n  ")) << command.name;
    for (const Flag& flag : AllFlags(command)) EXPECT_FALSE(flag.help.empty()) << flag.name;
  }
}

TEST_F(CommandTest, ForgetDriverWritesTheNodesListAndWarns) {
  Run("create -f -", "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n");
  const std::string path = "get node n1 -o jsonpath={.metadata.annotations}";
  Outcome done = Run("node forget-driver n1 gpu.example.com");
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.err,
              HasSubstr("warning: node n1 now releases claims without calling gpu.example.com"));
  EXPECT_EQ(done.out, "node/n1: driver gpu.example.com forgotten\n");
  EXPECT_EQ(Run("node forget-driver n1 gpu.example.com").out,
            "node/n1: driver gpu.example.com is already forgotten\n");
  Run("node forget-driver n1 a.example.com");
  EXPECT_THAT(Run(path).out, HasSubstr("a.example.com,gpu.example.com"));
  EXPECT_EQ(Run("node forget-driver n1 a.example.com --undo").out,
            "node/n1: driver a.example.com is expected again\n");
  EXPECT_THAT(Run(path).out, ::testing::Not(HasSubstr("a.example.com,")));
  EXPECT_EQ(Run("node forget-driver nope gpu.example.com").code, 1);
}

}  // namespace
}  // namespace drakkar::cli
