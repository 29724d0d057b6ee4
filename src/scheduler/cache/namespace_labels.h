#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "api/meta/label_selector.h"
#include "api/meta/object.h"

namespace drakkar::scheduler {

// The labels of all namespaces, for namespace selectors. Lives on the scheduler's loop; one entry
// per namespace.
class NamespaceLabels {
 public:
  void Set(const api::ObjectPtr& ns) {
    namespaces_[std::string(ns->name())] = ns;
    ++version_;
  }
  void Remove(const api::ObjectPtr& ns) {
    namespaces_.erase(std::string(ns->name()));
    ++version_;
  }
  // Whether the selector matches the namespace. An unknown namespace has no labels.
  bool Matches(const api::LabelSelector& selector, std::string_view ns) const {
    const auto found = namespaces_.find(ns);
    return selector.Matches(
        found == namespaces_.end() ? api::Value() : found->second->root()["metadata"]["labels"]);
  }
  // Incremented with every change.
  std::uint64_t version() const { return version_; }

 private:
  std::map<std::string, api::ObjectPtr, std::less<>> namespaces_;
  std::uint64_t version_ = 0;
};

}  // namespace drakkar::scheduler
