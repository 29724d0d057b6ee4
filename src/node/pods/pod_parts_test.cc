// The parts of a container: environment, volumes, configuration and logs.
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/env/device_node.h"
#include "base/testing/memory_file_system.h"
#include "base/text/text.h"
#include "node/pods/container_config.h"
#include "node/pods/environment.h"
#include "node/pods/environment_file.h"
#include "node/pods/log_stream.h"
#include "node/pods/volumes.h"
#include "node/resources/pod_limits.h"

namespace drakkar::node {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

api::ObjectPtr Parse(std::string_view json) {
  auto tree = api::ParseJson(json);
  EXPECT_TRUE(tree.ok()) << json;
  return std::make_shared<api::Object>(*tree);
}

std::string Get(const std::vector<EnvironmentVariable>& list, std::string_view name) {
  for (const auto& each : list) {
    if (each.name == name) return each.value;
  }
  return "(none)";
}

TEST(Environment, ExpandsReferencesAsKubernetesDoes) {
  const std::map<std::string, std::string> variables = {{"A", "1"}, {"B", "two"}};
  EXPECT_EQ(*ExpandReferences("$(A)-$(B)-$(C)", variables, 100), "1-two-$(C)");
  EXPECT_EQ(*ExpandReferences("$$(A) $A $ $(A", variables, 100), "$(A) $A $ $(A");
  EXPECT_EQ(*ExpandReferences("$(B)$(B)", variables, 6), "twotwo");
  EXPECT_FALSE(ExpandReferences("$(B)$(B)", variables, 5).ok());
}

TEST(Environment, UnterminatedReferencesAreScannedOnce) {
  std::string text;
  for (int i = 0; i < 500'000; ++i) text += "$(";
  EXPECT_EQ(*ExpandReferences(text, {}, text.size()), text);
}

// Each variable contains the previous one twice: 39 of them would be 512 GiB.
TEST(Environment, ExponentiallyGrowingVariablesAreRefusedEarly) {
  std::string variables = R"json({"name":"V0","value":"x"})json";
  for (int i = 1; i < 40; ++i) {
    variables += StrCat(R"json(,{"name":"V)json", i, R"json(","value":"$(V)json", i - 1, ")$(V",
                        i - 1, R"json()"})json");
  }
  auto container = Parse(StrCat(R"json({"name":"a","env":[)json", variables, "]}"));
  auto environment = MakeEnvironment({{}, container->root(), PodSources{}, {}});
  ASSERT_FALSE(environment.ok());
  EXPECT_THAT(environment.error().message, HasSubstr("environment variable V2"));
  EXPECT_THAT(environment.error().message, HasSubstr("more than"));
}

TEST(Environment, TheSameConfigMapWithManyPrefixesIsRefused) {
  std::string sources;
  for (int i = 0; i < 100; ++i) {
    sources += StrCat(i == 0 ? "" : ",", R"json({"prefix":"P)json", i,
                      R"json(_","configMapRef":{"name":"cm"}})json");
  }
  PodSources content;
  content.config_maps["cm"] =
      Parse(StrCat(R"json({"data":{"k":")json", std::string(100'000, 'x'), R"json("}})json"));
  auto container = Parse(StrCat(R"json({"name":"a","envFrom":[)json", sources, "]}"));
  EXPECT_FALSE(MakeEnvironment({{}, container->root(), content, {}}).ok());
}

TEST(ContainerConfig, ArgumentsThatExpandBeyondTheKernelLimitAreRefused) {
  std::string arguments = "\"$(X)\"";
  for (int i = 0; i < 50; ++i) arguments += ",\"$(X)\"";
  auto pod =
      Parse(StrCat(R"json({"metadata":{"uid":"u"},"spec":{"containers":[{"name":"a","args":[)json",
                   arguments, "]}]}}"));
  auto config = MakeContainerConfig({.pod = pod->root(),
                                     .container = (*pod)["spec"]["containers"].at(0),
                                     .environment = {{"X", std::string(100'000, 'x')}}});
  ASSERT_FALSE(config.ok());
  EXPECT_THAT(config.error().message, HasSubstr("args: its references expand to more than"));
}

TEST(Environment, IsBuiltFromValuesFieldsResourcesConfigMapsAndSecrets) {
  auto pod = Parse(R"json({"metadata":{"name":"p","namespace":"n","labels":{"k":"v"}},
    "spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"1500m","memory":"1Gi"}},
      "envFrom":[{"prefix":"C_","configMapRef":{"name":"cm"}}],
      "env":[{"name":"X","value":"1"},{"name":"Y","value":"$(X)-$(C_key)"},
        {"name":"NAME","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},
        {"name":"LABEL","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['k']"}}},
        {"name":"IP","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}},
        {"name":"CPU","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu"}}},
        {"name":"MEM","valueFrom":{"resourceFieldRef":{"resource":"limits.memory","divisor":"1Mi"}}},
        {"name":"SECRET","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}},
        {"name":"MAYBE","valueFrom":{"secretKeyRef":{"name":"s","key":"none","optional":true}}}]}]}})json");
  PodSources sources;
  sources.config_maps["cm"] = Parse(R"json({"data":{"key":"value"}})json");
  sources.secrets["s"] = Parse(R"json({"data":{"k":"c2VjcmV0"}})json");
  const api::Value container = (*pod)["spec"]["containers"].at(0);
  auto environment =
      MakeEnvironment({{.pod = pod->root(), .pod_ips = {"10.0.0.1"}}, container, sources, {}});
  ASSERT_TRUE(environment.ok()) << environment.error().message;
  EXPECT_EQ(Get(*environment, "Y"), "1-value");
  EXPECT_EQ(Get(*environment, "NAME"), "p");
  EXPECT_EQ(Get(*environment, "LABEL"), "v");
  EXPECT_EQ(Get(*environment, "IP"), "10.0.0.1");
  EXPECT_EQ(Get(*environment, "CPU"), "2");
  EXPECT_EQ(Get(*environment, "MEM"), "1024");
  EXPECT_EQ(Get(*environment, "SECRET"), "secret");
  EXPECT_EQ(Get(*environment, "MAYBE"), "(none)");
}

TEST(Environment, AMissingKeyIsNamedInTheError) {
  auto pod = Parse(R"json({"spec":{"containers":[{"name":"a","env":[
    {"name":"X","valueFrom":{"configMapKeyRef":{"name":"cm","key":"k"}}}]}]}})json");
  auto environment =
      MakeEnvironment({{.pod = pod->root()}, (*pod)["spec"]["containers"].at(0), PodSources{}, {}});
  ASSERT_FALSE(environment.ok());
  EXPECT_EQ(environment.error().message, "environment variable X: configmap \"cm\" not found");
}

// Files in memory, without a kernel.
struct VolumeFixture {
  MemoryFileSystem files;
  std::unique_ptr<VolumeHost> host = MakePlainVolumeHost(files);

  Result<PreparedVolumes> Prepare(const api::ObjectPtr& pod, const PodSources& sources = {}) {
    return PrepareVolumes(
        {files, *host, RealDeviceNodeProbe(), "/pods/u", {.pod = pod->root()}, sources});
  }
  Result<std::vector<Mount>> MakeMountsOf(const PreparedVolumes& volumes, api::Value container) {
    return MakeMounts({*host, "/pods/u", volumes, container, {}});
  }
};

TEST(Volumes, WritesFilesCreatesDirectoriesAndMountsThem) {
  VolumeFixture node;
  MemoryFileSystem& files = node.files;
  auto pod = Parse(R"json({"metadata":{"name":"p","uid":"u","labels":{"a":"b"}},"spec":{"volumes":[
    {"name":"cache","emptyDir":{}},
    {"name":"mem","emptyDir":{"medium":"Memory","sizeLimit":"1Mi"}},
    {"name":"conf","configMap":{"name":"cm","defaultMode":256,"items":[{"key":"k","path":"dir/file"}]}},
    {"name":"info","downwardAPI":{"items":[{"path":"labels","fieldRef":{"fieldPath":"metadata.labels"}}]}},
    {"name":"all","projected":{"sources":[{"secret":{"name":"s"}},{"configMap":{"name":"cm"}}]}}],
    "containers":[{"name":"a","volumeMounts":[{"name":"cache","mountPath":"/cache","subPath":"x"},
      {"name":"mem","mountPath":"/mem"},{"name":"conf","mountPath":"/conf"}]}]}})json");
  PodSources sources;
  sources.config_maps["cm"] = Parse(R"json({"data":{"k":"v"}})json");
  sources.secrets["s"] = Parse(R"json({"data":{"t":"c2VjcmV0"}})json");
  auto volumes = node.Prepare(pod, sources);
  ASSERT_TRUE(volumes.ok()) << volumes.error().message;
  EXPECT_EQ(*files.ReadFile("/pods/u/volumes/kubernetes.io~configmap/conf/dir/file"), "v");
  EXPECT_EQ(files.Stat("/pods/u/volumes/kubernetes.io~configmap/conf/dir/file")->mode, 0400u);
  EXPECT_EQ(*files.ReadFile("/pods/u/volumes/kubernetes.io~downward-api/info/labels"), "a=\"b\"\n");
  EXPECT_EQ(*files.ReadFile("/pods/u/volumes/kubernetes.io~projected/all/t"), "secret");
  auto mounts = node.MakeMountsOf(*volumes, (*pod)["spec"]["containers"].at(0));
  ASSERT_TRUE(mounts.ok()) << mounts.error().message;
  EXPECT_EQ((*mounts)[0].host_path, "/pods/u/volumes/kubernetes.io~empty-dir/cache/x");
  EXPECT_EQ((*mounts)[1].host_path, "/pods/u/volumes/kubernetes.io~empty-dir/mem");
  EXPECT_TRUE((*mounts)[2].readonly);
}

TEST(EnvironmentFile, IsReadAsKubernetesDoes) {
  constexpr std::string_view kText =
      "# comment\n\n  A='1'\nB='two\nlines' # why\nEMPTY=''\nSPACE= 'x'\nQ='$(A) \"\\'\nA='2'";
  const auto find = [&](std::string_view name) {
    const auto value = FindVariable(kText, name);
    return !value.ok() ? value.error().message : value->value_or("(none)");
  };
  EXPECT_EQ(find("A"), "1");
  EXPECT_EQ(find("B"), "two\nlines");
  EXPECT_EQ(find("Q"), "$(A) \"\\");
  for (const char* none : {"EMPTY", "SPACE", "NONE", "a"}) EXPECT_EQ(find(none), "(none)") << none;
  EXPECT_FALSE(FindVariable("", "A")->has_value());
}

TEST(EnvironmentFile, SaysWhichLineIsWrong) {
  const std::pair<const char*, const char*> bad[] = {
      {"\nA\nB='1'", "line 2 has no '='"},
      {"='1'", "line 1 has no name before '='"},
      {"A ='1'", "line 1 has a space before '='"},
      {"A=1", "line 1 has a value without single quotes"},
      {"A='1' B", "line 1 has text after its value"},
      {"B='1'\nA='1\n", "line 2 begins a value that does not end"}};
  for (const auto& [text, message] : bad) {
    const auto value = FindVariable(text, "X");
    ASSERT_FALSE(value.ok()) << text;
    EXPECT_EQ(value.error().message, message);
  }
}

TEST(Environment, AFileOfAVolumeGivesVariables) {
  auto pod = Parse(R"json({"spec":{"containers":[{"name":"a","env":[
    {"name":"X","valueFrom":{"fileKeyRef":{"volumeName":"v","path":"f","key":"K"}}},
    {"name":"Y","valueFrom":{"fileKeyRef":{"volumeName":"v","path":"f","key":"N","optional":true}}},
    {"name":"Z","valueFrom":{"fileKeyRef":{"volumeName":"v","path":"g","key":"K","optional":true}}}
    ]}]}})json");
  const api::Value container = (*pod)["spec"]["containers"].at(0);
  std::string content = "K='v'";
  const auto make = [&] {
    return MakeEnvironment(
        {{.pod = pod->root()},
         container,
         PodSources{},
         {},
         [&](const std::string& volume, const std::string& path) -> Result<std::string> {
           EXPECT_EQ(volume, "v");
           return path == "f" ? Result<std::string>(content) : NotFound("no file");
         }});
  };
  const auto environment = make();
  ASSERT_TRUE(environment.ok()) << environment.error().message;
  EXPECT_EQ(Get(*environment, "X"), "v");
  EXPECT_EQ(Get(*environment, "Y"), "(none)");
  EXPECT_EQ(Get(*environment, "Z"), "(none)");
  content = "L='v'";
  EXPECT_EQ(make().error().message,
            "environment variable X: file \"f\" of volume \"v\": no variable K");
}

TEST(Environment, APathNeedsAValueForEachOfItsVariables) {
  const std::map<std::string, std::string> variables = {{"A", "1"}, {"EMPTY", ""}};
  EXPECT_EQ(*ExpandPath("x/$(A)", variables, 100), "x/1");
  EXPECT_EQ(*ExpandPath("$$(A)", variables, 100), "$(A)");
  EXPECT_EQ(ExpandPath("$(NONE)/$(A)/$(EMPTY)", variables, 100).error().message,
            "missing value for EMPTY, NONE");
}

TEST(Volumes, AKeyThatEscapesTheVolumeIsRefused) {
  for (const char* key :
       {"../../escaped", "/etc/passwd", "a/../../b", "..", "..data", "..data/x"}) {
    VolumeFixture node;
    auto pod = Parse(R"json({"metadata":{"uid":"u"},"spec":{"volumes":[
      {"name":"conf","configMap":{"name":"cm"}}]}})json");
    PodSources sources;
    sources.config_maps["cm"] = Parse(StrCat(R"json({"data":{")json", key, R"json(":"v"}})json"));
    auto volumes = node.Prepare(pod, sources);
    ASSERT_FALSE(volumes.ok()) << key;
    EXPECT_THAT(volumes.error().message, ::testing::HasSubstr(key));
  }
}

TEST(Volumes, TokensAreKeyedByAudienceAndLifetime) {
  VolumeFixture node;
  MemoryFileSystem& files = node.files;
  auto pod =
      Parse(R"json({"metadata":{"uid":"u"},"spec":{"volumes":[{"name":"t","projected":{"sources":[
    {"serviceAccountToken":{"path":"token"}},
    {"serviceAccountToken":{"path":"vault/token","audience":"vault","expirationSeconds":700}}]}}]}})json");
  EXPECT_TRUE(NeedsSources(pod->root(), SourceUse::kVolumes));
  EXPECT_FALSE(NeedsSources(pod->root(), SourceUse::kEnvironment));
  EXPECT_TRUE(HasChangingVolumes(pod->root()));
  PodSources sources;
  sources.tokens[{"", 3600}] = {.text = "one"};
  EXPECT_FALSE(node.Prepare(pod, sources).ok());
  sources.tokens[{"vault", 700}] = {.text = "two"};
  auto volumes = node.Prepare(pod, sources);
  ASSERT_TRUE(volumes.ok()) << volumes.error().message;
  EXPECT_EQ(*files.ReadFile("/pods/u/volumes/kubernetes.io~projected/t/token"), "one");
  EXPECT_EQ(*files.ReadFile("/pods/u/volumes/kubernetes.io~projected/t/vault/token"), "two");
}

TEST(Volumes, TokensAreOnlyForTheUserOfThePod) {
  const auto mode_with = [](const char* of_pod, const char* of_container) {
    VolumeFixture node;
    auto pod =
        Parse(StrCat(R"json({"metadata":{"uid":"u"},"spec":{"securityContext":{)json", of_pod,
                     R"json(},"containers":[{"name":"a"},{"name":"b","securityContext":{)json",
                     of_container, R"json(}}],"volumes":[{"name":"t","projected":{"sources":[
                              {"serviceAccountToken":{"path":"token"}}]}}]}})json"));
    PodSources sources;
    sources.tokens[{"", 3600}] = {.text = "one"};
    EXPECT_TRUE(node.Prepare(pod, sources).ok());
    return node.files.Stat("/pods/u/volumes/kubernetes.io~projected/t/token")->mode;
  };
  EXPECT_EQ(mode_with("", ""), 0644u);
  EXPECT_EQ(mode_with("", R"("runAsUser":1000)"), 0644u);
  EXPECT_EQ(mode_with(R"("runAsUser":1000)", R"("runAsUser":1001)"), 0644u);
  EXPECT_EQ(mode_with(R"("runAsUser":1000)", ""), 0600u);
  EXPECT_EQ(mode_with(R"("fsGroup":1000)", ""), 0640u);
}

TEST(Volumes, RefusesUnsupportedKindsAndPathsThatEscapeTheVolume) {
  VolumeFixture node;
  auto nfs =
      Parse(R"json({"spec":{"volumes":[{"name":"v","nfs":{"server":"s","path":"/"}}]}})json");
  auto volumes = node.Prepare(nfs, PodSources{});
  ASSERT_FALSE(volumes.ok());
  EXPECT_EQ(volumes.error().message,
            "MountVolume.SetUp failed for volume \"v\": volumes of type nfs are not supported by "
            "this node");
  auto container = Parse(
      R"json({"name":"a","volumeMounts":[{"name":"v","mountPath":"/m","subPath":"../../etc"}]})json");
  EXPECT_FALSE(node.MakeMountsOf({{"v", {.host_path = "/pods/u/v"}}}, container->root()).ok());
}

TEST(Volumes, EachFailingFileOperationIsAnErrorAndARetrySucceeds) {
  auto pod = Parse(R"json({"metadata":{"uid":"u"},"spec":{"volumes":[{"name":"e","emptyDir":{}},
    {"name":"c","configMap":{"name":"cm"}}]}})json");
  PodSources sources;
  sources.config_maps["cm"] = Parse(R"json({"data":{"k":"v"}})json");
  for (std::size_t call = 0;; ++call) {
    VolumeFixture node;
    MemoryFileSystem& files = node.files;
    files.FailCall(call);
    const bool first = node.Prepare(pod, sources).ok();
    if (files.calls() <= call) {
      EXPECT_TRUE(first);
      break;
    }
    EXPECT_TRUE(node.Prepare(pod, sources).ok());
    EXPECT_EQ(*files.ReadFile("/pods/u/volumes/kubernetes.io~configmap/c/k"), "v");
  }
}

TEST(Volumes, AConfigMapMountedTooManyTimesIsRefused) {
  VolumeFixture node;
  std::string items;
  for (int i = 0; i < 200; ++i) {
    items += StrCat(i == 0 ? "" : ",", R"json({"key":"k","path":"f)json", i, R"json("})json");
  }
  PodSources sources;
  sources.config_maps["cm"] =
      Parse(StrCat(R"json({"data":{"k":")json", std::string(1'000'000, 'x'), R"json("}})json"));
  auto pod = Parse(StrCat(R"json({"metadata":{"uid":"u"},"spec":{"volumes":[
    {"name":"c","configMap":{"name":"cm","items":[)json",
                          items, "]}}]}}"));
  auto volumes = node.Prepare(pod, sources);
  ASSERT_FALSE(volumes.ok());
  EXPECT_THAT(volumes.error().message, HasSubstr("content of the pod's volumes exceeds"));
}

TEST(Volumes, AHostPathWithoutATypeIsCreatedAndOneWithATypeIsChecked) {
  VolumeFixture node;
  auto pod = [](const char* type) {
    return Parse(StrCat(R"json({"metadata":{"uid":"u"},"spec":{"volumes":[
      {"name":"h","hostPath":{"path":"/data/new","type":")json",
                        type, R"json("}}]}})json"));
  };
  EXPECT_FALSE(node.Prepare(pod("Directory")).ok());
  EXPECT_FALSE(node.files.Exists("/data/new"));
  ASSERT_TRUE(node.Prepare(pod("")).ok());
  EXPECT_EQ(node.files.Stat("/data/new")->type, FileType::kDirectory);
  EXPECT_TRUE(node.Prepare(pod("Directory")).ok());
  for (const char* other : {"File", "Socket", "CharDevice", "BlockDevice", "Nonsense"}) {
    EXPECT_FALSE(node.Prepare(pod(other)).ok()) << other;
  }
}

TEST(Volumes, NamesThatArePathsAreRefused) {
  VolumeFixture node;
  auto pod = Parse(R"json({"metadata":{"uid":"u"},"spec":{"volumes":[
    {"name":"a/../../b","emptyDir":{}}]}})json");
  EXPECT_FALSE(node.Prepare(pod).ok());
  auto container = Parse(
      R"json({"name":"../x","volumeMounts":[{"name":"v","mountPath":"/m","subPath":"s"}]})json");
  EXPECT_FALSE(node.MakeMountsOf({{"v", {.host_path = "/pods/u/v"}}}, container->root()).ok());
}

TEST(Volumes, AnImageIsMountedByTheRuntimeReadOnly) {
  VolumeFixture node;
  auto pod = Parse(R"json({"metadata":{"name":"p","uid":"u"},"spec":{"volumes":[
    {"name":"v","image":{"reference":"r.example.com/data:1"}}],
    "containers":[{"name":"a","volumeMounts":[{"name":"v","mountPath":"/all"},
      {"name":"v","mountPath":"/part","subPath":"x/y"},
      {"name":"v","mountPath":"/out","subPath":"../y"}]}]}})json");
  auto volumes = node.Prepare(pod);
  ASSERT_TRUE(volumes.ok()) << volumes.error().message;
  auto mounts = node.MakeMountsOf(*volumes, (*pod)["spec"]["containers"].at(0));
  ASSERT_FALSE(mounts.ok());
  EXPECT_THAT(mounts.error().message, HasSubstr("subPath \"../y\" of volume \"v\""));
  pod = Parse(R"json({"spec":{"containers":[{"name":"a","volumeMounts":[
      {"name":"v","mountPath":"/all"},{"name":"v","mountPath":"/part","subPath":"x/y"}]}]}})json");
  mounts = node.MakeMountsOf(*volumes, (*pod)["spec"]["containers"].at(0));
  ASSERT_TRUE(mounts.ok()) << mounts.error().message;
  ASSERT_EQ(mounts->size(), 2u);
  for (const Mount& mount : *mounts) {
    EXPECT_EQ(mount.image, "r.example.com/data:1");
    EXPECT_TRUE(mount.readonly);
  }
  EXPECT_EQ(mounts->at(0).host_path, "");
  EXPECT_EQ(mounts->at(1).host_path, "x/y");
}

TEST(Hostname, AnOverrideReplacesTheNameAndTheDomain) {
  auto pod = Parse(R"json({"metadata":{"name":"p","namespace":"n"},"spec":{"hostname":"h",
    "subdomain":"s","hostnameOverride":"a.b.example.com"}})json");
  EXPECT_EQ(PodHostname(pod->root()), "a.b.example.com");
  EXPECT_EQ(*KernelHostname(pod->root(), "cluster.local"), "a.b.example.com");
  EXPECT_THAT(HostsFileText({.pod = pod->root(), .pod_ips = {"10.0.0.1"}}, ""),
              HasSubstr("10.0.0.1\ta.b.example.com\n"));
}

TEST(ContainerConfig, HasResourcesSecurityContextAndExpandedCommand) {
  auto pod = Parse(R"json({"metadata":{"name":"p","namespace":"n","uid":"u"},
    "spec":{"securityContext":{"runAsUser":1000,"fsGroup":7,"supplementalGroups":[5]},
      "containers":[{"name":"a","image":"i","command":["run","$(X)"],"args":["$(X)"],
        "securityContext":{"runAsUser":2000,"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}},
        "resources":{"requests":{"cpu":"500m"},"limits":{"cpu":"2","memory":"64Mi"}}}]},
    "status":{"qosClass":"Guaranteed"}})json");
  auto config =
      MakeContainerConfig({.pod = pod->root(),
                           .container = (*pod)["spec"]["containers"].at(0),
                           .attempt = 3,
                           .limits = ContainerLimits({.machine_memory_bytes = 1 << 30}, pod->root(),
                                                     (*pod)["spec"]["containers"].at(0)),
                           .environment = {{"X", "1"}}});
  ASSERT_TRUE(config.ok());
  EXPECT_THAT(config->command, ElementsAre("run", "1"));
  EXPECT_THAT(config->arguments, ElementsAre("1"));
  EXPECT_EQ(config->security.user, "2000");
  EXPECT_TRUE(config->security.no_new_privileges);
  EXPECT_THAT(config->security.supplemental_groups, ElementsAre(5, 7));
  EXPECT_EQ(config->resources.cpu_shares, 512);
  EXPECT_EQ(config->resources.cpu_quota_us, 200'000);
  EXPECT_EQ(config->resources.memory_limit_bytes, 64 << 20);
  EXPECT_EQ(config->resources.oom_score_adjust, -997);
  EXPECT_EQ(config->log_path, "a/3.log");
}

TEST(ContainerConfig, CdiEditsOverrideTheContainersOwnSettings) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.MakeDirectories("/cdi", 0755).ok());
  ASSERT_TRUE(files
                  .WriteFile("/cdi/x.json",
                             R"json({"cdiVersion":"0.5.0","kind":"v.com/c","devices":[{"name":"d",
    "containerEdits":{"env":["E=cdi"],"mounts":[{"hostPath":"/host/lib","containerPath":"/a","options":["ro","bind"]}],
    "deviceNodes":[{"path":"/dev/x","type":"c","major":1,"minor":3,"permissions":"r"}],
    "hooks":[{"hookName":"createContainer","path":"/bin/hook","args":["hook"]}]}}]})json",
                             0644)
                  .ok());
  cdi::Cache cache(files, {.directories = {"/cdi"}});
  ContainerConfig config;
  config.environment = {{"E", "own"}};
  config.mounts = {{.host_path = "/old", .container_path = "/a"},
                   {.host_path = "/b", .container_path = "/a/b"}};
  auto applied = ApplyCdi(cache, RealDeviceNodeProbe(), {"v.com/c=d"}, config);
  ASSERT_TRUE(applied.ok()) << applied.error().message;
  EXPECT_EQ(config.environment.back().value, "cdi");
  ASSERT_EQ(config.mounts.size(), 2u);
  EXPECT_EQ(config.mounts[0].host_path, "/host/lib");
  EXPECT_TRUE(config.mounts[0].readonly);
  ASSERT_EQ(config.devices.size(), 1u);
  EXPECT_EQ(config.devices[0].permissions, "r");
  EXPECT_EQ(config.devices[0].minor, 3);
  ASSERT_EQ(config.hooks.size(), 1u);
  // A runtime that reads the directory resolves the device itself.
  ContainerConfig by_name;
  ASSERT_TRUE(
      ApplyCdi(cache, RealDeviceNodeProbe(), {"v.com/c=d"}, by_name, {"/etc/cdi", "/cdi"}).ok());
  EXPECT_THAT(by_name.cdi_devices, ::testing::ElementsAre("v.com/c=d"));
  EXPECT_TRUE(by_name.devices.empty());
  ContainerConfig applied_here;
  ASSERT_TRUE(
      ApplyCdi(cache, RealDeviceNodeProbe(), {"v.com/c=d"}, applied_here, {"/etc/cdi"}).ok());
  EXPECT_TRUE(applied_here.cdi_devices.empty());
  EXPECT_EQ(applied_here.devices.size(), 1u);
  auto missing = ApplyCdi(cache, RealDeviceNodeProbe(), {"v.com/c=none"}, config);
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error().message, HasSubstr("unresolvable CDI devices v.com/c=none"));
  // CDI specs may be YAML, and a pod's event names the broken file.
  const auto write = [&](std::string_view text) {
    ASSERT_TRUE(files.WriteFile("/cdi/v.com-d.yaml", text, 0644).ok());
  };
  write(
      "---\ncdiVersion: 0.5.0\ndevices:\n- containerEdits:\n    env:\n    - Y=1\n  name: \"0\"\n"
      "kind: v.com/d\n");
  applied = ApplyCdi(cache, RealDeviceNodeProbe(), {"v.com/d=0"}, config);
  ASSERT_TRUE(applied.ok()) << applied.error().message;
  EXPECT_EQ(config.environment.back().name, "Y");
  write("kind: v.com/d\ndevices: }\n");
  missing = ApplyCdi(cache, RealDeviceNodeProbe(), {"v.com/d=0"}, config);
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error().message,
              HasSubstr("unresolvable CDI devices v.com/d=0; /cdi/v.com-d.yaml: "));
}

constexpr char kLog[] =
    "2026-01-01T00:00:01.000000001Z stdout F one\n"
    "2026-01-01T00:00:02Z stderr F two\n"
    "2026-01-01T00:00:03Z stdout P thr\n"
    "2026-01-01T00:00:03Z stdout F ee\n"
    "2026-01-01T00:00:04Z stdout F four\n";

std::string ReadAll(MemoryFileSystem& files, LogOptions options) {
  LogStream stream(files, "/log", std::move(options));
  std::string all;
  while (true) {
    auto text = stream.Read();
    EXPECT_TRUE(text.ok());
    if (!text.ok() || text->empty()) return all;
    all += *text;
  }
}

TEST(LogStream, TurnsCriLinesIntoText) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.WriteFile("/log", kLog, 0644).ok());
  EXPECT_EQ(ReadAll(files, {}), "one\ntwo\nthree\nfour\n");
  EXPECT_EQ(ReadAll(files, {.stream = "Stderr"}), "two\n");
  EXPECT_EQ(ReadAll(files, {.tail_lines = 1}), "four\n");
  EXPECT_EQ(ReadAll(files, {.tail_lines = 0}), "");
  EXPECT_EQ(ReadAll(files, {.tail_lines = 100}), "one\ntwo\nthree\nfour\n");
  EXPECT_EQ(ReadAll(files, {.limit_bytes = 5}), "one\nt");
  EXPECT_EQ(ReadAll(files, {.tail_lines = 1, .timestamps = true}), "2026-01-01T00:00:04Z four\n");
  EXPECT_EQ(
      ReadAll(files, {.since = WallTime(std::chrono::sys_days(std::chrono::year(2026) / 1 / 1)) +
                               std::chrono::seconds(3)}),
      "three\nfour\n");
}

TEST(LogStream, FinishesARotatedLogBeforeTheNewOne) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.WriteFile("/log", "t stdout F one\n", 0644).ok());
  LogStream stream(files, "/log", {});
  EXPECT_EQ(stream.Read().value(), "one\n");
  ASSERT_TRUE(files.AppendFile("/log", "t stdout F two\n", 0644).ok());
  ASSERT_TRUE(files.Rename("/log", "/log.20270115").ok());
  EXPECT_EQ(stream.Read().value(), "two\n");
  EXPECT_EQ(stream.Read().value(), "") << "not restarted yet";
  ASSERT_TRUE(files.WriteFile("/log", "t stdout F 3\n", 0644).ok());
  EXPECT_EQ(stream.Read().value(), "3\n");
  ASSERT_TRUE(files.Rename("/log", "/log.20270116").ok());
  ASSERT_TRUE(files.WriteFile("/log", "t stdout F \n", 0644).ok());
  EXPECT_EQ(stream.Read().value(), "\n") << "found by its length";
  EXPECT_EQ(stream.Read().value(), "");
}

TEST(LogStream, ContinuesWhereItStoppedAndWaitsForTheEndOfALine) {
  MemoryFileSystem files;
  LogStream stream(files, "/log", {});
  EXPECT_EQ(*stream.Read(), "") << "the file is not there yet";
  ASSERT_TRUE(files.WriteFile("/log", "2026-01-01T00:00:01Z stdout F on", 0644).ok());
  EXPECT_EQ(*stream.Read(), "");
  ASSERT_TRUE(files.AppendFile("/log", "e\n2026-01-01T00:00:02Z stdout F two\n", 0644).ok());
  EXPECT_EQ(*stream.Read(), "one\ntwo\n");
}

TEST(ContainerConfig, TheSeccompProfileComesFromTheContainerThePodOrTheNode) {
  auto seccomp = [](const char* pod_profile, const char* profile,
                    bool by_default) -> Result<SecurityContext> {
    auto pod = Parse(
        StrCat(R"json({"metadata":{"uid":"u"},"spec":{"securityContext":{)json", pod_profile,
               R"json(},"containers":[{"name":"a","securityContext":{)json", profile, "}}]}}"));
    ASSIGN_OR_RETURN(ContainerConfig config,
                     MakeContainerConfig({.pod = pod->root(),
                                          .container = (*pod)["spec"]["containers"].at(0),
                                          .seccomp_directory = "/s",
                                          .seccomp_default = by_default}));
    return config.security;
  };
  const char* unconfined = R"json("seccompProfile":{"type":"Unconfined"})json";
  const char* runtime = R"json("seccompProfile":{"type":"RuntimeDefault"})json";
  EXPECT_EQ(seccomp("", "", false)->seccomp, SeccompKind::kUnconfined);
  EXPECT_EQ(seccomp("", "", true)->seccomp, SeccompKind::kRuntimeDefault);
  EXPECT_EQ(seccomp(unconfined, "", true)->seccomp, SeccompKind::kUnconfined);
  EXPECT_EQ(seccomp(runtime, "", false)->seccomp, SeccompKind::kRuntimeDefault);
  EXPECT_EQ(seccomp(runtime, unconfined, false)->seccomp, SeccompKind::kUnconfined);
  auto own = seccomp(
      "", R"json("seccompProfile":{"type":"Localhost","localhostProfile":"team/p.json"})json",
      false);
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(own->seccomp, SeccompKind::kLocalhost);
  EXPECT_EQ(own->seccomp_path, "/s/team/p.json");
  for (const char* path : {"", "/etc/shadow", "../x", "a/../../x"}) {
    EXPECT_FALSE(
        seccomp("",
                StrCat(R"json("seccompProfile":{"type":"Localhost","localhostProfile":")json", path,
                       R"json("})json")
                    .c_str(),
                false)
            .ok())
        << path;
  }
}

}  // namespace
}  // namespace drakkar::node
