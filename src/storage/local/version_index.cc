#include "storage/local/version_index.h"

#include <algorithm>
#include <utility>

#include "base/result/check.h"

namespace drakkar::storage {
namespace {

// Overhead of one version, counted as history in addition to key and value.
constexpr std::size_t kVersionOverheadBytes = 64;

bool HasPrefix(std::string_view key, std::string_view prefix) {
  return key.substr(0, prefix.size()) == prefix;
}

const Version* At(const KeyRecord& record, Revision revision) {
  const Version* version = record.newest.get();
  while (version != nullptr && version->revision() > revision) version = version->previous.get();
  return version == nullptr || version->is_delete ? nullptr : version;
}

}  // namespace

// A hot key has a chain of many thousand versions, so destroy it in a loop instead of recursively.
KeyRecord::~KeyRecord() {
  std::unique_ptr<Version> version = std::move(newest);
  while (version != nullptr) version = std::move(version->previous);
}

std::size_t VersionIndex::HistoryCost(const Version& version) {
  return kVersionOverheadBytes + version.key->key.size() + version.size_bytes;
}

const Version* VersionIndex::Find(std::string_view key) const {
  auto found = keys_.find(key);
  if (found == keys_.end()) return nullptr;
  const Version* version = (*found)->newest.get();
  return version->is_delete ? nullptr : version;
}

void VersionIndex::Apply(Row row) {
  CHECK(history_.empty() || history_.back()->row < row.id);
  auto found = keys_.find(std::string_view(row.key));
  if (found == keys_.end()) {
    found = keys_.insert(std::make_unique<KeyRecord>(row.key)).first;
    (*found)->place = unordered_.size();
    unordered_.push_back(found->get());
  }
  KeyRecord& record = **found;
  auto version = std::make_unique<Version>();
  version->key = &record;
  version->is_delete = row.value == nullptr && !row.damaged;
  version->damaged = row.damaged;
  version->size_bytes = row.value == nullptr ? 0 : static_cast<std::uint32_t>(row.value->size());
  version->value = std::move(row.value);
  version->create_revision = row.create_revision;
  version->row = row.id;
  version->previous = std::move(record.newest);
  if (version->previous != nullptr) superseded_resident_bytes_ += version->previous->size_bytes;
  history_bytes_ += HistoryCost(*version);
  history_.push_back(version.get());
  record.newest = std::move(version);
}

void VersionIndex::MarkDamaged(Revision created, RowId row) {
  for (const auto& record : keys_) {
    Version& newest = *record->newest;
    if (newest.create_revision != created || newest.row >= row || newest.is_delete) continue;
    history_bytes_ -= newest.size_bytes;
    newest.size_bytes = 0;
    newest.value.reset();
    newest.damaged = true;
  }
}

void VersionIndex::PutInOrder() const {
  for (KeyRecord* record : unordered_) {
    record->place = KeyRecord::kInOrder;
    ordered_.insert(record);
  }
  unordered_.clear();
}

void VersionIndex::Remove(KeyRecord& record) {
  if (record.place == KeyRecord::kInOrder) {
    ordered_.erase(&record);
  } else {
    unordered_[record.place] = unordered_.back();
    unordered_[record.place]->place = record.place;
    unordered_.pop_back();
  }
  keys_.erase(keys_.find(std::string_view(record.key)));
}

void VersionIndex::Range(const RangeOptions& options, Revision revision, RangeResult* result,
                         std::vector<Missing>* missing) const {
  result->revision = revision;
  PutInOrder();
  const bool continued = !options.start_after.empty() && options.start_after >= options.prefix;
  auto place = continued ? ordered_.upper_bound(std::string_view(options.start_after))
                         : ordered_.lower_bound(std::string_view(options.prefix));
  std::vector<std::pair<std::size_t, RowId>> absent;
  for (; place != ordered_.end() && HasPrefix((*place)->key, options.prefix); ++place) {
    const Version* version = At(**place, revision);
    if (version == nullptr) continue;
    if (version->damaged) {
      result->unreadable.push_back(
          {(*place)->key, version->revision(),
           "the store's row " + std::to_string(version->row) + " is damaged"});
      continue;
    }
    if (options.limit != 0 && result->entries.size() == options.limit) {
      if (!options.count_remaining) {
        result->more = true;
        break;
      }
      ++result->remaining;
      continue;
    }
    if (version->evicted) absent.emplace_back(result->entries.size(), version->row);
    result->entries.push_back(
        {(*place)->key, version->value, version->create_revision, version->revision()});
  }
  result->more = result->more || result->remaining > 0;
  for (const auto& [index, row] : absent) missing->push_back({row, &result->entries[index].value});
}

std::deque<Version*>::const_iterator VersionIndex::FirstAfter(Revision revision) const {
  return std::partition_point(history_.begin(), history_.end(), [revision](const Version* version) {
    return version->revision() <= revision;
  });
}

Revision VersionIndex::Events(std::string_view prefix, Revision after, Revision up_to,
                              std::size_t max_events, std::vector<WatchEvent>* events,
                              std::vector<Missing>* missing) const {
  struct Absent {
    std::size_t index;
    RowId row;
    bool previous;
  };
  // Versions that do not match still take time to scan. Limit those too, so that a watcher far
  // behind does not block the loop.
  std::size_t scan_left = max_events * 64;
  std::vector<Absent> absent;
  Revision reached = up_to;
  for (auto place = FirstAfter(after); place != history_.end(); ++place) {
    const Version& version = **place;
    if (version.revision() > up_to) break;
    const bool new_revision =
        place == history_.begin() || (*std::prev(place))->revision() != version.revision();
    if (new_revision && (events->size() >= max_events || scan_left == 0)) {
      reached = version.revision() - 1;
      break;
    }
    if (scan_left > 0) --scan_left;
    if (!HasPrefix(version.key->key, prefix)) continue;
    WatchEvent event;
    event.key = version.key->key;
    event.value = version.value;
    event.revision = version.revision();
    event.create_revision = version.create_revision;
    if (version.evicted) absent.push_back({events->size(), version.row, false});
    if (const Version* previous = version.previous.get();
        previous != nullptr && !previous->is_delete) {
      event.previous_value = previous->value;
      if (previous->evicted) absent.push_back({events->size(), previous->row, true});
    }
    events->push_back(std::move(event));
  }
  for (const Absent& one : absent) {
    WatchEvent& event = (*events)[one.index];
    missing->push_back({one.row, one.previous ? &event.previous_value : &event.value});
  }
  return reached;
}

void VersionIndex::DropResident(Version& version) {
  if (version.evicted) return;
  superseded_resident_bytes_ -= version.size_bytes;
}

bool VersionIndex::Trim(Revision compacted, std::size_t max_versions, std::vector<RowId>* removed) {
  while (!history_.empty() && history_.front()->revision() <= compacted) {
    if (max_versions-- == 0) return true;
    Version* version = history_.front();
    history_.pop_front();
    if (evicted_front_ > 0) --evicted_front_;
    history_bytes_ -= HistoryCost(*version);
    if (version->previous != nullptr) {
      // The row of a deletion is removed when the deletion itself leaves history. What a damaged
      // row replaced stays on disk, for a repair to fall back on.
      if (!version->previous->is_delete && !version->damaged) {
        removed->push_back(version->previous->row);
      }
      DropResident(*version->previous);
      version->previous.reset();
    }
    if (version->is_delete) {
      removed->push_back(version->row);
      KeyRecord* record = version->key;
      if (record->newest.get() == version) Remove(*record);
    }
  }
  return false;
}

void VersionIndex::EvictSuperseded(std::size_t max_bytes, Revision durable) {
  while (superseded_resident_bytes_ > max_bytes && evicted_front_ < history_.size()) {
    const Version& version = *history_[evicted_front_];
    if (version.revision() > durable) return;
    ++evicted_front_;
    Version* previous = version.previous.get();
    if (previous == nullptr || previous->is_delete || previous->evicted) continue;
    DropResident(*previous);
    previous->value.reset();
    previous->evicted = true;
  }
}

Revision VersionIndex::RevisionOverBytes(std::size_t max_bytes) const {
  std::size_t bytes = history_bytes_;
  Revision over = 0;
  for (auto place = history_.begin(); place != history_.end() && bytes > max_bytes; ++place) {
    bytes -= HistoryCost(**place);
    over = (*place)->revision();
  }
  return over;
}

}  // namespace drakkar::storage
