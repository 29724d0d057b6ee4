#pragma once

#include <map>
#include <string>
#include <string_view>

#include "api/meta/object.h"

namespace drakkar::scheduler {

// The PodGroups of the cluster (gate GenericWorkload). Lives on the scheduler's loop.
class PodGroups {
 public:
  void Set(const api::ObjectPtr& group) {
    groups_[group->qualified_name()] = group;
    keys_[std::string(group->uid())] = group->qualified_name();
  }
  void Remove(const api::ObjectPtr& group) {
    groups_.erase(group->qualified_name());
    keys_.erase(std::string(group->uid()));
  }

  // By "namespace/name"; null if there is none.
  api::ObjectPtr Find(std::string_view key) const {
    const auto found = groups_.find(key);
    return found == groups_.end() ? nullptr : found->second;
  }
  api::ObjectPtr FindByUid(std::string_view uid) const {
    const auto found = keys_.find(uid);
    return found == keys_.end() ? nullptr : Find(found->second);
  }

 private:
  std::map<std::string, api::ObjectPtr, std::less<>> groups_;  // by namespace/name
  std::map<std::string, std::string, std::less<>> keys_;       // by uid
};

}  // namespace drakkar::scheduler
