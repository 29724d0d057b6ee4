#include "apiserver/http/read_cache.h"

#include "api/scheme/scheme.h"
#include "apiserver/auth/authenticator.h"
#include "apiserver/auth/impersonation.h"

namespace drakkar::apiserver {
namespace {

constexpr std::string_view kPolicyGroup = "rbac.authorization.k8s.io";
constexpr std::string_view kPolicyKinds[] = {"Role", "ClusterRole", "RoleBinding",
                                             "ClusterRoleBinding"};
constexpr std::string_view kNodes = "system:nodes";

}  // namespace

std::string ReadCache::KeyOf(const net::ServerRequest& request) {
  std::string key;
  const net::ConnectionInfo* connection = request.connection.get();
  if (request.method != net::Method::kGet || !request.raw_query.empty() || connection == nullptr ||
      !connection->peer || connection->proxy || AsksToImpersonate(request.headers)) {
    return key;
  }
  const net::PeerIdentity& peer = *connection->peer;
  const std::string_view accept = request.headers.Get("accept");
  key.reserve(request.raw_path.size() + accept.size() + 64);
  // No part contains a NUL, so the key is unambiguous.
  key.append(request.raw_path).push_back('\0');
  key.append(accept).push_back('\0');
  key.append(peer.common_name);
  for (const std::string& group : peer.organizations) {
    if (group == kNodes) return std::string();
    key.push_back('\0');
    key.append(group);
  }
  return key;
}

const ReadCache::Entry* ReadCache::Find(const std::string& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  const Stamp& stamp = found->second.stamp;
  if (stamps_[stamp.slot].load(std::memory_order_acquire) == stamp.object &&
      policy_.load(std::memory_order_acquire) == stamp.policy) {
    return &found->second;
  }
  entries_.erase(found);
  return nullptr;
}

ReadCache::Stamp ReadCache::StampOf(const RequestInfo& info) const {
  Stamp stamp;
  const std::string name = info.namespace_.empty() ? info.name : info.namespace_ + "/" + info.name;
  stamp.slot = SlotOf(StoredKind(*info.kind), name);
  stamp.object = stamps_[stamp.slot].load(std::memory_order_acquire);
  stamp.policy = policy_.load(std::memory_order_acquire);
  return stamp;
}

void ReadCache::Keep(std::string key, Entry entry) {
  // If others write to the store, our stamps do not see their writes.
  if (core_.is_shared()) return;
  if (entry.object->json()->size() > kMaxObjectBytes) return;
  if (entries_.size() >= kMaxEntries) entries_.clear();
  entries_.insert_or_assign(std::move(key), std::move(entry));
}

void ReadCache::Follow(const api::KindSchema& kind) {
  const api::KindSchema& stored = StoredKind(kind);
  if (followed_.contains(&stored)) return;
  auto follow = [this](const api::KindSchema& each, auto on_change) {
    const WatchCache* cache = core_.FindCache(each.group, each.plural);
    auto& watcher = followed_[&each];
    if (cache == nullptr || watcher != nullptr) return;
    watcher = cache->StartFeed(std::make_shared<const std::size_t>(0), storage::Mark::kApplied,
                               {std::move(on_change)});
  };
  for (std::string_view name : kPolicyKinds) {
    const api::KindSchema& policy = *api::FindKind(kPolicyGroup, "v1", name);
    follow(policy, [this, &policy](const std::vector<Change>& changes) {
      policy_.fetch_add(1, std::memory_order_release);
      for (const Change& change : changes) {
        stamps_[SlotOf(policy, change.object->qualified_name())].fetch_add(
            1, std::memory_order_release);
      }
    });
  }
  follow(stored, [this, &stored](const std::vector<Change>& changes) {
    for (const Change& change : changes) {
      stamps_[SlotOf(stored, change.object->qualified_name())].fetch_add(1,
                                                                         std::memory_order_release);
    }
  });
}

const api::KindSchema& ReadCache::StoredKind(const api::KindSchema& kind) {
  return kind.storage == nullptr ? kind : *kind.storage;
}

std::size_t ReadCache::SlotOf(const api::KindSchema& stored, std::string_view name) {
  const std::size_t hash =
      std::hash<std::string_view>()(name) * 31 + std::hash<std::string_view>()(stored.plural);
  return (hash ^ hash >> 32) % kSlots;
}

}  // namespace drakkar::apiserver
