#pragma once

#include <string_view>

namespace drakkar::storage {

// Called before every write and sync, on the thread that performs it. Returning false makes the
// call fail as on a broken disk.
class IoObserver {
 public:
  virtual ~IoObserver() = default;
  virtual bool OnWrite(std::string_view path) = 0;  // also called for truncation
  virtual bool OnSync(std::string_view path) = 0;
  // Called before every write. Returning false makes it fail as on a full disk.
  virtual bool HasSpace(std::string_view /*path*/) { return true; }
  // The current content of the file is durable.
  virtual void AfterSync(std::string_view path) = 0;
};

}  // namespace drakkar::storage
