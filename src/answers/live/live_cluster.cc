#include "answers/live/live_cluster.h"

#include <algorithm>

#include "api/scheme/scheme.h"

namespace drakkar::answers {
namespace {

struct Followed {
  SnapshotKind kind;
  std::string_view group, version, name;
  Objects Snapshot::*into;
};

constexpr std::string_view kResource = "resource.k8s.io";

const std::vector<Followed>& AllFollowed() {
  using enum SnapshotKind;
  static const std::vector<Followed> kAll = {
      {kClasses, kResource, "v1", "DeviceClass", &Snapshot::classes},
      {kTaintRules, kResource, "", "DeviceTaintRule", &Snapshot::taint_rules},
      {kNodes, "", "v1", "Node", &Snapshot::nodes},
      {kLeases, "coordination.k8s.io", "v1", "Lease", &Snapshot::leases},
      {kNamespaces, "", "v1", "Namespace", &Snapshot::namespaces},
      {kSlices, kResource, "v1", "ResourceSlice", &Snapshot::slices},
      {kClaims, kResource, "v1", "ResourceClaim", &Snapshot::claims},
      {kPods, "", "v1", "Pod", &Snapshot::pods},
  };
  return kAll;
}

}  // namespace

LiveCluster::LiveCluster(EventLoop& loop, Random& random, client::Client& client,
                         const Snapshot& first, std::uint32_t kinds)
    : first_(first) {
  for (const Followed& each : AllFollowed()) {
    if ((kinds & Mask(each.kind)) == 0 || (first.unreadable & Mask(each.kind)) != 0) continue;
    const std::string_view version =
        each.version.empty() ? std::string_view(first.taint_rule_version) : each.version;
    const api::KindSchema* schema = api::FindKind(each.group, version, each.name);
    if (schema == nullptr) continue;
    client::Informer::Options options{.collection = {schema, "", "", ""}};
    // Servers with the default gates do not serve it.
    options.may_be_missing = each.kind == SnapshotKind::kTaintRules;
    if (each.kind == SnapshotKind::kLeases) options.collection.namespace_ = "kube-node-lease";
    if (each.kind == SnapshotKind::kPods || each.kind == SnapshotKind::kClaims) {
      options.collection.namespace_ = first.only_namespace;
    }
    kinds_.push_back(
        {each.into, std::make_unique<client::Informer>(loop, random, client, std::move(options))});
    kinds_.back().informer->AddHandlers(
        {.on_add = [this, kind = each.kind](const api::ObjectPtr&) { Changed(kind); },
         .on_update = [this, kind = each.kind](const api::ObjectPtr&,
                                               const api::ObjectPtr&) { Changed(kind); },
         .on_delete = [this, kind = each.kind](const api::ObjectPtr&) { Changed(kind); }});
  }
}

void LiveCluster::Changed(SnapshotKind kind) {
  ++changes_;
  if (on_change_) on_change_(kind);
}

void LiveCluster::Start() {
  for (Kind& kind : kinds_) {
    kind.informer->OnSynced([this] {
      if (!has_synced()) return;
      for (const Kind& each : kinds_) Objects().swap(first_.*each.into);
    });
    kind.informer->Start();
  }
}

bool LiveCluster::has_synced() const {
  return std::all_of(kinds_.begin(), kinds_.end(),
                     [](const Kind& kind) { return kind.informer->has_synced(); });
}

Snapshot LiveCluster::Take(WallTime now) const {
  Snapshot snapshot = first_;
  snapshot.now = now;
  if (!has_synced()) return snapshot;
  snapshot.consistent = false;
  for (const Kind& kind : kinds_) {
    Objects& objects = snapshot.*kind.into;
    objects.clear();
    for (const auto& [name, object] : kind.informer->objects()) objects.push_back(object);
  }
  return snapshot;
}

}  // namespace drakkar::answers
