#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace drakkar {

// A map with ordered iteration that is mostly accessed by key. A hash index finds entries; new
// entries are inserted into the order only when somebody iterates. Keys here share long prefixes
// ("default/claim-..."), which makes each step of a tree lookup a comparison with a cache miss, and
// most entries of a busy server are erased before anybody lists them.
//
// Entries do not move until they are erased. Must not be shared between threads, not even for
// reading.
template <typename V>
class IndexedMap {
 public:
  using Ordered = std::map<std::string, V, std::less<>>;

  IndexedMap() = default;
  IndexedMap(const IndexedMap&) = delete;
  IndexedMap& operator=(const IndexedMap&) = delete;

  // Valid until the next insertion or erasure.
  const Ordered& ordered() const {
    for (Waiting& waiting : unordered_) {
      waiting.place->place = ordered_.insert(std::move(waiting.node)).position;
      waiting.place->waits_at = kInOrder;
    }
    unordered_.clear();
    return ordered_;
  }
  std::size_t size() const { return index_.size(); }

  // Null if absent. Valid until the entry is erased.
  V* Find(std::string_view key) {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : found->second.value;
  }
  const V* Find(std::string_view key) const { return const_cast<IndexedMap*>(this)->Find(key); }

  // Inserts V() if absent.
  V& operator[](std::string_view key) {
    if (V* found = Find(key)) return *found;
    maker_.try_emplace(std::string(key));
    typename Ordered::node_type node = maker_.extract(maker_.begin());
    Place& place = index_.try_emplace(std::string_view(node.key())).first->second;
    place.value = &node.mapped();
    place.waits_at = unordered_.size();
    unordered_.push_back({std::move(node), &place});
    return *place.value;
  }

  void Clear() {
    index_.clear();
    unordered_.clear();
    ordered_.clear();
  }

  // Returns false if absent. `key` may be part of the entry itself.
  bool Erase(std::string_view key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return false;
    const Place place = found->second;
    index_.erase(found);  // first, because its key is in the entry
    if (place.waits_at == kInOrder) {
      ordered_.erase(place.place);
    } else {
      Waiting& gone = unordered_[place.waits_at];
      if (&gone != &unordered_.back()) {
        std::swap(gone, unordered_.back());
        gone.place->waits_at = place.waits_at;
      }
      unordered_.pop_back();
    }
    return true;
  }

 private:
  static constexpr std::size_t kInOrder = static_cast<std::size_t>(-1);
  struct Place {
    V* value = nullptr;
    std::size_t waits_at = kInOrder;     // index in `unordered_`, or:
    typename Ordered::iterator place{};  // position in `ordered_`
  };
  struct Waiting {
    typename Ordered::node_type node;
    Place* place;
  };

  std::unordered_map<std::string_view, Place> index_;
  mutable Ordered ordered_;
  mutable std::vector<Waiting> unordered_;  // inserted since the last iteration
  Ordered maker_;                           // used to create nodes; otherwise empty
};

}  // namespace drakkar
