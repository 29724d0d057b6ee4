#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/env/file_system.h"
#include "base/result/result.h"
#include "sdk/driver/metadata/claim_record.h"

namespace drakkar::driver {

// The records of a driver's claims on disk, a file each:
//
//   <directory>/dra-device-metadata-records/<namespace>_<claim>              (0600)
//
// Earlier drivers kept it as claim.json in the claim's UpdateDirectory: there it is read, and goes
// with the claim.
class ClaimRecords {
 public:
  ClaimRecords(FileSystem& files, std::string directory)
      : files_(files), directory_(std::move(directory)) {}

  // Nothing if there is none, or none that can be read.
  Result<std::optional<ClaimRecord>> Find(std::string_view namespace_name,
                                          std::string_view name) const;
  // `before` is what Find found, if anything.
  Result<void> Write(const ClaimRecord& record, const ClaimRecord* before) const;
  // With the claim's UpdateDirectory. A record that is not there is fine.
  Result<void> Remove(std::string_view namespace_name, std::string_view name) const;
  // "<namespace>_<claim>" of those that may have one.
  Result<std::set<std::string>> List() const;

  // Of updates under way.
  std::string UpdateDirectory(std::string_view namespace_name, std::string_view name) const;

 private:
  std::string Path(std::string_view namespace_name, std::string_view name) const;

  FileSystem& files_;
  const std::string directory_;
};

}  // namespace drakkar::driver
