// The whole system in one process on one seeded loop with a fake clock: API server, controllers,
// scheduler, node agent on a simulated machine, and the reference driver behind an in-memory
// socket.
#include <gtest/gtest.h>

#include "client/event_recorder.h"
#include "controllers/controllers.h"
#include "device/cel_expressions.h"
#include "node/testing/node_harness.h"
#include "scheduler/scheduler.h"
#include "sdk/driver/reference/reference_driver.h"

namespace drakkar {
namespace {

using std::chrono::seconds;

class Cluster {
 public:
  Cluster() {
    node_.StartAgent();
    StartControlPlane();
    StartDriver();
    Settle();
  }

  void StartControlPlane() {
    scheduler_.reset();
    controllers_.reset();
    controllers_client_ = node_.api.NewClient("system:kube-controller-manager");
    scheduler_client_ = node_.api.NewClient("system:kube-scheduler");
    controllers_ = std::make_unique<controllers::Controllers>(
        controllers::Controllers::Options{.loop = node_.loop,
                                          .random = node_.loop.random(),
                                          .client = *controllers_client_,
                                          .metrics = node_.metrics});
    controllers_->Start();
    scheduler_ = std::make_unique<scheduler::Scheduler>(
        scheduler::Scheduler::Options{.loop = node_.loop,
                                      .random = node_.loop.random(),
                                      .client = *scheduler_client_,
                                      .metrics = node_.metrics,
                                      .compiler = compiler_,
                                      .gates = node_.gates});
    scheduler_->Start();
  }

  void StartDriver() {
    driver_.reset();
    driver_client_ = node_.api.NewClient("driver");
    driver::DeviceConfig devices = *driver::ParseDeviceConfig(
        "driver: sim.drakkar.io\ncount: 2\nattributes:\n  model: Longship 8\n");
    driver_ = std::make_unique<driver::ReferenceDriver>(
        driver::ReferenceDriver::Options{.loop = node_.loop,
                                         .random = node_.loop.random(),
                                         .files = node_.files,
                                         .client = *driver_client_,
                                         .transport = node_.transport,
                                         .node_name = "node-1",
                                         .devices = std::move(devices)});
    const Result<void> started = driver_->Start();
    ASSERT_TRUE(started.ok()) << started.error().message;
  }

  void Settle(Duration time = seconds(3)) { node_.Advance(time); }

  void CreateClassAndTemplate() {
    node_.api.Create(R"({"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass",
      "metadata":{"name":"sim"},"spec":{"selectors":[{"cel":{"expression":
      "device.driver == 'sim.drakkar.io' && device.attributes['sim.drakkar.io'].model == 'Longship 8'"}}]}})");
    node_.api.Create(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaimTemplate",
      "metadata":{"name":"one"},"spec":{"spec":{"devices":{"requests":[
      {"name":"dev","exactly":{"deviceClassName":"sim"}}]}}}})");
  }

  void CreatePod(const std::string& name) {
    node_.api.Create(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name + R"("},
      "spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"busybox:1",
      "resources":{"claims":[{"name":"dev"}]}}],
      "resourceClaims":[{"name":"dev","resourceClaimTemplateName":"one"}]}})");
  }

  // The claim made for the pod, or null.
  api::ObjectPtr ClaimOf(const std::string& pod) {
    api::ObjectPtr object = node_.Pod(pod);
    if (object == nullptr) return nullptr;
    const api::Value status = object->root()["status"]["resourceClaimStatuses"].at(0);
    return node_.api.Get("ResourceClaim",
                         "default/" + std::string(status["resourceClaimName"].str()));
  }

  std::size_t Claims() {
    return node_.api.core().FindCache("resource.k8s.io", "resourceclaims")->objects().size();
  }

  void RunContainersFor(Duration time) {
    node_.machine.program_of = [time](const node::ContainerConfig&) {
      return node::HollowProgram{.runs_for = time, .exit_code = 0};
    };
  }

  node::NodeHarness node_;
  device::CelExpressions compiler_;
  std::unique_ptr<client::Client> controllers_client_, scheduler_client_, driver_client_;
  std::unique_ptr<controllers::Controllers> controllers_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::unique_ptr<driver::ReferenceDriver> driver_;
};

TEST(ClaimLifecycle, APodRunsWithADeviceAndTheDeviceIsFreeAgainAfterwards) {
  Cluster cluster;
  cluster.RunContainersFor(seconds(20));
  cluster.CreateClassAndTemplate();
  cluster.CreatePod("p");
  cluster.Settle(seconds(5));

  api::ObjectPtr pod = cluster.node_.Pod("p");
  ASSERT_NE(pod, nullptr);
  EXPECT_EQ(pod->root()["status"]["phase"].str(), "Running");
  EXPECT_EQ(pod->root()["spec"]["nodeName"].str(), "node-1");
  api::ObjectPtr claim = cluster.ClaimOf("p");
  ASSERT_NE(claim, nullptr);
  const api::Value allocation = claim->root()["status"]["allocation"];
  const api::Value result = allocation["devices"]["results"].at(0);
  EXPECT_EQ(result["driver"].str(), "sim.drakkar.io");
  EXPECT_EQ(result["pool"].str(), "node-1");
  EXPECT_EQ(result["request"].str(), "dev");
  EXPECT_FALSE(allocation["allocationTimestamp"].str().empty());
  EXPECT_EQ(allocation["nodeSelector"]["nodeSelectorTerms"]
                .at(0)["matchFields"]
                .at(0)["values"]
                .at(0)
                .str(),
            "node-1");
  EXPECT_EQ(claim->root()["status"]["reservedFor"].at(0)["uid"].str(), pod->uid());
  EXPECT_EQ(claim->root()["metadata"]["finalizers"].at(0).str(),
            "resource.kubernetes.io/delete-protection");
  auto containers = cluster.node_.Containers("p", "a");
  ASSERT_EQ(containers.size(), 1u);
  std::string devices;
  for (const auto& variable : containers[0]->config.environment) {
    if (variable.name == "DRAKKAR_DEVICES") devices = variable.value;
  }
  EXPECT_EQ(devices, result["device"].str()) << "the CDI edits reached the container";

  cluster.Settle(seconds(30));
  EXPECT_EQ(cluster.node_.Phase("p"), "Succeeded");
  EXPECT_EQ(cluster.Claims(), 0u) << "released, deallocated, deleted";
  cluster.node_.DeletePod("p");
  cluster.Settle();
  EXPECT_EQ(cluster.node_.Pod("p"), nullptr);
}

TEST(ClaimLifecycle, APodWaitsForAFreeDeviceAndThenRuns) {
  Cluster cluster;
  cluster.RunContainersFor(seconds(60));
  cluster.CreateClassAndTemplate();
  for (const char* name : {"a", "b", "c"}) cluster.CreatePod(name);
  cluster.Settle(seconds(5));
  int running = 0;
  std::string waiting;
  for (const char* name : {"a", "b", "c"}) {
    if (cluster.node_.Phase(name) == "Running") {
      ++running;
    } else {
      waiting = name;
    }
  }
  EXPECT_EQ(running, 2);
  ASSERT_FALSE(waiting.empty());
  EXPECT_EQ(cluster.node_.Pod(waiting)->root()["status"]["conditions"].at(0)["reason"].str(),
            "Unschedulable");
  cluster.Settle(seconds(70));
  EXPECT_EQ(cluster.node_.Phase(waiting), "Running");
}

TEST(ClaimLifecycle, EveryComponentMayCrashAndRestartWhileAPodRuns) {
  Cluster cluster;
  cluster.RunContainersFor(seconds(120));
  cluster.CreateClassAndTemplate();
  cluster.CreatePod("p");
  cluster.Settle(seconds(5));
  ASSERT_EQ(cluster.node_.Phase("p"), "Running");
  cluster.StartControlPlane();
  cluster.StartDriver();
  cluster.node_.KillAgent();
  cluster.Settle();
  cluster.node_.StartAgent();
  cluster.Settle(seconds(20));
  EXPECT_EQ(cluster.node_.Phase("p"), "Running");
  EXPECT_EQ(cluster.node_.Containers("p", "a").size(), 1u) << "adopted, not duplicated";
  EXPECT_EQ(cluster.Claims(), 1u);
  cluster.Settle(seconds(120));
  EXPECT_EQ(cluster.node_.Phase("p"), "Succeeded");
  EXPECT_EQ(cluster.Claims(), 0u);
}

}  // namespace
}  // namespace drakkar
