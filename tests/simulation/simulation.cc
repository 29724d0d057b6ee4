#include "tests/simulation/simulation.h"

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/hash/sha256.h"
#include "base/result/check.h"
#include "base/text/text.h"
#include "scheduler/plugins/dynamic_resources/dynamic_resources_args.h"

namespace drakkar::simulation {
namespace {

constexpr char kDriver[] = "local.example.com";
constexpr char kFabric[] = "fabric.example.com";
// Its devices need no preparation on the node (KEP-5945), and no node has such a driver.
constexpr char kRemote[] = "remote.example.com";
constexpr char kGroup[] = "resource.k8s.io";

FeatureGates Gates() {
  return FeatureGates().With(Gate::kDRAOptionalNodePreparation, true);
}

scheduler::ProfileConfig ProfileWith(Duration binding_timeout) {
  scheduler::DynamicResourcesArgs args;
  args.binding_timeout = binding_timeout;
  scheduler::ProfileConfig profile;
  profile.SetArgs("DynamicResources", args);
  return profile;
}

// What one node offers in addition to the fabric: two devices, a shareable one (10 units), a chip
// that can be used whole or in halves, and one that needs no driver on the node.
std::vector<std::string> SlicesOf(const std::string& node) {
  const auto head = [&](std::string name, std::string pool, int count,
                        const char* driver = kDriver) {
    return StrCat(
        R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":")", name,
        R"("},"spec":{"driver":")", driver, R"(","nodeName":")", node, R"(","pool":{"name":")",
        pool, R"(","generation":1,"resourceSliceCount":)", count, "},");
  };
  const auto kind = [](const char* value) {
    return StrCat(R"("attributes":{"kind":{"string":")", value, R"("}})");
  };
  const auto part = [&](const char* name, const char* type, int amount) {
    return StrCat(R"({"name":")", name, "\",", kind(type),
                  R"(,"consumesCounters":[{"counterSet":"chip","counters":{"mem":{"value":")",
                  amount, R"("}}}]})");
  };
  return {
      StrCat(head(node + "-plain", node, 1), R"("devices":[{"name":"dev-0",)", kind("plain"),
             R"(},{"name":"dev-1",)", kind("plain"), R"(},{"name":"shared",)", kind("shared"),
             R"(,"allowMultipleAllocations":true,"capacity":{"units":{"value":"10"}}}]}})"),
      StrCat(head(node + "-counters", node + "-chip", 2),
             R"("sharedCounters":[{"name":"chip","counters":{"mem":{"value":"4"}}}]}})"),
      StrCat(head(node + "-parts", node + "-chip", 2), R"("devices":[)", part("whole", "part", 4),
             ",", part("half-0", "part", 2), ",", part("half-1", "part", 2), "]}}"),
      StrCat(head(node + "-remote", node, 1, kRemote),
             R"("skipNodeOperations":true,"devices":[{"name":"far"}]}})")};
}

std::string RequestFor(std::string_view kind) {
  if (kind == "pair") {
    return R"({"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"plain"}},)"
           R"({"name":"s","exactly":{"deviceClassName":"plain"}}]}})";
  }
  const char* more = kind == "shared" ? R"(,"capacity":{"requests":{"units":"4"}})" : "";
  return StrCat(R"({"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":")", kind, "\"",
                more, "}}]}}");
}

}  // namespace

Simulation::Simulation(Options options)
    : options_(options),
      loop_(options.seed, /*shuffle=*/true),
      gates_(Gates()),
      server_(loop_, gates_),
      user_lane_(loop_.NewLane()),
      scheduler_lane_(loop_.NewLane()),
      controllers_lane_(loop_.NewLane()),
      fabric_lane_(loop_.NewLane()) {
  SetUp();
}

Simulation::~Simulation() {
  fabric_.reset();
  scheduler_.reset();
  controllers_.reset();
  nodes_.clear();
  watched_pods_.reset();
  watched_claims_.reset();
  fabric_client_.reset();
  scheduler_client_.reset();
  controllers_client_.reset();
  user_.reset();
}

void Simulation::CreateObject(std::string_view group, std::string_view version,
                              std::string_view kind, const std::string& json) {
  auto body = api::ParseJson(json);
  CHECK(body.ok());
  const api::KindSchema* schema = api::FindKind(group, version, kind);
  user_->Create({schema, schema->namespaced ? "default" : "", "", ""}, *body, {},
                [](client::Reply) {});
}

void Simulation::SetUp() {
  faults_.on = false;
  user_ = std::make_unique<SimClient>(loop_, user_lane_, server_, faults_, "user");
  for (const char* name : {"default", "kube-node-lease"}) {
    CreateObject(
        "", "v1", "Namespace",
        StrCat(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":")", name, R"("}})"));
  }
  loop_.RunUntilIdle();
  for (const char* kind : {"plain", "shared", "part"}) {
    CreateObject(
        kGroup, "v1", "DeviceClass",
        StrCat(R"({"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":")",
               kind, R"("},"spec":{"selectors":[{"cel":{"expression":"device.driver == ')", kDriver,
               R"(' && device.attributes[')", kDriver, R"('].kind == ')", kind, R"('"}}]}})"));
  }
  for (const auto& [name, driver] : {std::pair("fabric", kFabric), std::pair("remote", kRemote)}) {
    CreateObject(
        kGroup, "v1", "DeviceClass",
        StrCat(R"({"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":")",
               name, R"("},"spec":{"selectors":[{"cel":{"expression":"device.driver == ')", driver,
               R"('"}}]}})"));
  }
  CreateObject(kGroup, "v1", "ResourceClaimTemplate",
               StrCat(R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaimTemplate",)",
                      R"("metadata":{"name":"plain","namespace":"default"},"spec":{"spec":)",
                      RequestFor("plain"), "}}"));
  for (const char* name : {"n0", "n1"}) {
    nodes_.push_back(std::make_unique<SimNode>(loop_, server_, faults_, gates_, name,
                                               std::vector<std::string>{kDriver, kFabric}));
    nodes_.back()->claims_of = [this](const std::string& pod_uid) {
      const auto use = uses_.find(pod_uid);
      return use == uses_.end() ? std::vector<std::string>() : use->second.claims;
    };
    nodes_.back()->StartAgent();
  }
  for (int i = 0; i < 3; ++i) {
    using fabric::Behaviour;
    constexpr Behaviour kAll[] = {Behaviour::kAttaches, Behaviour::kAttaches, Behaviour::kFails,
                                  Behaviour::kHangs};
    fabric_devices_.push_back({StrCat("gpu-", i), kAll[loop_.random().Below(4)]});
  }
  const auto watch = [&](std::string_view group, std::string_view kind) {
    auto informer = std::make_unique<client::Informer>(
        user_lane_, loop_.random(), *user_,
        client::Informer::Options{.collection = {api::FindKind(group, "v1", kind), "", "", ""}});
    informer->Start();
    return informer;
  };
  watched_pods_ = watch("", "Pod");
  watched_claims_ = watch(kGroup, "ResourceClaim");
  StartWhatIsDown();
  loop_.Advance(std::chrono::seconds(2));
  faults_.on = true;
  scheduler_faults_.on = true;
  scheduler_faults_.hide_allocations = options_.plant_double_allocation;
  // The server would refuse what this scheduler does, and there would be nothing to catch.
  if (options_.plant_double_allocation) server_.StopArbitration();
  scheduler_faults_.pretend_attached = options_.plant_no_wait;
}

void Simulation::StartScheduler() {
  if (scheduler_ != nullptr) return;
  scheduler_client_ = std::make_unique<SimClient>(loop_, scheduler_lane_, server_,
                                                  scheduler_faults_, "system:kube-scheduler");
  scheduler_ = std::make_unique<scheduler::Scheduler>(
      scheduler::Scheduler::Options{.loop = scheduler_lane_,
                                    .random = loop_.random(),
                                    .client = *scheduler_client_,
                                    .metrics = metrics_,
                                    .compiler = compiler_,
                                    .gates = gates_,
                                    .profiles = {ProfileWith(kBindingTimeout)}});
  scheduler_->Start();
}

void Simulation::StartControllers() {
  if (controllers_ != nullptr) return;
  controllers_client_ = std::make_unique<SimClient>(loop_, controllers_lane_, server_, faults_,
                                                    "system:kube-controller-manager");
  controllers_ = std::make_unique<controllers::Controllers>(controllers::Controllers::Options{
      .loop = controllers_lane_,
      .random = loop_.random(),
      .client = *controllers_client_,
      .metrics = metrics_,
      .warn = [](const api::ObjectPtr&, std::string_view, std::string) {}});
  controllers_->Start();
}

void Simulation::StartFabric() {
  if (fabric_ != nullptr) return;
  fabric_client_ = std::make_unique<SimClient>(loop_, fabric_lane_, server_, faults_, "fabric");
  fabric_ = std::make_unique<fabric::FabricController>(
      fabric::FabricController::Options{.loop = fabric_lane_,
                                        .random = loop_.random(),
                                        .client = *fabric_client_,
                                        .driver = kFabric,
                                        .devices = fabric_devices_,
                                        .attach_delay = std::chrono::seconds(2)});
  fabric_->Start();
}

void Simulation::StartWhatIsDown() {
  server_.Restart();
  StartScheduler();
  StartControllers();
  StartFabric();
  for (const auto& node : nodes_) node->StartAgent();
}

void Simulation::PublishSlices() {
  if (!server_.is_up()) return;
  for (const auto& node : nodes_) {
    const std::vector<std::string> slices = SlicesOf(node->name());
    constexpr const char* kNames[] = {"-plain", "-counters", "-parts", "-remote"};
    for (std::size_t i = 0; i < slices.size(); ++i) {
      if (server_.Find(kGroup, "resourceslices", node->name() + kNames[i]) == nullptr) {
        CreateObject(kGroup, "v1", "ResourceSlice", slices[i]);
      }
    }
  }
}

void Simulation::KillSomething() {
  switch (loop_.random().Below(6)) {
    case 0:
      server_.Crash();
      break;
    case 1:
      controllers_.reset();
      controllers_client_.reset();
      break;
    case 2:
      fabric_.reset();
      fabric_client_.reset();
      break;
    case 3:
      nodes_[loop_.random().Below(nodes_.size())]->KillAgent();
      break;
    default:
      scheduler_.reset();
      scheduler_client_.reset();
      break;
  }
}

void Simulation::CreatePod() {
  if (live_.size() >= kMaxPods || !server_.is_up()) return;
  const std::string name = StrCat("p", next_pod_++);
  std::string uses;
  constexpr const char* kKinds[] = {"plain",  "shared", "part",  "fabric",
                                    "fabric", "pair",   "remote"};
  std::string_view kind = "plain";
  const std::uint64_t how = loop_.random().Below(8);
  if (how == 0) {
    uses = R"({"name":"c","resourceClaimTemplateName":"plain"})";
  } else {
    std::string claim = StrCat("c", next_claim_);
    if (how == 1 && next_claim_ > 0) {
      claim = StrCat("c", loop_.random().Below(static_cast<std::uint64_t>(next_claim_)));  // shared
    } else {
      ++next_claim_;
      kind = kKinds[loop_.random().Below(std::size(kKinds))];
      CreateObject(
          kGroup, "v1", "ResourceClaim",
          StrCat(
              R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":")",
              claim, R"(","namespace":"default"},"spec":)", RequestFor(kind), "}"));
    }
    uses = StrCat(R"({"name":"c","resourceClaimName":")", claim, R"("})");
  }
  // One container uses the whole claim; if the claim has two requests, two containers use one each.
  const auto container = [](const char* called, const char* request) {
    return StrCat(R"({"name":")", called,
                  R"(","image":"busybox:1","resources":{"claims":[{"name":"c")", request, "}]}}");
  };
  const std::string containers = kind == "pair" ? StrCat(container("a", R"(,"request":"r")"), ",",
                                                         container("b", R"(,"request":"s")"))
                                                : container("a", "");
  CreateObject("", "v1", "Pod",
               StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
                      R"(","namespace":"default"},"spec":{"restartPolicy":"Never",)",
                      R"("terminationGracePeriodSeconds":2,"containers":[)", containers,
                      R"(],"resourceClaims":[)", uses, "]}}"));
  live_.insert(name);
  attempted_.insert(name);
}

void Simulation::DeletePod() {
  if (live_.empty()) return;
  auto at = live_.begin();
  std::advance(at, static_cast<long>(loop_.random().Below(live_.size())));
  user_->Delete({api::FindKind("", "v1", "Pod"), "default", *at, ""}, {}, [](client::Reply) {});
  live_.erase(at);
}

void Simulation::Run(std::uint64_t tasks) {
  for (; tasks > 0 && loop_.RunOne(); --tasks) {
  }
}

void Simulation::Step() {
  ++step_;
  PublishSlices();
  switch (loop_.random().Below(10)) {
    case 0:
    case 1:
    case 2:
      CreatePod();
      break;
    case 3:
      DeletePod();
      break;
    case 4:
      KillSomething();
      break;
    case 5:
    case 6:
      StartWhatIsDown();
      break;
    case 7:
      loop_.fake_clock().JumpWall(
          std::chrono::seconds(static_cast<std::int64_t>(loop_.random().Below(240)) - 120));
      break;
    case 8:  // time passes while tasks are queued
      loop_.fake_clock().Advance(std::chrono::milliseconds(loop_.random().Below(5'000)));
      break;
    default:
      loop_.Advance(std::chrono::milliseconds(loop_.random().Below(15'000)));
      break;
  }
  for (int i = 0; i < 4; ++i) {
    Run(loop_.random().Below(40));
    Check();
  }
}

void Simulation::Settle() {
  faults_.on = false;
  scheduler_faults_.on = false;
  // Delete pods again whose deletion was lost, or whose creation was lost in the first place.
  for (int i = 0; i < kSettleTurns; ++i) {
    StartWhatIsDown();
    PublishSlices();
    if (i == 4 && server_.is_up()) {
      for (const api::ObjectPtr& pod : server_.Objects("", "pods")) {
        if (live_.contains(std::string(pod->name()))) continue;
        user_->Delete({api::FindKind("", "v1", "Pod"), "default", std::string(pod->name()), ""}, {},
                      [](client::Reply) {});
      }
    }
    loop_.Advance(std::chrono::seconds(15));
    Check();
    if (i >= kSettleTurns - kPatience) CheckProgress();
  }
  // Give operations in flight, such as a write that has not been reported yet, time to finish.
  for (int i = 0;; ++i) {
    const std::size_t before = server_.violations.size();
    CheckSettled();
    if (server_.violations.size() == before || i == kPatience) break;
    server_.violations.resize(before);
    loop_.Advance(std::chrono::seconds(1));
    Check();
  }
}

std::string Simulation::Fingerprint() {
  std::string all;
  for (const api::KindSchema& kind : api::AllKinds()) {
    if (!kind.storage_version) continue;
    for (const api::ObjectPtr& object : server_.Objects(kind.group, kind.plural)) {
      all += api::WriteJson(object->root());
    }
  }
  return Sha256Hex(all);
}

}  // namespace drakkar::simulation
