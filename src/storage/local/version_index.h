#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "absl/container/btree_set.h"
#include "storage/local/row.h"

namespace drakkar::storage {

struct KeyRecord;

// One state of one key. Older states hang behind newer ones until they are compacted.
struct Version {
  KeyRecord* key = nullptr;
  Bytes value;  // null: deleted, or not resident (then `evicted`)
  Revision create_revision = 0;
  RowId row = 0;
  std::unique_ptr<Version> previous;
  std::uint32_t size_bytes = 0;  // of the value, resident or not
  bool is_delete = false;
  bool evicted = false;

  Revision revision() const { return RowRevision(row); }
};

struct KeyRecord {
  explicit KeyRecord(std::string_view name) : key(name) {}
  ~KeyRecord();
  KeyRecord(const KeyRecord&) = delete;
  KeyRecord& operator=(const KeyRecord&) = delete;

  static constexpr std::size_t kInOrder = static_cast<std::size_t>(-1);

  const std::string key;
  std::unique_ptr<Version> newest;
  std::size_t place = kInOrder;  // among the keys that are not in order yet
};

// All keys, their newest values, and the retained history, in memory.
//
// History is the list of versions that came after the compacted revision, in order. Values of
// superseded versions may be dropped from memory (EvictSuperseded): those are read back from the
// log by row. The newest value of a key is always resident.
//
// Not thread-safe. Memory: about 190 bytes and the key per live key, 64 bytes per retained version,
// values shared with whoever else holds them.
class VersionIndex {
 public:
  // A value that has to be read back, and where it belongs.
  struct Missing {
    RowId row = 0;
    Bytes* place = nullptr;  // valid as long as the vector it points into keeps its storage
  };

  // The newest version; null when the key does not exist now.
  const Version* Find(std::string_view key) const;

  // Row ids must rise.
  void Apply(Row row);

  // The state at `revision`, which must not be below what was compacted. `missing` points into
  // result->entries.
  void Range(const RangeOptions& options, Revision revision, RangeResult* result,
             std::vector<Missing>* missing) const;

  // Events of history with revisions in (after, up_to] and the prefix, in whole revisions. Stops
  // behind the revision that reaches `max_events`, and after looking at 64 times as many versions
  // of other keys. Returns the revision reached. `missing` points into *events.
  Revision Events(std::string_view prefix, Revision after, Revision up_to, std::size_t max_events,
                  std::vector<WatchEvent>* events, std::vector<Missing>* missing) const;

  // Forgets versions replaced at or before `compacted`, at most `max_versions` of history per call.
  // Appends the rows nobody needs any more; false when there is nothing left to do.
  bool Trim(Revision compacted, std::size_t max_versions, std::vector<RowId>* removed);

  // Drops superseded values, oldest first, until at most `max_bytes` of them are resident. Touches
  // only what was superseded at or before `durable`: the rest cannot be read back yet.
  void EvictSuperseded(std::size_t max_bytes, Revision durable);

  // The first revision at which history from its end backwards exceeds `max_bytes`: compacting it
  // brings history under the bound. 0 when it is within.
  Revision RevisionOverBytes(std::size_t max_bytes) const;

  std::size_t history_bytes() const { return history_bytes_; }
  std::size_t history_versions() const { return history_.size(); }
  std::size_t superseded_resident_bytes() const { return superseded_resident_bytes_; }
  std::size_t keys() const { return keys_.size(); }

 private:
  struct Less {
    using is_transparent = void;
    static std::string_view Of(const KeyRecord* record) { return record->key; }
    static std::string_view Of(std::string_view key) { return key; }
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return Of(a) < Of(b);
    }
  };

  // Finds by hash: keys share long prefixes, so that each step down the tree would be a comparison
  // over a cache miss. Only ranges, and removals of what a range has seen, go down the tree.
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view key) const {
      return std::hash<std::string_view>()(key);
    }
    std::size_t operator()(const std::unique_ptr<KeyRecord>& record) const {
      return (*this)(record->key);
    }
  };
  struct Equal {
    using is_transparent = void;
    static std::string_view Of(const std::unique_ptr<KeyRecord>& record) { return record->key; }
    static std::string_view Of(std::string_view key) { return key; }
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return Of(a) == Of(b);
    }
  };

  static std::size_t HistoryCost(const Version& version);
  std::deque<Version*>::const_iterator FirstAfter(Revision revision) const;
  void DropResident(Version& version);

  void PutInOrder() const;
  void Remove(KeyRecord& record);

  std::unordered_set<std::unique_ptr<KeyRecord>, Hash, Equal> keys_;
  // Ranges are rare: what is new is put in order when one asks.
  mutable absl::btree_set<KeyRecord*, Less> ordered_;
  mutable std::vector<KeyRecord*> unordered_;
  std::deque<Version*> history_;  // owned by the chains in keys_
  // How many versions at the front of history_ had the value they replaced evicted.
  std::size_t evicted_front_ = 0;
  std::size_t history_bytes_ = 0;
  std::size_t superseded_resident_bytes_ = 0;
};

}  // namespace drakkar::storage
