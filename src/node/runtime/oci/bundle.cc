#include "node/runtime/oci/bundle.h"

#include <signal.h>

#include <algorithm>

#include "base/text/text.h"
#include "node/runtime/images/image_name.h"
#include "node/runtime/images/unpack.h"
#include "node/runtime/json.h"
#include "node/runtime/oci/host.h"
#include "node/runtime/oci/pid_namespace.h"
#include "node/runtime/oci/user_lookup.h"

namespace drakkar::node {
namespace {

constexpr std::size_t kMaxPasswdBytes = 1u << 20;
constexpr std::size_t kMaxSeccompBytes = 1u << 20;
constexpr std::string_view kDefaultPath =
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

void SetVariable(std::vector<std::string>& environment, const std::string& entry) {
  const std::string key = entry.substr(0, entry.find('=') + 1);
  for (std::string& existing : environment) {
    if (existing.starts_with(key)) {
      existing = entry;
      return;
    }
  }
  environment.push_back(entry);
}

// The file is missing, or is not one of ours.
bool IsAbsent(const Error& error) {
  return error.code == ErrorCode::kNotFound || error.code == ErrorCode::kInvalidArgument;
}

Error NotNow(const std::string& what, const Error& error) {
  return Unavailable(what + ": " + error.message);
}

// Empty if the image has none. A read error must not be treated as empty: it would change the
// container's user.
Result<std::string> ReadAccounts(const std::string& rootfs, const std::string& path) {
  auto text = ReadFileInRoot(rootfs, path, kMaxPasswdBytes);
  if (text.ok()) return text;
  const ErrorCode code = text.error().code;
  if (code == ErrorCode::kNotFound || code == ErrorCode::kFailedPrecondition) return std::string();
  return text;
}

Mount BindFile(const std::string& host_path, const std::string& container_path) {
  Mount mount;
  mount.host_path = host_path;
  mount.container_path = container_path;
  return mount;
}

}  // namespace

std::optional<int> SignalNumber(std::string_view name) {
  if (const auto number = ParseInt64(name)) {
    if (*number > 0 && *number < NSIG) return static_cast<int>(*number);
    return std::nullopt;
  }
  if (name.starts_with("SIG")) name.remove_prefix(3);
  if (name.starts_with("RTMIN")) {
    const auto offset = name.size() == 5 ? std::optional<std::int64_t>(0)
                                         : ParseInt64(name.substr(name[5] == '+' ? 6 : 5));
    if (!offset || *offset < 0 || SIGRTMIN + *offset > SIGRTMAX) return std::nullopt;
    return static_cast<int>(SIGRTMIN + *offset);
  }
  for (int signal = 1; signal < NSIG; ++signal) {
    const char* known = ::sigabbrev_np(signal);
    if (known != nullptr && name == known) return signal;
  }
  return std::nullopt;
}

Result<void> BundleBuilder::Save(const SandboxRecord& record) {
  return SaveRecord(paths_.Sandbox(record.id) + "/state.json", WriteRecord(record));
}

Result<void> BundleBuilder::Save(const ContainerRecord& record) {
  return SaveRecord(paths_.Container(record.id) + "/state.json", WriteRecord(record));
}

// A record changes about six times in a container's life. One that fits into a page is overwritten
// in place, padded to the page: a crash cannot leave half a page, while replacing the file would
// make the file system flush it.
Result<void> BundleBuilder::SaveRecord(const std::string& path, std::string text) {
  if (text.size() <= kRecordBytes) {
    text.resize(kRecordBytes, ' ');
    const auto info = files_.Stat(path);
    if (info.ok() && info->size_bytes == kRecordBytes)
      return files_.OverwriteFile(path, 0, text, /*sync=*/false);
  }
  return files_.WriteFileAtomically(path, text, 0600, /*sync=*/false);
}

// Unmount first: removing files through a mount would delete other people's data.
Result<void> BundleBuilder::RemoveDirectory(const std::string& directory) {
  RETURN_IF_ERROR(UnmountAll(directory));
  return files_.RemoveTree(directory);
}

Result<SandboxRecord> BundleBuilder::BuildSandbox(SandboxRecord record,
                                                  const PodSandboxConfig& config) {
  const std::string directory = paths_.Sandbox(record.id);
  record.phase = Phase::kCreating;
  auto built = [&]() -> Result<void> {
    RETURN_IF_ERROR(files_.MakeDirectories(directory, 0700));
    RETURN_IF_ERROR(Save(record));
    RETURN_IF_ERROR(files_.MakeDirectories(directory + "/ns", 0700));
    NamespacePins pins;
    if (!record.hostname.empty()) {
      pins.uts_path = directory + "/ns/uts";
      pins.hostname = record.hostname;
    }
    if (!record.host_ipc) pins.ipc_path = directory + "/ns/ipc";
    if (!record.network_namespace.empty()) {
      RETURN_IF_ERROR(files_.MakeDirectories(paths_.network_namespaces, 0755));
      pins.network_path = record.network_namespace;
    }
    RETURN_IF_ERROR(PinNamespaces(pins));
    if (record.shares_processes) {
      RETURN_IF_ERROR(HoldPidNamespace(PidNamespace(record.id), record.id));
    }
    if (!record.host_ipc) {
      RETURN_IF_ERROR(files_.MakeDirectories(directory + "/shm", 01777));
      RETURN_IF_ERROR(MountTmpfs(directory + "/shm", "mode=1777,size=65536k"));
    }
    RETURN_IF_ERROR(WriteSandboxFiles(record, config));
    RETURN_IF_ERROR(cgroups_.Create(record.cgroup_parent, config.resources));
    if (!record.log_directory.empty()) {
      RETURN_IF_ERROR(files_.MakeDirectories(record.log_directory, 0755));
    }
    if (!record.network_namespace.empty()) return Ok();
    record.phase = Phase::kRunning;
    return Save(record);
  }();
  if (built.ok()) return record;
  // Nothing of this sandbox runs in the cgroup, but an earlier sandbox of the pod may use it:
  // remove it only if empty.
  if (!record.cgroup_parent.empty()) cgroups_.RemoveIfEmpty(record.cgroup_parent);
  // The record still says "creating": if this fails too, the next start cleans up.
  if (UnpinNamespace(paths_.NetworkNamespace(record.id)).ok() && EndProcesses(record.id).ok()) {
    static_cast<void>(RemoveDirectory(directory).ok());
  }
  return std::move(built).error();
}

Result<void> BundleBuilder::WriteSandboxFiles(const SandboxRecord& record,
                                              const PodSandboxConfig& config) {
  const std::string directory = paths_.Sandbox(record.id);
  std::string resolv;
  if (config.dns) {
    for (const std::string& server : config.dns->servers) resolv += "nameserver " + server + "\n";
    if (!config.dns->searches.empty()) resolv += "search " + Join(config.dns->searches, " ") + "\n";
    if (!config.dns->options.empty()) resolv += "options " + Join(config.dns->options, " ") + "\n";
  } else {
    auto host = files_.ReadFile("/etc/resolv.conf");
    if (!host.ok() && host.error().code != ErrorCode::kNotFound) return std::move(host).error();
    if (host.ok()) resolv = *std::move(host);
  }
  RETURN_IF_ERROR(files_.WriteFile(directory + "/resolv.conf", resolv, 0644));
  if (record.hostname.empty()) return Ok();
  RETURN_IF_ERROR(files_.WriteFile(directory + "/hostname", record.hostname + "\n", 0644));
  return files_.WriteFile(
      directory + "/hosts",
      "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n127.0.1.1\t" +
          record.hostname + "\n",
      0644);
}

Result<bool> BundleBuilder::IsSandboxIntact(const SandboxRecord& record) const {
  const std::string directory = paths_.Sandbox(record.id);
  if (!record.hostname.empty()) {
    ASSIGN_OR_RETURN(const bool has_uts, IsPinnedNamespace(directory + "/ns/uts"));
    if (!has_uts) return false;
  }
  if (!record.network_namespace.empty()) {
    ASSIGN_OR_RETURN(const bool has_network, IsPinnedNamespace(record.network_namespace));
    if (!has_network) return false;
  }
  if (record.shares_processes) {
    ASSIGN_OR_RETURN(const bool has_processes, IsPinnedNamespace(PidNamespace(record.id)));
    if (!has_processes) return false;
    // Without it, nothing can start there any more.
    ASSIGN_OR_RETURN(const auto holders, FindHolders(record.id));
    if (holders.empty()) return false;
  }
  if (record.host_ipc) return true;
  return IsPinnedNamespace(directory + "/ns/ipc");
}

std::string BundleBuilder::PidNamespace(const std::string& sandbox_id) const {
  return paths_.Sandbox(sandbox_id) + "/ns/pid";
}

// Whether the record says so or is lost: the file exists as long as there may be a holder.
Result<void> BundleBuilder::EndProcesses(const std::string& sandbox_id) {
  if (!files_.Exists(PidNamespace(sandbox_id))) return Ok();
  return EndPidNamespace(sandbox_id);
}

Result<void> BundleBuilder::ReleaseSandbox(const SandboxRecord& record) {
  if (!record.network_namespace.empty()) {
    RETURN_IF_ERROR(UnpinNamespace(record.network_namespace));
  }
  RETURN_IF_ERROR(EndProcesses(record.id));
  return UnmountAll(paths_.Sandbox(record.id));
}

Result<void> BundleBuilder::DestroySandbox(const SandboxRecord& record) {
  // The cgroup first: as long as the record exists, a failure is found again.
  if (!record.cgroup_parent.empty()) RETURN_IF_ERROR(cgroups_.Remove(record.cgroup_parent));
  if (!record.network_namespace.empty()) {
    RETURN_IF_ERROR(UnpinNamespace(record.network_namespace));
  }
  RETURN_IF_ERROR(EndProcesses(record.id));
  return RemoveDirectory(paths_.Sandbox(record.id));
}

Result<void> BundleBuilder::MakeRootfs(const std::string& directory, const std::string& lower,
                                       std::vector<std::string>& warnings) {
  for (const char* name : {"/rootfs", "/upper", "/work"}) {
    RETURN_IF_ERROR(files_.MakeDirectories(directory + name, 0755));
  }
  auto mounted =
      MountOverlay(lower, directory + "/upper", directory + "/work", directory + "/rootfs");
  if (mounted.ok()) return Ok();
  warnings.push_back("the image is copied for each container because " + mounted.error().message);
  return CopyTree(lower, directory + "/rootfs");
}

Result<OciSpecInput> BundleBuilder::SpecInput(const ContainerRecord& record,
                                              const SandboxRecord& sandbox,
                                              const ContainerConfig& config,
                                              const StoredImage& image) {
  OciSpecInput input;
  input.rootfs = paths_.Container(record.id) + "/rootfs";
  input.hostname = "";  // the pinned namespace has it
  // As in Kubernetes, a command replaces both the image's entrypoint and its arguments.
  input.arguments = config.command.empty() ? image.config.entrypoint : config.command;
  const std::vector<std::string>& rest =
      config.arguments.empty() && config.command.empty() ? image.config.command : config.arguments;
  input.arguments.insert(input.arguments.end(), rest.begin(), rest.end());
  input.working_directory =
      config.working_directory.empty() ? image.config.working_directory : config.working_directory;

  const std::string wanted =
      config.security.user.empty() ? image.config.user : config.security.user;
  ASSIGN_OR_RETURN(const std::string passwd, ReadAccounts(input.rootfs, "etc/passwd"));
  ASSIGN_OR_RETURN(const std::string group, ReadAccounts(input.rootfs, "etc/group"));
  ASSIGN_OR_RETURN(const ContainerUser user, LookUpUser(wanted, passwd, group));
  input.uid = user.uid;
  input.gid = config.security.group ? static_cast<std::uint32_t>(*config.security.group) : user.gid;
  if (!config.security.only_given_groups) input.additional_gids = user.additional_gids;
  for (std::int64_t gid : config.security.supplemental_groups) {
    input.additional_gids.push_back(static_cast<std::uint32_t>(gid));
  }
  if (config.security.seccomp == SeccompKind::kLocalhost && config.security.seccomp_path.empty()) {
    input.seccomp_profile = config.security.seccomp_profile;
  } else if (config.security.seccomp == SeccompKind::kLocalhost) {
    const std::string& path = config.security.seccomp_path;
    auto profile =
        ReadFileInRoot(DirectoryName(path), std::string(BaseName(path)), kMaxSeccompBytes);
    if (!profile.ok()) {
      return std::move(profile).error().Prefixed("seccomp profile " + Quote(path));
    }
    input.seccomp_profile = *std::move(profile);
  }
  if (config.security.run_as_non_root && input.uid == 0) {
    return FailedPrecondition("container has runAsNonRoot and image will run as root");
  }

  input.environment.emplace_back(kDefaultPath);
  if (config.tty) SetVariable(input.environment, "TERM=xterm");
  if (!sandbox.hostname.empty()) SetVariable(input.environment, "HOSTNAME=" + sandbox.hostname);
  for (const std::string& entry : image.config.environment) SetVariable(input.environment, entry);
  for (const auto& [name, value] : config.environment) {
    SetVariable(input.environment, name + "=" + value);
  }

  const std::string shared = paths_.Sandbox(sandbox.id);
  input.namespaces.push_back({"mount", ""});
  if (config.process_namespace_of > 0) {
    input.namespaces.push_back({"pid", StrCat("/proc/", config.process_namespace_of, "/ns/pid")});
  } else if (sandbox.shares_processes) {
    input.namespaces.push_back({"pid", PidNamespace(sandbox.id)});
  } else if (!sandbox.host_pid) {
    input.namespaces.push_back({"pid", ""});
  }
  if (!sandbox.host_ipc) input.namespaces.push_back({"ipc", shared + "/ns/ipc"});
  if (!sandbox.network_namespace.empty()) {
    input.namespaces.push_back({"network", sandbox.network_namespace});
  }
  if (!sandbox.hostname.empty()) input.namespaces.push_back({"uts", shared + "/ns/uts"});
  if (cgroups_.is_unified() && !config.security.privileged) {
    input.namespaces.push_back({"cgroup", ""});
  }
  for (const auto& [type, path] : config.namespaces) {
    std::erase_if(input.namespaces,
                  [&type = type](const NamespacePath& entry) { return entry.type == type; });
    if (!path.empty()) input.namespaces.push_back({type, path == "new" ? "" : path});
  }
  input.cgroups_path = record.cgroup_path;
  input.sandbox_mounts.push_back(BindFile(shared + "/resolv.conf", "/etc/resolv.conf"));
  if (!sandbox.hostname.empty()) {
    input.sandbox_mounts.push_back(BindFile(shared + "/hostname", "/etc/hostname"));
    input.sandbox_mounts.push_back(BindFile(shared + "/hosts", "/etc/hosts"));
  } else {
    // The machine's own file: never for writing.
    input.sandbox_mounts.push_back(BindFile("/etc/hosts", "/etc/hosts"));
    input.sandbox_mounts.back().readonly = true;
  }
  input.sandbox_mounts.push_back(
      BindFile(sandbox.host_ipc ? "/dev/shm" : shared + "/shm", "/dev/shm"));
  std::map<std::string, std::string> sysctls = sandbox.sysctls;
  for (const auto& [key, value] : config.sysctls) sysctls[key] = value;
  input.sysctls.assign(sysctls.begin(), sysctls.end());

  if (config.security.privileged) input.devices = ListHostDevices();
  for (const DeviceNode& device : config.devices) {
    ASSIGN_OR_RETURN(DeviceNode resolved, ResolveDevice(device));
    std::erase_if(input.devices, [&](const DeviceNode& existing) {
      return existing.container_path == resolved.container_path;
    });
    input.devices.push_back(std::move(resolved));
  }
  for (const Mount& mount : config.mounts) {
    const bool is_bind = mount.type.empty() || mount.type == "bind";
    if (is_bind && !files_.Exists(mount.host_path)) {
      return NotFound("mount " + mount.container_path + ": host path " + mount.host_path +
                      " does not exist");
    }
  }
  return input;
}

// The files of an image, which nobody changes: a path without links stays without links.
Result<void> BundleBuilder::ResolveImageMounts(const std::string& user,
                                               std::vector<Mount>& mounts) {
  for (Mount& mount : mounts) {
    if (mount.image.empty()) continue;
    const auto fail = [&](Error error) {
      return std::move(error).Prefixed(StrCat("mount image ", mount.image));
    };
    auto image = images_.Find(mount.image);
    if (!image.ok()) return fail(std::move(image).error());
    RETURN_IF_ERROR(images_.AddUse(image->image.id, user));
    std::string path = image->rootfs;
    for (const std::string_view part : Split(mount.host_path, '/')) {
      if (part.empty() || part == ".") continue;
      path = JoinPath(path, part);
      auto info = files_.LinkStat(path);
      if (!info.ok()) return fail(std::move(info).error());
      if (part == ".." || info->type == FileType::kSymlink) {
        return fail(InvalidArgument(StrCat("the path ", Quote(mount.host_path),
                                           " must neither leave it nor lead through a link")));
      }
    }
    mount.host_path = std::move(path);
    mount.image.clear();
    mount.readonly = true;
    mount.options.emplace_back("noexec");
  }
  return Ok();
}

Result<BundleBuilder::Built> BundleBuilder::BuildContainer(ContainerRecord record,
                                                           const SandboxRecord& sandbox,
                                                           const ContainerConfig& config) {
  const std::string directory = paths_.Container(record.id);
  ASSIGN_OR_RETURN(const StoredImage image, images_.Find(config.image));
  const std::string stop =
      config.stop_signal.empty() ? image.config.stop_signal : config.stop_signal;
  if (!stop.empty()) {
    const auto number = SignalNumber(stop);
    if (!number) return InvalidArgument("unknown stop signal " + Quote(stop));
    record.stop_signal = *number;
  }
  record.image_id = image.image.id;
  record.image_reference = ReferenceTo(image.image, config.image);
  record.phase = Phase::kCreating;
  std::vector<std::string> warnings;
  auto built = [&]() -> Result<void> {
    RETURN_IF_ERROR(files_.MakeDirectories(directory, 0700));
    RETURN_IF_ERROR(Save(record));
    RETURN_IF_ERROR(images_.AddUse(record.image_id, record.id));
    RETURN_IF_ERROR(MakeRootfs(directory, image.rootfs, warnings));
    ContainerConfig possible = config;
    RETURN_IF_ERROR(ResolveImageMounts(record.id, possible.mounts));
    ASSIGN_OR_RETURN(const OciSpecInput input, SpecInput(record, sandbox, possible, image));
    record.user = {input.uid, input.gid, {}};
    for (const std::uint32_t gid : input.additional_gids) {
      record.user->supplemental_groups.push_back(gid);
    }
    if (!cgroups_.HasController("hugetlb")) {
      // As other runtimes do it: the pod still cannot use more pages than the machine has.
      const bool has_limit =
          std::ranges::any_of(config.resources.hugepage_limits_bytes,
                              [](const auto& each) { return each.second > 0; }) ||
          !config.cgroup_changes.hugepage_limits_bytes.empty();
      if (has_limit) {
        warnings.push_back("huge page limits not applied: this machine has no cgroup for them");
      }
      possible.resources.hugepage_limits_bytes.clear();
      possible.cgroup_changes.hugepage_limits_bytes.clear();
    }
    ASSIGN_OR_RETURN(OciSpec spec, WriteOciSpec(possible, input, limits_));
    warnings.insert(warnings.end(), spec.warnings.begin(), spec.warnings.end());
    RETURN_IF_ERROR(files_.WriteFile(directory + "/config.json", spec.json, 0600));
    if (!record.log_path.empty()) {
      RETURN_IF_ERROR(files_.MakeDirectories(DirectoryName(record.log_path), 0755));
    }
    record.phase = Phase::kCreated;
    return Save(record);
  }();
  if (built.ok()) return Built{std::move(record), std::move(warnings)};
  static_cast<void>(DestroyContainer(record).ok());
  return std::move(built).error();
}

Result<void> BundleBuilder::ChangeCgroup(const ContainerRecord& record,
                                         const CgroupChanges& changes) {
  CgroupChanges possible = changes;
  if (!cgroups_.HasController("hugetlb")) possible.hugepage_limits_bytes.clear();
  return cgroups_.Change(record.cgroup_path, possible);
}

Result<void> BundleBuilder::Resize(const ContainerRecord& record, const SandboxRecord& sandbox,
                                   const ResourceUpdate& update) {
  // A cgroup cannot exceed its parent's limit: grow the pod first, shrink it last.
  static_cast<void>(cgroups_.Update(sandbox.cgroup_parent, update.pod).ok());
  RETURN_IF_ERROR(cgroups_.Update(record.cgroup_path, update.container));
  return cgroups_.Update(sandbox.cgroup_parent, update.pod);
}

Result<void> BundleBuilder::ReleaseContainer(const ContainerRecord& record) {
  if (!record.cgroup_path.empty()) RETURN_IF_ERROR(cgroups_.Remove(record.cgroup_path));
  return files_.RemoveTree(paths_.runtime_state + "/" + record.id);
}

std::optional<int> BundleBuilder::ConmonPid(const std::string& id) const {
  auto text = files_.ReadFile(paths_.Container(id) + "/conmon.pid");
  const auto pid = text.ok() ? ParseInt64(Trim(*text)) : std::nullopt;
  if (!pid || *pid <= 0) return std::nullopt;
  return static_cast<int>(*pid);
}

Result<void> BundleBuilder::DestroyContainer(const ContainerRecord& record) {
  // conmon and runc have the id as an argument; no exit or pid file may appear after this. If the
  // container ran, runc has finished and conmon's pid is known; otherwise all processes are
  // searched.
  const bool ran = record.started_at != WallTime{} && record.reason != kReasonStartError;
  const std::optional<int> monitor = ran ? ConmonPid(record.id) : std::nullopt;
  if (!ran || !monitor) {
    ASSIGN_OR_RETURN(const std::vector<int> supervisors, FindSupervisors(record.id));
    for (int pid : supervisors) ::kill(pid, SIGKILL);
  } else if (IsSupervisor(*monitor, record.id)) {
    ::kill(*monitor, SIGKILL);
  }
  RETURN_IF_ERROR(ReleaseContainer(record));
  auto removed = files_.Remove(paths_.ExitFile(record.id));
  if (!removed.ok() && removed.error().code != ErrorCode::kNotFound) return removed;
  RETURN_IF_ERROR(images_.DropUse("", record.id));  // of its own image and of those it mounts
  return RemoveDirectory(paths_.Container(record.id));
}

Result<void> BundleBuilder::ReadExit(ContainerRecord& record) const {
  const std::string path = paths_.ExitFile(record.id);
  ASSIGN_OR_RETURN(const std::string text, files_.ReadFile(path));
  ASSIGN_OR_RETURN(record.finished_at, ModifiedTime(path));
  const auto code = ParseInt64(Trim(text));
  record.exit_code = code && *code >= 0 ? static_cast<int>(*code) : 255;
  record.phase = Phase::kExited;
  record.reason = std::string(record.exit_code == 0 ? kReasonCompleted : kReasonError);
  // conmon's marker file may be missing if the kernel was faster than its watch.
  const bool oom = cgroups_.OomKills(record.cgroup_path) > 0 ||
                   files_.Exists(paths_.Container(record.id) + "/oom");
  if (oom && record.exit_code != 0) record.reason = std::string(kReasonOomKilled);
  return Ok();
}

Result<void> BundleBuilder::SettleStart(ContainerRecord& record) {
  const std::string directory = paths_.Container(record.id);
  auto text = files_.ReadFile(directory + "/pid");
  if (!text.ok() && text.error().code != ErrorCode::kNotFound) return std::move(text).error();
  const auto pid = text.ok() ? ParseInt64(Trim(*text)) : std::nullopt;
  // In this order: conmon writes the exit file before it exits, so at least one of the two is seen.
  ASSIGN_OR_RETURN(const std::vector<int> supervisors, FindSupervisors(record.id));
  auto exit = files_.Stat(paths_.ExitFile(record.id));
  if (!exit.ok() && exit.error().code != ErrorCode::kNotFound) return std::move(exit).error();
  const bool has_exited = exit.ok();
  // A container that was still starting is dropped if its conmon has exited.
  if (pid && !has_exited && !supervisors.empty()) {
    const auto number = static_cast<int>(*pid);
    auto init = ProcessHandle::Open(number);
    auto ticks = ProcessStartTicks(number);
    // A process outside the container's cgroup has merely reused the pid.
    ASSIGN_OR_RETURN(const bool is_ours, cgroups_.Contains(record.cgroup_path, number));
    if (init.ok() && ticks.ok() && is_ours) {
      auto released = ReleaseExecFifo(paths_.ExecFifo(record.id), *init);
      if (released.ok() || released.error().code == ErrorCode::kNotFound) {
        record.pid = number;
        record.pid_start_ticks = *ticks;
        record.phase = Phase::kRunning;
        ASSIGN_OR_RETURN(record.started_at, ModifiedTime(directory + "/pid"));
        return Save(record);
      }
    }
  }
  if (has_exited) {
    record.phase = Phase::kRunning;  // adoption reads the exit file next
    ASSIGN_OR_RETURN(record.started_at, ModifiedTime(directory + "/state.json"));
    return Save(record);
  }
  auto removed = files_.Remove(directory + "/pid");
  if (!removed.ok() && removed.error().code != ErrorCode::kNotFound) return removed;
  if (!supervisors.empty()) {
    for (int supervisor : supervisors) ::kill(supervisor, SIGKILL);
    // A process forked meanwhile could still create the container: check again.
    return Unavailable("the interrupted start is still being cleaned up");
  }
  RETURN_IF_ERROR(ReleaseContainer(record));
  record.phase = Phase::kCreated;
  return Save(record);
}

Result<ContainerRecord> BundleBuilder::RecordFromBundle(const std::string& id) const {
  ContainerRecord record;
  record.id = id;
  auto text = files_.ReadFile(paths_.Container(id) + "/config.json");
  if (!text.ok()) {
    if (IsAbsent(text.error())) return record;
    return std::move(text).error();
  }
  const auto spec = ParseJson(*text);
  const std::string group(spec.ok() ? (*spec)->root()["linux"]["cgroupsPath"].str() : "");
  // Everything in this cgroup will be killed, so accept only one that certainly belongs to the
  // container.
  if (BaseName(group) == id) record.cgroup_path = group;
  return record;
}

Result<void> BundleBuilder::ScanContainers(Found& found, bool is_last_try) {
  ASSIGN_OR_RETURN(const auto names, files_.ListDirectory(paths_.Containers()));
  for (const std::string& name : names) {
    auto text = files_.ReadFile(paths_.Container(name) + "/state.json");
    if (!text.ok() && !IsAbsent(text.error()))
      return NotNow("read the record of container " + name, text.error());
    auto record = text.ok() ? ParseContainerRecord(*text) : Result<ContainerRecord>(text.error());
    const bool usable = record.ok() && record->id == name && record->phase != Phase::kCreating &&
                        record->phase != Phase::kRemoving;
    if (usable) {
      if (record->phase == Phase::kStarting) {
        auto settled = SettleStart(*record);
        if (!settled.ok()) return NotNow("adopt container " + name, settled.error());
        found.notes.push_back("container " + name + " was being started: " +
                              (record->phase == Phase::kRunning ? "it runs" : "undone"));
      }
      found.containers.push_back(*std::move(record));
      continue;
    }
    if (!record.ok() || record->id != name) {
      record = RecordFromBundle(name);
      if (!record.ok()) return NotNow("read the bundle of container " + name, record.error());
    }
    RETURN_IF_ERROR(RemoveRest(*record, "was incomplete", found, is_last_try));
  }
  return Ok();
}

Result<void> BundleBuilder::RemoveRest(const ContainerRecord& record, const std::string& why,
                                       Found& found, bool is_last_try) {
  auto removed = DestroyContainer(record);
  if (!removed.ok() && !is_last_try)
    return NotNow("remove the remains of container " + record.id, removed.error());
  found.notes.push_back("container " + record.id + " " + why + ": " +
                        (removed.ok() ? "removed" : removed.error().message));
  return Ok();
}

Result<void> BundleBuilder::ScanSandboxes(Found& found, bool is_last_try) {
  ASSIGN_OR_RETURN(const auto names, files_.ListDirectory(paths_.Sandboxes()));
  std::vector<SandboxRecord> rests;
  for (const std::string& name : names) {
    auto text = files_.ReadFile(paths_.Sandbox(name) + "/state.json");
    if (!text.ok() && !IsAbsent(text.error()))
      return NotNow("read the record of sandbox " + name, text.error());
    auto record = text.ok() ? ParseSandboxRecord(*text) : Result<SandboxRecord>(text.error());
    const bool usable = record.ok() && record->id == name && record->phase != Phase::kCreating &&
                        record->phase != Phase::kRemoving;
    if (!usable) {
      SandboxRecord rest;
      if (record.ok()) rest = *std::move(record);
      rest.id = name;
      rest.network_namespace = paths_.NetworkNamespace(name);
      rests.push_back(std::move(rest));
      continue;
    }
    const auto intact = IsSandboxIntact(*record);
    if (!intact.ok()) return NotNow("inspect sandbox " + name, intact.error());
    if (record->phase == Phase::kRunning && !*intact) {
      record->phase = Phase::kExited;
      if (auto saved = Save(*record); !saved.ok())
        return NotNow("mark sandbox " + name, saved.error());
      found.notes.push_back("sandbox " + name + " did not survive a reboot");
    }
    found.sandboxes.push_back(*std::move(record));
  }
  // A container without a sandbox belongs to no pod that anyone could find: it would run forever.
  std::vector<ContainerRecord> kept;
  for (ContainerRecord& container : found.containers) {
    const bool has_sandbox = std::any_of(
        found.sandboxes.begin(), found.sandboxes.end(),
        [&](const SandboxRecord& sandbox) { return sandbox.id == container.sandbox_id; });
    if (has_sandbox) {
      kept.push_back(std::move(container));
      continue;
    }
    for (SandboxRecord& rest : rests) {
      const bool is_lost = rest.id == container.sandbox_id && rest.cgroup_parent.empty();
      if (is_lost && BaseName(container.cgroup_path) == container.id) {
        rest.cgroup_parent = DirectoryName(container.cgroup_path);
      }
    }
    RETURN_IF_ERROR(RemoveRest(container, "has lost its sandbox", found, is_last_try));
  }
  found.containers = std::move(kept);
  for (SandboxRecord& rest : rests) {
    // If a newer sandbox exists, it owns the pod's cgroup and everything in it.
    const bool is_shared = std::any_of(
        found.sandboxes.begin(), found.sandboxes.end(),
        [&](const SandboxRecord& other) { return other.cgroup_parent == rest.cgroup_parent; });
    if (is_shared) rest.cgroup_parent.clear();
    auto removed = DestroySandbox(rest);
    if (!removed.ok() && !is_last_try)
      return NotNow("remove the remains of sandbox " + rest.id, removed.error());
    found.notes.push_back("sandbox " + rest.id + " was incomplete: " +
                          (removed.ok() ? "removed" : removed.error().message));
  }
  return Ok();
}

Result<BundleBuilder::Found> BundleBuilder::Scan(bool is_last_try) {
  for (const std::string& directory :
       {paths_.Sandboxes(), paths_.Containers(), paths_.Exits(), paths_.runtime_state}) {
    RETURN_IF_ERROR(files_.MakeDirectories(directory, 0700));
  }
  Found found;
  RETURN_IF_ERROR(ScanContainers(found, is_last_try));
  RETURN_IF_ERROR(ScanSandboxes(found, is_last_try));
  auto by_age = [](const auto& a, const auto& b) {
    return std::tie(a.created_at, a.id) < std::tie(b.created_at, b.id);
  };
  std::sort(found.containers.begin(), found.containers.end(), by_age);
  std::sort(found.sandboxes.begin(), found.sandboxes.end(), by_age);
  return found;
}

}  // namespace drakkar::node
