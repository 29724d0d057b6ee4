#include "tests/simulation/sim_node.h"

#include "base/result/check.h"
#include "base/text/text.h"
#include "node/checkpoint/checkpoint_slots.h"

namespace drakkar::simulation {
namespace {

constexpr char kMetadata[] = "/var/run/dra-device-attributes/";

}  // namespace

SimNode::SimNode(SeededLoop& loop, SimServer& server, const Faults& faults, FeatureGates gates,
                 std::string name, const std::vector<std::string>& drivers)
    : loop_(loop),
      lane_(loop.NewLane()),
      server_(server),
      faults_(faults),
      gates_(gates),
      name_(std::move(name)),
      host_(lane_) {
  host_.machine.program_of = [this](const node::ContainerConfig&) {
    node::HollowProgram program;
    if (loop_.random().Below(2) == 0) {
      program.runs_for = std::chrono::seconds(1 + loop_.random().Below(60));
    }
    program.stops_within = std::chrono::milliseconds(loop_.random().Below(2'000));
    return program;
  };
  for (const std::string& driver : drivers) {
    auto made = std::make_unique<Driver>(driver);
    Driver& each = *made;
    each.plugin.prepare_claim = [this, driver](const rpc::ClaimReference& claim) {
      return Prepare(driver, claim);
    };
    each.plugin.unprepare_claim = [this, driver](const rpc::ClaimReference& claim) {
      return Unprepare(driver, claim);
    };
    each.server = rpc::CreateServer(host_.transport,
                                    StrCat(node::HollowHost::kRegistry, "/", driver, ".sock"),
                                    each.plugin.Services());
    CHECK(each.server->Start().ok());
    drivers_.emplace(driver, std::move(made));
  }
}

// Like a real driver: reads the allocation from the API, and gives every request its own CDI device
// with the metadata of that request (KEP-5304).
rpc::PrepareResult SimNode::Prepare(const std::string& driver,
                                    const rpc::ClaimReference& reference) {
  rpc::PrepareResult result;
  const api::ObjectPtr claim = server_.Find("resource.k8s.io", "resourceclaims",
                                            StrCat(reference.namespace_name, "/", reference.name));
  if (!server_.is_up() || claim == nullptr || claim->uid() != reference.uid ||
      !claim->root()["status"]["allocation"].has_value()) {
    result.error = "the claim cannot be read or is not allocated";
  } else if (faults_.on && loop_.random().Below(10) == 0) {
    result.error = "injected failure";
  }
  if (!result.error.empty()) return result;
  std::string devices;
  for (api::Value each : claim->root()["status"]["allocation"]["devices"]["results"].elements()) {
    if (each["driver"].str() != driver) continue;
    const std::string request(each["request"].str());
    const std::string id = StrCat(reference.uid, "_", request);
    devices += StrCat(devices.empty() ? "" : ",", R"({"name":")", id,
                      R"(","containerEdits":{"env":["DEVICE=x"],"mounts":[{"hostPath":"/metadata/)",
                      id, R"(","containerPath":")", kMetadata, reference.name, "/", request, "/",
                      driver, R"(-metadata.json","options":["ro","bind"]}]}})");
    result.devices.push_back({.request_names = {request},
                              .pool_name = std::string(each["pool"].str()),
                              .device_name = std::string(each["device"].str()),
                              .cdi_device_ids = {StrCat(driver, "/sim=", id)},
                              .share_id = std::nullopt});
  }
  if (result.devices.empty()) {
    server_.violations.push_back(StrCat("driver ", driver, " on ", name_, " was asked to prepare ",
                                        reference.name, ", in which it has no device"));
    result.error = "no device of this driver";
    return result;
  }
  drivers_.at(driver)->prepared.insert(reference.uid);
  CHECK(host_.files
            .WriteFile(StrCat("/var/run/cdi/", driver, "-", reference.uid, ".json"),
                       StrCat(R"({"cdiVersion":"0.5.0","kind":")", driver, R"(/sim","devices":[)",
                              devices, "]}"),
                       0644)
            .ok());
  return result;
}

rpc::UnprepareResult SimNode::Unprepare(const std::string& driver,
                                        const rpc::ClaimReference& reference) {
  rpc::UnprepareResult result;
  for (const Running& container : RunningContainers()) {
    for (const std::string& uid : claims_of(container.pod_uid)) {
      if (uid != reference.uid) continue;
      server_.violations.push_back(StrCat("claim ", reference.name, " is unprepared on ", name_,
                                          " while ", container.pod_name, " runs"));
    }
  }
  if (faults_.on && loop_.random().Below(10) == 0) {
    result.error = "injected failure";
    return result;
  }
  drivers_.at(driver)->prepared.erase(reference.uid);
  (void)host_.files.Remove(StrCat("/var/run/cdi/", driver, "-", reference.uid, ".json"));
  return result;
}

SimNode::~SimNode() {
  KillAgent();
  for (auto& [name, driver] : drivers_) driver->server->Stop();
}

void SimNode::StartAgent() {
  if (agent_ != nullptr) return;
  client_ = std::make_unique<SimClient>(loop_, lane_, server_, faults_, "system:node:" + name_);
  work_ = node::MakeLoopWork(lane_);
  runtime_ = node::MakeHollowRuntime(lane_, host_.machine);
  agent_ = std::make_unique<node::NodeAgent>(
      node::NodeAgent::Options{.loop = lane_,
                               .random = loop_.random(),
                               .files = host_.files,
                               .watcher = host_.watcher,
                               .blocking = *work_,
                               .removing = *work_,
                               .client = *client_,
                               .transport = host_.transport,
                               .runtime = *runtime_,
                               .device_probe = node::HollowHost::NoDevices(),
                               .gates = gates_,
                               .metrics = &metrics_,
                               .node_name = name_,
                               .facts = node::HollowHost::Facts(name_, 64, 64)});
  agent_->Start([](Result<void> result) { CHECK(result.ok()); });
}

void SimNode::KillAgent() {
  agent_.reset();
  runtime_.reset();
  work_.reset();
  client_.reset();
}

std::vector<SimNode::Running> SimNode::RunningContainers() const {
  std::vector<Running> running;
  for (const auto& [id, container] : host_.machine.containers) {
    if (container.status.state != node::ContainerState::kRunning) continue;
    // It exited while no agent was running.
    if (container.ends_at && *container.ends_at <= loop_.clock().Now()) continue;
    const auto label = [&](const char* key) {
      const auto found = container.config.labels.find(key);
      return found == container.config.labels.end() ? std::string() : found->second;
    };
    Running each{
        label("io.kubernetes.pod.uid"), label("io.kubernetes.pod.name"), container.config.name, {}};
    for (const node::Mount& mount : container.config.mounts) {
      if (!mount.container_path.starts_with(kMetadata)) continue;
      each.metadata.emplace_back(
          DirectoryName(std::string_view(mount.container_path).substr(sizeof kMetadata - 1)));
    }
    running.push_back(std::move(each));
  }
  return running;
}

std::vector<std::string> SimNode::driver_names() const {
  std::vector<std::string> names;
  for (const auto& [name, driver] : drivers_) names.push_back(name);
  return names;
}

std::string SimNode::Checkpoint() const {
  const std::string directory = "/var/lib/kubelet/";
  const Result<std::string> text = host_.files.ReadFile(directory + "dra_manager_state");
  const Result<std::string> side = host_.files.ReadFile(directory + node::kCheckpointSlotsName);
  if (!text.ok()) return std::string();
  // What the agent would start from.
  if (side.ok()) {
    const Result<node::SlotsReading> slots = node::ReadSlots(*side, *text);
    if (slots.ok() && slots->newest) return slots->newest->checkpoint;
  }
  return *text;
}

}  // namespace drakkar::simulation
