#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/env/file_system.h"
#include "base/hash/sha256.h"
#include "base/result/result.h"
#include "storage/backup/record.h"

namespace drakkar::storage {

// Writes a backup to `path`.partial and renames it once it is complete and on disk. Only the owner
// can read the file: it contains Secrets.
class BackupWriter {
 public:
  BackupWriter(FileSystem& files, std::string path);
  // Removes what was written unless Finish succeeded.
  ~BackupWriter();
  BackupWriter(const BackupWriter&) = delete;
  BackupWriter& operator=(const BackupWriter&) = delete;

  Result<void> Add(const Entry& entry);
  Result<void> Finish(Revision revision);

  std::uint64_t entries() const { return entries_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  Result<void> Put(std::string_view bytes);
  Result<void> Flush();

  FileSystem& files_;
  const std::string path_;
  const std::string partial_;
  std::string buffer_;
  Sha256 digest_;
  std::uint64_t entries_ = 0;
  std::uint64_t bytes_ = 0;
  bool begun_ = false;
  bool finished_ = false;
};

// Reads a backup and checks it on the way: every record, the number of records and the digest of
// the whole.
class BackupReader {
 public:
  BackupReader(FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}

  // The next entry, in the order of keys; nullopt after the last one, when everything has been
  // checked.
  Result<std::optional<Entry>> Next();
  // After the last entry: when the backup was taken.
  const BackupEnd& end() const { return end_; }

 private:
  Result<void> Fill();

  FileSystem& files_;
  const std::string path_;
  std::string buffer_;
  std::size_t used_ = 0;  // of buffer_
  std::uint64_t offset_ = 0;
  Sha256 digest_;
  std::uint64_t entries_ = 0;
  BackupEnd end_;
  bool begun_ = false;
  bool ended_ = false;
};

// Reads all of it. Returns its end record.
Result<BackupEnd> CheckBackup(FileSystem& files, const std::string& path);

}  // namespace drakkar::storage
