#include "node/nri/adjustment.h"

#include <algorithm>
#include <utility>

#include "base/text/text.h"
#include "node/nri/describe.h"

namespace drakkar::node {
namespace {

using Field = rpc::NriField;

// What an error calls the field.
std::string_view FieldName(Field field) {
  switch (field) {
    case Field::kAnnotations:
      return "annotation";
    case Field::kMounts:
      return "mount";
    case Field::kOciHooks:
      return "hooks";
    case Field::kDevices:
      return "device";
    case Field::kCdiDevices:
      return "CDI device";
    case Field::kEnv:
      return "environment variable";
    case Field::kArgs:
      return "arguments";
    case Field::kMemLimit:
      return "memory limit";
    case Field::kMemReservation:
      return "memory reservation";
    case Field::kMemSwapLimit:
      return "swap limit";
    case Field::kMemKernelLimit:
      return "kernel memory limit";
    case Field::kMemTcpLimit:
      return "TCP memory limit";
    case Field::kMemSwappiness:
      return "swappiness";
    case Field::kMemDisableOomKiller:
      return "OOM killer";
    case Field::kMemUseHierarchy:
      return "memory hierarchy";
    case Field::kCpuShares:
      return "CPU shares";
    case Field::kCpuQuota:
      return "CPU quota";
    case Field::kCpuPeriod:
      return "CPU period";
    case Field::kCpuRealtimeRuntime:
      return "realtime runtime";
    case Field::kCpuRealtimePeriod:
      return "realtime period";
    case Field::kCpusetCpus:
      return "cpuset.cpus";
    case Field::kCpusetMems:
      return "cpuset.mems";
    case Field::kPidsLimit:
      return "pids limit";
    case Field::kHugepageLimits:
      return "huge page limit";
    case Field::kBlockioClass:
      return "block I/O class";
    case Field::kRdtClass:
      return "RDT class";
    case Field::kCgroupsUnified:
      return "unified cgroup setting";
    case Field::kCgroupsPath:
      return "cgroup path";
    case Field::kOomScoreAdj:
      return "OOM score";
    case Field::kRlimits:
      return "rlimit";
    case Field::kSeccompPolicy:
      return "seccomp policy";
    case Field::kNamespace:
      return "namespace";
    case Field::kSysctl:
      return "sysctl";
  }
  return "field";
}

// The fields of resources that hold one value, with their owners' numbers.
struct NumberField {
  Field field;
  rpc::NriResources::Number rpc::NriResources::*member;
};
constexpr NumberField kNumbers[] = {
    {Field::kMemLimit, &rpc::NriResources::memory_limit},
    {Field::kMemReservation, &rpc::NriResources::memory_reservation},
    {Field::kMemSwapLimit, &rpc::NriResources::memory_swap},
    {Field::kMemKernelLimit, &rpc::NriResources::memory_kernel},
    {Field::kMemTcpLimit, &rpc::NriResources::memory_kernel_tcp},
    {Field::kMemSwappiness, &rpc::NriResources::memory_swappiness},
    {Field::kCpuShares, &rpc::NriResources::cpu_shares},
    {Field::kCpuQuota, &rpc::NriResources::cpu_quota},
    {Field::kCpuPeriod, &rpc::NriResources::cpu_period},
    {Field::kCpuRealtimeRuntime, &rpc::NriResources::realtime_runtime},
    {Field::kCpuRealtimePeriod, &rpc::NriResources::realtime_period},
    {Field::kPidsLimit, &rpc::NriResources::pids},
};

// Removals first: "-NAME" and "NAME" in one answer replace NAME, in whichever order they come.
template <typename Entry, typename NameOf>
std::vector<Entry> RemovalsFirst(std::vector<Entry> entries, const NameOf& name_of) {
  std::stable_partition(entries.begin(), entries.end(),
                        [&](const Entry& entry) { return IsNriRemoval(name_of(entry)); });
  return entries;
}

Result<void> CheckPath(std::string_view what, std::string_view path) {
  if (WithoutNriRemoval(path).starts_with('/')) return Ok();
  return InvalidArgument(StrCat(what, " at ", Quote(path), ", which is not an absolute path"));
}

}  // namespace

bool IsNriRemoval(std::string_view name) {
  return name.starts_with('-');
}
std::string_view WithoutNriRemoval(std::string_view name) {
  return IsNriRemoval(name) ? name.substr(1) : name;
}

Result<void> AnswerCollector::Claim(const std::string& plugin, const std::string& id, Field field,
                                    std::string_view entry) {
  rpc::NriFieldOwners& owners = owners_[id];
  std::string& owner =
      entry.empty() ? owners.simple[field] : owners.compound[field][std::string(entry)];
  if (owner.empty() || owner == plugin) {
    owner = plugin;
    return Ok();
  }
  return FailedPrecondition(StrCat("NRI plugins ", owner, " and ", plugin, " both change ",
                                   FieldName(field), entry.empty() ? "" : " ", entry,
                                   " of container ", id == container_.id ? container_.name : id));
}

Result<void> AnswerCollector::ClaimResources(const std::string& plugin, const std::string& id,
                                             const rpc::NriResources& resources) {
  for (const NumberField& each : kNumbers) {
    if (resources.*each.member) RETURN_IF_ERROR(Claim(plugin, id, each.field, ""));
  }
  const auto claim = [&](Field field, bool is_set) {
    return is_set ? Claim(plugin, id, field, "") : Ok();
  };
  RETURN_IF_ERROR(claim(Field::kMemDisableOomKiller, resources.disable_oom_killer.has_value()));
  RETURN_IF_ERROR(claim(Field::kMemUseHierarchy, resources.use_hierarchy.has_value()));
  RETURN_IF_ERROR(claim(Field::kCpusetCpus, !resources.cpus.empty()));
  RETURN_IF_ERROR(claim(Field::kCpusetMems, !resources.mems.empty()));
  RETURN_IF_ERROR(claim(Field::kBlockioClass, resources.blockio_class.has_value()));
  RETURN_IF_ERROR(claim(Field::kRdtClass, resources.rdt_class.has_value()));
  for (const auto& [size, limit] : resources.hugepage_limits) {
    RETURN_IF_ERROR(Claim(plugin, id, Field::kHugepageLimits, size));
  }
  for (const auto& [file, value] : resources.unified) {
    RETURN_IF_ERROR(Claim(plugin, id, Field::kCgroupsUnified, file));
  }
  return Ok();
}

Result<void> AnswerCollector::Add(const std::string& plugin, const rpc::NriAnswer& answer) {
  // A refused answer leaves no trace.
  AnswerCollector next = *this;
  auto taken = [&]() -> Result<void> {
    if (event_ == rpc::NriEvent::kCreateContainer) {
      RETURN_IF_ERROR(next.Adjust(plugin, answer.adjustment));
    }
    for (const rpc::NriContainerUpdate& update : answer.updates) {
      RETURN_IF_ERROR(next.Update(plugin, update));
    }
    return Ok();
  }();
  if (!taken.ok()) return taken;
  next.evictions_.insert(next.evictions_.end(), answer.evictions.begin(), answer.evictions.end());
  container_ = std::move(next.container_);
  resources_ = std::move(next.resources_);
  adjustment_ = std::move(next.adjustment_);
  own_changes_ = std::move(next.own_changes_);
  updates_ = std::move(next.updates_);
  evictions_ = std::move(next.evictions_);
  owners_ = std::move(next.owners_);
  return Ok();
}

Result<void> AnswerCollector::Adjust(const std::string& plugin,
                                     const rpc::NriContainerAdjustment& adjustment) {
  const std::string& id = container_.id;
  if (!adjustment.unsupported.empty()) {
    return FailedPrecondition(StrCat("NRI plugin ", plugin, " changes ",
                                     Join(adjustment.unsupported, ", "), " of container ",
                                     container_.name, ", which this node does not support"));
  }
  // A removal makes room for whoever sets the entry next, in this answer or a later one.
  const auto release = [&](Field field, std::string_view entry) {
    owners_[id].compound[field].erase(std::string(entry));
  };
  const auto checked = [&](Result<void> good) -> Result<void> {
    if (good.ok()) return good;
    return std::move(good).error().Prefixed(StrCat("NRI plugin ", plugin));
  };

  for (const auto& [name, value] :
       RemovalsFirst(adjustment.env, [](const auto& entry) { return entry.first; })) {
    const std::string_view bare = WithoutNriRemoval(name);
    if (IsNriRemoval(name)) {
      release(Field::kEnv, bare);
    } else {
      RETURN_IF_ERROR(Claim(plugin, id, Field::kEnv, bare));
    }
    std::erase_if(container_.env, [bare](const std::string& entry) {
      return entry.size() > bare.size() && entry.starts_with(bare) && entry[bare.size()] == '=';
    });
    if (!IsNriRemoval(name)) container_.env.push_back(StrCat(name, "=", value));
    adjustment_.env.emplace_back(name, value);
  }
  for (const auto& [name, value] : adjustment.annotations) {  // "-" sorts before letters
    const std::string bare(WithoutNriRemoval(name));
    if (IsNriRemoval(name)) {
      release(Field::kAnnotations, bare);
      adjustment_.annotations.erase(bare);
    } else {
      RETURN_IF_ERROR(Claim(plugin, id, Field::kAnnotations, bare));
    }
    container_.annotations.erase(bare);
    if (!IsNriRemoval(name)) container_.annotations[name] = value;
    adjustment_.annotations[name] = value;
  }
  for (const rpc::NriMount& mount :
       RemovalsFirst(adjustment.mounts, [](const auto& entry) { return entry.destination; })) {
    RETURN_IF_ERROR(checked(CheckPath("mounts", mount.destination)));
    const std::string_view bare = WithoutNriRemoval(mount.destination);
    if (IsNriRemoval(mount.destination)) {
      release(Field::kMounts, bare);
    } else {
      RETURN_IF_ERROR(Claim(plugin, id, Field::kMounts, bare));
    }
    std::erase_if(container_.mounts,
                  [bare](const rpc::NriMount& entry) { return entry.destination == bare; });
    if (!IsNriRemoval(mount.destination)) container_.mounts.push_back(mount);
    adjustment_.mounts.push_back(mount);
  }
  for (const rpc::NriDevice& device :
       RemovalsFirst(adjustment.devices, [](const auto& entry) { return entry.path; })) {
    RETURN_IF_ERROR(checked(CheckPath("adds a device", device.path)));
    const std::string_view bare = WithoutNriRemoval(device.path);
    if (IsNriRemoval(device.path)) {
      release(Field::kDevices, bare);
    } else {
      RETURN_IF_ERROR(Claim(plugin, id, Field::kDevices, bare));
    }
    std::erase_if(container_.devices,
                  [bare](const rpc::NriDevice& entry) { return entry.path == bare; });
    if (!IsNriRemoval(device.path)) container_.devices.push_back(device);
    adjustment_.devices.push_back(device);
  }
  if (!adjustment.args.empty()) {
    std::vector<std::string> args = adjustment.args;
    if (args.front().empty()) {
      owners_[id].simple.erase(Field::kArgs);
      args.erase(args.begin());
    }
    RETURN_IF_ERROR(Claim(plugin, id, Field::kArgs, ""));
    container_.args = args;
    adjustment_.args = std::move(args);
  }
  if (!adjustment.hooks.empty()) {
    // Every plugin may add hooks: the owner is a list.
    std::string& owner = owners_[id].simple[Field::kOciHooks];
    owner = owner.empty() ? plugin : StrCat(owner, ",", plugin);
    container_.hooks.insert(container_.hooks.end(), adjustment.hooks.begin(),
                            adjustment.hooks.end());
    adjustment_.hooks.insert(adjustment_.hooks.end(), adjustment.hooks.begin(),
                             adjustment.hooks.end());
  }
  for (const rpc::NriRlimit& limit : adjustment.rlimits) {
    RETURN_IF_ERROR(Claim(plugin, id, Field::kRlimits, limit.type));
    std::erase_if(container_.rlimits,
                  [&](const rpc::NriRlimit& entry) { return entry.type == limit.type; });
    container_.rlimits.push_back(limit);
    adjustment_.rlimits.push_back(limit);
  }
  for (const std::string& name : adjustment.cdi_devices) {
    const auto& added = adjustment_.cdi_devices;
    if (std::ranges::find(added, name) != added.end()) {
      return FailedPrecondition(StrCat("NRI plugin ", plugin, " adds CDI device ", name,
                                       " to container ", container_.name,
                                       ", which was added already"));
    }
    RETURN_IF_ERROR(Claim(plugin, id, Field::kCdiDevices, name));
    adjustment_.cdi_devices.push_back(name);
  }
  RETURN_IF_ERROR(ClaimResources(plugin, id, adjustment.resources));
  MergeResources(adjustment.resources, container_.resources);
  MergeResources(adjustment.resources, adjustment_.resources);
  if (!adjustment.cgroups_path.empty()) {
    RETURN_IF_ERROR(Claim(plugin, id, Field::kCgroupsPath, ""));
    container_.cgroups_path = adjustment.cgroups_path;
    adjustment_.cgroups_path = adjustment.cgroups_path;
  }
  if (adjustment.oom_score_adj) {
    RETURN_IF_ERROR(Claim(plugin, id, Field::kOomScoreAdj, ""));
    container_.oom_score_adj = adjustment.oom_score_adj;
    adjustment_.oom_score_adj = adjustment.oom_score_adj;
  }
  if (adjustment.seccomp) {
    RETURN_IF_ERROR(Claim(plugin, id, Field::kSeccompPolicy, ""));
    adjustment_.seccomp = adjustment.seccomp;
  }
  for (const rpc::NriNamespace& space : adjustment.namespaces) {
    const std::string_view bare = WithoutNriRemoval(space.type);
    RETURN_IF_ERROR(Claim(plugin, id, Field::kNamespace, bare));
    std::erase_if(container_.namespaces,
                  [bare](const rpc::NriNamespace& entry) { return entry.type == bare; });
    if (!IsNriRemoval(space.type)) container_.namespaces.push_back(space);
    adjustment_.namespaces.push_back(space);
  }
  for (const auto& [name, value] : adjustment.sysctl) {
    const std::string bare(WithoutNriRemoval(name));
    if (IsNriRemoval(name)) {
      release(Field::kSysctl, bare);
      adjustment_.sysctl.erase(bare);
    } else {
      RETURN_IF_ERROR(Claim(plugin, id, Field::kSysctl, bare));
    }
    container_.sysctl.erase(bare);
    if (!IsNriRemoval(name)) container_.sysctl[name] = value;
    adjustment_.sysctl[name] = value;
  }
  return Ok();
}

Result<void> AnswerCollector::Update(const std::string& plugin,
                                     const rpc::NriContainerUpdate& update) {
  const bool is_own = update.container_id == container_.id;
  if (is_own && event_ == rpc::NriEvent::kCreateContainer) {
    return InvalidArgument(StrCat("NRI plugin ", plugin, " updates container ", container_.name,
                                  " while it is being created; it must adjust it instead"));
  }
  if (auto claimed = ClaimResources(plugin, update.container_id, update.resources); !claimed.ok()) {
    if (update.ignore_failure) return Ok();
    return claimed;
  }
  if (is_own && event_ == rpc::NriEvent::kUpdateContainer) {
    MergeResources(update.resources, resources_);
    MergeResources(update.resources, own_changes_);
    return Ok();
  }
  const auto [merged, fresh] = updates_.emplace(
      update.container_id, rpc::NriContainerUpdate{update.container_id, {}, update.ignore_failure});
  merged->second.ignore_failure = merged->second.ignore_failure && update.ignore_failure;
  MergeResources(update.resources, merged->second.resources);
  return Ok();
}

std::vector<rpc::NriContainerUpdate> AnswerCollector::updates() const {
  std::vector<rpc::NriContainerUpdate> list;
  for (const auto& [id, update] : updates_) list.push_back(update);
  return list;
}

}  // namespace drakkar::node
