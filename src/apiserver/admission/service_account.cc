#include "apiserver/admission/service_account.h"

#include "api/meta/annotations.h"
#include "api/scheme/scheme.h"
#include "apiserver/admission/pod_defaults.h"
#include "apiserver/auth/pod_references.h"
#include "base/hash/crc32.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

constexpr std::string_view kDefaultAccount = "default";
constexpr std::string_view kMountPath = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr std::string_view kVolumePrefix = "kube-api-access-";

// The projected volume without its name. All pods share this one tree.
const api::Tree& TokenVolume() {
  static const api::TreePtr* const kVolume = [] {
    api::Draft token = {{"expirationSeconds", ServiceAccountAdmission::kTokenSeconds},
                        {"path", "token"}};
    api::Draft authority = {
        {"items", api::Draft::Array({api::Draft({{"key", "ca.crt"}, {"path", "ca.crt"}})})},
        {"name", "kube-root-ca.crt"}};
    api::Draft where = {
        {"items", api::Draft::Array({api::Draft(
                      {{"fieldRef", {{"apiVersion", "v1"}, {"fieldPath", "metadata.namespace"}}},
                       {"path", "namespace"}})})}};
    api::Draft sources = api::Draft::Array({api::Draft({{"serviceAccountToken", std::move(token)}}),
                                            api::Draft({{"configMap", std::move(authority)}}),
                                            api::Draft({{"downwardAPI", std::move(where)}})});
    api::Draft volume = {{"defaultMode", 0644}, {"sources", std::move(sources)}};
    return new api::TreePtr(volume.Freeze());
  }();
  return **kVolume;
}

// Derived from the pod's UID, so that it needs no randomness.
std::string VolumeName(std::string_view uid) {
  static constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::uint64_t hash = Fnv1a(uid);
  std::string name(kVolumePrefix);
  for (int i = 0; i < 5; ++i) {
    name += kLetters[hash % kLetters.size()];
    hash /= kLetters.size();
  }
  return name;
}

bool HasMountAt(api::Draft& container, std::string_view path) {
  api::Draft* mounts = container.Find("volumeMounts");
  if (mounts == nullptr || !mounts->is_array()) return false;
  for (std::size_t i = 0; i < mounts->size(); ++i) {
    if (mounts->at(i)["mountPath"].str() == path) return true;
  }
  return false;
}

bool ShouldMount(api::Draft& spec, const api::Object& account) {
  if (api::Draft* own = spec.Find("automountServiceAccountToken");
      own != nullptr && own->has_value()) {
    return own->boolean();
  }
  return account["automountServiceAccountToken"].optional_boolean().value_or(true);
}

void MountToken(api::Draft& spec, std::string_view uid) {
  std::string name;
  bool has_volume = false;
  if (api::Draft* volumes = spec.Find("volumes"); volumes != nullptr && volumes->is_array()) {
    for (std::size_t i = 0; i < volumes->size() && !has_volume; ++i) {
      const std::string_view given = volumes->at(i)["name"].str();
      if (!given.starts_with(kVolumePrefix)) continue;
      name = std::string(given);
      has_volume = true;
    }
  }
  if (!has_volume) name = VolumeName(uid);
  bool needed = false;
  for (const api::FieldName list : api::FieldNames{"initContainers", "containers"}) {
    api::Draft* containers = spec.Find(list);
    if (containers == nullptr || !containers->is_array()) continue;
    for (std::size_t i = 0; i < containers->size(); ++i) {
      api::Draft& container = containers->at(i);
      if (!container.is_object() || HasMountAt(container, kMountPath)) continue;
      container["volumeMounts"].Append(
          {{"mountPath", kMountPath}, {"name", name}, {"readOnly", true}});
      needed = true;
    }
  }
  if (!needed || has_volume) return;
  spec["volumes"].Append({{"name", name}, {"projected", api::Draft(TokenVolume().root())}});
}

bool IsAmong(std::string_view name, api::Value references) {
  for (api::Value each : references.elements()) {
    if (each["name"].str() == name) return true;
  }
  return false;
}

// For accounts that are annotated to allow only the secrets they list. The error names the first
// secret that is not listed.
Result<void> CheckSecrets(api::Value spec, const api::Object& account) {
  const api::Value allowed = account["secrets"];
  const std::string because = StrCat(" is not allowed because service account ", account.name(),
                                     " does not reference that ");
  for (api::Value volume : spec["volumes"].elements()) {
    const std::string_view name = volume["secret"]["secretName"].str();
    if (name.empty() || IsAmong(name, allowed)) continue;
    return FailedPrecondition(
        StrCat("volume with secret.secretName=", Quote(name), because, "secret"));
  }
  struct List {
    api::FieldName field;
    std::string_view what;
  };
  constexpr List kLists[] = {{"initContainers", "init container "}, {"containers", "container "}};
  for (const auto& [list, what] : kLists) {
    for (api::Value container : spec[list].elements()) {
      for (api::Value variable : container["env"].elements()) {
        const std::string_view name = variable["valueFrom"]["secretKeyRef"]["name"].str();
        if (name.empty() || IsAmong(name, allowed)) continue;
        return FailedPrecondition(
            StrCat(what, container["name"].str(), " with envVar ", variable["name"].str(),
                   " referencing secret.secretName=", Quote(name), because, "secret"));
      }
      for (api::Value source : container["envFrom"].elements()) {
        const std::string_view name = source["secretRef"]["name"].str();
        if (name.empty() || IsAmong(name, allowed)) continue;
        return FailedPrecondition(
            StrCat(what, container["name"].str(),
                   " with envFrom referencing secret.secretName=", Quote(name), because, "secret"));
      }
    }
  }
  std::size_t index = 0;
  for (api::Value secret : spec["imagePullSecrets"].elements()) {
    const std::string_view name = secret["name"].str();
    if (!IsAmong(name, account["imagePullSecrets"])) {
      return FailedPrecondition(
          StrCat("imagePullSecrets[", index, "].name=", Quote(name), because, "imagePullSecret"));
    }
    ++index;
  }
  return Ok();
}

bool AllowsOnlyItsSecrets(const api::Object& account) {
  const std::string_view value =
      account["metadata"]["annotations"].Entry("kubernetes.io/enforce-mountable-secrets").str();
  return value == "1" || value == "t" || value == "T" || value == "true" || value == "TRUE" ||
         value == "True";
}

bool IsMirror(api::Draft& object) {
  api::Draft* metadata = object.Find("metadata");
  api::Draft* annotations = metadata == nullptr ? nullptr : metadata->Find("annotations");
  return annotations != nullptr && annotations->HasEntry(api::kMirrorAnnotation);
}

Result<void> CheckMirrorPod(const api::TreePtr& tree) {
  const api::Value spec = tree->root()["spec"];
  if (!spec["serviceAccountName"].str().empty()) {
    return FailedPrecondition("a mirror pod may not reference service accounts");
  }
  for (const std::string& reference : ReferencesOf(api::Object(tree))) {
    if (reference.starts_with("secrets/"))
      return FailedPrecondition("a mirror pod may not reference secrets");
  }
  for (api::Value volume : spec["volumes"].elements()) {
    for (api::Value source : volume["projected"]["sources"].elements()) {
      if (!source["serviceAccountToken"].has_value()) continue;
      return FailedPrecondition("a mirror pod may not use ServiceAccountToken volume projections");
    }
  }
  return Ok();
}

}  // namespace

bool ServiceAccountAdmission::Concerns(const Request& request) const {
  return IsForNewPod(request);
}

std::optional<Failure> ServiceAccountAdmission::Admit(const Request& request, api::Draft* object,
                                                      api::Value before,
                                                      const StrategyContext& context) {
  if (object == nullptr || before.exists() || !IsForNewPod(request)) return std::nullopt;
  api::Draft& spec = (*object)["spec"];
  const auto forbid = [&](std::string_view why) {
    return ForbiddenFailure(*request.kind, request.name, why);
  };
  // A mirror pod represents a static pod, so nothing is added to it.
  if (IsMirror(*object)) {
    const Result<void> checked = CheckMirrorPod(object->Freeze());
    return checked.ok() ? std::nullopt : std::optional(forbid(checked.error().message));
  }
  if (spec["serviceAccountName"].str().empty()) spec["serviceAccountName"] = kDefaultAccount;
  const std::string name(spec["serviceAccountName"].str());
  spec["serviceAccount"] = name;
  const api::ObjectPtr account =
      context.lookup("", "serviceaccounts", StrCat(request.namespace_, "/", name));
  if (account == nullptr) {
    return forbid(StrCat("error looking up service account ", request.namespace_, "/", name,
                         ": serviceaccount ", Quote(name), " not found"));
  }
  if (AllowsOnlyItsSecrets(*account)) {
    if (const auto checked = CheckSecrets(spec.Freeze()->root(), *account); !checked.ok()) {
      return forbid(checked.error().message);
    }
  }
  if (ShouldMount(spec, *account)) MountToken(spec, (*object)["metadata"]["uid"].str());
  if (const api::Value secrets = (*account)["imagePullSecrets"]; !secrets.empty()) {
    api::Draft* given = spec.Find("imagePullSecrets");
    if (given == nullptr || given->size() == 0) {
      spec["imagePullSecrets"] = api::Draft(api::CopyTree(secrets));
    }
  }
  return std::nullopt;
}

std::optional<AdmissionStep::Awaited> ServiceAccountAdmission::Awaits(
    const Request& request, api::Draft& object, const StrategyContext& context) const {
  if (object["spec"]["serviceAccountName"].str() != kDefaultAccount) return std::nullopt;
  const std::string key = StrCat(request.namespace_, "/", kDefaultAccount);
  if (context.lookup("", "serviceaccounts", key) != nullptr) return std::nullopt;
  return Awaited{"", "serviceaccounts", key};
}

}  // namespace drakkar::apiserver
