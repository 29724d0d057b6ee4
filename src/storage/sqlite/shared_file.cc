#include "storage/sqlite/shared_file.h"

#include <sqlite3.h>

namespace drakkar::storage {

static_assert(SharedFile::kIndexLocks == SQLITE_SHM_NLOCK);

bool SharedFile::Lock(Holder& holder, int level) {
  std::lock_guard guard(mutex_);
  if (level <= holder.level) return true;
  const bool other_is_higher = highest_holder_ != nullptr && highest_holder_ != &holder;
  if (level == SQLITE_LOCK_SHARED) {
    if (other_is_higher && highest_ >= SQLITE_LOCK_PENDING) return false;
    ++holders_;
  } else {
    if (other_is_higher) return false;
    highest_holder_ = &holder;
    if (level == SQLITE_LOCK_EXCLUSIVE && holders_ > 1) {
      // New connections are locked out. Existing ones may finish.
      highest_ = holder.level = SQLITE_LOCK_PENDING;
      return false;
    }
    highest_ = level;
  }
  holder.level = level;
  return true;
}

void SharedFile::Unlock(Holder& holder, int level) {
  std::lock_guard guard(mutex_);
  if (level >= holder.level) return;
  if (highest_holder_ == &holder) {
    highest_holder_ = nullptr;
    highest_ = SQLITE_LOCK_NONE;
  }
  if (level == SQLITE_LOCK_NONE) --holders_;
  holder.level = level;
}

bool SharedFile::IsReserved() {
  std::lock_guard guard(mutex_);
  return highest_holder_ != nullptr;
}

bool SharedFile::LockIndex(Holder& holder, int first, int count, bool exclusive) {
  std::lock_guard guard(mutex_);
  for (int i = first; i < first + count; ++i) {
    const bool own = ((exclusive ? holder.exclusive : holder.shared) >> i & 1) != 0;
    if (!own && (exclusive ? index_holders_[i] != 0 : index_holders_[i] < 0)) return false;
  }
  for (int i = first; i < first + count; ++i) {
    const auto bit = static_cast<std::uint8_t>(1 << i);
    std::uint8_t& mine = exclusive ? holder.exclusive : holder.shared;
    if ((mine & bit) != 0) continue;
    mine |= bit;
    index_holders_[i] = exclusive ? -1 : index_holders_[i] + 1;
  }
  return true;
}

void SharedFile::UnlockIndex(Holder& holder, int first, int count) {
  std::lock_guard guard(mutex_);
  for (int i = first; i < first + count; ++i) {
    const auto bit = static_cast<std::uint8_t>(1 << i);
    if ((holder.exclusive & bit) != 0) index_holders_[i] = 0;
    if ((holder.shared & bit) != 0) --index_holders_[i];
    holder.exclusive &= static_cast<std::uint8_t>(~bit);
    holder.shared &= static_cast<std::uint8_t>(~bit);
  }
}

char* SharedFile::MapIndex(Holder& holder, std::size_t region, std::size_t bytes, bool make) {
  std::lock_guard guard(mutex_);
  if (!holder.maps_index) {
    holder.maps_index = true;
    ++mappings_;
  }
  while (make && index_.size() <= region) index_.push_back(std::make_unique<char[]>(bytes));
  return region < index_.size() ? index_[region].get() : nullptr;
}

void SharedFile::UnmapIndex(Holder& holder) {
  UnlockIndex(holder, 0, kIndexLocks);
  std::lock_guard guard(mutex_);
  if (!holder.maps_index) return;
  holder.maps_index = false;
  if (--mappings_ == 0) index_.clear();
}

void SharedFile::Barrier() {
  __sync_synchronize();
  // Race detectors understand only locks.
  std::lock_guard guard(mutex_);
}

}  // namespace drakkar::storage
