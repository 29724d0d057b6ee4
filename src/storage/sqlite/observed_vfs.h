#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace drakkar::storage {

// Hears of every write and sync before it happens, on the thread that does it. Returning false
// makes the call fail as on a broken disk.
class IoObserver {
 public:
  virtual ~IoObserver() = default;
  virtual bool OnWrite(std::string_view path) = 0;  // also truncation
  virtual bool OnSync(std::string_view path) = 0;
  // The file as it is now is safe.
  virtual void AfterSync(std::string_view path) = 0;
};

// A layer between SQLite and its files that reports to an observer: it counts syncs in production
// and breaks disks in tests. Writes that follow each other go to the file as one, before the next
// sync. One database file; connections to it share the index of its log in memory (shared_file.h),
// and other programs find the file locked while there is one.
//
// Registered with SQLite while it lives; must outlive the connections opened through it.
class ObservedVfs {
 public:
  explicit ObservedVfs(IoObserver& observer);
  ~ObservedVfs();
  ObservedVfs(const ObservedVfs&) = delete;
  ObservedVfs& operator=(const ObservedVfs&) = delete;

  const char* name() const { return name_.c_str(); }

 private:
  struct Impl;
  std::string name_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drakkar::storage
