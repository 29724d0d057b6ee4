#include "sdk/driver/metadata/claim_records.h"

#include <utility>
#include <vector>

#include "base/text/text.h"

namespace drakkar::driver {
namespace {

constexpr char kRecordsDirectory[] = "dra-device-metadata-records";
constexpr char kFreshRecord[] = ".fresh";  // cannot be a claim's file name, which has a '_'
constexpr char kUpdatesDirectory[] = "dra-device-metadata-claims";
constexpr char kOldRecordName[] = "claim.json";

bool IsAbsent(const Error& error) {
  return error.code == ErrorCode::kNotFound;
}

}  // namespace

std::string ClaimRecords::Path(std::string_view namespace_name, std::string_view name) const {
  return JoinPath(JoinPath(directory_, kRecordsDirectory), StrCat(namespace_name, "_", name));
}

std::string ClaimRecords::UpdateDirectory(std::string_view namespace_name,
                                          std::string_view name) const {
  return JoinPath(JoinPath(directory_, kUpdatesDirectory), StrCat(namespace_name, "_", name));
}

Result<std::optional<ClaimRecord>> ClaimRecords::Find(std::string_view namespace_name,
                                                      std::string_view name) const {
  std::optional<ClaimRecord> none;
  auto text = files_.ReadFile(Path(namespace_name, name));
  if (!text.ok() && IsAbsent(text.error())) {
    text = files_.ReadFile(JoinPath(UpdateDirectory(namespace_name, name), kOldRecordName));
  }
  if (!text.ok()) {
    if (IsAbsent(text.error())) return none;
    return std::move(text).error();
  }
  auto record = ReadClaimRecord(*text);
  if (!record.ok() || record->namespace_name != namespace_name || record->name != name) return none;
  return std::optional(*std::move(record));
}

Result<void> ClaimRecords::Write(const ClaimRecord& record, const ClaimRecord* before) const {
  if (before != nullptr && record == *before) return Ok();
  const std::string path = Path(record.namespace_name, record.name);
  const std::string directory = DirectoryName(path);
  // A torn record counts as absent, and without an old record there is nothing to lose.
  if (before == nullptr) {
    const std::string text = WriteClaimRecord(record);
    Result<void> written = files_.WriteFile(path, text, 0600);
    if (written.ok() || !IsAbsent(written.error())) return written;
    RETURN_IF_ERROR(files_.MakeDirectories(directory, 0700));
    return files_.WriteFile(path, text, 0600);
  }
  // A fixed name, because the claim's own may already have the maximum length.
  const std::string fresh = JoinPath(directory, kFreshRecord);
  RETURN_IF_ERROR(files_.WriteFile(fresh, WriteClaimRecord(record), 0600));
  return files_.Rename(fresh, path);
}

Result<void> ClaimRecords::Remove(std::string_view namespace_name, std::string_view name) const {
  RETURN_IF_ERROR(files_.RemoveTree(UpdateDirectory(namespace_name, name)));
  Result<void> removed = files_.Remove(Path(namespace_name, name));
  if (!removed.ok() && IsAbsent(removed.error())) return Ok();
  return removed;
}

Result<std::set<std::string>> ClaimRecords::List() const {
  std::set<std::string> names;
  for (const char* directory : {kRecordsDirectory, kUpdatesDirectory}) {
    auto listed = files_.ListDirectory(JoinPath(directory_, directory));
    if (listed.ok()) {
      names.insert(listed->begin(), listed->end());
    } else if (!IsAbsent(listed.error())) {
      return std::move(listed).error();
    }
  }
  return names;
}

}  // namespace drakkar::driver
