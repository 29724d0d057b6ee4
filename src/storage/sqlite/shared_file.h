#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace drakkar::storage {

// State that this process's connections to one database file share: SQLite's locks and the index of
// the write-ahead log. SQLite normally keeps these in files shared between processes. A store
// belongs to one process, so memory is enough. Thread-safe.
class SharedFile {
 public:
  static constexpr int kIndexLocks = 8;  // SQLITE_SHM_NLOCK

  // The locks of one connection. It must release them before it is destroyed.
  struct Holder {
    int level = 0;            // SQLITE_LOCK_NONE
    std::uint8_t shared = 0;  // index locks, one bit each
    std::uint8_t exclusive = 0;
    bool maps_index = false;
  };

  // SQLite's five file locking levels. Returns false if another connection is in the way.
  bool Lock(Holder& holder, int level);
  void Unlock(Holder& holder, int level);
  bool IsReserved();

  // Takes `count` index locks from `first`. Returns false if another connection is in the way.
  bool LockIndex(Holder& holder, int first, int count, bool exclusive);
  void UnlockIndex(Holder& holder, int first, int count);
  // Returns a region of the index, zeroed when new, or null if it does not exist and `make` is
  // false. Its address stays valid until the last connection has unmapped it.
  char* MapIndex(Holder& holder, std::size_t region, std::size_t bytes, bool make);
  void UnmapIndex(Holder& holder);
  // Makes one thread's earlier index writes visible to the others.
  void Barrier();

 private:
  std::mutex mutex_;
  int holders_ = 0;  // connections that hold any lock
  int highest_ = 0;  // highest level held; from RESERVED on by one connection only
  const Holder* highest_holder_ = nullptr;
  std::array<int, kIndexLocks> index_holders_{};  // number of sharers; -1: exclusive
  int mappings_ = 0;
  std::vector<std::unique_ptr<char[]>> index_;
};

}  // namespace drakkar::storage
