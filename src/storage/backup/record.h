#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"
#include "storage/store.h"

namespace drakkar::storage {

// The records of a backup (docs/formats/backup.md), in a file and in the pages that an API server
// sends. Numbers are little-endian.

// Ends a backup.
struct BackupEnd {
  std::uint64_t entries = 0;
  Revision revision = 0;  // at which the entries were read
};

// One page of a backup, as the API server answers.
struct BackupPage {
  std::vector<Entry> entries;
  std::vector<UnreadableEntry> unreadable;
  Revision revision = 0;
  std::uint64_t remaining = 0;  // entries after this page, only counted for the first one
  bool more = false;
};

std::string EncodeBackupEntry(const Entry& entry);
// Without the digest of everything up to here, which follows it.
std::string EncodeBackupEnd(const BackupEnd& end);
std::string EncodeBackupPage(const BackupPage& page);
Result<BackupPage> DecodeBackupPage(std::string_view bytes);

// One slice of a check, as the API server answers.
std::string EncodeVerifyResult(const VerifyResult& slice);
Result<VerifyResult> DecodeVerifyResult(std::string_view bytes);

// No engine writes larger values, so such a length means damage.
constexpr std::size_t kMaxBackupKeyBytes = std::size_t{64} << 10;
constexpr std::size_t kMaxBackupValueBytes = std::size_t{64} << 20;

// Takes one record off the front of `bytes`. Returns its size in bytes, or 0 if more bytes are
// needed.
struct BackupRecord {
  std::optional<Entry> entry;    // either this
  std::optional<BackupEnd> end;  // or this, with
  std::string sha256;            // the digest of everything before it
};
Result<std::size_t> DecodeBackupRecord(std::string_view bytes, BackupRecord& record);

}  // namespace drakkar::storage
