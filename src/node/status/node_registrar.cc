#include "node/status/node_registrar.h"

#include <algorithm>
#include <functional>

#include "api/meta/quantity.h"
#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

using api::Draft;
using api::Value;

constexpr Logger kLog("node.status");

const api::KindSchema* NodeKind() {
  return api::FindResource("", "v1", "nodes");
}

// In canonical form, as the server returns it.
std::string Kibibytes(std::int64_t bytes) {
  return api::Quantity(bytes / 1024 * 1024, api::Quantity::Format::kBinarySI).ToString();
}

// Present only while it is true.
constexpr char kSharedNetworkCondition[] = "PodsShareHostNetwork";

constexpr std::size_t kMaxNamesOfImage = 5;

struct ConditionText {
  const char* type;
  bool status;
  std::string reason;
  std::string message;
};

Draft MakeCondition(Value before, const ConditionText& text, const std::string& now,
                    bool heartbeat) {
  Draft condition = Draft::Object();
  const char* status = text.status ? "True" : "False";
  const bool same = before["status"].str() == status;
  condition["type"] = text.type;
  condition["status"] = status;
  condition["lastHeartbeatTime"] = heartbeat || !before["lastHeartbeatTime"].has_value()
                                       ? now
                                       : std::string(before["lastHeartbeatTime"].str());
  condition["lastTransitionTime"] = same && before["lastTransitionTime"].has_value()
                                        ? std::string(before["lastTransitionTime"].str())
                                        : now;
  condition["reason"] = text.reason;
  condition["message"] = text.message;
  return condition;
}

Draft MakeHandler(const RuntimeHandler& handler) {
  Draft draft = Draft::Object();
  draft["name"] = handler.name;
  if (handler.recursive_read_only_mounts) {
    draft["features"]["recursiveReadOnlyMounts"] = *handler.recursive_read_only_mounts;
  }
  if (handler.user_namespaces) {
    draft["features"]["userNamespaces"] = *handler.user_namespaces;
  }
  return draft;
}

// As a kubelet does: digests first, and the largest images first, which schedulers compare.
Draft MakeImages(std::vector<Image> images, std::int64_t most) {
  std::ranges::stable_sort(images, std::greater<>(), &Image::size_bytes);
  if (most >= 0 && images.size() > static_cast<std::size_t>(most)) {
    images.resize(static_cast<std::size_t>(most));
  }
  Draft list = Draft::Array();
  for (const Image& image : images) {
    Draft each = Draft::Object();
    each["names"] = Draft::Array();
    const auto add = [&](const std::string& name) {
      if (each["names"].size() < kMaxNamesOfImage) each["names"].Append(Draft(name));
    };
    for (const std::string& digest : image.digests) add(digest);
    for (const std::string& name : image.names) {
      if (name.find('@') == std::string::npos) add(name);
    }
    if (image.size_bytes > 0) each["sizeBytes"] = static_cast<std::int64_t>(image.size_bytes);
    list.Append(std::move(each));
  }
  return list;
}

}  // namespace

NodeRegistrar::NodeRegistrar(Options options) : options_(std::move(options)) {}
NodeRegistrar::~NodeRegistrar() = default;

void NodeRegistrar::Start() {
  SyncNode();
  SyncLease();
}

void NodeRegistrar::Refresh() {
  if (!looking_) SyncNode();
}

Draft NodeRegistrar::MakeStatus(Value before, bool heartbeat) const {
  Draft status(before);
  if (!status.is_object()) status = Draft::Object();
  const NodeFacts& facts = options_.facts;
  std::int64_t in_huge_pages = 0;
  for (const auto& [size, bytes] : facts.huge_pages) in_huge_pages += bytes;
  auto list_resources = [&](Draft& resources, const NodeReservation& reserved,
                            std::int64_t huge_pages) {
    auto rest = [](std::int64_t all, std::int64_t kept) {
      return std::max<std::int64_t>(all - kept, 0);
    };
    resources.Entry("cpu") =
        api::Quantity::FromMilli(rest(facts.cpu_count * 1000, reserved.cpu_milli)).ToString();
    resources.Entry("memory") =
        Kibibytes(rest(facts.memory_bytes, reserved.memory_bytes + huge_pages));
    for (const auto& [size, bytes] : facts.huge_pages) {
      resources.Entry(StrCat("hugepages-", size)) = Kibibytes(bytes);
    }
    resources.Entry("pods") = std::to_string(facts.max_pods);
    if (facts.ephemeral_storage_bytes > 0) {
      resources.Entry("ephemeral-storage") =
          Kibibytes(rest(facts.ephemeral_storage_bytes, reserved.ephemeral_storage_bytes));
    }
  };
  list_resources(status["capacity"], {}, 0);
  // Pods that request memory cannot use memory in huge pages.
  list_resources(status["allocatable"], options_.reserved, in_huge_pages);
  std::vector<Draft> addresses;
  for (const std::string& address : facts.addresses) {
    addresses.push_back({{"type", Draft("InternalIP")}, {"address", Draft(address)}});
  }
  addresses.push_back({{"type", Draft("Hostname")}, {"address", Draft(facts.hostname)}});
  status["addresses"] = Draft::Array(std::move(addresses));
  status["daemonEndpoints"]["kubeletEndpoint"]["Port"] = agent_port_;
  Draft& info = status["nodeInfo"];
  info["machineID"] = facts.machine_id;
  info["systemUUID"] = facts.system_uuid;
  info["bootID"] = facts.boot_id;
  info["kernelVersion"] = facts.kernel_version;
  info["osImage"] = facts.os_image;
  const std::string runtime = options_.runtime_version ? options_.runtime_version() : "";
  info["containerRuntimeVersion"] = runtime.empty() ? facts.runtime_version : runtime;
  info["kubeletVersion"] = facts.agent_version;
  info["kubeProxyVersion"] = "";
  info["operatingSystem"] = "linux";
  info["architecture"] = facts.architecture;
  const std::vector<RuntimeHandler> handlers =
      options_.runtime_handlers ? options_.runtime_handlers() : std::vector<RuntimeHandler>();
  if (handlers.empty()) {
    status.Remove("runtimeHandlers");
  } else {
    Draft list = Draft::Array();
    for (const RuntimeHandler& handler : handlers) list.Append(MakeHandler(handler));
    status["runtimeHandlers"] = std::move(list);
  }
  if (options_.images) {
    Draft images = MakeImages(options_.images(), options_.registration.max_images);
    if (images.size() == 0) {
      status.Remove("images");
    } else {
      status["images"] = std::move(images);
    }
  }
  if (options_.has_groups_policy) {
    status["features"]["supplementalGroupsPolicy"] = options_.has_groups_policy();
  }
  if (declared_features_.empty()) {
    status.Remove("declaredFeatures");
  } else {
    Draft list = Draft::Array();
    for (const std::string& feature : declared_features_) list.Append(Draft(feature));
    status["declaredFeatures"] = std::move(list);
  }
  const std::optional<std::string> why_not =
      options_.not_ready_reason ? options_.not_ready_reason() : std::nullopt;
  const std::string now = api::FormatTime(options_.loop.clock().Now());
  auto pressure = [&](std::string_view condition) {
    return options_.has_pressure && options_.has_pressure(condition);
  };
  const bool memory = pressure("MemoryPressure");
  const bool disk = pressure("DiskPressure");
  const bool pids = pressure("PIDPressure");
  std::vector<ConditionText> conditions = {
      {"MemoryPressure", memory,
       memory ? "KubeletHasInsufficientMemory" : "KubeletHasSufficientMemory",
       memory ? "kubelet has insufficient memory available"
              : "kubelet has sufficient memory available"},
      {"DiskPressure", disk, disk ? "KubeletHasDiskPressure" : "KubeletHasNoDiskPressure",
       disk ? "kubelet has disk pressure" : "kubelet has no disk pressure"},
      {"PIDPressure", pids, pids ? "KubeletHasInsufficientPID" : "KubeletHasSufficientPID",
       pids ? "kubelet has insufficient PID available" : "kubelet has sufficient PID available"},
      {"Ready", !why_not, why_not ? "KubeletNotReady" : "KubeletReady",
       why_not.value_or("kubelet is posting ready status")},
  };
  const std::optional<std::string> why_shared =
      options_.shared_network_reason ? options_.shared_network_reason() : std::nullopt;
  if (why_shared) {
    conditions.push_back({kSharedNetworkCondition, true, "NoPodNetwork", *why_shared});
  }
  Draft list = Draft::Array();
  for (Value each : before["conditions"].elements()) {
    const bool ours = each["type"].str() == kSharedNetworkCondition ||
                      std::any_of(conditions.begin(), conditions.end(), [&](const auto& text) {
                        return each["type"].str() == text.type;
                      });
    if (!ours) list.Append(Draft(each));
  }
  for (const ConditionText& text : conditions) {
    Value old;
    for (Value each : before["conditions"].elements()) {
      if (each["type"].str() == text.type) old = each;
    }
    list.Append(MakeCondition(old, text, now, heartbeat));
  }
  status["conditions"] = std::move(list);
  return status;
}

Draft NodeRegistrar::MakeNode() const {
  Draft node = Draft::Object();
  node["apiVersion"] = "v1";
  node["kind"] = "Node";
  node["metadata"]["name"] = options_.node_name;
  node["spec"] = Draft::Object();
  const NodeRegistration& registration = options_.registration;
  if (!registration.provider_id.empty()) node["spec"]["providerID"] = registration.provider_id;
  if (!registration.taints.empty()) {
    Draft taints = Draft::Array();
    for (const NodeTaint& taint : registration.taints) {
      Draft each = Draft::Object();
      each["key"] = taint.key;
      if (!taint.value.empty()) each["value"] = taint.value;
      each["effect"] = taint.effect;
      taints.Append(std::move(each));
    }
    node["spec"]["taints"] = std::move(taints);
  }
  return node;
}

void NodeRegistrar::NextLook(Duration delay) {
  looking_ = false;
  status_timer_ = options_.loop.RunAfter(delay, [this] { SyncNode(); });
}

void NodeRegistrar::SyncNode() {
  looking_ = true;
  options_.client.Get({NodeKind(), "", options_.node_name, ""},
                      lifetime_.Guard([this](client::Reply reply) { OnNode(std::move(reply)); }));
}

void NodeRegistrar::OnNode(client::Reply reply) {
  if (!reply.ok()) {
    if (reply.error->code == ErrorCode::kNotFound) return CreateNode();
    kLog.Warning("could not read Node",
                 {{"node", options_.node_name}, {"err", reply.error->message}});
    return NextLook(kRetryAfter);
  }
  const bool first = node_ == nullptr;
  node_ = reply.object;
  if (first && on_registered_) on_registered_();
  // Labels first, so that the scheduler sees them as soon as the node is ready.
  Draft labelled(node_->tree());
  Draft& labels = labelled["metadata"]["labels"];
  labels.Entry("kubernetes.io/hostname") = options_.node_name;
  labels.Entry("kubernetes.io/os") = "linux";
  labels.Entry("kubernetes.io/arch") = options_.facts.architecture;
  labels.Entry("beta.kubernetes.io/os") = "linux";
  labels.Entry("beta.kubernetes.io/arch") = options_.facts.architecture;
  for (const auto& [name, value] : options_.labels) labels.Entry(name) = value;
  const api::TreePtr with_labels = labelled.Freeze();
  if (!api::Equal(with_labels->root()["metadata"], (*node_)["metadata"])) {
    return WriteNode("", with_labels);
  }
  SyncStatus();
}

void NodeRegistrar::SyncStatus() {
  const WallTime now = options_.loop.clock().Now();
  const bool heartbeat = now - last_heartbeat_ >= options_.registration.heartbeat_every;
  Draft changed(node_->tree());
  changed["status"] = MakeStatus((*node_)["status"], heartbeat);
  const api::TreePtr tree = changed.Freeze();
  if (heartbeat) last_heartbeat_ = now;
  if (api::Equal(tree->root()["status"], (*node_)["status"]))
    return NextLook(options_.registration.status_every);
  WriteNode("status", tree);
}

void NodeRegistrar::CreateNode() {
  if (!options_.registration.creates_node) {
    if (!std::exchange(has_missed_node_, true)) {
      kLog.Warning("Node does not exist, and registerNode is false: waiting for it",
                   {{"node", options_.node_name}});
    }
    return NextLook(kRetryAfter);
  }
  Draft node = MakeNode();
  Draft& labels = node["metadata"]["labels"];
  labels.Entry("kubernetes.io/hostname") = options_.node_name;
  node["status"] = MakeStatus(Value(), true);
  options_.client.Create(
      {NodeKind(), "", "", ""}, node.Freeze(), {.field_manager = "drakkar-node"},
      lifetime_.Guard([this](client::Reply reply) {
        if (!reply.ok() && reply.error->code != ErrorCode::kAlreadyExists) {
          kLog.Warning("could not register Node", {{"err", reply.error->message}});
          return NextLook(kRetryAfter);
        }
        SyncNode();
      }));
}

void NodeRegistrar::WriteNode(const char* subresource, api::TreePtr tree) {
  options_.client.Update(
      {NodeKind(), "", options_.node_name, subresource}, std::move(tree),
      {.field_manager = "drakkar-node"},
      lifetime_.Guard([this, status = *subresource != '\0'](client::Reply reply) {
        if (reply.ok()) {
          // Not compared again at once: if the server alters what we write, we would write forever.
          node_ = reply.object;
          return status ? NextLook(options_.registration.status_every) : SyncStatus();
        }
        if (reply.error->code == ErrorCode::kConflict) return SyncNode();
        kLog.Warning("could not update Node", {{"err", reply.error->message}});
        NextLook(kRetryAfter);
      }));
}

// --- lease

void NodeRegistrar::NextLease(Duration delay) {
  lease_timer_ = options_.loop.RunAfter(delay, [this] { SyncLease(); });
}

void NodeRegistrar::SyncLease() {
  // As long as nobody else writes it, the last answer is current.
  if (lease_ != nullptr) return WriteLease(lease_);
  options_.client.Get({api::FindResource("coordination.k8s.io", "v1", "leases"), "kube-node-lease",
                       options_.node_name, ""},
                      lifetime_.Guard([this](client::Reply reply) {
                        if (!reply.ok() && reply.error->code != ErrorCode::kNotFound) {
                          return NextLease(kRetryAfter);
                        }
                        WriteLease(reply.ok() ? reply.object : nullptr);
                      }));
}

void NodeRegistrar::WriteLease(const api::ObjectPtr& lease) {
  Draft body = lease ? Draft(lease->tree()) : Draft::Object();
  if (!lease) {
    body["apiVersion"] = "coordination.k8s.io/v1";
    body["kind"] = "Lease";
    body["metadata"]["name"] = options_.node_name;
    body["metadata"]["namespace"] = "kube-node-lease";
  }
  if (node_ != nullptr && body["metadata"]["ownerReferences"].size() == 0) {
    // The Lease is garbage-collected with its Node.
    body["metadata"]["ownerReferences"].Append({{"apiVersion", Draft("v1")},
                                                {"kind", Draft("Node")},
                                                {"name", Draft(options_.node_name)},
                                                {"uid", Draft(std::string(node_->uid()))}});
  }
  body["spec"]["holderIdentity"] = options_.node_name;
  body["spec"]["leaseDurationSeconds"] = options_.registration.lease_seconds;
  body["spec"]["renewTime"] = api::FormatMicroTime(options_.loop.clock().Now());
  const api::KindSchema* kind = api::FindResource("coordination.k8s.io", "v1", "leases");
  auto done = lifetime_.Guard([this, had_lease = lease_ != nullptr](client::Reply reply) {
    lease_ = reply.ok() ? reply.object : nullptr;
    if (!reply.ok() && had_lease) return SyncLease();  // changed or deleted meanwhile
    if (!reply.ok() && reply.error->code == ErrorCode::kNotFound) {
      // The namespace is missing; create it.
      Draft home = Draft::Object();
      home["apiVersion"] = "v1";
      home["kind"] = "Namespace";
      home["metadata"]["name"] = "kube-node-lease";
      options_.client.Create({api::FindResource("", "v1", "namespaces"), "", "", ""}, home.Freeze(),
                             {}, lifetime_.Guard([this](client::Reply made) {
                               if (!made.ok() && made.error->code != ErrorCode::kAlreadyExists) {
                                 return NextLease(kRetryAfter);
                               }
                               SyncLease();
                             }));
      return;
    }
    if (!reply.ok()) kLog.Warning("could not renew Lease", {{"err", reply.error->message}});
    // As a kubelet, so that three renewals may fail.
    const Duration every = std::chrono::seconds(options_.registration.lease_seconds) / 4;
    NextLease(reply.ok() ? every : std::min<Duration>(every, kRetryAfter));
  });
  if (lease) {
    options_.client.Update({kind, "kube-node-lease", options_.node_name, ""}, body.Freeze(), {},
                           done);
  } else {
    options_.client.Create({kind, "kube-node-lease", "", ""}, body.Freeze(), {}, done);
  }
}

}  // namespace drakkar::node
