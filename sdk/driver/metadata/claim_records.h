#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/env/file_system.h"
#include "base/result/result.h"
#include "sdk/driver/metadata/claim_record.h"

namespace drakkar::driver {

// The records of a driver's claims on disk, one file each:
//
//   <directory>/dra-device-metadata-records/<namespace>_<claim>              (0600)
//
// Older drivers kept the record as claim.json in the claim's UpdateDirectory. It is still read
// there, and removed with the claim.
class ClaimRecords {
 public:
  ClaimRecords(FileSystem& files, std::string directory)
      : files_(files), directory_(std::move(directory)) {}

  // Returns nothing if there is no record or it cannot be read.
  Result<std::optional<ClaimRecord>> Find(std::string_view namespace_name,
                                          std::string_view name) const;
  // `before` is the result of Find, if any.
  Result<void> Write(const ClaimRecord& record, const ClaimRecord* before) const;
  // Also removes the claim's UpdateDirectory. A missing record is not an error.
  Result<void> Remove(std::string_view namespace_name, std::string_view name) const;
  // "<namespace>_<claim>" of the claims that may have a record.
  Result<std::set<std::string>> List() const;

  // For updates in progress.
  std::string UpdateDirectory(std::string_view namespace_name, std::string_view name) const;

 private:
  std::string Path(std::string_view namespace_name, std::string_view name) const;

  FileSystem& files_;
  const std::string directory_;
};

}  // namespace drakkar::driver
