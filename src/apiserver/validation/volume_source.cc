#include "apiserver/validation/volume_source.h"

#include <algorithm>
#include <span>

#include "api/meta/quantity.h"
#include "apiserver/validation/cause.h"
#include "apiserver/validation/name_rules.h"
#include "apiserver/validation/persistent_volume.h"
#include "apiserver/validation/projected_volume.h"
#include "apiserver/validation/value_rules.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::FieldErrors;
using api::FieldPath;
using api::Value;

// The object that a source belongs to.
struct Owner {
  FieldPath path;           // of the object whose member the source is
  std::string_view name;    // of the volume
  std::string_view pod;     // its pod's name, if known
  bool persistent = false;  // it is a PersistentVolume
};

using CheckSource = void (*)(FieldErrors& errors, const FieldPath& path, Value source,
                             const Owner& owner);

// One kind of source. Kubernetes spells some paths in errors differently from the field.
struct Source {
  api::FieldName field;
  std::string_view shown;      // in errors about the source
  std::string_view forbidden;  // in the error about a second source
  CheckSource check;
};

void RequireField(FieldErrors& errors, const FieldPath& path, Value source, api::FieldName field) {
  RequireText(errors, path.Child(field.view()), source[field].str());
}

void RequireItems(FieldErrors& errors, const FieldPath& path, Value source, api::FieldName field) {
  if (source[field].empty()) errors.push_back(Required(path.Child(field.view())));
}

// The reference to a secret, if there is one. Those of PersistentVolumes name a namespace too.
void CheckSecretName(FieldErrors& errors, const FieldPath& path, Value source, const Owner& owner) {
  const Value secret = source["secretRef"];
  if (!secret.has_value()) return;
  RequireField(errors, path.Child("secretRef"), secret, "name");
  if (owner.persistent) RequireField(errors, path.Child("secretRef"), secret, "namespace");
}

void CheckEmptyDir(FieldErrors& errors, const FieldPath& path, Value source, const Owner&) {
  constexpr std::int64_t kMaxMode = 01777;
  if (source["sizeLimit"].has_value()) {
    const auto limit = api::Quantity::Parse(source["sizeLimit"].str());
    if (!limit.ok() || limit->Sign() < 0) {
      errors.push_back(
          Forbidden(path.Child("sizeLimit"), "SizeLimit field must be a valid resource quantity"));
    }
  }
  const Value mode = source["mode"];
  if (mode.has_value() && (mode.integer() < 0 || mode.integer() > kMaxMode)) {
    errors.push_back(Invalid(path.Child("mode"), mode.integer(),
                             "must be a number between 0 and 01777 (octal), both inclusive"));
  }
}

void CheckHostPath(FieldErrors& errors, const FieldPath& path, Value source, const Owner&) {
  const std::string_view file = source["path"].str();
  if (file.empty()) {
    errors.push_back(Required(path.Child("path")));
    return;
  }
  CheckNoBacksteps(errors, path.Child("path"), file);
  CheckOneOf(errors, path.Child("type"), source["type"].str(),
             {"", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice",
              "BlockDevice"});
}

void CheckGitRepo(FieldErrors& errors, const FieldPath& path, Value source, const Owner&) {
  RequireField(errors, path, source, "repository");
  CheckRelativePath(errors, path.Child("directory"), source["directory"].str());
}

void CheckPartition(FieldErrors& errors, const FieldPath& path, Value source) {
  constexpr std::int64_t kMaxPartition = 255;
  const std::int64_t partition = source["partition"].integer();
  // 0 is valid as well, but the message does not say so.
  if (partition != 0) CheckInRange(errors, path.Child("partition"), partition, 1, kMaxPartition);
}

void CheckGceDisk(FieldErrors& errors, const FieldPath& path, Value source, const Owner&) {
  RequireField(errors, path, source, "pdName");
  CheckPartition(errors, path, source);
}

void CheckAwsDisk(FieldErrors& errors, const FieldPath& path, Value source, const Owner&) {
  RequireField(errors, path, source, "volumeID");
  CheckPartition(errors, path, source);
}

void CheckSecret(FieldErrors& errors, const FieldPath& path, Value source, const Owner&) {
  RequireField(errors, path, source, "secretName");
  CheckFileOwner(errors, path, source);
  CheckKeysToPaths(errors, path.Child("items"), source["items"]);
}

void CheckConfigMap(FieldErrors& errors, const FieldPath& path, Value source, const Owner&) {
  RequireField(errors, path, source, "name");
  CheckFileOwner(errors, path, source);
  CheckKeysToPaths(errors, path.Child("items"), source["items"]);
}

void CheckDownward(FieldErrors& errors, const FieldPath& path, Value source, const Owner&) {
  CheckFileOwner(errors, path, source);
  for (const Value file : source["items"].elements()) CheckDownwardFile(errors, path, file);
}

void CheckProjected(FieldErrors& errors, const FieldPath& path, Value source, const Owner&) {
  CheckProjectedVolume(errors, path, source);
}

void CheckNfs(FieldErrors& errors, const FieldPath& path, Value source, const Owner&) {
  RequireField(errors, path, source, "server");
  RequireField(errors, path, source, "path");
  const std::string_view file = source["path"].str();
  if (!file.starts_with('/')) {
    errors.push_back(Invalid(path.Child("path"), file, "must be an absolute path"));
  }
}

// "iqn.2016-04.test.com:disk", "eui." and 16 hexadecimal digits, "naa." and 32.
bool IsQualifiedScsiName(std::string_view name) {
  const auto is_alphanumeric = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || IsDigit(c);
  };
  const std::size_t digits = name.starts_with("eui") ? 16 : 32;
  if (!name.starts_with("iqn")) {
    return name.size() == digits + 4 && std::ranges::all_of(name.substr(4), is_alphanumeric);
  }
  constexpr std::string_view kDate = "0000-00.";
  if (!name.starts_with("iqn.") || name.size() <= 4 + kDate.size()) return false;
  std::string_view rest = name.substr(4);
  for (std::size_t i = 0; i < kDate.size(); ++i) {
    if (kDate[i] == '0' ? !IsDigit(rest[i]) : rest[i] != kDate[i]) return false;
  }
  rest.remove_prefix(kDate.size());
  const std::size_t colon = rest.find(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const auto is_authority = [&](char c) { return is_alphanumeric(c) || c == '-' || c == '.'; };
  if (!std::ranges::all_of(rest.substr(0, colon), is_authority)) return false;
  const std::string_view unique = rest.substr(colon + 1);
  const auto is_unique = [](char c) {
    return std::string_view(",;*&$| \t\n\r\f").find(c) == std::string_view::npos;
  };
  return !unique.empty() && std::ranges::all_of(unique, is_unique);
}

void CheckScsiName(FieldErrors& errors, const FieldPath& path, std::string_view name,
                   bool persistent) {
  const bool known = name.starts_with("iqn") || name.starts_with("eui") || name.starts_with("naa");
  if (known && IsQualifiedScsiName(name)) return;
  errors.push_back(Invalid(path, name,
                           known || persistent
                               ? "must be valid format"
                               : "must be valid format starting with iqn, eui, or naa"));
}

void CheckIscsi(FieldErrors& errors, const FieldPath& path, Value source, const Owner& owner) {
  constexpr std::size_t kMaxNameBytes = 64;
  constexpr std::int64_t kMaxLun = 255;
  constexpr std::string_view kTooLong =
      "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if "
      "iscsi.initiatorName is specified.";
  const std::string_view portal = source["targetPortal"].str();
  const Value initiator = source["initiatorName"];
  RequireText(errors, path.Child("targetPortal"), portal);
  if (initiator.has_value() && owner.name.size() + 1 + portal.size() > kMaxNameBytes) {
    errors.push_back(owner.persistent ? Invalid(path.Child("targetportal"), portal, kTooLong)
                                      : Invalid(owner.path.Child("name"), owner.name, kTooLong));
  }
  if (const std::string_view name = source["iqn"].str(); name.empty()) {
    errors.push_back(Required(path.Child("iqn")));
  } else {
    CheckScsiName(errors, path.Child("iqn"), name, owner.persistent);
  }
  CheckInRange(errors, path.Child("lun"), source["lun"].integer(), 0, kMaxLun);
  const bool authenticates =
      source["chapAuthDiscovery"].boolean() || source["chapAuthSession"].boolean();
  if (authenticates && !source["secretRef"].has_value()) {
    errors.push_back(Required(path.Child("secretRef")));
  }
  if (owner.persistent && source["secretRef"].has_value()) {
    RequireField(errors, path.Child("secretRef"), source["secretRef"], "name");
  }
  if (initiator.has_value()) {
    CheckScsiName(errors, path.Child("initiatorname"), initiator.str(), owner.persistent);
  }
}

void CheckGlusterfs(FieldErrors& errors, const FieldPath& path, Value source, const Owner& owner) {
  RequireField(errors, path, source, "endpoints");
  RequireField(errors, path, source, "path");
  const Value home = source["endpointsNamespace"];
  if (!owner.persistent || !home.has_value()) return;
  if (home.str().empty()) {
    errors.push_back(Invalid(path.Child("endpointsNamespace"), "",
                             "if the endpointnamespace is set, it must be a valid namespace name"));
  } else {
    CheckDnsLabel(errors, path.Child("endpointsNamespace"), home.str());
  }
}

void CheckFlocker(FieldErrors& errors, const FieldPath& path, Value source, const Owner&) {
  const std::string_view name = source["datasetName"].str();
  const std::string_view uuid = source["datasetUUID"].str();
  if (name.empty() && uuid.empty()) {
    errors.push_back(Required(path, "one of datasetName and datasetUUID is required"));
  }
  if (!name.empty() && !uuid.empty()) {
    errors.push_back(Invalid(path, "resource",
                             "datasetName and datasetUUID can not be specified simultaneously"));
  }
  if (name.find('/') != std::string_view::npos) {
    errors.push_back(Invalid(path.Child("datasetName"), name, "must not contain '/'"));
  }
}

void CheckClaimSource(FieldErrors& errors, const FieldPath& path, Value source, const Owner&) {
  RequireField(errors, path, source, "claimName");
}

void CheckRbd(FieldErrors& errors, const FieldPath& path, Value source, const Owner&) {
  RequireItems(errors, path, source, "monitors");
  RequireField(errors, path, source, "image");
}

void CheckCinder(FieldErrors& errors, const FieldPath& path, Value source, const Owner& owner) {
  RequireField(errors, path, source, "volumeID");
  CheckSecretName(errors, path, source, owner);
}

void CheckCephFs(FieldErrors& errors, const FieldPath& path, Value source, const Owner&) {
  RequireItems(errors, path, source, "monitors");
}

// "host:1" or "[::1]:1".
bool IsHostAndPort(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view host = text.substr(0, colon);
  if (host.starts_with('[')) return host.ends_with(']') && host.find(']') == host.size() - 1;
  return host.find_first_of(":[]") == std::string_view::npos;
}

void CheckQuobyte(FieldErrors& errors, const FieldPath& path, Value source, const Owner&) {
  constexpr std::size_t kMaxTenantBytes = 64;
  constexpr std::string_view kPairs =
      "must be a host:port pair or multiple pairs separated by commas";
  const std::string_view registry = source["registry"].str();
  if (registry.empty()) {
    errors.push_back(Required(path.Child("registry"), kPairs));
  } else if (source["tenant"].str().size() > kMaxTenantBytes) {
    errors.push_back(Required(path.Child("tenant"),
                              "must be a UUID and may not exceed a length of 64 characters"));
  } else {
    for (const std::string_view pair : Split(registry, ',')) {
      if (!IsHostAndPort(pair)) errors.push_back(Invalid(path.Child("registry"), registry, kPairs));
    }
  }
  RequireField(errors, path, source, "volume");
}

void CheckFibreChannel(FieldErrors& errors, const FieldPath& path, Value source, const Owner&) {
  constexpr std::int64_t kMaxLun = 255;
  const Value names = source["targetWWNs"];
  if (names.empty() && source["wwids"].empty()) {
    errors.push_back(Required(path.Child("targetWWNs"),
                              "must specify either targetWWNs or wwids, but not both"));
  }
  if (names.empty()) return;
  if (!source["wwids"].empty()) {
    errors.push_back(Invalid(path.Child("targetWWNs"), names,
                             "targetWWNs and wwids can not be specified simultaneously"));
  }
  if (!source["lun"].has_value()) {
    errors.push_back(Required(path.Child("lun"), "lun is required if targetWWNs is specified"));
  } else {
    CheckInRange(errors, path.Child("lun"), source["lun"].integer(), 0, kMaxLun);
  }
}

void CheckFlexVolume(FieldErrors& errors, const FieldPath& path, Value source, const Owner&) {
  RequireField(errors, path, source, "driver");
  for (const auto& [key, name, value] : source["options"].members()) {
    const std::string domain = "." + ToLower(name.substr(0, name.find('/')));
    if (!domain.ends_with(".kubernetes.io") && !domain.ends_with(".k8s.io")) continue;
    errors.push_back(Invalid(path.Child("options").Key(name), name,
                             "kubernetes.io and k8s.io namespaces are reserved"));
  }
}

void CheckAzureFile(FieldErrors& errors, const FieldPath& path, Value source, const Owner& owner) {
  RequireField(errors, path, source, "secretName");
  RequireField(errors, path, source, "shareName");
  if (owner.persistent && source["secretNamespace"].has_value()) {
    RequireField(errors, path, source, "secretNamespace");
  }
}

void CheckAzureDisk(FieldErrors& errors, const FieldPath& path, Value source, const Owner&) {
  RequireField(errors, path, source, "diskName");
  RequireField(errors, path, source, "diskURI");
  const Value mode = source["cachingMode"];
  const Value kind = source["kind"];
  if (mode.has_value()) {
    CheckOneOf(errors, path.Child("cachingMode"), mode.str(), {"None", "ReadOnly", "ReadWrite"});
  }
  if (!kind.has_value()) return;
  CheckOneOf(errors, path.Child("kind"), kind.str(), {"Dedicated", "Managed", "Shared"});
  const std::string_view uri = source["diskURI"].str();
  if (kind.str() == "Managed") {
    if (uri.starts_with("/subscriptions/")) return;
    errors.push_back(NotSupported(path.Child("diskURI"), uri,
                                  {"/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/"
                                   "microsoft.compute/disks/{disk-id}"}));
  } else if (!uri.starts_with("https://")) {
    errors.push_back(NotSupported(
        path.Child("diskURI"), uri,
        {"https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"}));
  }
}

void CheckVsphere(FieldErrors& errors, const FieldPath& path, Value source, const Owner&) {
  RequireField(errors, path, source, "volumePath");
}

void CheckPhotonDisk(FieldErrors& errors, const FieldPath& path, Value source, const Owner&) {
  RequireField(errors, path, source, "pdID");
}

void CheckPortworx(FieldErrors& errors, const FieldPath& path, Value source, const Owner&) {
  RequireField(errors, path, source, "volumeID");
}

void CheckScaleIo(FieldErrors& errors, const FieldPath& path, Value source, const Owner&) {
  RequireField(errors, path, source, "gateway");
  RequireField(errors, path, source, "system");
  RequireField(errors, path, source, "volumeName");
}

void CheckLocal(FieldErrors& errors, const FieldPath& path, Value source, const Owner&) {
  RequireField(errors, path, source, "path");
  CheckNoBacksteps(errors, path.Child("path"), source["path"].str());
}

void CheckStorageOs(FieldErrors& errors, const FieldPath& path, Value source, const Owner& owner) {
  RequireDnsLabel(errors, path.Child("volumeName"), source["volumeName"].str());
  const std::string_view home = source["volumeNamespace"].str();
  if (!home.empty()) CheckDnsLabel(errors, path.Child("volumeNamespace"), home);
  CheckSecretName(errors, path, source, owner);
}

void CheckCsi(FieldErrors& errors, const FieldPath& path, Value source, const Owner& owner) {
  CheckCsiDriverName(errors, path.Child("driver"), source["driver"].str());
  if (!owner.persistent) {
    const Value secret = source["nodePublishSecretRef"];
    if (!secret.has_value()) return;
    const std::string_view name = secret["name"].str();
    RequireText(errors, path.Child("nodePublishSecretRef").Child("name"), name);
    if (!name.empty()) CheckDnsSubdomain(errors, path.Child("name"), name);
    return;
  }
  RequireField(errors, path, source, "volumeHandle");
  for (const api::FieldName field :
       api::FieldNames{"controllerPublishSecretRef", "controllerExpandSecretRef",
                       "nodePublishSecretRef", "nodeExpandSecretRef"}) {
    const Value secret = source[field];
    if (!secret.has_value()) continue;
    const FieldPath at = path.Child(field.view());
    RequireDnsSubdomain(errors, at.Child("name"), secret["name"].str());
    RequireDnsLabel(errors, at.Child("namespace"), secret["namespace"].str());
  }
}

void CheckEphemeral(FieldErrors& errors, const FieldPath& path, Value source, const Owner& owner) {
  const Value claim = source["volumeClaimTemplate"];
  const FieldPath at = path.Child("volumeClaimTemplate");
  if (!claim.has_value()) {
    errors.push_back(Required(at));
  } else {
    CheckClaimTemplate(errors, at, claim);
  }
  if (owner.pod.empty() || owner.name.empty()) return;
  const std::string name = StrCat(owner.pod, "-", owner.name);
  for (const std::string& problem : DnsSubdomainProblems(name)) {
    errors.push_back(Invalid(owner.path.Child("name"), owner.name,
                             StrCat("PVC name ", Quote(name), ": ", problem)));
  }
}

void CheckImage(FieldErrors& errors, const FieldPath& path, Value source, const Owner&) {
  RequireField(errors, path, source, "reference");
  RequireOneOf(errors, path.Child("pullPolicy"), source["pullPolicy"].str(),
               {"Always", "IfNotPresent", "Never"});
}

constexpr Source kPodSources[] = {
    {"emptyDir", "emptyDir", "emptyDir", CheckEmptyDir},
    {"hostPath", "hostPath", "hostPath", CheckHostPath},
    {"gitRepo", "gitRepo", "gitRepo", CheckGitRepo},
    {"gcePersistentDisk", "persistentDisk", "gcePersistentDisk", CheckGceDisk},
    {"awsElasticBlockStore", "awsElasticBlockStore", "awsElasticBlockStore", CheckAwsDisk},
    {"secret", "secret", "secret", CheckSecret},
    {"nfs", "nfs", "nfs", CheckNfs},
    {"iscsi", "iscsi", "iscsi", CheckIscsi},
    {"glusterfs", "glusterfs", "glusterfs", CheckGlusterfs},
    {"flocker", "flocker", "flocker", CheckFlocker},
    {"persistentVolumeClaim", "persistentVolumeClaim", "persistentVolumeClaim", CheckClaimSource},
    {"rbd", "rbd", "rbd", CheckRbd},
    {"cinder", "cinder", "cinder", CheckCinder},
    {"cephfs", "cephfs", "cephFS", CheckCephFs},
    {"quobyte", "quobyte", "quobyte", CheckQuobyte},
    {"downwardAPI", "downwardAPI", "downwarAPI", CheckDownward},
    {"fc", "fc", "fc", CheckFibreChannel},
    {"flexVolume", "flexVolume", "flexVolume", CheckFlexVolume},
    {"configMap", "configMap", "configMap", CheckConfigMap},
    {"azureFile", "azureFile", "azureFile", CheckAzureFile},
    {"vsphereVolume", "vsphereVolume", "vsphereVolume", CheckVsphere},
    {"photonPersistentDisk", "photonPersistentDisk", "photonPersistentDisk", CheckPhotonDisk},
    {"portworxVolume", "portworxVolume", "portworxVolume", CheckPortworx},
    {"azureDisk", "azureDisk", "azureDisk", CheckAzureDisk},
    {"storageos", "storageos", "storageos", CheckStorageOs},
    {"projected", "projected", "projected", CheckProjected},
    {"scaleIO", "scaleIO", "scaleIO", CheckScaleIo},
    {"csi", "csi", "csi", CheckCsi},
    {"ephemeral", "ephemeral", "ephemeral", CheckEphemeral},
    {"image", "image", "image", CheckImage},
};

constexpr Source kPersistentSources[] = {
    {"hostPath", "hostPath", "hostPath", CheckHostPath},
    {"gcePersistentDisk", "persistentDisk", "gcePersistentDisk", CheckGceDisk},
    {"awsElasticBlockStore", "awsElasticBlockStore", "awsElasticBlockStore", CheckAwsDisk},
    {"glusterfs", "glusterfs", "glusterfs", CheckGlusterfs},
    {"flocker", "flocker", "flocker", CheckFlocker},
    {"nfs", "nfs", "nfs", CheckNfs},
    {"rbd", "rbd", "rbd", CheckRbd},
    {"quobyte", "quobyte", "quobyte", CheckQuobyte},
    {"cephfs", "cephfs", "cephFS", CheckCephFs},
    {"iscsi", "iscsi", "iscsi", CheckIscsi},
    {"cinder", "cinder", "cinder", CheckCinder},
    {"fc", "fc", "fc", CheckFibreChannel},
    {"flexVolume", "flexVolume", "flexVolume", CheckFlexVolume},
    {"azureFile", "azureFile", "azureFile", CheckAzureFile},
    {"vsphereVolume", "vsphereVolume", "vsphereVolume", CheckVsphere},
    {"photonPersistentDisk", "photonPersistentDisk", "photonPersistentDisk", CheckPhotonDisk},
    {"portworxVolume", "portworxVolume", "portworxVolume", CheckPortworx},
    {"azureDisk", "azureDisk", "azureDisk", CheckAzureDisk},
    {"scaleIO", "scaleIO", "scaleIO", CheckScaleIo},
    {"local", "local", "local", CheckLocal},
    {"storageos", "storageos", "storageos", CheckStorageOs},
    {"csi", "csi", "csi", CheckCsi},
};

void CheckSources(FieldErrors& errors, Value object, const Owner& owner,
                  std::span<const Source> sources) {
  bool any = false;
  for (const Source& each : sources) {
    const Value source = object[each.field];
    if (!source.has_value()) continue;
    if (any) {
      errors.push_back(
          Forbidden(owner.path.Child(each.forbidden), "may not specify more than 1 volume type"));
    } else {
      each.check(errors, owner.path.Child(each.shown), source, owner);
    }
    any = true;
  }
  if (!any) errors.push_back(Required(owner.path, "must specify a volume type"));
}

}  // namespace

void CheckVolumeSource(FieldErrors& errors, const FieldPath& path, Value volume,
                       std::string_view pod) {
  CheckSources(errors, volume, {.path = path, .name = volume["name"].str(), .pod = pod},
               kPodSources);
}

void CheckPersistentSource(FieldErrors& errors, const FieldPath& path, Value spec,
                           std::string_view name) {
  CheckSources(errors, spec, {.path = path, .name = name, .pod = {}, .persistent = true},
               kPersistentSources);
}

}  // namespace drakkar::apiserver
