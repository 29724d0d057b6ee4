#include "cdi/cache.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/hash/crc32.h"
#include "base/text/text.h"
#include "cdi/spec_reader.h"

namespace drakkar::cdi {
namespace {

bool IsSpecFile(std::string_view name) {
  return !name.starts_with('.') && (name.ends_with(".json") || name.ends_with(".yaml"));
}

// Detects rewritten files; not a defence against someone who can write there.
std::uint64_t Fingerprint(const std::string& text) {
  return (static_cast<std::uint64_t>(text.size()) << 32) | Crc32(text);
}

// Rejects anything that is not a regular file, or is larger than a spec may be.
Result<std::string> ReadText(FileSystem& files, const std::string& path) {
  ASSIGN_OR_RETURN(const FileInfo info, files.Stat(path));
  if (info.type != FileType::kRegular) return InvalidArgument("not a regular file");
  if (info.size_bytes > kMaxSpecBytes) {
    return InvalidArgument(StrCat("larger than ", kMaxSpecBytes, " bytes"));
  }
  return files.ReadFile(path);
}

template <typename T>
void Append(const std::vector<T>& from, std::vector<T>* to) {
  to->insert(to->end(), from.begin(), from.end());
}

void AppendEdits(const ContainerEdits& from, ContainerEdits* to) {
  Append(from.env, &to->env);
  Append(from.device_nodes, &to->device_nodes);
  Append(from.net_devices, &to->net_devices);
  Append(from.hooks, &to->hooks);
  Append(from.mounts, &to->mounts);
  if (from.intel_rdt.has_value()) to->intel_rdt = from.intel_rdt;
  Append(from.additional_gids, &to->additional_gids);
}

}  // namespace

std::vector<std::string> DefaultSpecDirectories() {
  return {"/etc/cdi", "/var/run/cdi"};
}

Cache::Cache(FileSystem& files, Options options) : files_(files), options_(std::move(options)) {}

void Cache::Refresh() {
  devices_.clear();
  errors_.clear();
  scanned_ = true;
  std::size_t budget = kMaxSpecFiles;
  for (std::size_t i = 0; i < options_.directories.size(); ++i) ReadDirectory(i, &budget);
}

void Cache::ReadDirectory(std::size_t priority, std::size_t* budget) {
  const std::string& directory = options_.directories[priority];
  const Result<std::vector<std::string>> names = files_.ListDirectory(directory);
  if (!names.ok()) {
    if (names.error().code != ErrorCode::kNotFound) {
      errors_[directory].push_back(names.error().message);
    }
    return;
  }
  for (const std::string& name : *names) {
    if (!IsSpecFile(name)) continue;
    if (*budget == 0) {
      errors_[directory].push_back(
          StrCat("more than ", kMaxSpecFiles, " spec files; the rest is ignored"));
      return;
    }
    --*budget;
    const std::string path = JoinPath(directory, name);
    const Result<std::string> text = ReadText(files_, path);
    if (!text.ok()) {
      errors_[path].push_back(text.error().message);
      continue;
    }
    Result<Spec> spec = name.ends_with(".yaml") ? ReadSpecYaml(*text) : ReadSpecJson(*text);
    if (!spec.ok()) {
      errors_[path].push_back(spec.error().message);
      continue;
    }
    AddDevices(std::make_shared<File>(File{.path = path,
                                           .fingerprint = Fingerprint(*text),
                                           .priority = priority,
                                           .spec = std::move(spec).value()}));
  }
}

void Cache::AddDevices(const std::shared_ptr<const File>& file) {
  for (std::size_t i = 0; i < file->spec.devices.size(); ++i) {
    const std::string id = StrCat(file->spec.kind, "=", file->spec.devices[i].name);
    const auto [found, added] = devices_.try_emplace(id, Entry{.file = file, .device_index = i});
    if (added) continue;
    Entry& entry = found->second;
    if (entry.file->priority < file->priority) {
      entry = Entry{.file = file, .device_index = i};
      continue;
    }
    // Files are read in ascending priority, so both have the same.
    entry.conflicted = true;
    const std::string text =
        StrCat("conflicting device ", id, " (specs ", entry.file->path, ", ", file->path, ")");
    errors_[entry.file->path].push_back(text);
    errors_[file->path].push_back(text);
  }
}

std::vector<std::string> Cache::FindMissing(const std::vector<std::string>& ids) const {
  std::vector<std::string> missing;
  for (const std::string& id : ids) {
    const auto found = devices_.find(id);
    if (found == devices_.end() || found->second.conflicted) missing.push_back(id);
  }
  return missing;
}

std::string Cache::DescribeBrokenFiles(const std::vector<std::string>& missing) const {
  std::set<std::string_view> vendors;
  for (const std::string& id : missing) {
    vendors.insert(std::string_view(id).substr(0, id.find('/')));
  }
  // By convention the name of a spec file starts with its vendor, so such files are likely
  // candidates.
  const auto is_likely = [&](const std::string& path) {
    return std::ranges::any_of(vendors, [&](std::string_view vendor) {
      return BaseName(path).find(vendor) != std::string_view::npos;
    });
  };
  std::vector<const std::pair<const std::string, std::vector<std::string>>*> broken;
  for (const auto& entry : errors_) broken.push_back(&entry);
  std::ranges::stable_partition(broken, [&](const auto* entry) { return is_likely(entry->first); });
  std::string text;
  for (std::size_t i = 0; i < broken.size() && i < kMaxNamedFiles; ++i) {
    text += StrCat("; ", broken[i]->first, ": ", broken[i]->second.front());
  }
  if (broken.size() > kMaxNamedFiles) {
    text += StrCat("; and ", broken.size() - kMaxNamedFiles, " more invalid spec files");
  }
  return text;
}

bool Cache::AreFilesFresh(const std::vector<std::string>& ids) {
  std::set<const File*> checked;
  for (const std::string& id : ids) {
    const File& file = *devices_.at(id).file;
    if (!checked.insert(&file).second) continue;
    const Result<std::string> text = ReadText(files_, file.path);
    if (!text.ok() || Fingerprint(*text) != file.fingerprint) return false;
  }
  return true;
}

Result<ContainerEdits> Cache::Resolve(const std::vector<std::string>& ids) {
  if (!scanned_ || !FindMissing(ids).empty() || !AreFilesFresh(ids)) Refresh();
  if (const std::vector<std::string> missing = FindMissing(ids); !missing.empty()) {
    return NotFound(
        StrCat("unresolvable CDI devices ", Join(missing, ", "), DescribeBrokenFiles(missing)));
  }
  ContainerEdits edits;
  std::set<const File*> used_files;
  std::set<std::string_view> used_ids;
  for (const std::string& id : ids) {
    if (!used_ids.insert(id).second) continue;
    const Entry& entry = devices_.at(id);
    if (used_files.insert(entry.file.get()).second) {
      AppendEdits(entry.file->spec.container_edits, &edits);
    }
    AppendEdits(entry.file->spec.devices[entry.device_index].container_edits, &edits);
  }
  return edits;
}

std::string Cache::FileOf(const std::string& id) const {
  const auto found = devices_.find(id);
  return found == devices_.end() || found->second.conflicted ? "" : found->second.file->path;
}

std::vector<std::string> Cache::ListDevices() const {
  std::vector<std::string> ids;
  for (const auto& [id, entry] : devices_) {
    if (!entry.conflicted) ids.push_back(id);
  }
  return ids;
}

}  // namespace drakkar::cdi
