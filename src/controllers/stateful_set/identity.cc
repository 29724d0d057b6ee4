#include "controllers/stateful_set/identity.h"

#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "controllers/workload/adoption.h"
#include "controllers/workload/pod_from_template.h"

namespace drakkar::controllers {

namespace {

using api::Value;

constexpr std::string_view kPodNameLabel = "statefulset.kubernetes.io/pod-name";
constexpr std::string_view kPodIndexLabel = "apps.kubernetes.io/pod-index";

const api::KindSchema& SetKind() {
  static const api::KindSchema* kind = api::FindKind("apps", "v1", "StatefulSet");
  return *kind;
}

const api::KindSchema& PodKind() {
  static const api::KindSchema* kind = api::FindKind("", "v1", "Pod");
  return *kind;
}

std::string ClaimName(const api::Object& set, Value claim_template, std::int64_t ordinal) {
  return StrCat(claim_template["metadata"]["name"].str(), "-", set.name(), "-", ordinal);
}

void Identify(api::Draft& metadata, std::string_view name, std::int64_t ordinal) {
  metadata["labels"].Entry(kPodNameLabel) = name;
  metadata["labels"].Entry(kPodIndexLabel) = StrCat(ordinal);
}

// A reference to `owner`, or to an earlier object of the same kind and name.
bool Refers(Value reference, const api::KindSchema& kind, std::string_view name) {
  return reference["kind"].str() == kind.kind &&
         kind.is_api_version(reference["apiVersion"].str()) && reference["name"].str() == name;
}

}  // namespace

std::optional<std::int64_t> OrdinalOf(const api::Object& set, const api::Object& pod) {
  std::string_view name = pod.name();
  if (!name.starts_with(set.name())) return std::nullopt;
  name.remove_prefix(set.name().size());
  if (name.size() < 2 || name.size() > 11 || name[0] != '-') return std::nullopt;
  name.remove_prefix(1);
  if (name.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  return ParseInt64(name);
}

std::int64_t StartOrdinal(const api::Object& set) {
  return set["spec"]["ordinals"]["start"].integer();
}

std::int64_t EndOrdinal(const api::Object& set) {
  return StartOrdinal(set) + set["spec"]["replicas"].integer(1);
}

std::string PodNameOf(const api::Object& set, std::int64_t ordinal) {
  return StrCat(set.name(), "-", ordinal);
}

api::TreePtr StatefulPod(const api::ObjectPtr& set, Value pod_template, std::string_view revision,
                         std::int64_t ordinal) {
  api::Draft pod = PodFromTemplate(set, SetKind(), pod_template);
  const std::string name = PodNameOf(*set, ordinal);
  pod["metadata"]["name"] = name;
  Identify(pod["metadata"], name, ordinal);
  pod["metadata"]["labels"].Entry(kPodRevisionLabel) = revision;
  api::Draft& spec = pod["spec"];
  spec["hostname"] = name;
  const std::string_view service = (*set)["spec"]["serviceName"].str();
  if (service.empty()) {
    spec.Remove("subdomain");
  } else {
    spec["subdomain"] = service;
  }
  const Value claims = (*set)["spec"]["volumeClaimTemplates"];
  if (claims.empty()) return pod.Freeze();
  api::Draft volumes = api::Draft::Array();
  const auto is_claim = [&](std::string_view volume) {
    for (Value claim : claims.elements()) {
      if (claim["metadata"]["name"].str() == volume) return true;
    }
    return false;
  };
  for (Value claim : claims.elements()) {
    api::Draft source = {{"claimName", ClaimName(*set, claim, ordinal)}};
    volumes.Append(
        {{"name", claim["metadata"]["name"].str()}, {"persistentVolumeClaim", std::move(source)}});
  }
  for (Value volume : pod_template["spec"]["volumes"].elements()) {
    if (!is_claim(volume["name"].str())) volumes.Append(api::Draft(volume));
  }
  spec["volumes"] = std::move(volumes);
  return pod.Freeze();
}

bool HasIdentity(const api::Object& set, const api::Object& pod) {
  const std::optional<std::int64_t> ordinal = OrdinalOf(set, pod);
  return ordinal && pod["metadata"]["labels"].Entry(kPodNameLabel).str() == pod.name();
}

api::TreePtr WithIdentity(const api::Object& set, const api::Object& pod) {
  api::Draft draft(pod.tree());
  Identify(draft["metadata"], pod.name(), OrdinalOf(set, pod).value_or(0));
  return draft.Freeze();
}

std::vector<StatefulClaim> ClaimsOf(const api::Object& set, std::int64_t ordinal) {
  std::vector<StatefulClaim> claims;
  for (Value each : set["spec"]["volumeClaimTemplates"].elements()) {
    api::Draft claim(each);
    claim.KeepAlive(set.tree());
    StatefulClaim made{ClaimName(set, each, ordinal), nullptr};
    claim.Remove("status");
    claim["metadata"]["name"] = made.name;
    claim["metadata"]["namespace"] = set.namespace_();
    for (const auto& [key, name, value] : set["spec"]["selector"]["matchLabels"].members()) {
      claim["metadata"]["labels"].Entry(name) = value.str();
    }
    made.body = claim.Freeze();
    claims.push_back(std::move(made));
  }
  return claims;
}

bool IsStaleClaim(const api::Object& set, const api::Object& claim, std::string_view pod_name,
                  std::string_view pod_uid) {
  if (set["spec"]["persistentVolumeClaimRetentionPolicy"]["whenScaled"].str() != "Delete") {
    return false;
  }
  for (Value owner : claim["metadata"]["ownerReferences"].elements()) {
    if (Refers(owner, PodKind(), pod_name)) return owner["uid"].str() != pod_uid;
  }
  return false;
}

api::TreePtr WithOwners(const api::Object& set, const api::Object& pod, const api::Object& claim) {
  const Value policy = set["spec"]["persistentVolumeClaimRetentionPolicy"];
  const bool when_deleted = policy["whenDeleted"].str() == "Delete";
  const bool when_scaled = policy["whenScaled"].str() == "Delete";
  const std::int64_t ordinal = OrdinalOf(set, pod).value_or(-1);
  const bool condemned = ordinal < StartOrdinal(set) || ordinal >= EndOrdinal(set);
  const bool wants_pod = when_scaled && condemned;
  const bool wants_set = when_deleted && !wants_pod;
  bool has_pod = false, has_set = false, other = false, loose = false;
  for (Value owner : claim["metadata"]["ownerReferences"].elements()) {
    const bool is_set = Refers(owner, SetKind(), set.name());
    const bool is_pod = Refers(owner, PodKind(), pod.name());
    const bool controls = owner["controller"].boolean();
    if (!is_set && !is_pod) {
      other = other || controls;
      continue;
    }
    // It belongs to an earlier set or pod of that name; the garbage collector handles it.
    if (owner["uid"].str() != (is_set ? set.uid() : pod.uid())) return nullptr;
    (is_set ? has_set : has_pod) = true;
    loose = loose || !controls;
  }
  other = other && (when_deleted || when_scaled);
  const bool right =
      other ? !has_set && !has_pod : !loose && has_set == wants_set && has_pod == wants_pod;
  if (right) return nullptr;
  api::Draft owners = api::Draft::Array();
  for (Value owner : claim["metadata"]["ownerReferences"].elements()) {
    if (!Refers(owner, SetKind(), set.name()) && !Refers(owner, PodKind(), pod.name())) {
      owners.Append(api::Draft(owner));
    }
  }
  if (!other && wants_set) owners.Append(ControllerReference(set, SetKind()));
  if (!other && wants_pod) owners.Append(ControllerReference(pod, PodKind()));
  api::Draft draft(claim.tree());
  if (owners.size() == 0) {
    draft["metadata"].Remove("ownerReferences");
  } else {
    draft["metadata"]["ownerReferences"] = std::move(owners);
  }
  return draft.Freeze();
}

}  // namespace drakkar::controllers
