#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace drakkar {

// A map that is walked in order but mostly asked by key: a hash index finds entries, so that only a
// new key descends the tree. Keys here share long prefixes ("default/claim-..."), which makes each
// step of a descent a comparison over a cache miss.
template <typename V>
class IndexedMap {
 public:
  using Ordered = std::map<std::string, V, std::less<>>;

  const Ordered& ordered() const { return ordered_; }
  std::size_t size() const { return ordered_.size(); }

  // Null if there is none. Valid until the entry is erased.
  V* Find(std::string_view key) {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : &found->second->second;
  }
  const V* Find(std::string_view key) const { return const_cast<IndexedMap*>(this)->Find(key); }

  // The entry, made with V() if it was not there.
  V& operator[](std::string_view key) {
    if (V* found = Find(key)) return *found;
    const auto made = ordered_.try_emplace(std::string(key)).first;
    index_.emplace(made->first, made);
    return made->second;
  }

  // False if there was none.
  bool Erase(std::string_view key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return false;
    const auto entry = found->second;
    index_.erase(found);  // first: its key lies in the entry
    ordered_.erase(entry);
    return true;
  }

 private:
  Ordered ordered_;
  std::unordered_map<std::string_view, typename Ordered::iterator> index_;
};

}  // namespace drakkar
