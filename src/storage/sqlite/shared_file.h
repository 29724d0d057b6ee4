#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace drakkar::storage {

// What the connections of this process have in common about one database file: SQLite's locks on it
// and the index of its write-ahead log. SQLite keeps them in files that processes share; a store
// belongs to one process, so that memory is enough. Any thread.
class SharedFile {
 public:
  static constexpr int kIndexLocks = 8;  // SQLITE_SHM_NLOCK

  // One connection's share; it gives back its own before it goes.
  struct Holder {
    int level = 0;            // SQLITE_LOCK_NONE
    std::uint8_t shared = 0;  // locks of the index, one bit each
    std::uint8_t exclusive = 0;
    bool maps_index = false;
  };

  // SQLite's five levels of locking a file. False: another connection is in the way.
  bool Lock(Holder& holder, int level);
  void Unlock(Holder& holder, int level);
  bool IsReserved();

  // `count` locks of the index from `first`. False: another connection is in the way.
  bool LockIndex(Holder& holder, int first, int count, bool exclusive);
  void UnlockIndex(Holder& holder, int first, int count);
  // A piece of the index, zero when new; null when it is not there and not to be made. It stays
  // where it is until the last connection has unmapped.
  char* MapIndex(Holder& holder, std::size_t region, std::size_t bytes, bool make);
  void UnmapIndex(Holder& holder);
  // What one thread wrote to the index before is seen by another after.
  void Barrier();

 private:
  std::mutex mutex_;
  int holders_ = 0;  // of any level but none
  int highest_ = 0;  // level, from reserved on of one holder only
  const Holder* highest_holder_ = nullptr;
  std::array<int, kIndexLocks> index_holders_{};  // how many share it; -1: exclusive
  int mappings_ = 0;
  std::vector<std::unique_ptr<char[]>> index_;
};

}  // namespace drakkar::storage
