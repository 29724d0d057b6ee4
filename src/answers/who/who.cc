#include "answers/who/who.h"

#include <algorithm>
#include <map>
#include <set>

#include "answers/cluster/natural_order.h"
#include "base/text/text.h"

namespace drakkar::answers {
namespace {

constexpr std::string_view kNone = "<none>";
constexpr std::string_view kLabelPrefix = "label=";

bool MatchesOwner(std::string_view wanted, const Holding& holding) {
  if (holding.consumer == nullptr) return false;
  const std::string_view owner = holding.consumer->owner;
  const std::size_t slash = owner.find('/');
  if (slash == std::string_view::npos) return false;
  if (wanted.find('/') == std::string_view::npos) return owner.substr(slash + 1) == wanted;
  return ToLower(owner.substr(0, slash)) == ToLower(wanted.substr(0, wanted.find('/'))) &&
         owner.substr(slash) == wanted.substr(wanted.find('/'));
}

bool Matches(const WhoFilter& filter, const Holding& holding) {
  if (!filter.devices.empty() &&
      std::none_of(filter.devices.begin(), filter.devices.end(), [&](const std::string& name) {
        return NamesDevice(name, holding.device->id);
      })) {
    return false;
  }
  const api::Object* pod = holding.consumer == nullptr ? nullptr : holding.consumer->pod.get();
  if (!filter.node.empty() && holding.device->node != filter.node &&
      (pod == nullptr || (*pod)["spec"]["nodeName"].str() != filter.node)) {
    return false;
  }
  if (!filter.namespace_.empty() && holding.claim->claim->namespace_() != filter.namespace_) {
    return false;
  }
  if (!filter.owner.empty() && !MatchesOwner(filter.owner, holding)) return false;
  return filter.labels.empty() ||
         (pod != nullptr && filter.labels.Matches((*pod)["metadata"]["labels"]));
}

std::string GroupOf(const Holding& holding, const HolderGrouping& by) {
  std::string group;
  switch (by.kind) {
    case HolderGrouping::Kind::kNode:
      group = holding.device->node;
      if (group.empty() && holding.consumer != nullptr && holding.consumer->pod != nullptr) {
        group = (*holding.consumer->pod)["spec"]["nodeName"].str();
      }
      break;
    case HolderGrouping::Kind::kNamespace:
      group = holding.claim->claim->namespace_();
      break;
    case HolderGrouping::Kind::kOwner:
      if (holding.consumer != nullptr && !holding.consumer->owner.empty()) {
        group = StrCat(holding.consumer->namespace_, "/", holding.consumer->owner);
      }
      break;
    case HolderGrouping::Kind::kLabel:
      if (holding.consumer != nullptr && holding.consumer->pod != nullptr) {
        group = (*holding.consumer->pod)["metadata"]["labels"].Entry(by.label).str();
      }
      break;
  }
  return group.empty() ? std::string(kNone) : group;
}

}  // namespace

std::string Holding::pod() const {
  return consumer == nullptr ? std::string(kNone) : consumer->qualified_name();
}

std::string Holding::owner() const {
  return consumer == nullptr || consumer->owner.empty() ? std::string(kNone) : consumer->owner;
}

bool NamesDevice(std::string_view name, const device::DeviceId& id) {
  if (name == id.device) return true;
  if (name.find('/') == std::string_view::npos) return false;
  return name == StrCat(id.pool, "/", id.device) || name == id.ToString();
}

WhoAnswer FindHolders(const DeviceTable& table, const WhoFilter& filter) {
  WhoAnswer answer;
  answer.notes = table.notes();
  const auto add = [&](Holding holding) {
    if (Matches(filter, holding)) answer.holdings.push_back(holding);
  };
  for (const DeviceEntry& entry : table.devices()) {
    for (const Hold& hold : entry.holds) {
      if (hold.claim->consumers.empty()) add({&entry, hold.claim, hold.result, nullptr});
      for (const Consumer& consumer : hold.claim->consumers) {
        add({&entry, hold.claim, hold.result, &consumer});
      }
    }
  }
  std::stable_sort(answer.holdings.begin(), answer.holdings.end(),
                   [](const Holding& a, const Holding& b) {
                     if (a.device == b.device) return false;
                     if (a.device->node != b.device->node) {
                       return NaturalLess(a.device->node, b.device->node);
                     }
                     if (a.device->id.driver != b.device->id.driver) {
                       return a.device->id.driver < b.device->id.driver;
                     }
                     if (a.device->id.pool != b.device->id.pool) {
                       return NaturalLess(a.device->id.pool, b.device->id.pool);
                     }
                     return NaturalLess(a.device->id.device, b.device->id.device);
                   });
  return answer;
}

std::string HolderGrouping::name() const {
  switch (kind) {
    case Kind::kNode:
      return "node";
    case Kind::kNamespace:
      return "namespace";
    case Kind::kOwner:
      return "owner";
    case Kind::kLabel:
      return label;
  }
  return {};
}

Result<HolderGrouping> ParseHolderGrouping(std::string_view text) {
  using enum HolderGrouping::Kind;
  for (const HolderGrouping::Kind kind : {kNode, kNamespace, kOwner}) {
    HolderGrouping grouping{kind, {}};
    if (grouping.name() == text) return grouping;
  }
  if (text.starts_with(kLabelPrefix) && text.size() > kLabelPrefix.size()) {
    return HolderGrouping{kLabel, std::string(text.substr(kLabelPrefix.size()))};
  }
  return InvalidArgument(
      StrCat("--by takes node, namespace, owner or label=KEY, not ", Quote(text)));
}

std::vector<HolderGroup> GroupHolders(const WhoAnswer& answer, const HolderGrouping& by) {
  struct Members {
    std::set<const DeviceEntry*> devices;
    std::set<const ClaimUse*> claims;
    std::set<std::string_view> pods;  // uids
    std::size_t unhealthy = 0;
    std::string oldest;
  };
  std::map<std::string, Members> groups;
  for (const Holding& holding : answer.holdings) {
    Members& members = groups[GroupOf(holding, by)];
    if (members.devices.insert(holding.device).second && holding.device->IsUnhealthy()) {
      ++members.unhealthy;
    }
    members.claims.insert(holding.claim);
    if (holding.consumer != nullptr && holding.consumer->is_pod) {
      members.pods.insert(holding.consumer->uid);
    }
    const std::string& since = holding.claim->since;
    if (!since.empty() && (members.oldest.empty() || since < members.oldest)) {
      members.oldest = since;
    }
  }
  std::vector<HolderGroup> list;
  for (auto& [name, members] : groups) {
    list.push_back({name, members.devices.size(), members.claims.size(), members.pods.size(),
                    members.unhealthy, members.oldest});
  }
  std::stable_sort(list.begin(), list.end(), [](const HolderGroup& a, const HolderGroup& b) {
    if ((a.name == kNone) != (b.name == kNone)) return b.name == kNone;
    return NaturalLess(a.name, b.name);
  });
  return list;
}

}  // namespace drakkar::answers
