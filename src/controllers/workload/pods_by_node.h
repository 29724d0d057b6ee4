#pragma once

#include <map>
#include <string>
#include <string_view>

#include "client/informer.h"

namespace drakkar::controllers {

// The pods that are bound to each node. Follows an informer. Construct it before the controllers
// that use it. Its size is that of the collection.
class PodsByNode {
 public:
  using Pods = std::map<std::string, api::ObjectPtr>;  // by "namespace/name"

  explicit PodsByNode(client::Informer& pods);
  PodsByNode(const PodsByNode&) = delete;
  PodsByNode& operator=(const PodsByNode&) = delete;

  const Pods& On(std::string_view node) const;
  client::Informer& informer() const { return informer_; }

 private:
  void Remove(const api::ObjectPtr& pod);

  client::Informer& informer_;
  std::map<std::string, Pods, std::less<>> by_node_;
};

}  // namespace drakkar::controllers
