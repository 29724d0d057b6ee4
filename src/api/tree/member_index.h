#pragma once

#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "api/tree/draft.h"

namespace drakkar::api {

// Finds and adds members of an object by name in constant time, for loops over the members of
// another object: Draft::Entry looks through all members. The object must not change otherwise
// meanwhile.
class MemberIndex {
 public:
  explicit MemberIndex(Draft& object) : members_(object.MutableMembers()) {
    for (std::size_t i = 0; i < members_.size(); ++i) places_[members_[i].first->view()] = i;
  }

  // As Draft::Entry. The reference is valid until the next call.
  Draft& Entry(std::string_view name) {
    const auto [found, is_new] = places_.try_emplace(name, members_.size());
    if (!is_new) return members_[found->second].second;
    auto& added = members_.emplace_back(KeyRef(name), Draft());
    // The name that was passed may not live as long as the object's own.
    auto node = places_.extract(found);
    node.key() = added.first->view();
    places_.insert(std::move(node));
    return added.second;
  }

 private:
  Draft::Members& members_;
  std::unordered_map<std::string_view, std::size_t> places_;
};

}  // namespace drakkar::api
