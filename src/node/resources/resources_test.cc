// What pods ask for, as limits and cgroups.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/testing/faulty_file_system.h"
#include "base/testing/memory_file_system.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "node/resources/pod_amounts.h"
#include "node/resources/pod_cgroups.h"
#include "node/resources/pod_limits.h"
#include "node/runtime/cri/systemd_slice.h"
#include "node/status/node_facts.h"

namespace drakkar::node {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr std::int64_t kGi = 1 << 30;
constexpr std::int64_t kMi = 1 << 20;

api::TreePtr Parse(std::string_view json) {
  auto tree = api::ParseJson(json);
  EXPECT_TRUE(tree.ok()) << json;
  return *tree;
}

std::string Container(std::string_view name, std::string_view requests, std::string_view limits,
                      std::string_view more = "") {
  return StrCat(R"({"name":")", name, R"(","resources":{"requests":{)", requests, R"(},"limits":{)",
                limits, "}}", more, "}");
}

struct PodText {
  std::string containers;
  std::string init;
  std::string spec;  // more members, each with a comma before it
  std::string qos = "Burstable";
};
api::TreePtr Pod(const PodText& text) {
  return Parse(
      StrCat(R"({"metadata":{"name":"p","namespace":"n","uid":"u-1"},"spec":{"containers":[)",
             text.containers, R"(],"initContainers":[)", text.init, "]", text.spec,
             R"(},"status":{"qosClass":")", text.qos, R"("}})"));
}

TEST(PodAmounts, TheLargestInitContainerCountsWithTheSidecarsBeforeIt) {
  const std::string sidecar = R"(,"restartPolicy":"Always")";
  const auto pod = Pod({.containers = Container("a", R"("cpu":"1","memory":"1Gi")", ""),
                        .init = Container("first", R"("cpu":"3")", "") + "," +
                                Container("side", R"("cpu":"500m")", "", sidecar) + "," +
                                Container("second", R"("cpu":"2700m")", "")});
  EXPECT_EQ(RequestsOf(pod->root()).cpu_milli, 3200) << "second and the sidecar before it";
  EXPECT_EQ(RequestsOf(pod->root()).memory_bytes, kGi);
  const auto small = Pod({.containers = Container("a", R"("cpu":"1")", ""),
                          .init = Container("side", R"("cpu":"500m")", "", sidecar)});
  EXPECT_EQ(RequestsOf(small->root()).cpu_milli, 1500);
}

TEST(PodAmounts, WhatThePodRequestsAsAWholeTakesPrecedenceAndOverheadIsAdded) {
  const auto pod = Pod({.containers = Container("a", R"("cpu":"1","memory":"1Gi")", R"("cpu":"2")"),
                        .spec = R"(,"resources":{"requests":{"cpu":"250m"},"limits":{"cpu":"4"}},
                                    "overhead":{"cpu":"100m","memory":"16Mi"})"});
  EXPECT_EQ(RequestsOf(pod->root()).cpu_milli, 350);
  EXPECT_EQ(RequestsOf(pod->root()).memory_bytes, kGi + 16 * kMi);
  EXPECT_EQ(LimitOf(pod->root(), "cpu"), 4100);
  EXPECT_EQ(LimitOf(pod->root(), "memory"), 0) << "no limit, so no overhead";
}

TEST(PodLimits, ABurstablePodIsLimitedOnlyIfAllItsContainersAre) {
  const LimitRules rules{.pids_per_pod = 7};
  const auto all =
      Pod({.containers = Container("a", R"("cpu":"1")", R"("cpu":"2","memory":"1Gi")") + "," +
                         Container("b", "", R"("cpu":"500m","memory":"2Gi")")});
  CgroupResources limits = PodLimits(rules, all->root());
  EXPECT_EQ(limits.cpu_shares, 1024);
  EXPECT_EQ(limits.cpu_quota_us, 250'000);
  EXPECT_EQ(limits.cpu_period_us, 100'000);
  EXPECT_EQ(limits.memory_limit_bytes, 3 * kGi);
  EXPECT_EQ(limits.pids_limit, 7);
  const auto some = Pod({.containers = Container("a", "", R"("cpu":"2","memory":"1Gi")") + "," +
                                       Container("b", "", R"("cpu":"1")")});
  limits = PodLimits(rules, some->root());
  EXPECT_EQ(limits.cpu_quota_us, 300'000);
  EXPECT_EQ(limits.memory_limit_bytes, 0);
  EXPECT_EQ(limits.cpu_shares, 2) << "nothing was requested";
  const auto init =
      Pod({.containers = Container("a", "", R"("cpu":"2")"), .init = Container("i", "", "")});
  EXPECT_EQ(PodLimits(rules, init->root()).cpu_quota_us, 0);
  const auto best_effort = Pod({.containers = Container("a", "", ""), .qos = "BestEffort"});
  EXPECT_EQ(PodLimits(rules, best_effort->root()).cpu_shares, 2);
  EXPECT_EQ(PodLimits(rules, best_effort->root()).pids_limit, 7);
}

TEST(PodLimits, ALimitOfThePodHoldsForItAndForContainersWithoutOne) {
  const auto pod = Pod({.containers = Container("a", R"("cpu":"100m")", "") + "," +
                                      Container("b", "", R"("cpu":"300m","memory":"64Mi")"),
                        .spec = R"(,"resources":{"requests":{"cpu":"1","memory":"128Mi"},
                                                  "limits":{"cpu":"2","memory":"256Mi"}})"});
  CgroupResources limits = PodLimits({}, pod->root());
  EXPECT_EQ(limits.cpu_shares, 1024);
  EXPECT_EQ(limits.cpu_quota_us, 200'000);
  EXPECT_EQ(limits.memory_limit_bytes, 256 * kMi);
  const api::Value containers = pod->root()["spec"]["containers"];
  limits = ContainerLimits({}, pod->root(), containers.at(0));
  EXPECT_EQ(limits.cpu_quota_us, 200'000);
  EXPECT_EQ(limits.memory_limit_bytes, 256 * kMi);
  EXPECT_EQ(limits.cpu_shares, 102);
  limits = ContainerLimits({}, pod->root(), containers.at(1));
  EXPECT_EQ(limits.cpu_quota_us, 30'000);
  EXPECT_EQ(limits.memory_limit_bytes, 64 * kMi);
}

TEST(PodLimits, HugePagesAreLimitedToWhatWasAskedForAndOthersHaveNone) {
  const LimitRules rules{.page_sizes = {"1Gi", "2Mi"}};
  const auto pod =
      Pod({.containers = Container("a", "", R"("memory":"1Gi","hugepages-2Mi":"6Mi")") + "," +
                         Container("b", "", R"("memory":"1Gi")")});
  const api::Value containers = pod->root()["spec"]["containers"];
  using Limits = std::map<std::string, std::int64_t>;
  EXPECT_EQ(ContainerLimits(rules, pod->root(), containers.at(0)).hugepage_limits_bytes,
            (Limits{{"1GB", 0}, {"2MB", 6 * kMi}}));
  EXPECT_EQ(ContainerLimits(rules, pod->root(), containers.at(1)).hugepage_limits_bytes,
            (Limits{{"1GB", 0}, {"2MB", 0}}));
  EXPECT_EQ(PodLimits(rules, pod->root()).hugepage_limits_bytes,
            (Limits{{"1GB", 0}, {"2MB", 6 * kMi}}));
  const auto best_effort = Pod({.containers = Container("a", "", ""), .qos = "BestEffort"});
  EXPECT_EQ(PodLimits(rules, best_effort->root()).hugepage_limits_bytes,
            (Limits{{"1GB", 0}, {"2MB", 0}}));
}

TEST(NodeFacts, HugePagesAreReadBySize) {
  MemoryFileSystem files;
  const auto put = [&](const std::string& name, const std::string& count) {
    const std::string directory = "/sys/kernel/mm/hugepages/" + name;
    ASSERT_TRUE(files.MakeDirectories(directory, 0755).ok());
    ASSERT_TRUE(files.WriteFile(directory + "/nr_hugepages", count, 0644).ok());
  };
  put("hugepages-2048kB", "16\n");
  put("hugepages-1048576kB", "0\n");
  put("hugepages-64kB", "x");
  put("other", "1");
  EXPECT_EQ(ReadNodeFacts(files).huge_pages,
            (std::map<std::string, std::int64_t>{{"1Gi", 0}, {"2Mi", 32 * kMi}, {"64Ki", 0}}));
}

TEST(PodCgroup, HugePagesAreLimitedWhereTheMachineHasACgroupForThem) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.MakeDirectories("/sys/fs/cgroup", 0755).ok());
  const auto text = [&](const std::string& path) {
    const auto found = files.ReadFile("/sys/fs/cgroup/" + path);
    return found.ok() ? *found : "(none)";
  };
  constexpr char kUnified[] = "1 1 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  const CgroupResources resources{.hugepage_limits_bytes = {{"2MB", 4096}}};
  ASSERT_TRUE(files.WriteFile("/sys/fs/cgroup/cgroup.controllers", "cpu pids", 0644).ok());
  ASSERT_TRUE(Cgroups::Parse(files, kUnified).Create("/p", resources).ok());
  EXPECT_EQ(text("p/hugetlb.2MB.max"), "(none)");
  ASSERT_TRUE(files.WriteFile("/sys/fs/cgroup/cgroup.controllers", "cpu hugetlb", 0644).ok());
  ASSERT_TRUE(Cgroups::Parse(files, kUnified).Create("/p", resources).ok());
  EXPECT_EQ(text("p/hugetlb.2MB.max"), "4096");
  EXPECT_EQ(text("cgroup.subtree_control"), "+hugetlb");
  ASSERT_TRUE(
      Cgroups::Parse(files, "1 1 0:1 / /sys/fs/cgroup/hugetlb rw - cgroup cgroup rw,hugetlb\n")
          .Create("/q", resources)
          .ok());
  EXPECT_EQ(text("hugetlb/q/hugetlb.2MB.limit_in_bytes"), "4096");
}

TEST(PodLimits, QuotasFollowTheSettingsAndExclusiveCpusHaveNone) {
  const auto pod =
      Pod({.containers = Container("a", R"("cpu":"1")", R"("cpu":"1")"), .qos = "Guaranteed"});
  const api::Value a = pod->root()["spec"]["containers"].at(0);
  EXPECT_EQ(ContainerLimits({.cpu_quota = false}, pod->root(), a).cpu_quota_us, 0);
  EXPECT_EQ(ContainerLimits({.cpu_period_us = 10'000}, pod->root(), a).cpu_quota_us, 10'000);
  EXPECT_EQ(ContainerLimits({.cpu_period_us = 10'000}, pod->root(), a).cpu_period_us, 10'000);
  EXPECT_EQ(ContainerLimits({}, pod->root(), a, true).cpu_quota_us, 0);
  EXPECT_EQ(PodLimits({}, pod->root(), true).cpu_quota_us, 0);
  EXPECT_EQ(PodLimits({}, pod->root()).cpu_quota_us, 100'000);
}

TEST(PodLimits, TheOomScoreFollowsTheClassTheRequestAndThePriority) {
  const auto score = [](const PodText& text, int container = 0, bool init = false) {
    const auto pod = Pod(text);
    const api::Value list =
        pod->root()["spec"][init ? api::FieldName("initContainers") : api::FieldName("containers")];
    return OomScoreAdjust(pod->root(), list.at(static_cast<std::size_t>(container)), 10 * kGi);
  };
  const std::string one = Container("a", R"("memory":"1Gi")", "");
  EXPECT_EQ(score({.containers = one, .qos = "Guaranteed"}), -997);
  EXPECT_EQ(score({.containers = one, .qos = "BestEffort"}), 1000);
  EXPECT_EQ(score({.containers = one}), 900);
  EXPECT_EQ(score({.containers = Container("a", R"("memory":"10Gi")", "")}), 3);
  EXPECT_EQ(score({.containers = Container("a", "", "")}), 999);
  EXPECT_EQ(score({.containers = one,
                   .spec = R"(,"priority":2000001000,"priorityClassName":"system-node-critical")"}),
            -997);
  EXPECT_EQ(score({.containers = one, .spec = R"(,"priorityClassName":"system-node-critical")"}),
            900)
      << "the name alone makes nobody critical";
  // What the pod requests beyond its containers is divided among them.
  EXPECT_EQ(score({.containers = one + "," + Container("b", "", ""),
                   .spec = R"(,"resources":{"requests":{"memory":"5Gi"}})"},
                  1),
            800);
  // A sidecar goes after the containers that use it.
  EXPECT_EQ(score({.containers = Container("a", R"("memory":"4Gi")", ""),
                   .init = Container("s", R"("memory":"1Gi")", "", R"(,"restartPolicy":"Always")")},
                  0, true),
            600);
}

TEST(PodLimits, SwapIsForbiddenUnlessTheNodeSharesItByRequest) {
  const auto limits = [](const LimitRules& rules, const std::string& requests,
                         const std::string& limited, const std::string& spec = "") {
    const auto pod = Pod({.containers = Container("a", requests, limited), .spec = spec});
    return ContainerLimits(rules, pod->root(), pod->root()["spec"]["containers"].at(0));
  };
  const LimitRules v1{.counts_swap = true};
  EXPECT_EQ(limits(v1, "", R"("memory":"1Gi")").memory_swap_limit_bytes, kGi);
  EXPECT_EQ(limits(v1, "", "").memory_swap_limit_bytes, 0);
  EXPECT_EQ(limits({}, "", R"("memory":"1Gi")").memory_swap_limit_bytes, 0);
  LimitRules v2{.machine_memory_bytes = 8 * kGi,
                .machine_swap_bytes = 4 * kGi,
                .is_unified = true,
                .counts_swap = true,
                .kill_all_on_oom = false};
  EXPECT_THAT(limits(v2, R"("memory":"2Gi")", "").unified,
              ElementsAre(Pair("memory.swap.max", "0")));
  v2.limited_swap = true;
  EXPECT_THAT(limits(v2, R"("memory":"2Gi")", "").unified,
              ElementsAre(Pair("memory.swap.max", std::to_string(kGi))));
  EXPECT_THAT(limits(v2, R"("memory":"2Gi")", R"("memory":"2Gi")").unified,
              ElementsAre(Pair("memory.swap.max", "0")));
  EXPECT_THAT(limits(v2, R"("memory":"2Gi")", "", R"(,"priority":2000000000)").unified,
              ElementsAre(Pair("memory.swap.max", "0")));
  v2.counts_swap = false;
  v2.kill_all_on_oom = true;
  EXPECT_THAT(limits(v2, R"("memory":"2Gi")", "").unified,
              ElementsAre(Pair("memory.oom.group", "1")));
}

TEST(SystemdSlice, HasAllLevelsInEachName) {
  EXPECT_EQ(SystemdSlice("/kubepods/burstable/pod12-34"),
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_34.slice");
  EXPECT_EQ(SystemdSlice("/"), "");
}

constexpr char kV1[] =
    "1 0 0:1 / /sys/fs/cgroup/cpu rw - cgroup c rw,cpu\n"
    "1 0 0:1 / /sys/fs/cgroup/memory rw - cgroup c rw,memory\n"
    "1 0 0:1 / /sys/fs/cgroup/pids rw - cgroup c rw,pids\n";
constexpr char kV2[] = "1 0 0:1 / /sys/fs/cgroup rw - cgroup2 c rw\n";

class PodCgroupsTest : public ::testing::Test {
 protected:
  PodCgroups Make(const char* mounts, NodeResources settings) {
    settings.cgroups = Cgroups::Parse(faulty_, mounts);
    return PodCgroups({.loop = loop_,
                       .settings = std::move(settings),
                       .uses_systemd = [this] { return systemd_; },
                       .active_pods = [this] { return pods_; },
                       .on_enforced =
                           [this](bool enforced, const std::string& message) {
                             told_.push_back((enforced ? "ok: " : "failed: ") + message);
                           }});
  }
  std::string At(const std::string& path) {
    auto text = files_.ReadFile("/sys/fs/cgroup" + path);
    return text.ok() ? *text : "(none)";
  }
  void AddPod(const PodText& text) {
    pods_.push_back(std::make_shared<const api::Object>(Pod(text)));
  }

  MemoryFileSystem files_;
  FaultyFileSystem faulty_{files_};
  SeededLoop loop_;
  std::vector<api::ObjectPtr> pods_;
  std::vector<std::string> told_;
  bool systemd_ = false;
};

TEST_F(PodCgroupsTest, PodsAreBelowTheirClass) {
  const CgroupLayout layout{.root = "/drakkar"};
  EXPECT_EQ(layout.OfPod(QosClass::kGuaranteed, "1"), "/drakkar/kubepods/pod1");
  EXPECT_EQ(layout.OfPod(QosClass::kBurstable, "1"), "/drakkar/kubepods/burstable/pod1");
  EXPECT_EQ(layout.OfPod(QosClass::kBestEffort, "1"), "/drakkar/kubepods/besteffort/pod1");
  EXPECT_EQ((CgroupLayout{.root = "/"}.Pods()), "/kubepods");
  EXPECT_EQ((CgroupLayout{.root = "/x", .per_qos = false}.OfPod(QosClass::kBurstable, "1")),
            "/x/pod1");
}

TEST_F(PodCgroupsTest, AllPodsShareWhatIsNotReservedAndBurstableOnesByTheirRequests) {
  PodCgroups cgroups =
      Make(kV1, {.pods = {.cpu_milli = 3500, .memory_bytes = 5 * kGi, .pids = 1000}});
  ASSERT_TRUE(cgroups.Start().ok());
  EXPECT_EQ(At("/cpu/drakkar/kubepods/cpu.shares"), "3584");
  EXPECT_EQ(At("/memory/drakkar/kubepods/memory.limit_in_bytes"), std::to_string(5 * kGi));
  EXPECT_EQ(At("/pids/drakkar/kubepods/pids.max"), "1000");
  EXPECT_EQ(At("/cpu/drakkar/kubepods/besteffort/cpu.shares"), "2");
  EXPECT_EQ(At("/cpu/drakkar/kubepods/burstable/cpu.shares"), "2");
  EXPECT_THAT(told_, ElementsAre("ok: Updated Node Allocatable limit across pods"));
  AddPod({.containers = Container("a", R"("cpu":"1")", "")});
  AddPod({.containers = Container("a", R"("cpu":"8")", ""), .qos = "Guaranteed"});
  EXPECT_EQ(cgroups.Prepare(pods_[0]->root()), "/drakkar/kubepods/burstable/podu-1");
  EXPECT_EQ(At("/cpu/drakkar/kubepods/burstable/cpu.shares"), "1024");
  pods_.clear();
  loop_.Advance(PodCgroups::kEvery);
  EXPECT_EQ(At("/cpu/drakkar/kubepods/burstable/cpu.shares"), "2") << "as its pods have ended";
  EXPECT_EQ(told_.size(), 1u);
}

TEST_F(PodCgroupsTest, TheUnifiedHierarchyHasWeights) {
  PodCgroups cgroups = Make(kV2, {.pods = {.cpu_milli = 2000, .memory_bytes = kGi}});
  ASSERT_TRUE(cgroups.Start().ok());
  EXPECT_EQ(At("/drakkar/kubepods/memory.max"), std::to_string(kGi));
  EXPECT_EQ(At("/drakkar/kubepods/cpu.weight"), "79");
  EXPECT_EQ(At("/drakkar/kubepods/besteffort/cpu.weight"), "1");
  EXPECT_FALSE(cgroups.counts_swap());
  ASSERT_TRUE(
      files_.WriteFile("/sys/fs/cgroup/drakkar/kubepods/memory.swap.max", "max", 0644).ok());
  PodCgroups later = Make(kV2, {});
  ASSERT_TRUE(later.Start().ok());
  EXPECT_TRUE(later.counts_swap());
}

TEST_F(PodCgroupsTest, SystemdCreatesItsSlicesItself) {
  systemd_ = true;
  PodCgroups cgroups = Make(kV1, {.layout = {.root = "/"}, .pods = {.cpu_milli = 1000}});
  ASSERT_TRUE(cgroups.Start().ok());
  EXPECT_FALSE(files_.Exists("/sys/fs/cgroup/cpu/kubepods"));
  const std::string slice = "/sys/fs/cgroup/cpu/kubepods.slice/kubepods-besteffort.slice";
  EXPECT_FALSE(files_.Exists(slice));
  ASSERT_TRUE(files_.MakeDirectories(slice, 0755).ok());
  loop_.Advance(PodCgroups::kEvery);
  EXPECT_EQ(At("/cpu/kubepods.slice/kubepods-besteffort.slice/cpu.shares"), "2");
}

TEST_F(PodCgroupsTest, ReservedCgroupsMustExistAndGetTheirLimits) {
  const NodeResources settings{
      .reserved = {
          {.path = "/system", .share = {.cpu_milli = 500, .memory_bytes = kGi, .pids = 9}},
          {.path = "/kube", .share = {.cpu_milli = 1000, .memory_bytes = kGi}, .cpu_only = true}}};
  PodCgroups without = Make(kV1, settings);
  const auto started = without.Start();
  ASSERT_FALSE(started.ok());
  EXPECT_THAT(started.error().message, HasSubstr("the cgroup /system does not exist"));
  for (const char* part : {"cpu", "memory", "pids"}) {
    for (const char* name : {"system", "kube"}) {
      ASSERT_TRUE(files_.MakeDirectories(StrCat("/sys/fs/cgroup/", part, "/", name), 0755).ok());
    }
  }
  PodCgroups with = Make(kV1, settings);
  ASSERT_TRUE(with.Start().ok());
  EXPECT_EQ(At("/cpu/system/cpu.shares"), "512");
  EXPECT_EQ(At("/memory/system/memory.limit_in_bytes"), std::to_string(kGi));
  EXPECT_EQ(At("/pids/system/pids.max"), "9");
  EXPECT_EQ(At("/cpu/kube/cpu.shares"), "1024");
  EXPECT_EQ(At("/memory/kube/memory.limit_in_bytes"), "(none)");
}

TEST_F(PodCgroupsTest, ALimitThatIsRefusedIsReportedOnceAndTriedAgain) {
  PodCgroups cgroups = Make(kV1, {.pods = {.memory_bytes = kGi}});
  faulty_.FailNext("write", "limit_in_bytes");
  ASSERT_TRUE(cgroups.Start().ok());
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_THAT(
      told_[0],
      HasSubstr("failed: Failed to update Node Allocatable Limits \"/drakkar/kubepods\": "));
  loop_.Advance(PodCgroups::kEvery);
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_THAT(told_[1], HasSubstr("ok: "));
  EXPECT_EQ(At("/memory/drakkar/kubepods/memory.limit_in_bytes"), std::to_string(kGi));
}

}  // namespace
}  // namespace drakkar::node
