// Random operations on a whole node, compared with a naive model of its pods.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "base/env/random.h"
#include "base/text/text.h"
#include "node/dra/dra_manager.h"
#include "node/node_agent.h"
#include "node/pods/pod_manager.h"
#include "node/testing/node_harness.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kSteps = 60;

// The value of a field in a log line in klog's form; empty if it has none.
std::string FieldOf(std::string_view line, std::string_view name) {
  const std::string key = StrCat(" ", name, "=\"");
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return "";
  const std::size_t begin = at + key.size();
  return std::string(line.substr(begin, line.find('"', begin) - begin));
}

std::optional<PodStage> StageNamed(std::string_view name) {
  for (const PodStage stage : kPodStages) {
    if (Name(stage) == name) return stage;
  }
  return std::nullopt;
}

// A pod as seen by someone who only knows what was requested.
struct ModelPod {
  std::string uid;
  std::string claim;  // empty: none
  bool deleted = false;
};

class RandomNode : public NodeHarness {
 public:
  explicit RandomNode(std::uint64_t seed)
      : driver(*this, "gpu.example.com", "gpu.sock"), random_(seed) {
    ConfigureLogging(LogFormat::kText, LogLevel::kDebug, loop.clock());
    SetLogSink([this](std::string_view line) { OnLogLine(line); });
    driver.plugin.prepare_claim =
        [this, prepare = driver.plugin.prepare_claim](const rpc::ClaimReference& claim) {
          prepared_.insert(claim.name);
          return prepare(claim);
        };
    driver.plugin.unprepare_claim = [this](const rpc::ClaimReference& claim) {
      prepared_.erase(claim.name);
      return rpc::UnprepareResult();
    };
    api_fault = [this](const std::string&) -> std::optional<Error> {
      if (api_faults_ == 0) return std::nullopt;
      --api_faults_;
      return Unavailable(random_.Below(2) == 0 ? "refused" : "lost");
    };
    StartAgent();
    driver.Start();
  }
  ~RandomNode() {
    KillAgent();
    driver.Stop();
    SetLogSink(nullptr);
    ConfigureLogging(LogFormat::kText, LogLevel::kInfo, RealClock());
  }

  void DoSomething() {
    switch (random_.Below(12)) {
      case 0:
      case 1:
      case 2:
        return AddPod();
      case 3:
        return Delete(seconds(5));
      case 4:
        return Delete(seconds(0));
      case 5:
        return EndContainer();
      case 6: {
        constexpr const char* kMethods[] = {"RunPodSandbox",  "CreateContainer", "StartContainer",
                                            "StopContainer",  "StopPodSandbox",  "RemovePodSandbox",
                                            "RemoveContainer"};
        return machine.FailNext(kMethods[random_.Below(std::size(kMethods))], Internal("it broke"));
      }
      case 7:
        api_faults_ = 1 + random_.Below(3);
        return;
      case 8:
        if (driver_runs_) driver.Stop();
        if (!driver_runs_) driver.Start();
        driver_runs_ = !driver_runs_;
        return;
      case 9:
        KillAgent();
        stages_.clear();  // the next agent starts from what it finds
        return StartAgent();
      default:
        return Advance(milliseconds(random_.Below(20'000)));
    }
  }

  // Removes all faults and waits longer than every backoff.
  void Settle() {
    machine.faults.clear();
    api_faults_ = 0;
    if (!started.ok()) {
      KillAgent();
      StartAgent();
      ASSERT_TRUE(started.ok()) << started.error().message;
    }
    if (!driver_runs_) driver.Start();
    driver_runs_ = true;
    Advance(seconds(400));
  }

  void CompareWithModel() {
    std::set<std::string> expected_uids, expected_claims;
    for (const auto& [name, pod] : model_) {
      const auto object = Pod(name);
      if (pod.deleted) {
        EXPECT_EQ(object, nullptr) << name << " was deleted";
        continue;
      }
      ASSERT_NE(object, nullptr) << name << " is gone though nobody deleted it";
      expected_uids.insert(pod.uid);
      const std::string phase = Phase(name);
      if (phase == "Running") {
        EXPECT_EQ(stages_[pod.uid], PodStage::kRunning) << name;
        if (!pod.claim.empty()) expected_claims.insert(pod.claim);
      } else {
        EXPECT_TRUE(phase == "Failed" || phase == "Succeeded") << name << ": " << phase;
        EXPECT_EQ(stages_[pod.uid], PodStage::kEnded) << name;
        EXPECT_FALSE(HasReadySandbox(pod.uid)) << name;
      }
      EXPECT_EQ(Containers(name, "a").size(), 1u) << name << " doubled, or lost";
    }
    EXPECT_EQ(agent->pods().ActivePods(), expected_uids);
    EXPECT_EQ(prepared_, expected_claims);
    EXPECT_EQ(agent->dra().cache().claims().size(), expected_claims.size());
    for (const auto& [id, sandbox] : machine.sandboxes) {
      EXPECT_TRUE(expected_uids.contains(sandbox.uid)) << "a sandbox of a deleted pod is left";
    }
  }

  FakeDriver driver;
  std::size_t transitions = 0;

 private:
  void AddPod() {
    if (model_.size() >= 12) return;  // enough to interleave
    ModelPod pod;
    const std::string name = StrCat("p", model_.size());
    if (random_.Below(4) > 0) {
      // Sometimes a claim that another pod uses.
      pod.claim = StrCat("c", random_.Below(model_.size() + 1));
      if (claims_.insert(pod.claim).second) {
        CreateClaim(pod.claim, {StrCat("gpu.example.com/", pod.claim)});
      }
    }
    const std::string uses = pod.claim.empty() ? "" : StrCat(R"({"name":")", pod.claim, R"("})");
    const auto object =
        CreatePod(name,
                  StrCat(R"("restartPolicy":"Never","containers":[{"name":"a",)",
                         R"("image":"busybox:1","resources":{"claims":[)", uses, "]}}]"),
                  pod.claim.empty() ? std::vector<std::string>{} : std::vector{pod.claim});
    ASSERT_NE(object, nullptr);
    pod.uid = std::string(object->uid());
    model_[name] = pod;
  }

  void Delete(seconds grace) {
    if (model_.empty()) return;
    auto found =
        std::next(model_.begin(), static_cast<std::ptrdiff_t>(random_.Below(model_.size())));
    found->second.deleted = true;
    (void)api.Delete("Pod", "default/" + found->first, {.grace_period_seconds = grace.count()});
    Run();
  }

  void EndContainer() {
    std::vector<std::string> running;
    for (const auto& [id, container] : machine.containers) {
      if (container.status.state == ContainerState::kRunning) running.push_back(id);
    }
    if (running.empty()) return;
    runtime->StopContainer(running[random_.Below(running.size())], Duration::zero(),
                           [](Result<void>) {});
    Run();
  }

  bool HasReadySandbox(const std::string& uid) const {
    for (const auto& [id, sandbox] : machine.sandboxes) {
      if (sandbox.uid == uid && sandbox.state == SandboxState::kReady) return true;
    }
    return false;
  }
  bool HasRunningContainer(const std::string& uid) const {
    for (const auto& [id, container] : machine.containers) {
      if (container.status.state == ContainerState::kRunning &&
          container.config.labels.at("io.kubernetes.pod.uid") == uid)
        return true;
    }
    return false;
  }

  // Each transition must start in the pod's last stage and be true of the world.
  void OnLogLine(std::string_view line) {
    if (line.find("\"changed pod stage\"") == std::string_view::npos) return;
    ++transitions;
    const std::string uid = FieldOf(line, "podUID");
    const auto from = StageNamed(FieldOf(line, "from"));
    const auto to = StageNamed(FieldOf(line, "to"));
    ASSERT_TRUE(from && to) << line;
    const auto [known, first] = stages_.try_emplace(uid, PodStage::kAdmitting);
    EXPECT_EQ(known->second, *from) << line;
    known->second = *to;
    if (*to > PodStage::kStoppingContainers) {
      EXPECT_FALSE(HasRunningContainer(uid)) << line;
    }
    if (*to > PodStage::kStoppingSandboxes) {
      EXPECT_FALSE(HasReadySandbox(uid)) << line;
    }
    if (*to > PodStage::kUnpreparingClaims) {
      std::map<std::string, std::set<std::string>> holders;
      for (const auto& [name, pod] : model_) {
        const auto stage = stages_.find(pod.uid);
        if (stage == stages_.end() || stage->second < PodStage::kRemovingVolumes) {
          holders[pod.claim].insert(pod.uid);
        }
      }
      for (const auto& [name, pod] : model_) {
        if (pod.uid != uid || pod.claim.empty() || !holders[pod.claim].empty()) continue;
        EXPECT_FALSE(prepared_.contains(pod.claim)) << line;
      }
    }
    if (*to > PodStage::kRemovingRemains) {
      for (const auto& [id, sandbox] : machine.sandboxes) EXPECT_NE(sandbox.uid, uid) << line;
      EXPECT_FALSE(files.Exists(StrCat("/var/lib/kubelet/pods/", uid))) << line;
    }
  }

  SeededRandom random_;
  bool driver_runs_ = true;
  std::size_t api_faults_ = 0;
  std::map<std::string, ModelPod> model_;   // by name
  std::set<std::string> claims_;            // existing claims; pods may share them
  std::set<std::string> prepared_;          // those the driver holds
  std::map<std::string, PodStage> stages_;  // by UID, as logged by this agent
};

// DRAKKAR_SEED=N runs only that seed.
TEST(PodWorkerRandom, RandomOperationsEndWhereTheModelSays) {
  const char* only = std::getenv("DRAKKAR_SEED");
  const std::uint64_t first = only == nullptr ? 1 : std::strtoull(only, nullptr, 10);
  const std::uint64_t last = only == nullptr ? 20 : first;
  std::size_t transitions = 0;
  for (std::uint64_t seed = first; seed <= last && !HasFailure(); ++seed) {
    SCOPED_TRACE(StrCat("DRAKKAR_SEED=", seed));
    RandomNode node(seed);
    for (int step = 0; step < kSteps && !HasFailure(); ++step) {
      SCOPED_TRACE(StrCat("step ", step));
      node.DoSomething();
    }
    node.Settle();
    node.CompareWithModel();
    transitions += node.transitions;
  }
  EXPECT_GT(transitions, 50 * (last - first + 1)) << "the runs do not do enough to prove anything";
}

}  // namespace
}  // namespace drakkar::node
