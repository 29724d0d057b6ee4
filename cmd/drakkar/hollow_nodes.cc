#include "cmd/drakkar/hollow_nodes.h"

#include <algorithm>

#include "api/meta/quantity.h"
#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "base/version.h"
#include "client/shared_watches.h"
#include "node/checkpoint/blocking_work.h"
#include "node/hollow/hollow_host.h"
#include "node/node_agent.h"
#include "node/probes/network_prober.h"
#include "sdk/driver/reference/reference_driver.h"
#include "telemetry/log/log.h"

namespace drakkar::cmd {
namespace {

constexpr Logger kLog("hollow");

// The annotations of the pod. Values that cannot be parsed count as absent.
node::HollowProgram ProgramOf(const node::PodSandboxConfig& pod) {
  node::HollowProgram program;
  auto text = [&](const char* name) {
    const auto found = pod.annotations.find(name);
    return found == pod.annotations.end() ? std::string() : found->second;
  };
  if (const auto time = api::ParseDuration(text(kHollowRunsFor)); time.ok()) {
    program.runs_for = std::max(*time, Duration::zero());
  }
  program.exit_code = static_cast<int>(
      std::clamp<std::int64_t>(ParseInt64(text(kHollowExitCode)).value_or(0), 0, 255));
  if (const auto cpu = api::Quantity::Parse(text(kHollowCpu)); cpu.ok()) {
    program.nano_cores =
        static_cast<std::uint64_t>(std::max<std::int64_t>(cpu->MilliValue(), 0)) * 1'000'000;
  }
  if (const auto memory = api::Quantity::Parse(text(kHollowMemory)); memory.ok()) {
    program.memory_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(memory->Value(), 0));
  }
  return program;
}

// Answers every probe with success.
class HealthyProber final : public node::NetworkProber {
 public:
  explicit HealthyProber(EventLoop& loop) : loop_(loop) {}
  void Get(node::HttpProbe, Duration, std::function<void(Result<node::HttpAnswer>)> done) override {
    loop_.Post(lifetime_.Guard([done] { done(node::HttpAnswer{.status = 200, .body = "ok"}); }));
  }
  void Connect(const std::string&, int, Duration, std::function<void(Result<void>)> done) override {
    loop_.Post(lifetime_.Guard([done] { done(Ok()); }));
  }
  void CheckGrpc(const std::string&, int, const std::string&, Duration,
                 std::function<void(Result<std::string>)> done) override {
    loop_.Post(lifetime_.Guard([done] { done(std::string("SERVING")); }));
  }

 private:
  EventLoop& loop_;
  Lifetime lifetime_;
};

node::NodeFacts FactsOf(const HollowOptions& options, const std::string& name, int number) {
  node::NodeFacts facts = node::HollowHost::Facts(name, options.cpus, options.memory_gib);
  // One address per node, in the range for benchmarks (RFC 2544). Nothing listens there.
  facts.addresses = {StrCat("198.18.", number / 250 % 256, ".", number % 250 + 1)};
  facts.ephemeral_storage_bytes = std::int64_t{100} << 30;
  facts.os_image = "hollow";
  facts.runtime_version = "hollow://" DRAKKAR_VERSION;
  facts.agent_version = StrCat("v", options.gates.emulated().ToString(), ".0-drakkar");
  return facts;
}

}  // namespace

struct HollowNodes::HollowNode {
  HollowNode(const HollowOptions& options, client::Client& client, int number)
      : name(StrCat(options.name_prefix, number)),
        host(options.loop),
        runtime(node::MakeHollowRuntime(options.loop, host.machine)),
        work(node::MakeLoopWork(options.loop)),
        prober(options.loop) {
    host.machine.has_every_image = true;
    host.machine.images.clear();
    host.machine.program_in_pod = [](const node::PodSandboxConfig& pod,
                                     const node::ContainerConfig&) { return ProgramOf(pod); };
    agent = std::make_unique<node::NodeAgent>(
        node::NodeAgent::Options{.loop = options.loop,
                                 .random = options.random,
                                 .files = host.files,
                                 .watcher = host.watcher,
                                 .blocking = *work,
                                 .removing = *work,
                                 .client = client,
                                 .transport = host.transport,
                                 .runtime = *runtime,
                                 .device_probe = node::HollowHost::NoDevices(),
                                 .gates = options.gates,
                                 .node_name = name,
                                 .facts = FactsOf(options, name, number),
                                 .labels = {{"node.drakkar.io/hollow", "true"}},
                                 .features = options.features,
                                 .checkpoint_side_file = false,
                                 .prober = &prober,
                                 .watch_sources = false});
    agent->Start([this, &options, &client](Result<void> started) {
      if (!started.ok()) {
        kLog.Error("hollow node did not start", {{"node", name}, {"err", started.error().message}});
        return;
      }
      if (options.devices > 0) StartDriver(options, client);
    });
  }
  ~HollowNode() {
    if (driver != nullptr) driver->Stop();
    driver.reset();
    agent->Stop();
  }

  void StartDriver(const HollowOptions& options, client::Client& client) {
    auto devices = driver::ParseDeviceConfig(StrCat("count: ", options.devices, "\n"));
    if (!devices.ok()) {
      kLog.Error("hollow driver has no devices", {{"err", devices.error().message}});
      return;
    }
    for (const auto& device : devices->devices) device_names.push_back(device.device.name);
    driver = std::make_unique<driver::ReferenceDriver>(
        driver::ReferenceDriver::Options{.loop = options.loop,
                                         .random = options.random,
                                         .files = host.files,
                                         .client = client,
                                         .transport = host.transport,
                                         .node_name = name,
                                         .registry_directory = node::HollowHost::kRegistry,
                                         .cdi_directory = node::HollowHost::kCdiDirectory,
                                         .devices = std::move(*devices)});
    if (auto started = driver->Start(); !started.ok()) {
      kLog.Error("hollow driver did not start", {{"node", name}, {"err", started.error().message}});
      driver.reset();
    }
  }

  const std::string name;
  node::HollowHost host;
  std::unique_ptr<node::Runtime> runtime;
  std::unique_ptr<node::BlockingWork> work;
  HealthyProber prober;
  std::unique_ptr<node::NodeAgent> agent;
  std::unique_ptr<driver::ReferenceDriver> driver;
  std::vector<std::string> device_names;
  std::string unhealthy;  // the device that is unhealthy; empty: none
};

HollowNodes::HollowNodes(HollowOptions options) : options_(std::move(options)) {}
HollowNodes::~HollowNodes() {
  Stop();
}

void HollowNodes::Start() {
  watches_ =
      std::make_unique<client::SharedWatches>(options_.loop, options_.random, options_.client);
  watches_->Share(api::FindResource("", "v1", "pods"), "spec.nodeName");
  watches_->Share(api::FindResource("", "v1", "nodes"), "metadata.name");
  watches_->Share(api::FindResource("", "v1", "services"), "");
  watches_->Share(api::FindResource("resource.k8s.io", "v1", "resourceslices"), "spec.nodeName");
  StartNext();
  if (options_.health_changes_every > Duration::zero() && options_.devices > 0) {
    health_ = options_.loop.RunAfter(options_.health_changes_every,
                                     lifetime_.Guard([this] { ChangeHealth(); }));
  }
}

void HollowNodes::Stop() {
  next_.reset();
  health_.reset();
  nodes_.clear();
  watches_.reset();
}

Duration HollowNodes::start_gap() const {
  return std::clamp<Duration>(kStartInterval / std::max(options_.count, 1), kLeastStartGap,
                              kMostStartGap);
}

void HollowNodes::StartNext() {
  const int number = static_cast<int>(nodes_.size()) + 1;
  if (number > options_.count) {
    kLog.Info("hollow nodes started", {{"count", options_.count}});
    return;
  }
  nodes_.push_back(std::make_unique<HollowNode>(options_, *watches_, number));
  next_ = options_.loop.RunAfter(start_gap(), lifetime_.Guard([this] { StartNext(); }));
}

void HollowNodes::ChangeHealth() {
  HollowNode& node = *nodes_[options_.random.Below(nodes_.size())];
  if (node.driver != nullptr && node.driver->driver() != nullptr && !node.device_names.empty()) {
    const bool heals = !node.unhealthy.empty();
    const std::string device =
        heals ? node.unhealthy : node.device_names[options_.random.Below(node.device_names.size())];
    const auto reported = node.driver->driver()->ReportHealth(
        {{.pool_name = node.name,
          .device_name = device,
          .health = heals ? rpc::DeviceHealthState::kHealthy : rpc::DeviceHealthState::kUnhealthy,
          .message = heals ? "" : "simulated failure"}});
    if (reported.ok()) node.unhealthy = heals ? "" : device;
  }
  health_ = options_.loop.RunAfter(options_.health_changes_every,
                                   lifetime_.Guard([this] { ChangeHealth(); }));
}

}  // namespace drakkar::cmd
