#pragma once

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

}  // namespace drakkar::storage
