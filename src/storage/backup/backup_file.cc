#include "storage/backup/backup_file.h"

#include <utility>

namespace drakkar::storage {
namespace {

constexpr std::string_view kMagic = "drakkar-backup 1\n";
constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

std::string_view View(const Sha256::Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace

BackupWriter::BackupWriter(FileSystem& files, std::string path)
    : files_(files), path_(std::move(path)), partial_(path_ + ".partial") {}

BackupWriter::~BackupWriter() {
  if (begun_ && !finished_) (void)files_.Remove(partial_);
}

Result<void> BackupWriter::Put(std::string_view bytes) {
  if (!begun_) {
    RETURN_IF_ERROR(files_.WriteFile(partial_, "", 0600));
    RETURN_IF_ERROR(files_.SetMode(partial_, 0600));
    begun_ = true;
    RETURN_IF_ERROR(Put(kMagic));
  }
  digest_.Update(bytes);
  bytes_ += bytes.size();
  buffer_ += bytes;
  return buffer_.size() < kBufferBytes ? Ok() : Flush();
}

Result<void> BackupWriter::Flush() {
  if (buffer_.empty()) return Ok();
  RETURN_IF_ERROR(files_.AppendFile(partial_, buffer_, 0600));
  buffer_.clear();
  return Ok();
}

Result<void> BackupWriter::Add(const Entry& entry) {
  ++entries_;
  return Put(EncodeBackupEntry(entry));
}

Result<void> BackupWriter::Finish(Revision revision) {
  RETURN_IF_ERROR(Put(""));  // an empty backup has a beginning, too
  const std::string end = EncodeBackupEnd({entries_, revision});
  digest_.Update(end);
  buffer_ += end;
  buffer_ += View(digest_.Finish());
  RETURN_IF_ERROR(Flush());
  RETURN_IF_ERROR(files_.SyncFile(partial_));
  RETURN_IF_ERROR(files_.Rename(partial_, path_));
  finished_ = true;
  return files_.SyncDirectory(DirectoryName(path_));
}

Result<void> BackupReader::Fill() {
  buffer_.erase(0, std::exchange(used_, 0));
  ASSIGN_OR_RETURN(const std::string more, files_.ReadFileRange(path_, offset_, kBufferBytes));
  if (more.empty()) {
    return Error{ErrorCode::kDataLoss, path_ + " is incomplete: it ends in the middle"};
  }
  offset_ += more.size();
  buffer_ += more;
  return Ok();
}

Result<std::optional<Entry>> BackupReader::Next() {
  if (ended_) return std::optional<Entry>();
  if (!begun_) {
    while (buffer_.size() < kMagic.size()) {
      if (Result<void> filled = Fill(); !filled.ok()) {
        if (filled.error().code != ErrorCode::kDataLoss) return std::move(filled).error();
        break;
      }
    }
    if (!buffer_.starts_with(kMagic)) {
      return InvalidArgument(path_ + " is not a backup of drakkar");
    }
    digest_.Update(kMagic);
    used_ = kMagic.size();
    begun_ = true;
  }
  BackupRecord record;
  std::size_t size = 0;
  while (true) {
    const std::string_view left = std::string_view(buffer_).substr(used_);
    Result<std::size_t> decoded = DecodeBackupRecord(left, record);
    if (!decoded.ok()) return decoded.error().Prefixed(path_);
    size = *decoded;
    if (size != 0) break;
    RETURN_IF_ERROR(Fill());
  }
  if (record.entry) {
    digest_.Update(std::string_view(buffer_).substr(used_, size));
    used_ += size;
    ++entries_;
    return std::move(record.entry);
  }
  end_ = *record.end;
  ended_ = true;
  digest_.Update(EncodeBackupEnd(end_));
  if (record.sha256 != View(digest_.Finish()) || end_.entries != entries_) {
    return Error{ErrorCode::kDataLoss, path_ + " is damaged: it does not match its digest"};
  }
  return std::optional<Entry>();
}

Result<BackupEnd> CheckBackup(FileSystem& files, const std::string& path) {
  BackupReader reader(files, path);
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<Entry> entry, reader.Next());
    if (!entry) return reader.end();
  }
}

}  // namespace drakkar::storage
