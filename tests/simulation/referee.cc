#include "tests/simulation/referee.h"

#include <algorithm>

#include "api/json/reader.h"
#include "api/scheme/scheme.h"
#include "base/result/check.h"
#include "base/text/text.h"
#include "claims/claim.h"
#include "claims/pod_claims.h"

namespace drakkar::simulation {
namespace {

constexpr std::string_view kNodeUser = "system:node:";
constexpr std::string_view kPods = "/registry/core/pods/";
constexpr std::string_view kClaims = "/registry/resource.k8s.io/resourceclaims/";

api::TreePtr ParseStored(const storage::Bytes& value) {
  auto tree = api::ParseJson(*value);
  CHECK(tree.ok());
  return *tree;
}

bool IsBound(api::Value pod) {
  return !pod["spec"]["nodeName"].str().empty();
}

// Whether the condition is True for the device of this result.
bool IsTrue(api::Value claim, api::Value result, std::string_view type) {
  const api::Value device = claims::FindDeviceStatus(claim, result);
  for (api::Value condition : device["conditions"].elements()) {
    if (condition["type"].str() == type) return condition["status"].str() == "True";
  }
  return false;
}

// Why a node must not have written this; empty if it may.
std::string NodeTrespass(const std::string& node, const client::ResourceRef& ref,
                         const api::ObjectPtr& object, std::string_view selector) {
  const std::string_view kind = ref.kind->plural;
  if (kind == "events") return {};
  if (kind == "nodes" || kind == "leases") {
    const std::string name =
        ref.name.empty() && object != nullptr ? std::string(object->name()) : ref.name;
    return name == node ? std::string() : StrCat(kind, " ", name);
  }
  if (kind != "pods" && kind != "resourceslices") return std::string(kind);
  if (ref.name.empty() && object == nullptr) {
    // A collection must be restricted to this node.
    return selector.find(StrCat("spec.nodeName=", node)) == selector.npos ? StrCat("all ", kind)
                                                                          : std::string();
  }
  if (object == nullptr) return {};
  const std::string_view owner = object->root()["spec"]["nodeName"].str();
  return owner == node ? std::string()
                       : StrCat(object->name(), " of ", owner.empty() ? "nobody" : owner);
}

// What control plane components may write besides events and leases.
bool MayWrite(std::string_view user, const client::ResourceRef& ref) {
  const std::string_view kind = ref.kind->plural;
  if (kind == "events" || kind == "leases") return true;
  if (user == "system:kube-scheduler") return kind == "pods" || kind == "resourceclaims";
  if (user == "fabric") {
    return kind == "resourceslices" || (kind == "resourceclaims" && ref.subresource == "status");
  }
  return true;
}

}  // namespace

std::string Referee::PrefixOf(const api::KindSchema& kind) {
  const api::KindSchema& stored = kind.storage == nullptr ? kind : *kind.storage;
  return StrCat("/registry/", stored.group.empty() ? "core" : stored.group, "/", stored.plural,
                "/");
}

void Referee::OnStored(const std::vector<storage::WatchEvent>& events, storage::Revision up_to) {
  for (const storage::WatchEvent& event : events) {
    if (event.revision < up_to_) {
      violations.push_back(
          StrCat("the store went back from revision ", up_to_, " to ", event.revision));
    }
    up_to_ = std::max(up_to_, event.revision);
    std::size_t end = 0;
    for (int slashes = 0; slashes < 4 && end != std::string::npos; ++slashes) {
      end = event.key.find('/', slashes == 0 ? 0 : end + 1);
    }
    if (end == std::string::npos) continue;
    stored_[event.key.substr(0, end + 1)].push_back(event.revision);
    if (event.key.starts_with(kClaims)) {
      const std::string name = event.key.substr(kClaims.size());
      if (event.value == nullptr) {
        claims_.erase(name);
      } else {
        claims_[name] = event.value;
      }
    }
    if (event.value == nullptr || !event.key.starts_with(kPods)) continue;
    const api::TreePtr pod = ParseStored(event.value);
    if (event.previous_value == nullptr) pods_.emplace(pod->root()["metadata"]["uid"].str());
    if (IsBound(pod->root()) &&
        (event.previous_value == nullptr || !IsBound(ParseStored(event.previous_value)->root()))) {
      OnBound(pod->root());
    }
  }
  up_to_ = std::max(up_to_, up_to);
}

void Referee::OnBound(api::Value pod) {
  for (const std::string& name : claims::ListClaimNames(pod)) {
    const auto found = claims_.find(StrCat(pod["metadata"]["namespace"].str(), "/", name));
    if (found == claims_.end()) continue;
    const api::TreePtr claim = ParseStored(found->second);
    for (api::Value result :
         claim->root()["status"]["allocation"]["devices"]["results"].elements()) {
      const auto complain = [&](std::string_view condition, std::string_view how) {
        violations.push_back(StrCat(pod["metadata"]["name"].str(), " is bound while ", condition,
                                    " of ", result["device"].str(), " in ", name, how));
      };
      for (api::Value type : result["bindingConditions"].elements()) {
        if (!IsTrue(claim->root(), result, type.str())) complain(type.str(), " is not True");
      }
      for (api::Value type : result["bindingFailureConditions"].elements()) {
        if (IsTrue(claim->root(), result, type.str())) complain(type.str(), " is True");
      }
    }
  }
}

void Referee::Forget(storage::Revision up_to) {
  watched_.clear();
  claims_.clear();
  known_from_ = up_to_ = std::max(up_to_, up_to);
}

void Referee::OnWatched(std::string_view user, const api::KindSchema& kind, std::int64_t after,
                        std::vector<std::int64_t> versions, std::int64_t up_to) {
  watched_.push_back({std::string(user), PrefixOf(kind), after, std::move(versions), up_to});
}

void Referee::CheckWatches() {
  std::vector<Watched> later;
  for (Watched& each : watched_) {
    if (each.up_to > up_to_) {
      later.push_back(std::move(each));
      continue;
    }
    if (each.after < known_from_) continue;
    // Between its start and the last event, a watch shows exactly what was stored.
    const std::vector<std::int64_t>& all = stored_[each.kind];
    const auto from = std::upper_bound(all.begin(), all.end(), each.after);
    const auto to = std::upper_bound(from, all.end(), each.up_to);
    if (std::equal(from, to, each.versions.begin(), each.versions.end())) continue;
    const auto [expected, shown] =
        std::mismatch(from, to, each.versions.begin(), each.versions.end());
    violations.push_back(
        StrCat("a watch of ", each.user, " on ", each.kind, " from version ", each.after, " shows ",
               shown == each.versions.end() ? std::string("nothing") : std::to_string(*shown),
               " where the store has ",
               expected == to ? std::string("nothing") : std::to_string(*expected)));
  }
  watched_ = std::move(later);
}

void Referee::OnWritten(std::string_view user, std::string_view verb,
                        const client::ResourceRef& ref, const api::ObjectPtr& object,
                        std::string_view selector) {
  if (user.starts_with(kNodeUser)) {
    const std::string node(user.substr(kNodeUser.size()));
    const std::string trespass = NodeTrespass(node, ref, object, selector);
    if (!trespass.empty())
      violations.push_back(StrCat("node ", node, " did ", verb, " on ", trespass));
    return;
  }
  if (!MayWrite(user, ref)) {
    violations.push_back(StrCat(user, " did ", verb, " on ", ref.kind->plural,
                                ref.subresource.empty() ? "" : "/", ref.subresource));
    return;
  }
  if (user == "fabric" && ref.kind->plural == "resourceslices" && object != nullptr &&
      object->root()["spec"]["driver"].str() != "fabric.example.com") {
    violations.push_back(StrCat("the fabric driver did ", verb, " on the slice ", object->name(),
                                " of another driver"));
  }
}

}  // namespace drakkar::simulation
