#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/container/indexed_map.h"
#include "client/informer.h"

namespace drakkar::controllers {

// Objects of one kind by the uid of the owner that controls them, and per namespace those without a
// controller: a controller's local copy of its dependents. Follows an informer. Construct it before
// the controllers that use it, so that it is up to date when they are notified about a change. Its
// size is that of the collection.
class OwnedIndex {
 public:
  using Objects = IndexedMap<api::ObjectPtr>::Ordered;  // by "namespace/name"

  explicit OwnedIndex(client::Informer& objects);
  OwnedIndex(const OwnedIndex&) = delete;
  OwnedIndex& operator=(const OwnedIndex&) = delete;

  const Objects& Of(std::string_view owner_uid) const;
  const Objects& Orphans(std::string_view namespace_) const;
  client::Informer& informer() const { return informer_; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  // Every change of an object gets here, while few are ever iterated.
  using Group = IndexedMap<api::ObjectPtr>;
  using Groups = std::unordered_map<std::string, Group, Hash, std::equal_to<>>;  // never iterated

  void Put(const api::ObjectPtr& object);
  void Remove(const api::ObjectPtr& object);
  static void Erase(Groups& groups, std::string_view group, std::string_view name);

  client::Informer& informer_;
  Groups by_owner_;
  Groups orphans_;
};

}  // namespace drakkar::controllers
