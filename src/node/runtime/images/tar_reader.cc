#include "node/runtime/images/tar_reader.h"

#include <algorithm>
#include <cstring>

#include "base/text/text.h"

namespace drakkar::node {
namespace {

constexpr std::size_t kBlock = 512;

Error Damaged(std::string_view why) {
  return Error{ErrorCode::kDataLoss, StrCat("tar archive: ", why)};
}

std::string_view Field(const char* block, std::size_t offset, std::size_t size) {
  const std::string_view field(block + offset, size);
  return field.substr(0, std::min(field.find('\0'), field.size()));
}

// Octal text, or base-256 when the first bit is set (GNU). Negative and overlong ones are refused.
std::optional<std::uint64_t> Number(const char* block, std::size_t offset, std::size_t size) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(block + offset);
  std::uint64_t value = 0;
  if (bytes[0] & 0x80) {
    if (bytes[0] & 0x40) return std::nullopt;
    for (std::size_t i = 0; i < size; ++i) {
      if (value >> 56) return std::nullopt;
      value = value << 8 | (i == 0 ? bytes[i] & 0x3fu : bytes[i]);
    }
    return value;
  }
  std::size_t i = 0;
  while (i < size && bytes[i] == ' ') ++i;
  for (; i < size && bytes[i] != ' ' && bytes[i] != '\0'; ++i) {
    if (bytes[i] < '0' || bytes[i] > '7' || value >> 61) return std::nullopt;
    value = value << 3 | static_cast<std::uint64_t>(bytes[i] - '0');
  }
  return value;
}

bool ChecksumFits(const char* block) {
  const auto stored = Number(block, 148, 8);
  if (!stored) return false;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const bool in_checksum = i >= 148 && i < 156;
    sum += in_checksum ? ' ' : static_cast<unsigned char>(block[i]);
  }
  return sum == *stored;
}

// "<length> <key>=<value>\n" records.
Result<void> ParsePax(std::string_view text, std::map<std::string, std::string>& out) {
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos || space > 10) return Damaged("bad pax record");
    const auto length = ParseInt64(text.substr(0, space));
    if (!length || *length <= static_cast<std::int64_t>(space) + 1 ||
        static_cast<std::uint64_t>(*length) > text.size() ||
        text[static_cast<std::size_t>(*length) - 1] != '\n') {
      return Damaged("bad pax record");
    }
    const auto size = static_cast<std::size_t>(*length);
    const std::string_view record = text.substr(space + 1, size - space - 2);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos || equals == 0) return Damaged("bad pax record");
    out[std::string(record.substr(0, equals))] = std::string(record.substr(equals + 1));
    text.remove_prefix(size);
  }
  return Ok();
}

Result<std::uint64_t> PaxNumber(const std::string& text) {
  // Times have a fraction; whole seconds are enough.
  const auto value = ParseInt64(std::string_view(text).substr(0, text.find('.')));
  if (!value || *value < 0) return Damaged("bad number in a pax record");
  return static_cast<std::uint64_t>(*value);
}

Result<void> ApplyPax(const std::map<std::string, std::string>& pax, TarEntry& entry) {
  constexpr std::string_view kAttribute = "SCHILY.xattr.";
  for (const auto& [key, value] : pax) {
    if (key == "path") {
      entry.path = value;
    } else if (key == "linkpath") {
      entry.link_target = value;
    } else if (key == "size") {
      ASSIGN_OR_RETURN(entry.size_bytes, PaxNumber(value));
    } else if (key == "uid" || key == "gid") {
      ASSIGN_OR_RETURN(const std::uint64_t id, PaxNumber(value));
      if (id > UINT32_MAX) return Damaged("user or group id too large");
      (key == "uid" ? entry.uid : entry.gid) = static_cast<std::uint32_t>(id);
    } else if (key == "mtime") {
      const auto seconds = PaxNumber(value);
      entry.modified_seconds = seconds.ok() ? static_cast<std::int64_t>(*seconds) : 0;
    } else if (key.starts_with(kAttribute)) {
      entry.extended_attributes[key.substr(kAttribute.size())] = value;
    } else if (key.starts_with("GNU.sparse.")) {
      return Error{ErrorCode::kUnimplemented, "tar archive: sparse files are not supported"};
    }
  }
  return Ok();
}

Result<TarEntry> ParseHeader(const char* block) {
  TarEntry entry;
  const std::string_view magic(block + 257, 6);
  const bool is_ustar = magic == std::string_view("ustar\0", 6);
  entry.path = Field(block, 0, 100);
  if (is_ustar) {
    const std::string_view prefix = Field(block, 345, 155);
    if (!prefix.empty()) entry.path = StrCat(prefix, "/", entry.path);
  }
  entry.link_target = Field(block, 157, 100);
  const auto mode = Number(block, 100, 8), uid = Number(block, 108, 8), gid = Number(block, 116, 8),
             size = Number(block, 124, 12), mtime = Number(block, 136, 12);
  if (!mode || !uid || !gid || !size || *uid > UINT32_MAX || *gid > UINT32_MAX) {
    return Damaged("bad number in a header");
  }
  entry.mode = static_cast<std::uint32_t>(*mode & 07777);
  entry.uid = static_cast<std::uint32_t>(*uid);
  entry.gid = static_cast<std::uint32_t>(*gid);
  entry.size_bytes = *size;
  // A time before 1970 is no reason to refuse the file.
  entry.modified_seconds = mtime && !(*mtime >> 62) ? static_cast<std::int64_t>(*mtime) : 0;
  switch (block[156]) {
    case '\0':
    case '0':
    case '7':
      entry.type = entry.path.ends_with('/') ? TarEntryType::kDirectory : TarEntryType::kFile;
      break;
    case '1':
      entry.type = TarEntryType::kHardLink;
      break;
    case '2':
      entry.type = TarEntryType::kSymlink;
      break;
    case '3':
      entry.type = TarEntryType::kCharacterDevice;
      break;
    case '4':
      entry.type = TarEntryType::kBlockDevice;
      break;
    case '5':
      entry.type = TarEntryType::kDirectory;
      break;
    case '6':
      entry.type = TarEntryType::kFifo;
      break;
    case 'S':
      return Error{ErrorCode::kUnimplemented, "tar archive: sparse files are not supported"};
    default:
      return Damaged(
          StrCat("entry type ", Quote(std::string_view(block + 156, 1)), " is not supported"));
  }
  if (entry.type == TarEntryType::kCharacterDevice || entry.type == TarEntryType::kBlockDevice) {
    const auto major = Number(block, 329, 8), minor = Number(block, 337, 8);
    if (!major || !minor || *major > UINT32_MAX || *minor > UINT32_MAX) {
      return Damaged("bad device number");
    }
    entry.major = static_cast<std::uint32_t>(*major);
    entry.minor = static_cast<std::uint32_t>(*minor);
  }
  return entry;
}

}  // namespace

Result<bool> TarReader::ReadBlock(char* block) {
  std::size_t have = 0;
  while (have < kBlock) {
    ASSIGN_OR_RETURN(const std::size_t got, source_.Read(block + have, kBlock - have));
    if (got == 0) break;
    have += got;
  }
  if (have == 0) return false;
  if (have < kBlock) return Damaged("ends in the middle of a header");
  return true;
}

Result<void> TarReader::Skip(std::uint64_t bytes) {
  char buffer[16384];
  while (bytes > 0) {
    ASSIGN_OR_RETURN(const std::size_t got,
                     source_.Read(buffer, static_cast<std::size_t>(
                                              std::min<std::uint64_t>(bytes, sizeof(buffer)))));
    if (got == 0) return Damaged("ends in the middle of a file");
    bytes -= got;
  }
  return Ok();
}

// A decompressor checks its checksum only at its own end, which is past the archive's.
Result<void> TarReader::Drain() {
  char buffer[16384];
  while (true) {
    ASSIGN_OR_RETURN(const std::size_t got, source_.Read(buffer, sizeof(buffer)));
    if (got == 0) return Ok();
  }
}

Result<std::string> TarReader::ReadRecord(std::uint64_t size) {
  if (size > kMaxTarHeaderBytes) return Damaged("extended header too large");
  std::string record(static_cast<std::size_t>(size), '\0');
  for (std::size_t have = 0; have < record.size();) {
    ASSIGN_OR_RETURN(const std::size_t got,
                     source_.Read(record.data() + have, record.size() - have));
    if (got == 0) return Damaged("ends in the middle of a header");
    have += got;
  }
  RETURN_IF_ERROR(Skip((kBlock - size % kBlock) % kBlock));
  return record;
}

Result<std::optional<TarEntry>> TarReader::Next() {
  RETURN_IF_ERROR(Skip(left_ + padding_));
  left_ = padding_ = 0;
  std::map<std::string, std::string> pax;
  std::string long_name, long_link;
  while (true) {
    char block[kBlock];
    ASSIGN_OR_RETURN(const bool more, ReadBlock(block));
    // Some writers omit the two zero blocks at the end.
    if (!more) return std::optional<TarEntry>();
    if (std::all_of(block, block + kBlock, [](char c) { return c == '\0'; })) {
      RETURN_IF_ERROR(Drain());
      return std::optional<TarEntry>();
    }
    if (!ChecksumFits(block)) return Damaged("header checksum mismatch; is this a tar archive?");
    // Metadata headers count too; otherwise an archive of nothing else would never end.
    if (++entries_ > kMaxTarEntries) return Damaged("too many entries");
    const char type = block[156];
    if (type == 'x' || type == 'g' || type == 'L' || type == 'K') {
      const auto size = Number(block, 124, 12);
      if (!size) return Damaged("bad number in a header");
      ASSIGN_OR_RETURN(std::string record, ReadRecord(*size));
      if (type == 'x') RETURN_IF_ERROR(ParsePax(record, pax));
      if (type == 'g') {
        RETURN_IF_ERROR(ParsePax(record, global_pax_));
        if (global_pax_.size() > 1024) return Damaged("too many global pax records");
      }
      if (type == 'L') long_name = Field(record.data(), 0, record.size());
      if (type == 'K') long_link = Field(record.data(), 0, record.size());
      continue;
    }
    ASSIGN_OR_RETURN(TarEntry entry, ParseHeader(block));
    if (!long_name.empty()) entry.path = std::move(long_name);
    if (!long_link.empty()) entry.link_target = std::move(long_link);
    RETURN_IF_ERROR(ApplyPax(global_pax_, entry));
    RETURN_IF_ERROR(ApplyPax(pax, entry));
    if (entry.path.size() > kMaxTarPathBytes || entry.link_target.size() > kMaxTarPathBytes) {
      return Damaged("path too long");
    }
    if (entry.size_bytes >> 60) return Damaged("file too large");
    // Only files have content; some writers give links the size of their target.
    if (entry.type != TarEntryType::kFile) entry.size_bytes = 0;
    left_ = entry.size_bytes;
    padding_ = (kBlock - left_ % kBlock) % kBlock;
    return std::optional<TarEntry>(std::move(entry));
  }
}

Result<std::size_t> TarReader::Read(char* buffer, std::size_t size) {
  const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(size, left_));
  if (want == 0) return std::size_t{0};
  ASSIGN_OR_RETURN(const std::size_t got, source_.Read(buffer, want));
  if (got == 0) return Damaged("ends in the middle of a file");
  left_ -= got;
  return got;
}

Result<std::string> CleanTarPath(std::string_view path) {
  if (path.find('\0') != std::string_view::npos) return Damaged("path with a NUL byte");
  std::string clean;
  for (std::string_view part : Split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") return Damaged("path " + Quote(path) + " leads out of the archive");
    if (part.size() > 255) return Damaged("file name too long");
    if (!clean.empty()) clean += '/';
    clean += part;
  }
  return clean;
}

}  // namespace drakkar::node
