#include "node/runtime/oci/cgroups.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text/text.h"

namespace drakkar::node {
namespace {

// Converts CPU shares (2..262144, default 1024) to a weight (1..10000, default 100) with the usual
// formula.
std::int64_t WeightOfShares(std::int64_t shares) {
  shares = std::clamp<std::int64_t>(shares, 2, 262144);
  return 1 + (shares - 2) * 9999 / 262142;
}

}  // namespace

Cgroups Cgroups::Parse(FileSystem& files, std::string_view mountinfo) {
  Cgroups groups;
  groups.files_ = &files;
  std::string unified_root;
  for (std::string_view line : Split(mountinfo, '\n')) {
    const std::size_t separator = line.find(" - ");
    if (separator == std::string_view::npos) continue;
    const auto left = Split(line.substr(0, separator), ' ');
    const auto right = Split(line.substr(separator + 3), ' ');
    if (left.size() < 5 || right.empty()) continue;
    const std::string point(left[4]);
    // A hierarchy may be mounted in several places, including inside containers; use the standard
    // one.
    if (!point.starts_with("/sys/fs/cgroup")) continue;
    if (right[0] == "cgroup2") {
      unified_root = point;
      groups.roots_.push_back(point);
    } else if (right[0] == "cgroup" && right.size() >= 3) {
      groups.roots_.push_back(point);
      for (std::string_view option : Split(right[2], ',')) {
        groups.controllers_.push_back({std::string(option), point});
      }
    }
  }
  groups.unified_ = groups.controllers_.empty() && !unified_root.empty();
  return groups;
}

Result<Cgroups> Cgroups::Detect(FileSystem& files) {
  ASSIGN_OR_RETURN(const std::string text, files.ReadFile("/proc/self/mountinfo"));
  Cgroups groups = Parse(files, text);
  if (groups.roots_.empty()) {
    return FailedPrecondition("no cgroup hierarchy is mounted under /sys/fs/cgroup");
  }
  return groups;
}

std::string Cgroups::RootOf(std::string_view controller) const {
  if (unified_) return roots_.front();
  for (const Controller& entry : controllers_) {
    if (entry.name == controller) return entry.root;
  }
  return "";
}

bool Cgroups::HasController(std::string_view controller) const {
  if (!unified_) return !RootOf(controller).empty();
  const auto listed = files_->ReadFile(JoinPath(roots_.front(), "cgroup.controllers"));
  if (!listed.ok()) return false;
  const auto names = Split(Trim(*listed), ' ');
  return std::find(names.begin(), names.end(), controller) != names.end();
}

Result<void> Cgroups::Create(const std::string& path, const CgroupResources& resources) {
  auto make = [&](std::string_view controller) -> Result<std::string> {
    const std::string root = RootOf(controller);
    if (root.empty()) return std::string();
    const std::string directory = root + path;
    RETURN_IF_ERROR(files_->MakeDirectories(directory, 0755));
    return directory;
  };
  auto set = [&](const std::string& directory, std::string_view file,
                 const std::string& value) -> Result<void> {
    auto written = files_->WriteFile(JoinPath(directory, file), value, 0644);
    if (!written.ok()) return std::move(written).error().Prefixed("limit the pod");
    return Ok();
  };
  std::map<std::string, std::int64_t> pages;
  if (HasController("hugetlb")) pages = resources.hugepage_limits_bytes;
  if (unified_) {
    if (resources.memory_limit_bytes <= 0 && resources.cpu_shares <= 0 &&
        resources.cpu_quota_us <= 0 && resources.pids_limit <= 0 && pages.empty()) {
      return Ok();  // the runtime creates the parents itself
    }
    // A controller is available in a cgroup only if every ancestor enables it.
    std::string above = roots_.front();
    for (std::string_view part : Split(path, '/')) {
      if (part.empty()) continue;
      for (std::string_view controller : {"cpu", "memory", "pids", "hugetlb"}) {
        if (controller == "hugetlb" && pages.empty()) continue;
        static_cast<void>(files_
                              ->WriteFile(JoinPath(above, "cgroup.subtree_control"),
                                          StrCat("+", controller), 0644)
                              .ok());
      }
      above = JoinPath(above, part);
      RETURN_IF_ERROR(files_->MakeDirectories(above, 0755));
    }
    if (resources.memory_limit_bytes > 0) {
      RETURN_IF_ERROR(set(above, "memory.max", std::to_string(resources.memory_limit_bytes)));
    }
    if (resources.cpu_shares > 0) {
      RETURN_IF_ERROR(
          set(above, "cpu.weight", std::to_string(WeightOfShares(resources.cpu_shares))));
    }
    if (resources.cpu_quota_us > 0) {
      const std::int64_t period = resources.cpu_period_us > 0 ? resources.cpu_period_us : 100'000;
      RETURN_IF_ERROR(set(above, "cpu.max", StrCat(resources.cpu_quota_us, " ", period)));
    }
    if (resources.pids_limit > 0) {
      RETURN_IF_ERROR(set(above, "pids.max", std::to_string(resources.pids_limit)));
    }
    for (const auto& [size, limit] : pages) {
      RETURN_IF_ERROR(set(above, StrCat("hugetlb.", size, ".max"), std::to_string(limit)));
    }
    return Ok();
  }
  if (resources.memory_limit_bytes > 0) {
    ASSIGN_OR_RETURN(const std::string group, make("memory"));
    if (!group.empty()) {
      RETURN_IF_ERROR(
          set(group, "memory.limit_in_bytes", std::to_string(resources.memory_limit_bytes)));
    }
  }
  if (resources.cpu_shares > 0 || resources.cpu_quota_us > 0) {
    ASSIGN_OR_RETURN(const std::string group, make("cpu"));
    if (!group.empty() && resources.cpu_shares > 0) {
      RETURN_IF_ERROR(set(group, "cpu.shares", std::to_string(resources.cpu_shares)));
    }
    if (!group.empty() && resources.cpu_quota_us > 0) {
      if (resources.cpu_period_us > 0) {
        RETURN_IF_ERROR(set(group, "cpu.cfs_period_us", std::to_string(resources.cpu_period_us)));
      }
      RETURN_IF_ERROR(set(group, "cpu.cfs_quota_us", std::to_string(resources.cpu_quota_us)));
    }
  }
  if (resources.pids_limit > 0) {
    ASSIGN_OR_RETURN(const std::string group, make("pids"));
    if (!group.empty())
      RETURN_IF_ERROR(set(group, "pids.max", std::to_string(resources.pids_limit)));
  }
  for (const auto& [size, limit] : pages) {
    ASSIGN_OR_RETURN(const std::string group, make("hugetlb"));
    RETURN_IF_ERROR(set(group, StrCat("hugetlb.", size, ".limit_in_bytes"), std::to_string(limit)));
  }
  return Ok();
}

Result<void> Cgroups::Update(const std::string& path, const CgroupResources& resources) {
  auto set = [&](std::string_view controller, std::string_view file,
                 const std::string& value) -> Result<void> {
    const std::string root = RootOf(controller);
    if (root.empty()) return Ok();  // the controller is not available here
    auto group = files_->Stat(root + path);
    if (!group.ok() && group.error().code == ErrorCode::kNotFound) return Ok();
    if (!group.ok()) return std::move(group).error();
    auto written = files_->WriteFile(JoinPath(root + path, file), value, 0644);
    if (!written.ok()) return std::move(written).error().Prefixed(StrCat("set ", file));
    return Ok();
  };
  if (resources.pids_limit > 0) {
    RETURN_IF_ERROR(set("pids", "pids.max", std::to_string(resources.pids_limit)));
  }
  const std::int64_t period = resources.cpu_period_us > 0 ? resources.cpu_period_us : 100'000;
  const bool has_quota = resources.cpu_quota_us > 0;
  const bool has_memory = resources.memory_limit_bytes > 0;
  constexpr std::int64_t kLeastShares = 2;
  const std::int64_t shares = std::max(resources.cpu_shares, kLeastShares);
  if (unified_) {
    RETURN_IF_ERROR(set("cpu", "cpu.weight", std::to_string(WeightOfShares(shares))));
    RETURN_IF_ERROR(
        set("cpu", "cpu.max",
            StrCat(has_quota ? std::to_string(resources.cpu_quota_us) : "max", " ", period)));
    for (const auto& [file, value] : resources.unified) {
      RETURN_IF_ERROR(set(file.substr(0, file.find('.')), file, value));
    }
    return set("memory", "memory.max",
               has_memory ? std::to_string(resources.memory_limit_bytes) : "max");
  }
  RETURN_IF_ERROR(set("cpu", "cpu.shares", std::to_string(shares)));
  if (has_quota) RETURN_IF_ERROR(set("cpu", "cpu.cfs_period_us", std::to_string(period)));
  RETURN_IF_ERROR(
      set("cpu", "cpu.cfs_quota_us", std::to_string(has_quota ? resources.cpu_quota_us : -1)));
  auto limit_memory = [&] {
    return set("memory", "memory.limit_in_bytes",
               std::to_string(has_memory ? resources.memory_limit_bytes : -1));
  };
  // Only where swap is counted and the cgroup has, or gets, a limit for both together.
  constexpr std::string_view kBoth = "memory.memsw.limit_in_bytes";
  const std::string memory_root = RootOf("memory");
  const bool limits_swap = has_memory && resources.memory_swap_limit_bytes > 0;
  if (memory_root.empty() || !files_->Exists(JoinPath(memory_root + path, kBoth))) {
    return limit_memory();
  }
  auto limit_both = [&] {
    return set("memory", kBoth,
               std::to_string(limits_swap ? resources.memory_swap_limit_bytes : -1));
  };
  // The limit of memory alone must not exceed the other at any time: raise that one first, or lower
  // it last.
  if (limit_both().ok()) return limit_memory();
  RETURN_IF_ERROR(limit_memory());
  return limit_both();
}

bool Cgroups::Exists(const std::string& path) const {
  for (const std::string& root : roots_) {
    if (files_->Exists(root + path)) return true;
  }
  return false;
}

bool Cgroups::CountsSwap(const std::string& path) const {
  const std::string root = RootOf("memory");
  if (root.empty()) return false;
  return files_->Exists(
      JoinPath(root + path, unified_ ? "memory.swap.max" : "memory.memsw.limit_in_bytes"));
}

Result<void> Cgroups::Collect(const std::string& directory, std::vector<int>& pids) const {
  auto unless_gone = [](Error error) -> Result<void> {
    return error.code == ErrorCode::kNotFound ? Ok() : Result<void>(std::move(error));
  };
  auto text = files_->ReadFile(JoinPath(directory, "cgroup.procs"));
  if (!text.ok()) return unless_gone(std::move(text).error());
  for (std::string_view line : Split(*text, '\n')) {
    const auto pid = ParseInt64(line);
    if (pid && *pid > 0) pids.push_back(static_cast<int>(*pid));
  }
  auto names = files_->ListDirectory(directory);
  if (!names.ok()) return unless_gone(std::move(names).error());
  Result<void> collected;
  for (const std::string& name : *names) {
    const std::string child = JoinPath(directory, name);
    auto info = files_->LinkStat(child);
    auto below = info.ok() ? Ok() : unless_gone(std::move(info).error());
    if (info.ok() && info->type == FileType::kDirectory) below = Collect(child, pids);
    if (!below.ok() && collected.ok()) collected = std::move(below);
  }
  return collected;
}

Result<void> Cgroups::Processes(const std::string& path, std::vector<int>& pids) const {
  // One hierarchy is enough: a process is in the same cgroup in each. pids exists wherever runc
  // works.
  const std::string root = RootOf("pids");
  return Collect((root.empty() ? roots_.front() : root) + path, pids);
}

Result<bool> Cgroups::Contains(const std::string& path, int pid) const {
  std::vector<int> pids;
  auto all = Processes(path, pids);
  if (std::find(pids.begin(), pids.end(), pid) != pids.end()) return true;
  RETURN_IF_ERROR(std::move(all));
  return false;
}

std::size_t Cgroups::Kill(const std::string& path) {
  std::vector<int> pids;
  // A missed process keeps the cgroup busy, and the removal is retried.
  static_cast<void>(Processes(path, pids).ok());
  for (int pid : pids) ::kill(pid, SIGKILL);
  return pids.size();
}

Result<void> Cgroups::RemoveTree(const std::string& directory) {
  if (::rmdir(directory.c_str()) == 0 || errno == ENOENT) return Ok();
  auto names = files_->ListDirectory(directory);
  if (names.ok()) {
    for (const std::string& name : *names) {
      const std::string child = JoinPath(directory, name);
      auto info = files_->LinkStat(child);
      if (info.ok() && info->type == FileType::kDirectory) RETURN_IF_ERROR(RemoveTree(child));
    }
  }
  if (::rmdir(directory.c_str()) == 0 || errno == ENOENT) return Ok();
  if (errno == EBUSY) return Unavailable("cgroup " + directory + " is still in use");
  return ErrnoError(errno, "remove cgroup " + directory);
}

Result<void> Cgroups::Remove(const std::string& path) {
  if (path.empty() || path == "/") return InvalidArgument("refusing to remove the root cgroup");
  Kill(path);
  Result<void> first;
  for (const std::string& root : roots_) {
    auto removed = RemoveTree(root + path);
    if (!removed.ok() && first.ok()) first = std::move(removed);
  }
  return first;
}

void Cgroups::RemoveIfEmpty(const std::string& path) {
  for (const std::string& root : roots_) ::rmdir((root + path).c_str());
}

std::int64_t Cgroups::OomKills(const std::string& path) const {
  const std::string root = RootOf("memory");
  if (root.empty()) return 0;
  auto text = files_->ReadFile(root + path + (unified_ ? "/memory.events" : "/memory.oom_control"));
  if (!text.ok()) return 0;
  for (std::string_view line : Split(*text, '\n')) {
    if (line.starts_with("oom_kill ")) return ParseInt64(Trim(line.substr(9))).value_or(0);
  }
  return 0;
}

}  // namespace drakkar::node
