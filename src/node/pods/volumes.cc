#include "node/pods/volumes.h"

#include <algorithm>
#include <set>

#include "api/meta/quantity.h"
#include "api/meta/saturated.h"
#include "base/text/text.h"
#include "node/pods/container_config.h"
#include "node/pods/environment.h"
#include "node/resources/pod_amounts.h"
#include "node/resources/pod_limits.h"

namespace drakkar::node {
namespace {

using api::Value;

constexpr char kSubPaths[] = "volume-subpaths";
constexpr std::size_t kMaxSubPathBytes = 4'096;

std::optional<std::uint32_t> FsGroup(Value pod) {
  const auto group = pod["spec"]["securityContext"]["fsGroup"].optional_integer();
  if (!group) return std::nullopt;
  return static_cast<std::uint32_t>(*group);
}

// The user that all containers run as according to the pod; nothing if they differ or an image
// decides.
std::optional<std::uint32_t> OnlyUser(Value pod) {
  std::optional<std::int64_t> user;
  const Value of_pod = pod["spec"]["securityContext"]["runAsUser"];
  for (const api::FieldName list :
       api::FieldNames{"initContainers", "containers", "ephemeralContainers"}) {
    for (Value container : pod["spec"][list].elements()) {
      auto own = container["securityContext"]["runAsUser"].optional_integer();
      if (!own) own = of_pod.optional_integer();
      if (!own || (user && *user != *own)) return std::nullopt;
      user = own;
    }
  }
  if (!user) return std::nullopt;
  return static_cast<std::uint32_t>(*user);
}

// Relative, and inside the volume.
Result<void> CheckPath(std::string_view path) {
  if (path.empty() || path.starts_with('/')) {
    return InvalidArgument(StrCat("path ", Quote(path), " must be relative and not empty"));
  }
  for (std::string_view part : Split(path, '/')) {
    if (part == "..")
      return InvalidArgument(StrCat("path ", Quote(path), " must not contain '..'"));
  }
  return Ok();
}

// One path component.
Result<void> CheckName(std::string_view name) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string_view::npos) {
    return InvalidArgument(StrCat("name ", Quote(name), " must not be a path"));
  }
  return Ok();
}

// Collects the files of a volume. `budget_bytes` is what the pod has left.
class Files {
 public:
  explicit Files(std::size_t& budget_bytes) : budget_bytes_(budget_bytes) {}

  Result<void> Add(std::string_view path, std::string content, std::uint32_t mode,
                   std::optional<std::uint32_t> user = std::nullopt) {
    RETURN_IF_ERROR(CheckPath(path));
    if (path.starts_with("..")) {
      return InvalidArgument(StrCat("path ", Quote(path), " must not start with '..'"));
    }
    if (content.size() > budget_bytes_) {
      return Error{ErrorCode::kResourceExhausted,
                   StrCat("the content of the pod's volumes exceeds ", kMaxVolumeContentBytes,
                          " bytes; mount fewer ConfigMaps, Secrets and fields")};
    }
    budget_bytes_ -= content.size();
    map_[std::string(path)] = {std::move(content), mode, user};
    return Ok();
  }
  VolumeFiles Take() { return std::move(map_); }

 private:
  std::size_t& budget_bytes_;
  VolumeFiles map_;
};

Result<void> AddItems(Value source, const std::map<std::string, std::string>& data,
                      std::uint32_t default_mode, bool optional, Files& files) {
  if (source["items"].empty()) {
    for (const auto& [key, content] : data) {
      // Our API server rejects such keys; another one may not.
      RETURN_IF_ERROR(files.Add(key, content, default_mode));
    }
    return Ok();
  }
  for (Value item : source["items"].elements()) {
    const std::string key(item["key"].str());
    auto found = data.find(key);
    if (found == data.end()) {
      if (optional) continue;
      return NotFound(StrCat("references non-existent config key: ", key));
    }
    RETURN_IF_ERROR(files.Add(item["path"].str(), found->second,
                              static_cast<std::uint32_t>(item["mode"].integer(default_mode))));
  }
  return Ok();
}

Result<void> AddDownward(const VolumeInput& input, Value source, std::uint32_t default_mode,
                         Files& files) {
  for (Value item : source["items"].elements()) {
    VolumeFile file{.mode = static_cast<std::uint32_t>(item["mode"].integer(default_mode))};
    if (const Value field = item["fieldRef"]; field.has_value()) {
      ASSIGN_OR_RETURN(file.content, ReadFieldRef(input.downward, field["fieldPath"].str()));
    } else {
      const Value resource = item["resourceFieldRef"];
      Value container;
      for (Value each : input.downward.pod["spec"]["containers"].elements()) {
        if (each["name"].str() == resource["containerName"].str()) container = each;
      }
      ASSIGN_OR_RETURN(file.content,
                       ReadResourceFieldRef(input.downward, container, resource["resource"].str(),
                                            resource["divisor"].str()));
    }
    RETURN_IF_ERROR(files.Add(item["path"].str(), std::move(file.content), file.mode));
  }
  return Ok();
}

Result<void> AddConfigMap(const VolumeInput& input, Value source, std::uint32_t mode,
                          Files& files) {
  const bool optional = source["optional"].boolean();
  ASSIGN_OR_RETURN(const auto data,
                   input.sources.ConfigMapData(std::string(source["name"].str()), optional));
  return AddItems(source, data, mode, optional, files);
}

Result<void> AddSecret(const VolumeInput& input, Value source, api::FieldName name_field,
                       std::uint32_t mode, Files& files) {
  const bool optional = source["optional"].boolean();
  ASSIGN_OR_RETURN(const auto data,
                   input.sources.SecretData(std::string(source[name_field].str()), optional));
  return AddItems(source, data, mode, optional, files);
}

Result<void> CollectProjected(const VolumeInput& input, Value projected, Files& files) {
  const auto mode = static_cast<std::uint32_t>(projected["defaultMode"].integer(0644));
  for (Value source : projected["sources"].elements()) {
    if (const Value each = source["configMap"]; each.has_value()) {
      RETURN_IF_ERROR(AddConfigMap(input, each, mode, files));
    } else if (const Value secret = source["secret"]; secret.has_value()) {
      RETURN_IF_ERROR(AddSecret(input, secret, "name", mode, files));
    } else if (const Value downward = source["downwardAPI"]; downward.has_value()) {
      RETURN_IF_ERROR(AddDownward(input, downward, mode, files));
    } else if (const Value account = source["serviceAccountToken"]; account.has_value()) {
      const auto token = input.sources.tokens.find(TokenKey(account));
      if (token == input.sources.tokens.end())
        return NotFound("the service account's token was not fetched");
      // Nobody else in the pod may use it, if it is known who does.
      const auto user = OnlyUser(input.downward.pod);
      const bool is_restricted = user || FsGroup(input.downward.pod);
      RETURN_IF_ERROR(
          files.Add(account["path"].str(), token->second.text, is_restricted ? 0600 : mode, user));
    } else {
      std::string kind;
      for (const api::MemberView member : source.members()) kind = std::string(member.name);
      return Error{ErrorCode::kUnimplemented,
                   StrCat("projected source ", kind, " is not supported by this node")};
    }
  }
  return Ok();
}

// With a group, the volume is readable for it regardless of the modes in its spec.
Result<void> ShowFiles(const VolumeInput& input, const std::string& directory, VolumeFiles files) {
  const auto group = FsGroup(input.downward.pod);
  if (group) {
    for (auto& [path, file] : files) file.mode |= 0440;
  }
  return input.host.ShowFiles(directory, files, group);
}

Result<void> CheckHostPath(const VolumeInput& input, const std::string& path,
                           std::string_view type) {
  FileSystem& files = input.files;
  auto info = files.Stat(path);
  // Without a type, any existing file is accepted, and a missing one becomes a directory.
  const bool makes_directory = type.empty() || type == "DirectoryOrCreate";
  if (!info.ok() && info.error().code == ErrorCode::kNotFound) {
    if (makes_directory) return files.MakeDirectories(path, 0755);
    if (type == "FileOrCreate") return files.WriteFile(path, "", 0644);
  }
  if (type.empty()) return Ok();
  if (!info.ok()) return info.error().Prefixed(StrCat("hostPath type check failed: ", path));
  bool fits = false;
  if (type.starts_with("Directory")) {
    fits = info->type == FileType::kDirectory;
  } else if (type.starts_with("File")) {
    fits = info->type == FileType::kRegular;
  } else if (type == "Socket") {
    fits = info->type == FileType::kSocket;
  } else if (type == "CharDevice" || type == "BlockDevice") {
    const auto node = input.device_probe.Probe(path);
    fits = node.ok() && node->type == (type == "CharDevice" ? DeviceNodeType::kCharacter
                                                            : DeviceNodeType::kBlock);
  } else {
    return InvalidArgument(StrCat("unknown hostPath type ", Quote(type)));
  }
  if (!fits) {
    return FailedPrecondition(StrCat("hostPath type check failed: ", path, " is not a ", type));
  }
  return Ok();
}

// The size of its tmpfs: the smaller of the pod's memory limit and sizeLimit.
std::uint64_t MemoryVolumeBytes(const VolumeInput& input, std::int64_t size_limit_bytes) {
  std::int64_t size = input.downward.allocatable_memory_bytes;
  const std::int64_t pod = PodLimits({}, input.downward.pod).memory_limit_bytes;
  for (const std::int64_t bound : {pod, size_limit_bytes}) {
    if (bound > 0 && (size <= 0 || bound < size)) size = bound;
  }
  return static_cast<std::uint64_t>(std::max<std::int64_t>(size, 0));
}

// The size of the pages for a medium, as mount options have it: "2M". The pod must have asked for
// them, and "HugePages" alone means the only size it asked for.
Result<std::string> PageSizeOf(const VolumeInput& input, std::string_view medium) {
  const std::set<std::string> sizes = PageSizesOf(input.downward.pod);
  std::string size;
  if (medium == "HugePages") {
    if (sizes.size() != 1) {
      return InvalidArgument(
          StrCat("emptyDir medium HugePages needs a pod with huge pages of one "
                 "size; this one asks for ",
                 sizes.size(), " sizes"));
    }
    size = *sizes.begin();
  } else {
    size = std::string(medium.substr(std::string_view("HugePages-").size()));
    if (!sizes.contains(size)) {
      return InvalidArgument(
          StrCat("emptyDir medium ", medium, " needs a pod that asks for ", kHugePages, size));
    }
  }
  std::erase(size, 'i');
  return size;
}

// A new volume is complete before containers can see it. An existing one is left alone, because its
// content belongs to the containers.
Result<PreparedVolume> PrepareEmptyDir(const VolumeInput& input, Value source,
                                       const std::string& path) {
  const std::string_view medium = source["medium"].str();
  const bool huge = medium == "HugePages" || medium.starts_with("HugePages-");
  if (!medium.empty() && medium != "Memory" && !huge) {
    return Error{ErrorCode::kUnimplemented,
                 StrCat("emptyDir medium ", medium, " is not supported by this node")};
  }
  PreparedVolume prepared{.host_path = path};
  std::int64_t limit = 0;
  if (auto quantity = api::Quantity::Parse(source["sizeLimit"].str());
      quantity.ok() && quantity->Sign() > 0) {
    limit = api::SaturatedValue(*quantity);
  }
  const auto group = FsGroup(input.downward.pod);
  if (medium == "Memory") {
    RETURN_IF_ERROR(input.files.MakeDirectories(path, 0777));
    RETURN_IF_ERROR(input.host.MountMemory(path, MemoryVolumeBytes(input, limit), group));
    return prepared;
  }
  if (huge) {
    ASSIGN_OR_RETURN(const std::string size, PageSizeOf(input, medium));
    RETURN_IF_ERROR(input.files.MakeDirectories(path, 0777));
    RETURN_IF_ERROR(input.host.MountHugePages(path, size, group));
    return prepared;
  }
  if (limit > 0) prepared.size_limit_bytes = static_cast<std::uint64_t>(limit);
  if (input.files.Exists(path)) return prepared;
  const std::string fresh = path + ".new";
  RETURN_IF_ERROR(input.files.MakeDirectories(fresh, 0777));
  if (group) RETURN_IF_ERROR(input.host.SetGroup(fresh, *group));
  RETURN_IF_ERROR(input.files.SetMode(fresh, group ? 02777 : 0777));
  RETURN_IF_ERROR(input.files.Rename(fresh, path));
  return prepared;
}

Result<PreparedVolume> PrepareVolume(const VolumeInput& input, Value volume,
                                     std::size_t& budget_bytes) {
  const std::string name(volume["name"].str());
  RETURN_IF_ERROR(CheckName(name));
  PreparedVolume prepared;
  auto directory = [&](const char* kind) {
    return StrCat(input.pod_directory, "/volumes/kubernetes.io~", kind, "/", name);
  };
  if (const Value source = volume["hostPath"]; source.has_value()) {
    prepared.host_path = std::string(source["path"].str());
    RETURN_IF_ERROR(CheckHostPath(input, prepared.host_path, source["type"].str()));
    return prepared;
  }
  if (const Value source = volume["image"]; source.has_value()) {
    // The runtime has its files; they are pulled before a container that mounts them starts.
    prepared.image = std::string(source["reference"].str());
    prepared.always_read_only = true;
    return prepared;
  }
  if (const Value source = volume["emptyDir"]; source.has_value()) {
    return PrepareEmptyDir(input, source, directory("empty-dir"));
  }
  Files files(budget_bytes);
  const char* kind = nullptr;
  if (const Value source = volume["configMap"]; source.has_value()) {
    kind = "configmap";
    RETURN_IF_ERROR(AddConfigMap(
        input, source, static_cast<std::uint32_t>(source["defaultMode"].integer(0644)), files));
  } else if (const Value secret = volume["secret"]; secret.has_value()) {
    kind = "secret";
    RETURN_IF_ERROR(AddSecret(input, secret, "secretName",
                              static_cast<std::uint32_t>(secret["defaultMode"].integer(0644)),
                              files));
  } else if (const Value downward = volume["downwardAPI"]; downward.has_value()) {
    kind = "downward-api";
    RETURN_IF_ERROR(AddDownward(
        input, downward, static_cast<std::uint32_t>(downward["defaultMode"].integer(0644)), files));
  } else if (const Value projected = volume["projected"]; projected.has_value()) {
    kind = "projected";
    RETURN_IF_ERROR(CollectProjected(input, projected, files));
  } else {
    std::string type = "(none)";
    for (const api::MemberView member : volume.members()) {
      if (member.name != "name") type = std::string(member.name);
    }
    return Error{ErrorCode::kUnimplemented,
                 StrCat("volumes of type ", type, " are not supported by this node")};
  }
  prepared.host_path = directory(kind);
  prepared.always_read_only = true;
  RETURN_IF_ERROR(ShowFiles(input, prepared.host_path, files.Take()));
  return prepared;
}

}  // namespace

Result<PreparedVolumes> PrepareVolumes(const VolumeInput& input) {
  PreparedVolumes volumes;
  std::size_t budget_bytes = kMaxVolumeContentBytes;
  for (Value volume : input.downward.pod["spec"]["volumes"].elements()) {
    const std::string name(volume["name"].str());
    auto prepared = PrepareVolume(input, volume, budget_bytes);
    if (!prepared.ok()) {
      return prepared.error().Prefixed(StrCat("MountVolume.SetUp failed for volume ", Quote(name)));
    }
    volumes[name] = std::move(*prepared);
  }
  return volumes;
}

Result<std::vector<Mount>> MakeMounts(const MountInput& input) {
  std::vector<Mount> mounts;
  const std::string_view container = input.container["name"].str();
  for (Value use : input.container["volumeMounts"].elements()) {
    const std::string name(use["name"].str());
    auto found = input.volumes.find(name);
    if (found == input.volumes.end())
      return NotFound(StrCat("volume ", Quote(name), " is not in the pod"));
    const PreparedVolume& volume = found->second;
    Mount mount;
    mount.container_path = std::string(use["mountPath"].str());
    mount.host_path = volume.host_path;
    mount.readonly = use["readOnly"].boolean() || volume.always_read_only;
    // IfPossible is content with a mount whose submounts stay writable.
    if (use["recursiveReadOnly"].str() == "Enabled") {
      return FailedPrecondition(StrCat("volume ", Quote(name),
                                       ": this node cannot mount with recursiveReadOnly: Enabled"));
    }
    if (use["mountPropagation"].str() == "HostToContainer") {
      mount.propagation = MountPropagation::kHostToContainer;
    } else if (use["mountPropagation"].str() == "Bidirectional") {
      mount.propagation = MountPropagation::kBidirectional;
    }
    std::string sub_path(use["subPath"].str());
    if (!use["subPathExpr"].str().empty()) {
      auto expanded = ExpandPath(use["subPathExpr"].str(), input.environment, kMaxSubPathBytes);
      if (!expanded.ok()) {
        return expanded.error().Prefixed(StrCat("subPathExpr of volume ", Quote(name)));
      }
      sub_path = *std::move(expanded);
    }
    if (!volume.image.empty()) {
      if (auto valid = sub_path.empty() ? Ok() : CheckPath(sub_path); !valid.ok()) {
        return valid.error().Prefixed(
            StrCat("subPath ", Quote(sub_path), " of volume ", Quote(name)));
      }
      mount.image = volume.image;
      mount.host_path = sub_path;
      mounts.push_back(std::move(mount));
      continue;
    }
    if (!sub_path.empty()) {
      const auto refused = [&](const Error& error) {
        return error.Prefixed(StrCat("subPath ", Quote(sub_path), " of volume ", Quote(name)));
      };
      if (auto valid = CheckPath(sub_path); !valid.ok()) return refused(valid.error());
      RETURN_IF_ERROR(CheckName(container));
      auto bound = input.host.BindInside(volume.host_path, sub_path,
                                         StrCat(input.pod_directory, "/", kSubPaths, "/", name, "/",
                                                container, "/", mounts.size()));
      if (!bound.ok()) return refused(bound.error());
      mount.host_path = *std::move(bound);
    }
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

Result<void> RemoveVolumes(FileSystem& files, VolumeHost& host, const std::string& pod_directory) {
  RETURN_IF_ERROR(host.UnmountBelow(pod_directory));
  RETURN_IF_ERROR(files.RemoveTree(JoinPath(pod_directory, kSubPaths)));
  return files.RemoveTree(JoinPath(pod_directory, "volumes"));
}

}  // namespace drakkar::node
