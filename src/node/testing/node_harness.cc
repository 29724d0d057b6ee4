#include "node/testing/node_harness.h"

#include <gtest/gtest.h>

#include "api/tree/draft.h"
#include "base/text/text.h"
#include "node/dra/dra_manager.h"

namespace drakkar::node {

FakeDriver::FakeDriver(NodeHarness& harness, std::string name, std::string socket)
    : plugin(name), harness_(harness), socket_(StrCat(HollowHost::kRegistry, "/", socket)) {
  plugin.prepare_claim = [this, name](const rpc::ClaimReference& claim) {
    harness_.history.push_back(StrCat("prepare ", claim.name));
    const std::string id = StrCat(name, "/test=", claim.uid);
    auto write = [&] {
      return harness_.files.WriteFile(
          StrCat("/var/run/cdi/", name, "-", claim.uid, ".json"),
          StrCat(R"({"cdiVersion":"0.5.0","kind":")", name, R"(/test","devices":[{"name":")",
                 claim.uid, R"(","containerEdits":{"env":["DEVICE_OF_)", claim.name, "=", claim.uid,
                 R"("]}}]})"),
          0644);
    };
    // Twice, because an injected fault is meant for the agent.
    EXPECT_TRUE(write().ok() || write().ok());
    rpc::PreparedDevice device;
    device.pool_name = "pool";
    device.device_name = "device-" + claim.name;
    device.cdi_device_ids = {id};
    return rpc::PrepareResult{.devices = {device}};
  };
  plugin.unprepare_claim = [this](const rpc::ClaimReference& claim) {
    harness_.history.push_back(StrCat("unprepare ", claim.name));
    return rpc::UnprepareResult();
  };
}

FakeDriver::~FakeDriver() {
  Stop();
}

void FakeDriver::Start() {
  server_ = rpc::CreateServer(harness_.transport, socket_, plugin.Services());
  EXPECT_TRUE(server_->Start().ok());
  harness_.Run();
  harness_.Advance(Duration::zero());  // the node connects to it
}

void FakeDriver::Stop() {
  if (server_ == nullptr) return;
  server_->Stop();
  server_.reset();
  harness_.Run();
}

void FakeDriver::Kill() {
  harness_.transport.Kill(socket_);
  Stop();
}

FeatureGates NodeHarness::DefaultGates() {
  return FeatureGates().With(Gate::kDRAOptionalNodePreparation, true);
}

NodeHarness::NodeHarness(FeatureGates with)
    : gates(std::move(with)), api(loop, gates), host(loop) {}

NodeHarness::~NodeHarness() {
  KillAgent();
}

void NodeHarness::StartAgent() {
  client = std::make_unique<FaultyClient>(loop, api.NewClient("system:node:node-1"));
  client->fault = [this](const std::string& what) {
    return api_fault ? api_fault(what) : std::nullopt;
  };
  work = MakeLoopWork(loop);
  runtime = MakeHollowRuntime(loop, machine);
  NodeFacts facts = HollowHost::Facts("node-1", 4, 8);
  facts.huge_pages = huge_pages;
  agent =
      std::make_unique<NodeAgent>(NodeAgent::Options{.loop = loop,
                                                     .random = loop.random(),
                                                     .files = files,
                                                     .watcher = watcher,
                                                     .blocking = *work,
                                                     .removing = *work,
                                                     .client = *client,
                                                     .transport = transport,
                                                     .runtime = *runtime,
                                                     .device_probe = HollowHost::NoDevices(),
                                                     .gates = gates,
                                                     .metrics = &metrics,
                                                     .wakefulness = wakefulness,
                                                     .node_name = "node-1",
                                                     .facts = facts,
                                                     .features = features,
                                                     .service_variables = service_variables,
                                                     .pod_network_variables = pod_network_variables,
                                                     .dns = dns,
                                                     .network = network,
                                                     .cpu_manager = cpu_manager,
                                                     .shutdown_periods = shutdown_periods,
                                                     .volume_host = volume_host,
                                                     .prober = &prober,
                                                     .registration = registration,
                                                     .logs = logs,
                                                     .pulls = pulls,
                                                     .longest_crash_backoff = longest_crash_backoff,
                                                     .watch_sources = watch_sources});
  started = Internal("no answer");
  agent->Start([this](Result<void> result) { started = std::move(result); });
  Run();
}

void NodeHarness::KillAgent() {
  agent.reset();
  runtime.reset();
  work.reset();
  client.reset();
}

void NodeHarness::CreateClaim(const std::string& name, const std::vector<std::string>& devices,
                              const std::string& skip) {
  auto claim = api.Create(StrCat(
      R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":")", name,
      R"(","namespace":"default"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"any"}}]}}})"));
  ASSERT_NE(claim, nullptr);
  api::Draft changed(claim->tree());
  api::Draft& results = changed["status"]["allocation"]["devices"]["results"];
  for (std::string device : devices) {
    const std::size_t mark = device.find('!');
    const bool skips = mark != std::string::npos;
    const std::string operation = skips ? device.substr(mark + 1) : "";
    if (skips) device.resize(mark);
    const std::size_t slash = device.find('/');
    api::Draft result = {{"request", api::Draft("r")},
                         {"driver", api::Draft(device.substr(0, slash))},
                         {"pool", api::Draft("pool")},
                         {"device", api::Draft(device.substr(slash + 1))}};
    if (!operation.empty()) {
      result["skipNodeOperations"].Append(api::Draft(operation));
    } else if (skips) {
      result["skipNodeOperations"] = api::Draft(true);
    }
    if (!skip.empty()) result["skipNodeOperations"].Append(api::Draft(skip));
    results.Append(std::move(result));
  }
  const auto reply = api.Update("ResourceClaim", "default/" + name, "status", changed.Freeze());
  ASSERT_TRUE(reply.ok()) << reply.error->message;
}

api::ObjectPtr NodeHarness::CreatePod(const std::string& name, const std::string& spec_members,
                                      const std::vector<std::string>& claims) {
  std::string uses;
  for (const std::string& claim : claims) {
    if (!uses.empty()) uses += ",";
    uses += StrCat(R"({"name":")", claim, R"(","resourceClaimName":")", claim, R"("})");
  }
  auto pod = api.Create(StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
                               R"(","namespace":"default"},"spec":{)", spec_members,
                               claims.empty() ? "" : R"(,"resourceClaims":[)", uses,
                               claims.empty() ? "" : "]", "}}"));
  if (pod == nullptr) return nullptr;
  for (const std::string& claim : claims) {
    api::Draft changed(api.Get("ResourceClaim", "default/" + claim)->tree());
    changed["status"]["reservedFor"].Append({{"resource", api::Draft("pods")},
                                             {"name", api::Draft(name)},
                                             {"uid", api::Draft(std::string(pod->uid()))}});
    const auto reply = api.Update("ResourceClaim", "default/" + claim, "status", changed.Freeze());
    EXPECT_TRUE(reply.ok()) << reply.error->message;
  }
  // Bound last, as the scheduler does.
  const api::TreePtr binding =
      api::Draft(
          {{"apiVersion", api::Draft("v1")},
           {"kind", api::Draft("Binding")},
           {"metadata",
            api::Draft({{"name", api::Draft(name)}, {"namespace", api::Draft("default")}})},
           {"target", api::Draft({{"kind", api::Draft("Node")}, {"name", api::Draft("node-1")}})}})
          .Freeze();
  std::optional<client::Reply> reply;
  api.client().Create({testing::KindNamed("Pod"), "default", name, "binding"}, binding, {},
                      [&](client::Reply answer) { reply = std::move(answer); });
  Run();
  EXPECT_TRUE(reply && reply->ok())
      << (reply && reply->error ? reply->error->message : "no answer");
  return Pod(name);
}

void NodeHarness::CreatePodWithClaim() {
  CreateClaim("c", {"gpu.example.com/dev-0"});
  CreatePod("p", kUsesClaim, {"c"});
}

void NodeHarness::RunFor(Duration time, int exit_code) {
  machine.program_of = [=](const ContainerConfig&) {
    return HollowProgram{.runs_for = time, .exit_code = exit_code};
  };
}

std::string NodeHarness::Phase(const std::string& name) {
  auto pod = Pod(name);
  return pod == nullptr ? "(gone)" : std::string((*pod)["status"]["phase"].str());
}

std::vector<std::string> NodeHarness::Events(const std::string& reason) {
  std::vector<std::string> messages;
  std::optional<client::ListReply> list;
  api.client().List({testing::KindNamed("Event"), "", "", ""}, {},
                    [&](client::ListReply reply) { list = std::move(reply); });
  Run();
  for (const auto& event : list->items) {
    if ((*event)["reason"].str() == reason) messages.emplace_back((*event)["message"].str("?"));
  }
  return messages;
}

void NodeHarness::DeletePod(const std::string& name) {
  const auto reply = api.Delete("Pod", "default/" + name);
  EXPECT_TRUE(reply.ok()) << reply.error->message;
  Run();
}

std::vector<const HollowContainer*> NodeHarness::Containers(const std::string& pod,
                                                            const std::string& name) {
  std::vector<const HollowContainer*> found;
  for (const auto& [id, container] : machine.containers) {
    const auto labels = container.config.labels;
    if (container.status.name == name && labels.at("io.kubernetes.pod.name") == pod) {
      found.push_back(&container);
    }
  }
  return found;
}

std::string EnvironmentOf(const HollowContainer& container, const std::string& name) {
  std::string value = "(none)";
  for (const auto& each : container.config.environment) {
    if (each.name == name) value = each.value;
  }
  return value;
}

GpuNode::GpuNode(FeatureGates with)
    : NodeHarness(std::move(with)), driver(*this, "gpu.example.com", "gpu.sock") {
  StartAgent();
  driver.Start();
}

}  // namespace drakkar::node
