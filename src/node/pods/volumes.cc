#include "node/pods/volumes.h"

#include "api/meta/quantity.h"
#include "base/text/text.h"
#include "node/pods/environment.h"

namespace drakkar::node {
namespace {

using api::Value;

struct File {
  std::string content;
  std::uint32_t mode = 0644;
};
using Files = std::map<std::string, File>;  // by path within the volume

// Relative, and never out of the volume.
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

Result<void> AddItems(Value source, const std::map<std::string, std::string>& data,
                      std::uint32_t default_mode, bool optional, Files& files) {
  if (source["items"].empty()) {
    for (const auto& [key, content] : data) {
      // The API server refuses such keys; one that is not ours may not.
      RETURN_IF_ERROR(CheckPath(key));
      files[key] = {content, default_mode};
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
    RETURN_IF_ERROR(CheckPath(item["path"].str()));
    files[std::string(item["path"].str())] = {
        found->second, static_cast<std::uint32_t>(item["mode"].integer(default_mode))};
  }
  return Ok();
}

Result<void> AddDownward(const VolumeInput& input, Value source, std::uint32_t default_mode,
                         Files& files) {
  for (Value item : source["items"].elements()) {
    RETURN_IF_ERROR(CheckPath(item["path"].str()));
    File file{.mode = static_cast<std::uint32_t>(item["mode"].integer(default_mode))};
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
    files[std::string(item["path"].str())] = std::move(file);
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

Result<void> AddSecret(const VolumeInput& input, Value source, std::string_view name_field,
                       std::uint32_t mode, Files& files) {
  const bool optional = source["optional"].boolean();
  ASSIGN_OR_RETURN(const auto data,
                   input.sources.SecretData(std::string(source[name_field].str()), optional));
  return AddItems(source, data, mode, optional, files);
}

Result<Files> CollectProjected(const VolumeInput& input, Value projected) {
  Files files;
  const auto mode = static_cast<std::uint32_t>(projected["defaultMode"].integer(0644));
  for (Value source : projected["sources"].elements()) {
    if (const Value each = source["configMap"]; each.has_value()) {
      RETURN_IF_ERROR(AddConfigMap(input, each, mode, files));
    } else if (const Value secret = source["secret"]; secret.has_value()) {
      RETURN_IF_ERROR(AddSecret(input, secret, "name", mode, files));
    } else if (const Value downward = source["downwardAPI"]; downward.has_value()) {
      RETURN_IF_ERROR(AddDownward(input, downward, mode, files));
    } else if (const Value account = source["serviceAccountToken"]; account.has_value()) {
      RETURN_IF_ERROR(CheckPath(account["path"].str()));
      const auto token = input.sources.tokens.find(TokenKey(account));
      if (token == input.sources.tokens.end())
        return NotFound("the service account's token was not fetched");
      files[std::string(account["path"].str())] = {token->second.text, mode};
    } else {
      std::string kind;
      for (const api::MemberView member : source.members()) kind = std::string(member.name);
      return Error{ErrorCode::kUnimplemented,
                   StrCat("projected source ", kind, " is not supported by this node")};
    }
  }
  return files;
}

// Takes away what is there and should not be; `prefix` is the path of `directory` in the volume.
Result<void> RemoveOthers(FileSystem& files, const std::string& directory,
                          const std::string& prefix, const Files& content) {
  ASSIGN_OR_RETURN(const auto names, files.ListDirectory(directory));
  for (const std::string& name : names) {
    const std::string path = prefix + name;
    if (content.contains(path)) continue;
    const std::string full = JoinPath(directory, name);
    // The first name that is not less than "<path>/" is below it if any is.
    const auto below = content.lower_bound(path + "/");
    if (below != content.end() && below->first.starts_with(path + "/")) {
      RETURN_IF_ERROR(RemoveOthers(files, full, path + "/", content));
    } else {
      RETURN_IF_ERROR(files.RemoveTree(full));
    }
  }
  return Ok();
}

Result<void> WriteFiles(FileSystem& files, const std::string& directory, const Files& content) {
  RETURN_IF_ERROR(files.MakeDirectories(directory, 0755));
  RETURN_IF_ERROR(RemoveOthers(files, directory, "", content));
  for (const auto& [path, file] : content) {
    const std::string full = JoinPath(directory, path);
    RETURN_IF_ERROR(files.MakeDirectories(DirectoryName(full), 0755));
    if (auto old = files.ReadFile(full); old.ok() && *old == file.content) continue;
    RETURN_IF_ERROR(files.WriteFileAtomically(full, file.content, file.mode, /*sync=*/false));
    RETURN_IF_ERROR(files.SetMode(full, file.mode));
  }
  return Ok();
}

Result<void> CheckHostPath(FileSystem& files, const std::string& path, std::string_view type) {
  if (type.empty()) return Ok();
  auto info = files.Stat(path);
  if (!info.ok() && type == "DirectoryOrCreate") return files.MakeDirectories(path, 0755);
  if (!info.ok() && type == "FileOrCreate") return files.WriteFile(path, "", 0644);
  if (!info.ok()) return info.error().Prefixed(StrCat("hostPath type check failed: ", path));
  FileType wanted = FileType::kOther;  // CharDevice and BlockDevice
  if (type.starts_with("Directory")) wanted = FileType::kDirectory;
  if (type.starts_with("File")) wanted = FileType::kRegular;
  if (type == "Socket") wanted = FileType::kSocket;
  if (info->type != wanted) {
    return FailedPrecondition(StrCat("hostPath type check failed: ", path, " is not a ", type));
  }
  return Ok();
}

Result<PreparedVolume> PrepareVolume(const VolumeInput& input, Value volume) {
  const std::string name(volume["name"].str());
  RETURN_IF_ERROR(CheckPath(name));
  PreparedVolume prepared;
  auto directory = [&](const char* kind) {
    return StrCat(input.pod_directory, "/volumes/kubernetes.io~", kind, "/", name);
  };
  if (const Value source = volume["hostPath"]; source.has_value()) {
    prepared.host_path = std::string(source["path"].str());
    RETURN_IF_ERROR(CheckHostPath(input.files, prepared.host_path, source["type"].str()));
    return prepared;
  }
  if (const Value source = volume["emptyDir"]; source.has_value()) {
    const std::string_view medium = source["medium"].str();
    if (!medium.empty() && medium != "Memory") {
      return Error{ErrorCode::kUnimplemented,
                   StrCat("emptyDir medium ", medium, " is not supported by this node")};
    }
    prepared.host_path = directory("empty-dir");
    prepared.memory = medium == "Memory";
    if (auto limit = api::Quantity::Parse(source["sizeLimit"].str());
        limit.ok() && limit->Sign() > 0) {
      prepared.size_limit = std::to_string(limit->Value());
    }
    RETURN_IF_ERROR(input.files.MakeDirectories(prepared.host_path, 0777));
    RETURN_IF_ERROR(input.files.SetMode(prepared.host_path, 0777));
    return prepared;
  }
  Files files;
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
    ASSIGN_OR_RETURN(files, CollectProjected(input, projected));
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
  RETURN_IF_ERROR(WriteFiles(input.files, prepared.host_path, files));
  return prepared;
}

}  // namespace

Result<PreparedVolumes> PrepareVolumes(const VolumeInput& input) {
  PreparedVolumes volumes;
  for (Value volume : input.downward.pod["spec"]["volumes"].elements()) {
    const std::string name(volume["name"].str());
    auto prepared = PrepareVolume(input, volume);
    if (!prepared.ok()) {
      return prepared.error().Prefixed(StrCat("MountVolume.SetUp failed for volume ", Quote(name)));
    }
    volumes[name] = std::move(*prepared);
  }
  return volumes;
}

Result<std::vector<Mount>> MakeMounts(FileSystem& files, const PreparedVolumes& volumes,
                                      Value container,
                                      const std::map<std::string, std::string>& environment) {
  std::vector<Mount> mounts;
  for (Value use : container["volumeMounts"].elements()) {
    const std::string name(use["name"].str());
    auto found = volumes.find(name);
    if (found == volumes.end())
      return NotFound(StrCat("volume ", Quote(name), " is not in the pod"));
    const PreparedVolume& volume = found->second;
    Mount mount;
    mount.container_path = std::string(use["mountPath"].str());
    mount.host_path = volume.host_path;
    mount.readonly = use["readOnly"].boolean() || volume.always_read_only;
    if (use["mountPropagation"].str() == "HostToContainer") {
      mount.propagation = MountPropagation::kHostToContainer;
    } else if (use["mountPropagation"].str() == "Bidirectional") {
      mount.propagation = MountPropagation::kBidirectional;
    }
    std::string sub_path(use["subPath"].str());
    if (!use["subPathExpr"].str().empty()) {
      sub_path = ExpandReferences(use["subPathExpr"].str(), environment);
    }
    if (!sub_path.empty()) {
      if (auto valid = CheckPath(sub_path); !valid.ok()) {
        return valid.error().Prefixed(StrCat("subPath of volume ", Quote(name)));
      }
      if (volume.memory) {
        return Error{ErrorCode::kUnimplemented, StrCat("subPath of the memory volume ", Quote(name),
                                                       " is not supported by this node")};
      }
      mount.host_path = JoinPath(volume.host_path, sub_path);
      if (!files.Exists(mount.host_path)) {
        RETURN_IF_ERROR(files.MakeDirectories(mount.host_path, 0755));
      }
    }
    if (volume.memory) {
      mount.type = "tmpfs";
      mount.host_path = "tmpfs";
      mount.options = {"nosuid", "nodev", "mode=1777"};
      if (!volume.size_limit.empty()) mount.options.push_back("size=" + volume.size_limit);
    }
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

}  // namespace drakkar::node
