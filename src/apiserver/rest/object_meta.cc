#include "apiserver/rest/object_meta.h"

#include <algorithm>

#include "api/meta/bounded_seconds.h"
#include "api/meta/finalizers.h"
#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "apiserver/registry/kept_members.h"
#include "apiserver/validation/cause.h"
#include "apiserver/validation/metadata.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::Value;

// Fields that only the server sets. An update takes them from the current object.
constexpr api::FieldName kServerOwned[] = {
    "uid",        "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
    "generation", "selfLink"};

// The garbage collector carries out orphaning and foreground deletion. Finalizers tell it which of
// the two was requested.
void ApplyPropagationPolicy(std::string_view policy, Value before, Draft& metadata) {
  if (policy.empty()) return;
  const bool orphan = policy == "Orphan";
  const bool foreground = policy == "Foreground";
  auto set = [&](std::string_view finalizer, bool wanted) {
    const bool has = api::HasFinalizer(before["metadata"], finalizer);
    if (wanted && !has) api::AddFinalizer(metadata, finalizer);
    if (!wanted && has) api::RemoveFinalizer(metadata, finalizer);
  };
  set(api::kOrphanFinalizer, orphan);
  set(api::kForegroundFinalizer, foreground);
}

}  // namespace

std::optional<Failure> PrepareMetaForCreate(const api::KindSchema& kind, const Request& request,
                                            Draft& object) {
  object["apiVersion"] =
      kind.group.empty() ? std::string(kind.version) : StrCat(kind.group, "/", kind.version);
  object["kind"] = kind.kind;
  Draft& metadata = object["metadata"];
  if (!metadata.is_object()) metadata = Draft::Object();
  if (!metadata["resourceVersion"].str().empty()) {
    return api::StatusBadRequest("resourceVersion should not be set on objects to be created");
  }
  const std::string_view given = metadata["namespace"].str();
  if (kind.namespaced) {
    if (!given.empty() && given != request.namespace_) {
      return api::StatusBadRequest(
          "the namespace of the provided object does not match the namespace sent on the request");
    }
    metadata["namespace"] = request.namespace_;
  } else {
    metadata.Remove("namespace");  // as in Kubernetes, whatever was given
  }
  for (const api::FieldName field : kServerOwned) metadata.Remove(field);
  metadata.Remove("resourceVersion");
  return std::nullopt;
}

std::optional<Failure> PrepareMetaForUpdate(const api::KindSchema& kind, const Strategy& strategy,
                                            const Request& request, const api::Object& before,
                                            Draft& object) {
  object["apiVersion"] =
      kind.group.empty() ? std::string(kind.version) : StrCat(kind.group, "/", kind.version);
  object["kind"] = kind.kind;
  Draft& metadata = object["metadata"];
  if (!metadata.is_object()) metadata = Draft::Object();
  const std::string_view name = metadata["name"].str();
  if (!name.empty() && name != request.name) {
    return api::StatusBadRequest(StrCat("the name of the object (", name,
                                        ") does not match the name on the URL (", request.name,
                                        ")"));
  }
  if (!kind.namespaced) metadata.Remove("namespace");
  const std::string_view namespace_ = metadata["namespace"].str();
  if (!namespace_.empty() && namespace_ != request.namespace_) {
    return api::StatusBadRequest(StrCat("the namespace of the object (", namespace_,
                                        ") does not match the namespace on the request (",
                                        request.namespace_, ")"));
  }
  const std::string_view version = metadata["resourceVersion"].str();
  if (version.empty() || version == "0") {
    if (!strategy.AllowsUnconditionalUpdate(request.kind->version) &&
        request.verb == Verb::kUpdate) {
      return InvalidFailure(
          kind, request.name,
          {Invalid("metadata.resourceVersion", 0, "must be specified for an update")});
    }
  } else if (ParseInt64(version) != before.resource_version()) {
    return ModifiedFailure(kind, request.name);
  }
  const std::string_view uid = metadata["uid"].str();
  if (!uid.empty() && uid != before.uid()) {
    return ConflictFailure(kind, request.name,
                           StrCat("Precondition failed: UID in precondition: ", uid,
                                  ", UID in object meta: ", before.uid()));
  }
  const Value current = before["metadata"];
  if (request.subresource == "status" && !strategy.StatusUpdateKeepsMetadata()) {
    // For apply the entries are already complete; for other writes they are computed later.
    const bool applies = request.verb == Verb::kPatch && request.patch == PatchKind::kApply;
    Draft* known = applies ? metadata.Find("managedFields") : nullptr;
    Draft entries = known == nullptr ? Draft() : std::move(*known);
    metadata = Draft(current);
    metadata.KeepAlive(before.tree());
    if (entries.exists()) {
      metadata["managedFields"] = std::move(entries);
    } else if (applies) {
      metadata.Remove("managedFields");
    }
  } else {
    for (const api::FieldName field : kServerOwned) KeepMember(field, current, metadata);
    // As in Kubernetes, an update cannot rename an object and keeps a generated name.
    for (const api::FieldName field : api::FieldNames{"name", "namespace", "generateName"}) {
      KeepMember(field, current, metadata);
    }
  }
  // If none is given, use the current one.
  metadata["resourceVersion"] = std::to_string(before.resource_version());
  object.KeepAlive(before.tree());
  return std::nullopt;
}

void UpdateGeneration(const Strategy& strategy, Value before, Draft& object) {
  const auto counts = [](std::string_view name) { return name != "metadata" && name != "status"; };
  std::size_t members = 0;
  bool changed = false;
  for (const auto& [key, member] : object.MutableMembers()) {
    if (changed || !member.exists() || !counts(key->view())) continue;
    ++members;
    const Value was = before.Entry(*key);
    // Fields taken over from `before` need no check.
    if (was.exists() && member.borrowed().node() == was.node()) continue;
    const api::TreePtr is = member.Freeze();
    changed = !api::Equal(is->root(), was);
  }
  for (const auto& [key, name, value] : before.members()) {
    if (counts(name) && value.exists()) --members;
  }
  if (!changed && strategy.AnnotationsRaiseGeneration()) {
    const Draft* annotations = object["metadata"].Find("annotations");
    const api::TreePtr is = annotations == nullptr ? Draft().Freeze() : annotations->Freeze();
    changed = !api::Equal(is->root(), before["metadata"]["annotations"]);
  }
  if (changed || members != 0) {
    object["metadata"]["generation"] = before["metadata"]["generation"].integer() + 1;
  }
}

namespace {

// Definitions and custom resources may have finalizers without a domain that we do not know.
bool HasKnownFinalizers(const api::KindSchema* kind) {
  return kind != nullptr && kind->family == nullptr && kind->group != "apiextensions.k8s.io";
}

}  // namespace

api::FieldErrors ValidateMeta(const api::KindSchema& kind, const Strategy& strategy, Value object) {
  return PlainErrors(CheckMetadata(
      object, {.namespaced = kind.namespaced,
               .check_name = [&](std::string_view name,
                                 bool prefix) { return strategy.CheckName(kind, name, prefix); },
               .name_is_declared = strategy.NameIsDeclared(),
               .known_finalizers = HasKnownFinalizers(&kind)}));
}

api::FieldErrors ValidateMetaUpdate(Value object, Value before) {
  const bool known = object["metadata"]["finalizers"].empty() ||
                     HasKnownFinalizers(api::FindKindByApiVersion(object["apiVersion"].str(),
                                                                  object["kind"].str()));
  return PlainErrors(CheckMetadataUpdate(object, before, known));
}

bool EqualButForVersion(Value a, Value b) {
  auto same = [](Value x, Value y, auto&& skip) {
    std::size_t left = 0, right = 0;
    for (const auto& [key, name, value] : x.members()) {
      if (skip(name)) continue;
      ++left;
      if (!api::Equal(value, y.Entry(name))) return false;
    }
    for (const auto& [key, name, value] : y.members()) right += skip(name) ? 0 : 1;
    return left == right;
  };
  return same(a, b, [](std::string_view name) { return name == "metadata"; }) &&
         same(a["metadata"], b["metadata"], [](std::string_view name) {
           return name == "resourceVersion" || name == "managedFields";
         });
}

bool IsReadyToGo(const Strategy& strategy, Value object) {
  const Value metadata = object["metadata"];
  return !strategy.HoldsDeletion(object) && metadata["deletionTimestamp"].has_value() &&
         metadata["finalizers"].empty() && metadata["deletionGracePeriodSeconds"].integer() == 0;
}

std::optional<Failure> CheckPreconditions(const Request& request, const api::Object& object) {
  if (!request.precondition_uid.empty() && request.precondition_uid != object.uid()) {
    return ConflictFailure(
        *request.kind, request.name,
        StrCat("Precondition failed: UID in precondition: ", request.precondition_uid,
               ", UID in object meta: ", object.uid()));
  }
  if (!request.precondition_resource_version.empty() &&
      ParseInt64(request.precondition_resource_version) != object.resource_version()) {
    return ConflictFailure(*request.kind, request.name,
                           StrCat("Precondition failed: ResourceVersion in precondition: ",
                                  request.precondition_resource_version,
                                  ", ResourceVersion in object meta: ", object.resource_version()));
  }
  return std::nullopt;
}

DeletionPlan PlanDeletion(const Strategy& strategy, const Request& request,
                          const api::Object& before, WallTime now, Draft& object) {
  const Value current = before["metadata"];
  Draft& metadata = object["metadata"];
  ApplyPropagationPolicy(request.propagation_policy.empty()
                             ? strategy.DefaultPropagation()
                             : std::string_view(request.propagation_policy),
                         before.root(), metadata);
  const std::int64_t grace =
      strategy.GracePeriod(before.root(), request.grace_period_seconds).value_or(0);
  const bool finalizers_left = [&] {
    Draft* finalizers = metadata.Find("finalizers");
    return finalizers != nullptr && finalizers->size() > 0;
  }();
  const bool deleting = current["deletionTimestamp"].has_value();
  const bool held = finalizers_left || strategy.HoldsDeletion(before.root());
  if (grace == 0 && !held) return DeletionPlan::kNow;
  if (deleting) {
    // A second delete can only shorten the grace period.
    const std::int64_t running = current["deletionGracePeriodSeconds"].integer();
    if (grace >= running) {
      const bool changed = !EqualButForVersion(object.Freeze()->root(), before.root());
      return changed ? DeletionPlan::kMark : DeletionPlan::kUnchanged;
    }
  }
  metadata["deletionTimestamp"] = api::FormatTime(now + api::BoundedSeconds(grace));
  metadata["deletionGracePeriodSeconds"] = grace;
  if (request.kind->has_generation) {
    metadata["generation"] = current["generation"].integer() + 1;
  }
  metadata.Remove("resourceVersion");
  if (strategy.HoldsDeletion(before.root())) object["status"]["phase"] = "Terminating";
  return DeletionPlan::kMark;
}

std::optional<Failure> ApplyBinding(const api::KindSchema& kind, const Request& request,
                                    const api::Object& before, WallTime now, Draft& object) {
  const Value binding = request.object->root();
  const Value target = binding["target"];
  api::FieldErrors causes;
  if (!target["kind"].str().empty() && target["kind"].str() != "Node") {
    causes.push_back(NotSupported("target.kind", target["kind"].str(), {"Node", "<empty>"}));
  }
  if (target["name"].str().empty()) {
    causes.push_back(Required("target.name"));
  }
  if (!causes.empty()) {
    return InvalidFailure(*api::FindKind("", "v1", "Binding"), request.name, causes);
  }
  auto conflict = [&](std::string_view why) {
    Failure failure = ConflictFailure(kind, request.name, why);
    failure.message =
        StrCat("Operation cannot be fulfilled on pods/binding ", Quote(request.name), ": ", why);
    return failure;
  };
  const std::string_view uid = binding["metadata"]["uid"].str();
  if (!uid.empty() && uid != before.uid()) {
    return conflict(StrCat("Precondition failed: UID in precondition: ", uid,
                           ", UID in object meta: ", before.uid()));
  }
  if (before.is_being_deleted()) {
    return conflict(
        StrCat("pod ", request.name, " is being deleted, cannot be assigned to a host"));
  }
  const std::string_view node = before["spec"]["nodeName"].str();
  if (!node.empty()) {
    return conflict(StrCat("pod ", request.name, " is already assigned to node ", Quote(node)));
  }
  if (!before["spec"]["schedulingGates"].empty()) {
    return conflict(StrCat("pod ", request.name, " has non-empty .spec.schedulingGates"));
  }
  object["spec"]["nodeName"] = target["name"].str();
  for (const auto& [key, name, value] : binding["metadata"]["annotations"].members()) {
    object["metadata"]["annotations"].Entry(name) = value.str();
  }
  // A bound pod no longer needs a nomination.
  object["status"].Remove("nominatedNodeName");
  Draft scheduled = Draft::Object();
  scheduled["type"] = "PodScheduled";
  scheduled["status"] = "True";
  scheduled["lastProbeTime"] = nullptr;
  scheduled["lastTransitionTime"] = api::FormatTime(now);
  Draft& conditions = object["status"]["conditions"];
  bool replaced = false;
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    if (conditions.at(i)["type"].str() != "PodScheduled") continue;
    conditions.at(i) = scheduled;
    replaced = true;
  }
  if (!replaced) conditions.Append(std::move(scheduled));
  return std::nullopt;
}

std::string GenerateName(std::string_view prefix, Random& random) {
  constexpr std::size_t kSuffix = 5;
  constexpr std::size_t kLongest = 63;
  return StrCat(prefix.substr(0, kLongest - kSuffix), random.NameSuffix(kSuffix));
}

api::TreePtr SuccessStatus(const api::KindSchema& kind, const api::Object& object) {
  return api::StatusSuccess({kind.group, kind.plural}, object.name(), object.uid()).ToTree();
}

}  // namespace drakkar::apiserver
