#include "controllers/pod_gc/controller.h"

#include "api/scheme/scheme.h"

namespace drakkar::controllers {

namespace {

bool IsFinished(const api::Object& pod) {
  const std::string_view phase = pod["status"]["phase"].str();
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace

PodGarbageCollector::PodGarbageCollector(EventLoop& loop, Random& random, client::Client& client,
                                         client::Informer& pods, client::Informer& nodes)
    : loop_(loop),
      client_(client),
      pods_(pods),
      nodes_(nodes),
      queue_(loop, random, {"pod-gc"},
             [this](const std::string& key, Done done) { Sync(key, std::move(done)); }) {
  pods.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& pod) { OnPod(pod); },
       .on_update = [this](const api::ObjectPtr&, const api::ObjectPtr& pod) { OnPod(pod); },
       .on_delete =
           [this](const api::ObjectPtr& pod) {
             auto found = finished_key_.find(pod->qualified_name());
             if (found == finished_key_.end()) return;
             finished_.erase({found->second, found->first});
             finished_key_.erase(found);
           }});
  nodes.AddHandlers(
      {.on_add =
           [this](const api::ObjectPtr& node) { missing_since_.erase(std::string(node->name())); },
       .on_delete = [this](const api::ObjectPtr& node) { OnNodeGone(std::string(node->name())); }});
  nodes.OnSynced([this] {
    for (const auto& [key, pod] : pods_.objects()) queue_.Add(key);
  });
}

void PodGarbageCollector::OnPod(const api::ObjectPtr& pod) {
  const std::string key = pod->qualified_name();
  if (IsFinished(*pod) && !finished_key_.contains(key)) {
    std::string created(pod->root()["metadata"]["creationTimestamp"].str());
    finished_.insert({created, key});
    finished_key_.emplace(key, std::move(created));
    if (finished_.size() > kMaxFinishedPods) queue_.Add(finished_.begin()->second);
  }
  const std::string_view node = pod->root()["spec"]["nodeName"].str();
  if (pod->is_being_deleted() ||
      (!node.empty() && nodes_.has_synced() && nodes_.Find(std::string(node)) == nullptr)) {
    queue_.Add(key);
  }
}

void PodGarbageCollector::OnNodeGone(const std::string& node) {
  for (const auto& [key, pod] : pods_.objects()) {
    if (pod->root()["spec"]["nodeName"].str() == node) queue_.Add(key);
  }
}

void PodGarbageCollector::Sync(const std::string& key, Done done) {
  api::ObjectPtr pod = pods_.Find(key);
  if (pod == nullptr) return done(Ok());
  const std::string node(pod->root()["spec"]["nodeName"].str());
  if (node.empty()) {
    if (pod->is_being_deleted()) return Delete(pod, std::move(done));
    return done(Ok());
  }
  if (finished_.size() > kMaxFinishedPods && finished_key_.contains(key)) {
    return Delete(pod, std::move(done));
  }
  if (!nodes_.has_synced() || nodes_.Find(node) != nullptr) return done(Ok());
  const MonotonicTime now = loop_.clock().Monotonic();
  const MonotonicTime since = missing_since_.try_emplace(node, now).first->second;
  if (now - since < kNodeQuarantine) {
    done(Ok());
    queue_.AddAfter(key, kNodeQuarantine - (now - since));
    return;
  }
  Delete(pod, std::move(done));
}

void PodGarbageCollector::Delete(const api::ObjectPtr& pod, Done done) {
  client_.Delete({api::FindKind("", "v1", "Pod"), std::string(pod->namespace_()),
                  std::string(pod->name()), ""},
                 {.grace_period_seconds = 0, .precondition_uid = std::string(pod->uid())},
                 lifetime_.Guard([done = std::move(done)](client::Reply reply) {
                   if (reply.ok() || reply.error->code == ErrorCode::kNotFound) return done(Ok());
                   done(*reply.error);
                 }));
}

}  // namespace drakkar::controllers
