// Volumes of running pods: content, limits, removal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/meta/quantity.h"
#include "base/testing/memory_file_system.h"
#include "base/text/text.h"
#include "node/dra/dra_manager.h"
#include "node/node_agent.h"
#include "node/pods/container_config.h"
#include "node/pods/pod_manager.h"
#include "node/testing/node_harness.h"

namespace drakkar::node {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Volumes whose sizes the test sets.
class SizedVolumes final : public VolumeHost {
 public:
  explicit SizedVolumes(FileSystem& files) : plain_(MakePlainVolumeHost(files)) {}
  Result<void> MountMemory(const std::string& path, std::uint64_t size_bytes,
                           std::optional<std::uint32_t>) override {
    memory[path] = size_bytes;
    return Ok();
  }
  Result<void> MountHugePages(const std::string& path, const std::string& page_size,
                              std::optional<std::uint32_t>) override {
    huge[path] = page_size;
    return Ok();
  }
  Result<void> SetGroup(const std::string&, std::uint32_t) override { return Ok(); }
  Result<void> ShowFiles(const std::string& directory, const VolumeFiles& content,
                         std::optional<std::uint32_t> group) override {
    return plain_->ShowFiles(directory, content, group);
  }
  Result<std::string> BindInside(const std::string& volume, const std::string& sub_path,
                                 const std::string& target) override {
    return plain_->BindInside(volume, sub_path, target);
  }
  Result<std::string> ReadInside(const std::string& volume, const std::string& path,
                                 std::size_t max_bytes) override {
    return plain_->ReadInside(volume, path, max_bytes);
  }
  Result<void> UnmountBelow(const std::string& path) override {
    unmounted.push_back(path);
    return Ok();
  }
  Result<std::uint64_t> Usage(const std::string&) override { return used_bytes; }

  std::uint64_t used_bytes = 0;
  std::map<std::string, std::uint64_t> memory;  // by path, its size
  std::map<std::string, std::string> huge;      // by path, the size of its pages
  std::vector<std::string> unmounted;

 private:
  std::unique_ptr<VolumeHost> plain_;
};

TEST(PodVolumes, HostAliasesAppearInTheHostsFileOfEachContainer) {
  NodeHarness node;
  node.StartAgent();
  node.CreatePod("p", R"("hostAliases":[{"ip":"10.1.2.3","hostnames":["db","db.local"]}],
    "containers":[{"name":"a","image":"busybox:1"}])");
  ASSERT_EQ(node.Containers("p", "a").size(), 1u);
  std::string file;
  for (const Mount& mount : node.Containers("p", "a")[0]->config.mounts) {
    if (mount.container_path == "/etc/hosts") file = mount.host_path;
  }
  ASSERT_FALSE(file.empty());
  const std::string text = *node.files.ReadFile(file);
  EXPECT_THAT(text, HasSubstr("127.0.0.1\tlocalhost\n"));
  EXPECT_THAT(text, HasSubstr("10.0.0.1\tp\n"));
  EXPECT_TRUE(text.ends_with("\n# Entries added by HostAliases.\n10.1.2.3\tdb\tdb.local\n"))
      << text;
  EXPECT_TRUE(node.Events("UnsupportedFields").empty());
}

TEST(PodVolumes, AHostsFileThatAContainerChangedIsReplaced) {
  MemoryFileSystem files;
  const api::TreePtr pod = *api::ParseJson(
      R"({"metadata":{"name":"p","namespace":"default"},"spec":{"containers":[]}})");
  const HostsFileInput input{
      .pod = pod->root(), .pod_ips = {"10.0.0.1"}, .cluster_domain = "cluster.local"};
  ASSERT_TRUE(WriteHostsFile(files, input, "/pod/etc-hosts").ok());
  const std::string text = *files.ReadFile("/pod/etc-hosts");
  ASSERT_TRUE(files.WriteFile("/pod/etc-hosts", text + std::string(4 << 20, 'x'), 0644).ok());
  ASSERT_TRUE(WriteHostsFile(files, input, "/pod/etc-hosts").ok());
  EXPECT_EQ(*files.ReadFile("/pod/etc-hosts"), text);
  ASSERT_TRUE(files.WriteFile("/pod/etc-hosts", text + "x", 0644).ok());
  ASSERT_TRUE(WriteHostsFile(files, input, "/pod/etc-hosts").ok());
  EXPECT_EQ(*files.ReadFile("/pod/etc-hosts"), text);
}

TEST(PodVolumes, ConfigMapVolumesAreUpdatedAtOnce) {
  NodeHarness node;
  node.api.Create(
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"s","namespace":"default"},
    "data":{"k":"v","old":"x"}})");
  node.StartAgent();
  node.CreatePod("p", R"("volumes":[{"name":"c","configMap":{"name":"s"}}],
    "containers":[{"name":"a","image":"busybox:1","volumeMounts":[{"name":"c","mountPath":"/c"}]}])");
  ASSERT_EQ(node.Phase("p"), "Running");
  const std::string directory =
      StrCat("/var/lib/kubelet/pods/", node.Pod("p")->uid(), "/volumes/kubernetes.io~configmap/c");
  EXPECT_EQ(*node.files.ReadFile(directory + "/k"), "v");
  api::Draft changed(node.api.Get("ConfigMap", "default/s")->tree());
  changed["data"].Entry("k") = "w";
  changed["data"].RemoveEntry("old");
  ASSERT_TRUE(node.api.Update("ConfigMap", "default/s", "", changed.Freeze()).ok());
  node.Advance(seconds(2));
  EXPECT_EQ(*node.files.ReadFile(directory + "/k"), "w");
  EXPECT_FALSE(node.files.Exists(directory + "/old"));
  EXPECT_EQ(node.Containers("p", "a").size(), 1u);
}

// "k" of the ConfigMap "s" as a volume shows it.
std::string ShownKey(NodeHarness& node) {
  const auto text = node.files.ReadFile(StrCat("/var/lib/kubelet/pods/", node.Pod("p")->uid(),
                                               "/volumes/kubernetes.io~configmap/c/k"));
  return text.ok() ? *text : "(none)";
}

void SetKey(NodeHarness& node, const std::string& value) {
  api::Draft changed(node.api.Get("ConfigMap", "default/s")->tree());
  changed["data"].Entry("k") = value;
  ASSERT_TRUE(node.api.Update("ConfigMap", "default/s", "", changed.Freeze()).ok());
}

constexpr char kOptionalMap[] =
    R"("volumes":[{"name":"c","configMap":{"name":"s","optional":true}}],
    "containers":[{"name":"a","image":"busybox:1","volumeMounts":[{"name":"c","mountPath":"/c"}]}])";
constexpr char kMap[] = R"({"apiVersion":"v1","kind":"ConfigMap",
    "metadata":{"name":"s","namespace":"default"},"data":{"k":"v"}})";

TEST(PodVolumes, AnOptionalConfigMapAppearsAndDisappears) {
  NodeHarness node;
  node.StartAgent();
  node.CreatePod("p", kOptionalMap);
  ASSERT_EQ(node.Phase("p"), "Running");
  EXPECT_EQ(ShownKey(node), "(none)");
  node.api.Create(kMap);
  node.Advance(seconds(2));
  EXPECT_EQ(ShownKey(node), "v");
  node.api.Delete("ConfigMap", "default/s");
  node.Advance(seconds(2));
  EXPECT_EQ(ShownKey(node), "(none)");
}

TEST(PodVolumes, ASourceThatKeepsChangingRefreshesOncePerSecond) {
  NodeHarness node;
  node.api.Create(kMap);
  node.StartAgent();
  node.CreatePod("p", kOptionalMap);
  int reads = 0;
  node.api_fault = [&](const std::string& what) -> std::optional<Error> {
    if (what.find("configmaps") != std::string::npos) ++reads;
    return std::nullopt;
  };
  for (int i = 0; i < 100; ++i) {
    SetKey(node, std::to_string(i));
    node.Advance(std::chrono::milliseconds(100));
  }
  EXPECT_LE(reads, 12);
  EXPECT_GE(reads, 8);
  node.Advance(seconds(2));
  EXPECT_EQ(ShownKey(node), "99");
}

// Without watches, as on hollow nodes.
TEST(PodVolumes, ASourceThatIsNotWatchedIsReadAgainWithinAMinute) {
  NodeHarness node;
  node.watch_sources = false;
  node.api.Create(kMap);
  node.StartAgent();
  node.CreatePod("p", kOptionalMap);
  SetKey(node, "w");
  node.Advance(seconds(2));
  EXPECT_EQ(ShownKey(node), "v");
  node.Advance(seconds(60));
  EXPECT_EQ(ShownKey(node), "w");
}

TEST(PodVolumes, ChangedAnnotationsAppearAtOnce) {
  NodeHarness node;
  node.StartAgent();
  node.CreatePod("p", R"("volumes":[{"name":"d","downwardAPI":{"items":[{"path":"notes",
      "fieldRef":{"fieldPath":"metadata.annotations"}}]}}],
    "containers":[{"name":"a","image":"busybox:1","volumeMounts":[{"name":"d","mountPath":"/d"}]}])");
  node.Advance(seconds(5));
  api::Draft changed(node.Pod("p")->tree());
  changed["metadata"]["annotations"].Entry("note") = "new";
  ASSERT_TRUE(node.api.Update("Pod", "default/p", "", changed.Freeze()).ok());
  node.Advance(seconds(2));
  EXPECT_EQ(*node.files.ReadFile(StrCat("/var/lib/kubelet/pods/", node.Pod("p")->uid(),
                                        "/volumes/kubernetes.io~downward-api/d/notes")),
            "note=\"new\"\n");
}

TEST(PodVolumes, APodIsEvictedWhenAVolumeExceedsItsLimit) {
  NodeHarness node;
  SizedVolumes volumes(node.files);
  node.volume_host = &volumes;
  node.StartAgent();
  node.CreatePod("p", R"("volumes":[{"name":"v","emptyDir":{"sizeLimit":"1Mi"}}],
    "terminationGracePeriodSeconds":600,
    "containers":[{"name":"a","image":"busybox:1","volumeMounts":[{"name":"v","mountPath":"/v"}]}])");
  ASSERT_EQ(node.Phase("p"), "Running");
  volumes.used_bytes = 1 << 20;
  node.Advance(seconds(30));
  EXPECT_EQ(node.Phase("p"), "Running") << "as much as it may have";
  volumes.used_bytes = (1 << 20) + 1;
  node.Advance(seconds(12));
  const auto pod = node.Pod("p");
  EXPECT_EQ((*pod)["status"]["phase"].str(), "Failed");
  EXPECT_EQ((*pod)["status"]["reason"].str(), "Evicted");
  EXPECT_EQ((*pod)["status"]["message"].str(),
            "Usage of EmptyDir volume \"v\" exceeds the limit \"1Mi\". ");
  EXPECT_EQ(node.Events("Evicted").size(), 1u);
}

TEST(PodVolumes, HugePagesAreMountedInTheSizeThatThePodAsksFor) {
  NodeHarness node;
  SizedVolumes volumes(node.files);
  node.volume_host = &volumes;
  node.huge_pages = {{"2Mi", 64 << 20}, {"1Gi", 1l << 30}};
  node.StartAgent();
  const auto pod = [](const char* medium, const char* resources) {
    return StrCat(R"("volumes":[{"name":"h","emptyDir":{"medium":")", medium, R"("}}],
      "containers":[{"name":"a","image":"busybox:1","volumeMounts":[{"name":"h","mountPath":"/h"}],
      "resources":{"limits":{"memory":"1Mi",)",
                  resources, "}}}]");
  };
  const auto size = [&](const char* name) {
    return volumes.huge[StrCat("/var/lib/kubelet/pods/", node.Pod(name)->uid(),
                               "/volumes/kubernetes.io~empty-dir/h")];
  };
  node.CreatePod("one", pod("HugePages", R"("hugepages-2Mi":"4Mi")"));
  EXPECT_EQ(node.Phase("one"), "Running");
  EXPECT_EQ(size("one"), "2M");
  node.CreatePod("two", pod("HugePages-1Gi", R"("hugepages-1Gi":"1Gi","hugepages-2Mi":"2Mi")"));
  EXPECT_EQ(size("two"), "1G");
  node.CreatePod("both", pod("HugePages", R"("hugepages-64Ki":"0","hugepages-2Mi":"2Mi")"));
  EXPECT_THAT(node.Events("FailedMount").at(0), HasSubstr("asks for 2 sizes"));
  node.CreatePod("other", pod("HugePages-1Gi", R"("hugepages-2Mi":"2Mi")"));
  EXPECT_THAT(node.Events("FailedMount").back(), HasSubstr("asks for hugepages-1Gi"));
  const CgroupResources limits = node.Containers("one", "a").at(0)->config.resources;
  EXPECT_EQ(limits.hugepage_limits_bytes,
            (std::map<std::string, std::int64_t>{{"1GB", 0}, {"2MB", 4 << 20}}));
}

TEST(PodVolumes, AMountThatMustBeReadOnlyRecursivelyIsRefused) {
  NodeHarness node;
  node.StartAgent();
  const auto pod = [](const char* mode) {
    return StrCat(R"("volumes":[{"name":"v","emptyDir":{}}],"containers":[{"name":"a",
      "image":"busybox:1","volumeMounts":[{"name":"v","mountPath":"/v","readOnly":true,
      "recursiveReadOnly":")",
                  mode, R"("}]}])");
  };
  node.CreatePod("must", pod("Enabled"));
  EXPECT_EQ(node.Containers("must", "a").size(), 0u);
  const auto waiting =
      node.Pod("must")->root()["status"]["containerStatuses"].at(0)["state"]["waiting"];
  EXPECT_EQ(waiting["reason"].str(), "CreateContainerConfigError");
  EXPECT_EQ(waiting["message"].str(),
            R"(volume "v": this node cannot mount with recursiveReadOnly: Enabled)");
  for (const char* mode : {"IfPossible", "Disabled"}) {
    const std::string name = ToLower(mode);
    node.CreatePod(name, pod(mode));
    EXPECT_TRUE(node.Containers(name, "a").at(0)->config.mounts.at(0).readonly) << mode;
  }
}

TEST(PodVolumes, TheNodeReportsItsHugePagesAndRejectsPodsThatNeedMore) {
  NodeHarness node;
  node.huge_pages = {{"2Mi", 64 << 20}};
  node.StartAgent();
  const api::ObjectPtr object = node.api.Get("Node", "node-1");
  const api::Value status = (*object)["status"];
  EXPECT_EQ(status["capacity"].Entry("hugepages-2Mi").str(), "64Mi");
  EXPECT_EQ(status["allocatable"].Entry("hugepages-2Mi").str(), "64Mi");
  const auto memory = [&](api::FieldName list) {
    return api::Quantity::Parse(status[list]["memory"].str())->Value();
  };
  EXPECT_EQ(memory("capacity") - memory("allocatable"), 64 << 20);
  const auto create = [&](const char* name, const char* limit) {
    node.CreatePod(name, StrCat(R"("containers":[{"name":"a","image":"busybox:1","resources":
        {"limits":{"memory":"1Mi",)",
                                limit, R"(},"requests":{"memory":"1Mi",)", limit, "}}}]"));
  };
  create("p", R"("hugepages-2Mi":"40Mi")");
  EXPECT_EQ(node.Phase("p"), "Running");
  create("q", R"("hugepages-2Mi":"26Mi")");
  EXPECT_EQ((*node.Pod("q"))["status"]["reason"].str(), "OutOfhugepages-2Mi");
  create("r", R"("hugepages-1Gi":"1Gi")");
  EXPECT_EQ((*node.Pod("r"))["status"]["reason"].str(), "OutOfhugepages-1Gi");
}

TEST(PodVolumes, InMemoryVolumesAreBoundedByThePodAndRemovedWhenItEnds) {
  NodeHarness node;
  SizedVolumes volumes(node.files);
  node.volume_host = &volumes;
  node.StartAgent();
  node.RunFor(seconds(5));
  node.CreatePod("p", R"("restartPolicy":"Never","volumes":[
      {"name":"small","emptyDir":{"medium":"Memory","sizeLimit":"1Mi"}},
      {"name":"large","emptyDir":{"medium":"Memory","sizeLimit":"1Ti"}}],
    "containers":[{"name":"a","image":"busybox:1","resources":{"limits":{"memory":"64Mi"}}}])");
  const std::string directory = StrCat("/var/lib/kubelet/pods/", node.Pod("p")->uid());
  const std::string prefix = directory + "/volumes/kubernetes.io~empty-dir/";
  EXPECT_EQ(volumes.memory[prefix + "small"], 1u << 20);
  EXPECT_EQ(volumes.memory[prefix + "large"], 64u << 20);
  EXPECT_TRUE(volumes.unmounted.empty());
  node.Advance(seconds(6));
  EXPECT_EQ(node.Phase("p"), "Succeeded");
  EXPECT_EQ(volumes.unmounted, (std::vector<std::string>{directory})) << "though the pod is there";
  EXPECT_FALSE(node.files.Exists(prefix + "small"));
}

}  // namespace
}  // namespace drakkar::node
