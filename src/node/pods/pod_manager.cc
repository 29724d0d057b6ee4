#include "node/pods/pod_manager.h"

#include "api/meta/saturated.h"
#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("node.pods");

}  // namespace

PodManager::PodManager(PodContext& context, Random& random)
    : context_(context),
      informer_(context.loop, random, context.client,
                {.collection = {api::FindResource("", "v1", "pods"), "", "", ""},
                 .field_selector = StrCat("spec.nodeName=", context.node_name)}) {
  informer_.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& pod) { Worker(std::string(pod->uid())).Update(pod); },
       .on_update =
           [this](const api::ObjectPtr& before, const api::ObjectPtr& after) {
             // A pod may have been replaced by one of the same name between two lists.
             if (before->uid() != after->uid()) Worker(std::string(before->uid())).ObjectGone();
             Worker(std::string(after->uid())).Update(after);
           },
       .on_delete =
           [this](const api::ObjectPtr& last) {
             PodWorker& worker = Worker(std::string(last->uid()));
             worker.Update(last);
             worker.ObjectGone();
           }});
}

PodManager::~PodManager() {
  context_.runtime.OnExit(nullptr);
  context_.others_requests = nullptr;
  context_.admitted_requests = nullptr;
}

void PodManager::Evict(const std::string& uid, PodVerdict verdict, Duration grace) {
  const auto found = workers_.find(uid);
  if (found != workers_.end()) found->second->Evict(std::move(verdict), grace);
}

PodRequests PodManager::OthersRequests(const std::string& uid) const {
  PodRequests sum;
  for (const auto& [other, worker] : workers_) {
    if (other == uid || worker->pod() == nullptr) continue;
    const std::string_view phase = (*worker->pod())["status"]["phase"].str();
    if (phase == "Succeeded" || phase == "Failed") continue;
    const PodRequests requests = RequestsOf(worker->pod()->root());
    sum.cpu_milli = api::SaturatedAdd(sum.cpu_milli, requests.cpu_milli);
    sum.memory_bytes = api::SaturatedAdd(sum.memory_bytes, requests.memory_bytes);
  }
  return sum;
}

NodeAmounts PodManager::AdmittedRequests(const std::string& uid) const {
  NodeAmounts sum;
  for (const auto& [other, worker] : workers_) {
    if (other == uid || worker->pod() == nullptr) continue;
    if (worker->stage() == PodStage::kAdmitting || IsTerminated(worker->stage())) continue;
    const api::Value pod = worker->pod()->root();
    const auto add = [&](std::int64_t& total, std::string_view resource) {
      total = api::SaturatedAdd(total, RequestOf(pod, resource));
    };
    ++sum.pods;
    add(sum.cpu_milli, "cpu");
    add(sum.memory_bytes, "memory");
    add(sum.ephemeral_storage_bytes, "ephemeral-storage");
    for (const std::string& size : PageSizesOf(pod)) {
      add(sum.huge_pages[size], StrCat(kHugePages, size));
    }
  }
  return sum;
}

void PodManager::Start(std::function<void()> on_synced) {
  context_.others_requests = [this](const std::string& uid) { return OthersRequests(uid); };
  context_.admitted_requests = [this](const std::string& uid) { return AdmittedRequests(uid); };
  context_.runtime.OnExit([this](const ContainerStatus& status) {
    for (const PodSandbox& sandbox : context_.runtime.ListPodSandboxes()) {
      if (sandbox.id != status.sandbox_id) continue;
      auto found = workers_.find(sandbox.uid);
      if (found != workers_.end()) found->second->Sync();
      return;
    }
  });
  informer_.OnSynced([this, on_synced = std::move(on_synced)] {
    FindOrphans();
    if (on_synced) on_synced();
  });
  informer_.Start();
}

PodWorker& PodManager::Worker(const std::string& uid) {
  auto& worker = workers_[uid];
  if (worker == nullptr) {
    worker = std::make_unique<PodWorker>(context_, uid, [this, uid] { workers_.erase(uid); });
  }
  return *worker;
}

// Stops pods that still run here although their object was force-deleted while the agent was down.
void PodManager::FindOrphans() {
  std::set<std::string> uids;
  for (const PodSandbox& sandbox : context_.runtime.ListPodSandboxes()) uids.insert(sandbox.uid);
  for (const std::string& uid : uids) {
    if (workers_.contains(uid)) continue;
    kLog.Warning("found orphaned pod; stopping it", {{"podUID", uid}});
    Worker(uid).ObjectGone();
  }
  orphans_found_ = true;
}

// A visit may destroy other workers, so it iterates over a copy of the keys.
void PodManager::ForEachWorker(const std::function<void(PodWorker&)>& visit) {
  std::vector<std::string> uids;
  for (const auto& [uid, worker] : workers_) uids.push_back(uid);
  for (const std::string& uid : uids) {
    if (auto found = workers_.find(uid); found != workers_.end()) visit(*found->second);
  }
}

void PodManager::DriverUsable() {
  ForEachWorker([](PodWorker& worker) { worker.DriverUsable(); });
}

void PodManager::SyncAll() {
  ForEachWorker([](PodWorker& worker) { worker.Sync(); });
}

void PodManager::VolumesChanged(const std::string& pod_uid) {
  if (auto found = workers_.find(pod_uid); found != workers_.end()) {
    found->second->VolumesChanged();
  }
}

void PodManager::HealthChanged(const std::string& pod_uid) {
  if (auto found = workers_.find(pod_uid); found != workers_.end()) found->second->Sync();
}

std::optional<std::set<std::string>> PodManager::ActivePods() const {
  if (!orphans_found_) return std::nullopt;
  std::set<std::string> uids;
  for (const auto& [uid, worker] : workers_) uids.insert(uid);
  return uids;
}

const PodWorker* PodManager::Find(const std::string& qualified_name) const {
  const PodWorker* found = nullptr;
  for (const auto& [uid, worker] : workers_) {
    if (worker->pod() == nullptr || worker->pod()->qualified_name() != qualified_name) continue;
    // If two pods have the name (the old one is terminating), the newer one is meant.
    if (found == nullptr || worker->pod()->resource_version() > found->pod()->resource_version()) {
      found = worker.get();
    }
  }
  return found;
}

}  // namespace drakkar::node
