#include <algorithm>

#include "base/text/text.h"
#include "node/runtime/oci/cgroups.h"

namespace drakkar::node {

// Writes the settings of one cgroup, by the kernel's names for them.
class Cgroups::Writer {
 public:
  Writer(const Cgroups& groups, const std::string& path) : groups_(groups), path_(path) {}

  Result<void> Set(std::string_view controller, std::string_view file, const std::string& value) {
    ASSIGN_OR_RETURN(const std::string name, FileOf(controller, file));
    auto written = groups_.files_->WriteFile(name, value, 0644);
    if (!written.ok()) {
      return std::move(written).error().Prefixed(StrCat("set ", file, " to ", Quote(value)));
    }
    return Ok();
  }
  Result<void> Set(std::string_view controller, std::string_view file, std::int64_t value) {
    return Set(controller, file, std::to_string(value));
  }
  // "max" stands for -1.
  Result<void> SetLimit(std::string_view controller, std::string_view file, std::int64_t value) {
    return Set(controller, file, value < 0 ? "max" : std::to_string(value));
  }
  Result<std::string> Get(std::string_view controller, std::string_view file) {
    ASSIGN_OR_RETURN(const std::string name, FileOf(controller, file));
    return groups_.files_->ReadFile(name);
  }

 private:
  Result<std::string> FileOf(std::string_view controller, std::string_view file) const {
    const std::string root = groups_.RootOf(controller);
    if (root.empty()) {
      return FailedPrecondition(
          StrCat("set ", file, ": this machine has no cgroup controller ", controller));
    }
    return JoinPath(root + path_, file);
  }

  const Cgroups& groups_;
  const std::string& path_;
};

namespace {

using Number = CgroupChanges::Number;

// Converts CPU shares (2..262144, default 1024) to a weight (1..10000, default 100).
std::int64_t WeightOf(std::int64_t shares) {
  shares = std::clamp<std::int64_t>(shares, 2, 262144);
  return 1 + (shares - 2) * 9999 / 262142;
}

Error OnlyOn(std::string_view version, std::string_view what) {
  return FailedPrecondition(StrCat(what, " can be set only with cgroup ", version));
}

// "hugetlb.2MB.max": letters, digits, dots and underscores.
bool IsFileName(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
  };
  return !name.empty() && name[0] != '.' && std::ranges::all_of(name, plain);
}

// Two settings that limit each other: the one that is written too early is written again.
template <typename First, typename Second>
Result<void> Both(const First& first, const Second& second) {
  if (first().ok()) return second();
  RETURN_IF_ERROR(second());
  return first();
}

template <typename Writer>
Result<void> ChangeVersion1(Writer& writer, const CgroupChanges& changes) {
  if (!changes.unified.empty()) return OnlyOn("v2", "unified");
  const auto set = [&](std::string_view controller, std::string_view file,
                       Number value) -> Result<void> {
    return value ? writer.Set(controller, file, *value) : Ok();
  };
  RETURN_IF_ERROR(
      Both([&] { return set("memory", "memory.memsw.limit_in_bytes", changes.memory_swap_bytes); },
           [&] { return set("memory", "memory.limit_in_bytes", changes.memory_limit_bytes); }));
  RETURN_IF_ERROR(set("memory", "memory.soft_limit_in_bytes", changes.memory_reservation_bytes));
  RETURN_IF_ERROR(set("memory", "memory.swappiness", changes.memory_swappiness));
  if (changes.disable_oom_killer) {
    RETURN_IF_ERROR(writer.Set("memory", "memory.oom_control", *changes.disable_oom_killer));
  }
  RETURN_IF_ERROR(set("cpu", "cpu.shares", changes.cpu_shares));
  RETURN_IF_ERROR(Both([&] { return set("cpu", "cpu.cfs_period_us", changes.cpu_period_us); },
                       [&] { return set("cpu", "cpu.cfs_quota_us", changes.cpu_quota_us); }));
  RETURN_IF_ERROR(
      Both([&] { return set("cpu", "cpu.rt_period_us", changes.realtime_period_us); },
           [&] { return set("cpu", "cpu.rt_runtime_us", changes.realtime_runtime_us); }));
  if (changes.pids_limit) {
    RETURN_IF_ERROR(writer.SetLimit("pids", "pids.max", *changes.pids_limit));
  }
  for (const auto& [size, limit] : changes.hugepage_limits_bytes) {
    if (!IsFileName(size)) return InvalidArgument("invalid huge page size " + Quote(size));
    RETURN_IF_ERROR(
        writer.Set("hugetlb", StrCat("hugetlb.", size, ".limit_in_bytes"), std::to_string(limit)));
  }
  return Ok();
}

template <typename Writer>
Result<void> ChangeVersion2(Writer& writer, const CgroupChanges& changes) {
  if (changes.disable_oom_killer) return OnlyOn("v1", "disable_oom_killer");
  if (changes.memory_swappiness) return OnlyOn("v1", "swappiness");
  if (changes.realtime_runtime_us || changes.realtime_period_us) {
    return OnlyOn("v1", "realtime scheduling");
  }
  if (changes.memory_limit_bytes) {
    RETURN_IF_ERROR(writer.SetLimit("memory", "memory.max", *changes.memory_limit_bytes));
  }
  if (const Number swap = changes.memory_swap_bytes) {
    // v1 counts memory and swap together.
    if (*swap >= 0 && (!changes.memory_limit_bytes || *changes.memory_limit_bytes > *swap)) {
      return InvalidArgument("a swap limit needs a memory limit that is not larger");
    }
    RETURN_IF_ERROR(writer.SetLimit("memory", "memory.swap.max",
                                    *swap < 0 ? -1 : *swap - *changes.memory_limit_bytes));
  }
  if (changes.memory_reservation_bytes) {
    RETURN_IF_ERROR(writer.SetLimit("memory", "memory.low", *changes.memory_reservation_bytes));
  }
  if (changes.cpu_shares) {
    RETURN_IF_ERROR(writer.Set("cpu", "cpu.weight", WeightOf(*changes.cpu_shares)));
  }
  if (changes.cpu_quota_us || changes.cpu_period_us) {
    ASSIGN_OR_RETURN(const std::string now, writer.Get("cpu", "cpu.max"));
    const auto parts = Split(Trim(now), ' ');
    std::string quota(parts[0]), period(parts.size() > 1 ? parts[1] : "100000");
    if (changes.cpu_quota_us) {
      quota = *changes.cpu_quota_us <= 0 ? "max" : std::to_string(*changes.cpu_quota_us);
    }
    if (changes.cpu_period_us) period = std::to_string(*changes.cpu_period_us);
    RETURN_IF_ERROR(writer.Set("cpu", "cpu.max", StrCat(quota, " ", period)));
  }
  if (changes.pids_limit) {
    RETURN_IF_ERROR(writer.SetLimit("pids", "pids.max", *changes.pids_limit));
  }
  for (const auto& [size, limit] : changes.hugepage_limits_bytes) {
    if (!IsFileName(size)) return InvalidArgument("invalid huge page size " + Quote(size));
    RETURN_IF_ERROR(writer.Set("hugetlb", StrCat("hugetlb.", size, ".max"), std::to_string(limit)));
  }
  for (const auto& [file, value] : changes.unified) {
    if (!IsFileName(file)) return InvalidArgument("invalid cgroup file " + Quote(file));
    RETURN_IF_ERROR(writer.Set(file.substr(0, file.find('.')), file, value));
  }
  return Ok();
}

}  // namespace

Result<void> Cgroups::Change(const std::string& path, const CgroupChanges& changes) {
  Writer writer(*this, path);
  if (!changes.cpuset_cpus.empty()) {
    RETURN_IF_ERROR(writer.Set("cpuset", "cpuset.cpus", changes.cpuset_cpus));
  }
  if (!changes.cpuset_mems.empty()) {
    RETURN_IF_ERROR(writer.Set("cpuset", "cpuset.mems", changes.cpuset_mems));
  }
  return unified_ ? ChangeVersion2(writer, changes) : ChangeVersion1(writer, changes);
}

}  // namespace drakkar::node
