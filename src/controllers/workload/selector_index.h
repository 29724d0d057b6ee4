#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/label_selector.h"
#include "client/informer.h"

namespace drakkar::controllers {

// The selectors of an informer's objects, parsed once, to find the owners that select an object
// without a controller. A selector that is empty or cannot be read selects nothing.
class SelectorIndex {
 public:
  // Reads the selector of an object. The default is a LabelSelector in spec.selector.
  using Read = api::LabelSelector (*)(const api::Object& object);
  explicit SelectorIndex(client::Informer& owners, Read read = ReadLabelSelector);
  SelectorIndex(const SelectorIndex&) = delete;
  SelectorIndex& operator=(const SelectorIndex&) = delete;

  // Null if there is no such owner.
  const api::LabelSelector* Find(const std::string& qualified_name) const;
  // The owners in a namespace that select these labels, by name.
  std::vector<std::string> Matching(std::string_view namespace_, api::Value labels) const;

  static api::LabelSelector ReadLabelSelector(const api::Object& object);
  // Reads a plain map in spec.selector, as in ReplicationControllers and Services.
  static api::LabelSelector ReadMap(const api::Object& object);

 private:
  const Read read_;
  std::map<std::string, api::LabelSelector> selectors_;  // by "namespace/name"
};

}  // namespace drakkar::controllers
