// The layout of SQLite's files: sqlite.org/fileformat2.html.
#include "storage/sqlite/salvage.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "storage/sqlite/row_checksum.h"

namespace drakkar::storage {
namespace {

constexpr std::size_t kFileHeaderBytes = 100;
constexpr std::size_t kDefaultPageBytes = 16384;  // of new stores
constexpr std::size_t kLogHeaderBytes = 32;
constexpr std::size_t kFrameHeaderBytes = 24;
constexpr unsigned char kTableLeaf = 0x0d;
constexpr unsigned char kIndexLeaf = 0x0a;
// More than any row has: a larger length means damage.
constexpr std::uint64_t kMaxPayloadBytes = std::uint64_t{64} << 20;

std::uint32_t Big(std::string_view bytes, std::size_t offset, int count) {
  std::uint32_t number = 0;
  for (int i = 0; i < count; ++i) {
    number = number << 8 | static_cast<unsigned char>(bytes[offset + static_cast<std::size_t>(i)]);
  }
  return number;
}

bool IsPageSize(std::size_t bytes) {
  return bytes >= 512 && bytes <= 65536 && (bytes & (bytes - 1)) == 0;
}

std::optional<std::uint64_t> TakeVarint(std::string_view bytes, std::size_t& offset) {
  std::uint64_t number = 0;
  for (int i = 0; i < 9; ++i) {
    if (offset >= bytes.size()) return std::nullopt;
    const auto byte = static_cast<unsigned char>(bytes[offset++]);
    if (i == 8) return number << 8 | byte;
    number = number << 7 | (byte & 0x7f);
    if ((byte & 0x80) == 0) return number;
  }
  return std::nullopt;
}

// The pages of a database, newest version first.
class Pages {
 public:
  Pages(std::string_view file, std::string_view log) : file_(file) {
    page_bytes_ = PageBytes(file, log);
    ReadLog(log);
    count_ = std::max<std::size_t>(file.size() / page_bytes_,
                                   newest_.empty() ? 0 : newest_.rbegin()->first);
  }

  std::size_t count() const { return count_; }
  std::size_t page_bytes() const { return page_bytes_; }
  // Pages are numbered from 1. Empty if there is none.
  std::string_view Page(std::size_t number) const {
    if (const auto found = newest_.find(number); found != newest_.end()) return found->second;
    if (number == 0 || number * page_bytes_ > file_.size()) return {};
    return file_.substr((number - 1) * page_bytes_, page_bytes_);
  }

 private:
  static std::size_t PageBytes(std::string_view file, std::string_view log) {
    if (file.size() >= kFileHeaderBytes && file.starts_with("SQLite format 3")) {
      std::size_t bytes = Big(file, 16, 2);
      if (bytes == 1) bytes = 65536;
      if (IsPageSize(bytes)) return bytes;
    }
    if (log.size() >= kLogHeaderBytes && IsPageSize(Big(log, 8, 4))) return Big(log, 8, 4);
    return kDefaultPageBytes;
  }

  // Frames count up to the last commit whose chain of checksums is unbroken.
  void ReadLog(std::string_view log) {
    if (log.size() < kLogHeaderBytes || (Big(log, 0, 4) & ~1u) != 0x377f0682) return;
    const bool big = (Big(log, 0, 4) & 1) != 0;
    if (Big(log, 8, 4) != page_bytes_) return;
    std::array<std::uint32_t, 2> sum{0, 0};
    Add(log.substr(0, 24), big, sum);
    std::map<std::size_t, std::string_view> pending;
    const std::size_t frame = kFrameHeaderBytes + page_bytes_;
    for (std::size_t at = kLogHeaderBytes; at + frame <= log.size(); at += frame) {
      if (log.substr(at + 8, 8) != log.substr(16, 8)) return;  // salts of an older log
      Add(log.substr(at, 8), big, sum);
      const std::string_view page = log.substr(at + kFrameHeaderBytes, page_bytes_);
      Add(page, big, sum);
      if (Big(log, at + 16, 4) != sum[0] || Big(log, at + 20, 4) != sum[1]) return;
      pending[Big(log, at, 4)] = page;
      if (Big(log, at + 4, 4) == 0) continue;  // not a commit
      for (const auto& [number, content] : pending) newest_[number] = content;
      pending.clear();
    }
  }

  static void Add(std::string_view bytes, bool big, std::array<std::uint32_t, 2>& sum) {
    const auto word = [&](std::size_t at) {
      const std::uint32_t number = Big(bytes, at, 4);
      return big ? number : __builtin_bswap32(number);
    };
    for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      sum[0] += word(at) + sum[1];
      sum[1] += word(at + 4) + sum[0];
    }
  }

  std::string_view file_;
  std::size_t page_bytes_ = kDefaultPageBytes;
  std::size_t count_ = 0;
  std::map<std::size_t, std::string_view> newest_;  // from the log
};

// Pages that are free. What they contain was deleted.
std::set<std::size_t> FreePages(const Pages& pages) {
  std::set<std::size_t> free;
  const std::string_view first = pages.Page(1);
  if (first.size() < kFileHeaderBytes || !first.starts_with("SQLite format 3")) return free;
  std::size_t trunk = Big(first, 32, 4);
  while (trunk != 0 && trunk <= pages.count() && free.insert(trunk).second) {
    const std::string_view page = pages.Page(trunk);
    if (page.size() < 8) break;
    const std::size_t leaves = std::min<std::size_t>(Big(page, 4, 4), page.size() / 4 - 2);
    for (std::size_t i = 0; i < leaves; ++i) free.insert(Big(page, 8 + 4 * i, 4));
    trunk = Big(page, 0, 4);
  }
  return free;
}

// One column of a record.
struct Column {
  bool is_null = false;
  bool is_number = false;
  std::int64_t number = 0;
  std::string_view bytes;
};

std::optional<std::vector<Column>> ReadRecord(std::string_view payload) {
  std::size_t at = 0;
  const auto head = TakeVarint(payload, at);
  if (!head || *head > payload.size() || *head > 64) return std::nullopt;
  std::size_t body = *head;
  std::vector<Column> columns;
  while (at < *head) {
    const auto type = TakeVarint(payload, at);
    if (!type || at > *head) return std::nullopt;
    Column column;
    std::size_t size = 0;
    if (*type == 0) {
      column.is_null = true;
    } else if (*type <= 6) {
      constexpr std::size_t kSizes[] = {0, 1, 2, 3, 4, 6, 8};
      size = kSizes[*type];
      column.is_number = true;
    } else if (*type == 8 || *type == 9) {
      column.is_number = true;
      column.number = static_cast<std::int64_t>(*type) - 8;
    } else if (*type >= 12) {
      if (*type > 2 * kMaxPayloadBytes) return std::nullopt;
      size = (*type - 12) / 2;
    } else {
      return std::nullopt;  // a fraction, or reserved: no row of ours
    }
    if (size > payload.size() - body) return std::nullopt;
    column.bytes = payload.substr(body, size);
    if (column.is_number && size > 0) {
      std::int64_t number = static_cast<signed char>(column.bytes[0]);
      for (std::size_t i = 1; i < size; ++i) {
        number = static_cast<std::int64_t>(static_cast<std::uint64_t>(number) << 8 |
                                           static_cast<unsigned char>(column.bytes[i]));
      }
      column.number = number;
    }
    body += size;
    columns.push_back(column);
  }
  return columns;
}

// The payload of a cell that starts at `at` of `page`, with what continues on other pages.
std::optional<std::string> ReadPayload(const Pages& pages, std::string_view page, std::size_t at,
                                       std::uint64_t size, bool is_index) {
  if (size > kMaxPayloadBytes) return std::nullopt;
  const std::size_t usable = pages.page_bytes();
  const std::size_t most = is_index ? (usable - 12) * 64 / 255 - 23 : usable - 35;
  const std::size_t least = (usable - 12) * 32 / 255 - 23;
  std::size_t here = size;
  if (size > most) {
    const std::size_t wanted = least + (size - least) % (usable - 4);
    here = wanted <= most ? wanted : least;
  }
  if (at + here + (here < size ? 4 : 0) > page.size()) return std::nullopt;
  std::string payload(page.substr(at, here));
  std::size_t next = here < size ? Big(page, at + here, 4) : 0;
  while (payload.size() < size) {
    const std::string_view more = pages.Page(next);
    if (more.size() < usable) return std::nullopt;
    payload += more.substr(4, std::min<std::size_t>(usable - 4, size - payload.size()));
    next = Big(more, 0, 4);
  }
  return payload;
}

// created, key, value and, unless the store is of format 1, checksum. The id is the row's number,
// so its column is null.
std::optional<Row> ReadRow(RowId id, std::string_view payload) {
  const auto columns = ReadRecord(payload);
  if (!columns || (columns->size() != 4 && columns->size() != 5)) return std::nullopt;
  const Column& created = (*columns)[1];
  const Column& key = (*columns)[2];
  const Column& value = (*columns)[3];
  if (!(*columns)[0].is_null || !created.is_number || key.is_null || key.is_number ||
      key.bytes.empty() || value.is_number) {
    return std::nullopt;
  }
  if (created.number < 1 || created.number > RowRevision(id)) return std::nullopt;
  std::optional<std::string_view> bytes;
  if (!value.is_null) bytes = value.bytes;
  if (columns->size() == 5) {
    const Column& checksum = (*columns)[4];
    if (!checksum.is_number ||
        checksum.number != RowChecksum(id, created.number, key.bytes, bytes)) {
      return std::nullopt;
    }
  }
  Row row;
  row.id = id;
  row.create_revision = created.number;
  row.key = key.bytes;
  if (bytes) row.value = std::make_shared<const std::string>(*bytes);
  return row;
}

}  // namespace

Salvaged SalvageRows(std::string_view file, std::string_view log,
                     const std::function<void(Row row)>& row) {
  const Pages pages(file, log);
  const std::set<std::size_t> free = FreePages(pages);
  Salvaged salvaged;
  for (std::size_t number = 1; number <= pages.count(); ++number) {
    const std::string_view page = pages.Page(number);
    const std::size_t header = number == 1 ? kFileHeaderBytes : 0;
    if (free.contains(number) || page.size() < header + 8) continue;
    ++salvaged.pages;
    const auto type = static_cast<unsigned char>(page[header]);
    if (type != kTableLeaf && type != kIndexLeaf) continue;
    const std::size_t cells = Big(page, header + 3, 2);
    bool damaged = false;
    for (std::size_t i = 0; i < cells && header + 10 + 2 * i <= page.size(); ++i) {
      std::size_t at = Big(page, header + 8 + 2 * i, 2);
      const auto size = TakeVarint(page, at);
      const auto id =
          type == kTableLeaf && size ? TakeVarint(page, at) : std::optional<std::uint64_t>(0);
      if (!size || !id) {
        damaged = true;
        continue;
      }
      const auto payload = ReadPayload(pages, page, at, *size, type == kIndexLeaf);
      if (type == kTableLeaf) {
        std::optional<Row> read;
        if (payload) read = ReadRow(static_cast<RowId>(*id), *payload);
        // Page 1 holds the list of tables.
        if (!read && number != 1) damaged = true;
        if (read) row(*std::move(read));
      } else if (payload) {
        const auto columns = ReadRecord(*payload);
        if (columns && columns->size() == 2 && (*columns)[0].bytes == "compacted") {
          salvaged.compacted = (*columns)[1].number;
        }
      }
    }
    if (damaged) ++salvaged.damaged_pages;
  }
  return salvaged;
}

}  // namespace drakkar::storage
