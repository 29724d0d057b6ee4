#include "storage/backup/record.h"

#include <utility>

#include "base/hash/crc32.h"

namespace drakkar::storage {
namespace {

constexpr char kEntry = 'E';
constexpr char kEnd = 'Z';
constexpr char kPage = 'P';
constexpr char kSlice = 'S';
constexpr std::size_t kDigestBytes = 32;
constexpr std::size_t kEntryHeadBytes = 1 + 4 + 4 + 8 + 8;
constexpr std::size_t kChecksumBytes = 4;

void PutNumber(std::string& out, std::uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>((number >> (8 * i)) & 0xff);
}

std::uint64_t GetNumber(std::string_view bytes, std::size_t offset, int count) {
  std::uint64_t number = 0;
  for (int i = count - 1; i >= 0; --i) {
    number = number << 8 | static_cast<unsigned char>(bytes[offset + static_cast<std::size_t>(i)]);
  }
  return number;
}

Error Damaged(std::string_view what) {
  return {ErrorCode::kDataLoss, "the backup is damaged: " + std::string(what)};
}

// Reads the parts of a page one after the other. After a short read everything is zero.
class PageReader {
 public:
  explicit PageReader(std::string_view bytes) : bytes_(bytes) {}
  std::uint64_t Number(int count) {
    const std::string_view part = Take(static_cast<std::size_t>(count));
    return part.empty() ? 0 : GetNumber(part, 0, count);
  }
  std::string Text() { return std::string(Take(Number(4))); }
  std::string_view rest() const { return bytes_; }
  void Skip(std::size_t count) { Take(count); }
  bool ok() const { return ok_; }

 private:
  std::string_view Take(std::size_t count) {
    ok_ = ok_ && count <= bytes_.size();
    if (!ok_) return {};
    const std::string_view part = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return part;
  }
  std::string_view bytes_;
  bool ok_ = true;
};

void PutText(std::string& out, std::string_view text) {
  PutNumber(out, text.size(), 4);
  out += text;
}

void PutUnreadable(std::string& out, const std::vector<UnreadableEntry>& entries) {
  PutNumber(out, entries.size(), 4);
  for (const UnreadableEntry& entry : entries) {
    PutText(out, entry.key);
    PutNumber(out, static_cast<std::uint64_t>(entry.mod_revision), 8);
    PutText(out, entry.reason);
  }
}

std::vector<UnreadableEntry> TakeUnreadable(PageReader& reader) {
  std::vector<UnreadableEntry> entries;
  const std::uint64_t count = reader.Number(4);
  for (std::uint64_t i = 0; i < count && reader.ok(); ++i) {
    UnreadableEntry entry;
    entry.key = reader.Text();
    entry.mod_revision = static_cast<Revision>(reader.Number(8));
    entry.reason = reader.Text();
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

std::string EncodeVerifyResult(const VerifyResult& slice) {
  std::string out;
  out += kSlice;
  PutNumber(out, slice.rows, 8);
  PutNumber(out, slice.bytes, 8);
  PutText(out, slice.next);
  PutUnreadable(out, slice.damaged);
  return out;
}

Result<VerifyResult> DecodeVerifyResult(std::string_view bytes) {
  PageReader reader(bytes);
  VerifyResult slice;
  if (reader.Number(1) != static_cast<unsigned char>(kSlice)) return Damaged("it is not a slice");
  slice.rows = reader.Number(8);
  slice.bytes = reader.Number(8);
  slice.next = reader.Text();
  slice.damaged = TakeUnreadable(reader);
  if (!reader.ok()) return Damaged("a slice is cut off");
  return slice;
}

std::string EncodeBackupEntry(const Entry& entry) {
  std::string out;
  out.reserve(kEntryHeadBytes + entry.key.size() + entry.value->size() + kChecksumBytes);
  out += kEntry;
  PutNumber(out, entry.key.size(), 4);
  PutNumber(out, entry.value->size(), 4);
  PutNumber(out, static_cast<std::uint64_t>(entry.create_revision), 8);
  PutNumber(out, static_cast<std::uint64_t>(entry.mod_revision), 8);
  out += entry.key;
  out += *entry.value;
  PutNumber(out, Crc32(out), 4);
  return out;
}

std::string EncodeBackupEnd(const BackupEnd& end) {
  std::string out;
  out += kEnd;
  PutNumber(out, end.entries, 8);
  PutNumber(out, static_cast<std::uint64_t>(end.revision), 8);
  return out;
}

Result<std::size_t> DecodeBackupRecord(std::string_view bytes, BackupRecord& record) {
  record = {};
  if (bytes.empty()) return std::size_t{0};
  if (bytes[0] == kEnd) {
    constexpr std::size_t kSize = 1 + 8 + 8 + kDigestBytes;
    if (bytes.size() < kSize) return std::size_t{0};
    record.end = BackupEnd{.entries = GetNumber(bytes, 1, 8),
                           .revision = static_cast<Revision>(GetNumber(bytes, 9, 8))};
    record.sha256 = bytes.substr(17, kDigestBytes);
    return kSize;
  }
  if (bytes[0] != kEntry) return Damaged("a record has an unknown type");
  if (bytes.size() < kEntryHeadBytes) return std::size_t{0};
  const std::size_t key_bytes = GetNumber(bytes, 1, 4);
  const std::size_t value_bytes = GetNumber(bytes, 5, 4);
  if (key_bytes == 0 || key_bytes > kMaxBackupKeyBytes || value_bytes > kMaxBackupValueBytes) {
    return Damaged("a record has an impossible size");
  }
  const std::size_t size = kEntryHeadBytes + key_bytes + value_bytes;
  if (bytes.size() < size + kChecksumBytes) return std::size_t{0};
  if (GetNumber(bytes, size, 4) != Crc32(bytes.substr(0, size))) {
    return Damaged("a record does not match its checksum");
  }
  Entry entry;
  entry.create_revision = static_cast<Revision>(GetNumber(bytes, 9, 8));
  entry.mod_revision = static_cast<Revision>(GetNumber(bytes, 17, 8));
  if (entry.create_revision < 1 || entry.mod_revision < entry.create_revision) {
    return Damaged("a record has an impossible revision");
  }
  entry.key = bytes.substr(kEntryHeadBytes, key_bytes);
  entry.value =
      std::make_shared<const std::string>(bytes.substr(kEntryHeadBytes + key_bytes, value_bytes));
  record.entry = std::move(entry);
  return size + kChecksumBytes;
}

std::string EncodeBackupPage(const BackupPage& page) {
  std::string out;
  out += kPage;
  PutNumber(out, static_cast<std::uint64_t>(page.revision), 8);
  PutNumber(out, page.remaining, 8);
  PutNumber(out, page.more ? 1 : 0, 1);
  PutUnreadable(out, page.unreadable);
  for (const Entry& entry : page.entries) out += EncodeBackupEntry(entry);
  return out;
}

Result<BackupPage> DecodeBackupPage(std::string_view bytes) {
  PageReader reader(bytes);
  BackupPage page;
  if (reader.Number(1) != static_cast<unsigned char>(kPage)) return Damaged("it is not a page");
  page.revision = static_cast<Revision>(reader.Number(8));
  page.remaining = reader.Number(8);
  page.more = reader.Number(1) != 0;
  page.unreadable = TakeUnreadable(reader);
  while (reader.ok() && !reader.rest().empty()) {
    BackupRecord record;
    ASSIGN_OR_RETURN(const std::size_t size, DecodeBackupRecord(reader.rest(), record));
    if (size == 0 || !record.entry) return Damaged("a page is cut off");
    reader.Skip(size);
    page.entries.push_back(*std::move(record.entry));
  }
  if (!reader.ok()) return Damaged("a page is cut off");
  return page;
}

}  // namespace drakkar::storage
