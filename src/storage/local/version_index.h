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

// One state of one key. A version links to the one it replaced until that is compacted.
struct Version {
  KeyRecord* key = nullptr;
  Bytes value;  // null: deleted, or not resident (then `evicted`)
  Revision create_revision = 0;
  RowId row = 0;
  std::unique_ptr<Version> previous;
  std::uint32_t size_bytes = 0;  // of the value, resident or not
  bool is_delete = false;
  bool evicted = false;
  bool damaged = false;  // then it has no value

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
  std::size_t place = kInOrder;  // index into the keys that are not sorted yet
};

// All keys, their newest values, and the retained history, in memory.
//
// History is the list of versions newer than the compacted revision, in order. Values of superseded
// versions may be evicted from memory (EvictSuperseded); they are then read back from the log by
// row. The newest value of a key is always resident.
//
// Not thread-safe. Memory: the key plus about 190 bytes per live key, and 64 bytes per retained
// version. Values are shared with other holders.
class VersionIndex {
 public:
  // A value that must be read back from the log, and where to store it.
  struct Missing {
    RowId row = 0;
    Bytes* place = nullptr;  // valid until the vector it points into reallocates
  };

  // Returns the newest version, or null if the key does not exist now.
  const Version* Find(std::string_view key) const;

  // Row ids must be ascending.
  void Apply(Row row);

  // Only while loading. Marks the keys that were created at `created` and last changed before `row`
  // as damaged: a damaged row, whose own key cannot be trusted, may have changed one of them.
  void MarkDamaged(Revision created, RowId row);

  // Returns the state at `revision`, which must not be compacted. `missing` points into
  // result->entries.
  void Range(const RangeOptions& options, Revision revision, RangeResult* result,
             std::vector<Missing>* missing) const;

  // Appends the events under `prefix` with revisions in (after, up_to]; a revision is never split.
  // Stops after the revision that reaches `max_events`, or after scanning 64 times as many versions
  // of other keys. Returns the revision reached. `missing` points into *events.
  Revision Events(std::string_view prefix, Revision after, Revision up_to, std::size_t max_events,
                  std::vector<WatchEvent>* events, std::vector<Missing>* missing) const;

  // Drops versions that were replaced at or before `compacted`, at most `max_versions` per call.
  // Appends the rows that are no longer needed to `removed`. Returns false when nothing is left to
  // do.
  bool Trim(Revision compacted, std::size_t max_versions, std::vector<RowId>* removed);

  // Evicts superseded values, oldest first, until at most `max_bytes` of them are resident. Stops
  // at values superseded after `durable`, which cannot be read back yet.
  void EvictSuperseded(std::size_t max_bytes, Revision durable);

  // Counting back from the newest revision, the first one at which history exceeds `max_bytes`.
  // Compacting it brings history under the limit. 0 if history is within the limit.
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

  // Lookups use a hash table: keys share long prefixes, so each step down the tree would be a
  // comparison with a cache miss. Only ranges, and removals of keys that a range has seen, use the
  // tree.
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
  // Ranges are rare, so new keys are sorted into the tree when a range needs them.
  mutable absl::btree_set<KeyRecord*, Less> ordered_;
  mutable std::vector<KeyRecord*> unordered_;
  std::deque<Version*> history_;  // owned by the chains in keys_
  // Number of versions at the front of history_ whose replaced value was evicted.
  std::size_t evicted_front_ = 0;
  std::size_t history_bytes_ = 0;
  std::size_t superseded_resident_bytes_ = 0;
};

}  // namespace drakkar::storage
