#include "scheduler/binding/extended_claims.h"

#include <utility>

#include "api/json/writer.h"
#include "api/meta/finalizers.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "claims/claim.h"
#include "telemetry/log/log.h"

namespace drakkar::scheduler {
namespace {

constexpr Logger kLog("scheduler");

const api::KindSchema* ClaimKind() {
  static const api::KindSchema* const kind =
      api::FindKind("resource.k8s.io", "v1", "ResourceClaim");
  return kind;
}

client::ResourceRef RefOf(const PodInfo& pod, std::string subresource = {}) {
  static const api::KindSchema* const kind = api::FindKind("", "v1", "Pod");
  return {kind, std::string(pod.ns()), std::string(pod.name()), std::move(subresource)};
}

std::string MakePatch(const PodInfo& pod, std::string_view claim_name,
                      const device::ExtendedResources& resources) {
  api::Draft patch = api::Draft::Object();
  patch["metadata"]["uid"] = pod.uid;
  api::Draft& status = patch["status"]["extendedResourceClaimStatus"];
  status["resourceClaimName"] = claim_name;
  for (const device::RequestMapping& mapping : resources.mappings) {
    status["requestMappings"].Append({{"containerName", mapping.container},
                                      {"resourceName", mapping.resource},
                                      {"requestName", mapping.request}});
  }
  return api::WriteJson(patch.Freeze()->root());
}

}  // namespace

api::TreePtr MakeExtendedClaim(const PodInfo& pod, const device::ExtendedResources& resources) {
  api::Draft claim = api::Draft::Object();
  claim["apiVersion"] = "resource.k8s.io/v1";
  claim["kind"] = "ResourceClaim";
  api::Draft& metadata = claim["metadata"];
  metadata["generateName"] = StrCat(pod.name(), "-extended-resources-");
  metadata["namespace"] = pod.ns();
  metadata["annotations"].Entry(claims::kExtendedResourceAnnotation) = "true";
  // Needed before the claim is allocated. Setting it here saves one write per pod.
  api::AddFinalizer(metadata, claims::kFinalizer);
  metadata["ownerReferences"].Append(claims::OwnerReference(pod.name(), pod.uid));
  for (const device::Request& request : resources.requests) {
    api::Draft entry = api::Draft::Object();
    entry["name"] = request.name;
    api::Draft& exactly = entry["exactly"];
    exactly["deviceClassName"] = request.exactly->device_class;
    exactly["allocationMode"] = request.exactly->allocation_mode;
    exactly["count"] = request.exactly->count;
    claim["spec"]["devices"]["requests"].Append(std::move(entry));
  }
  return claim.Freeze();
}

void ExtendedClaims::Create(const PodInfo& pod, const device::ExtendedResources& resources,
                            std::function<void(Result<Created>)> done) {
  client_.Create(
      {ClaimKind(), std::string(pod.ns()), "", ""}, MakeExtendedClaim(pod, resources), {},
      lifetime_.Guard([this, pod_key = pod.key, done = std::move(done)](client::Reply reply) {
        if (!reply.ok()) {
          // If the claim was created after all, the pod's next attempt finds and deletes it.
          done(Error{reply.error->code, StrCat("create claim for extended resources of pod ",
                                               pod_key, ": ", reply.error->message)});
          return;
        }
        const std::string claim_key = reply.object->qualified_name();
        Wait& wait = waits_[claim_key];
        wait.uid = reply.object->uid();
        wait.done = done;
        // Posted, because the entry owns the timer, which must not be destroyed while it runs.
        auto give_up = lifetime_.Guard([this, claim = reply.object, claim_key] {
          auto waiting = waits_.extract(claim_key);
          if (waiting.empty()) return;
          // The claim controller removes the finalizer, since nobody has reserved the claim.
          client_.Delete(
              {ClaimKind(), std::string(claim->namespace_()), std::string(claim->name()), ""},
              {.precondition_uid = std::string(claim->uid())}, [](client::Reply) {});
          waiting.mapped().done(
              Unavailable(StrCat("claim ", claim_key, " was created but has not been observed")));
        });
        wait.limit = loop_.RunAfter(
            kLongestWait, [loop = &loop_, give_up = std::move(give_up)] { loop->Post(give_up); });
        Look(claim_key);
      }));
}

void ExtendedClaims::OnClaimChanged(const std::string& claim_key) {
  // Posted, because the cache is being changed.
  if (waits_.contains(claim_key)) {
    loop_.Post(lifetime_.Guard([this, claim_key] { Look(claim_key); }));
  }
}

void ExtendedClaims::Look(const std::string& claim_key) {
  const auto found = waits_.find(claim_key);
  const CachedClaim* claim = claims_.Find(claim_key);
  if (found == waits_.end() || claim == nullptr || claim->latest->uid() != found->second.uid) {
    return;
  }
  const Wait wait = std::move(found->second);
  waits_.erase(found);
  wait.done(Created{claim_key, wait.uid});
}

void ExtendedClaims::Record(const PodInfo& pod, std::string_view claim_name,
                            const device::ExtendedResources& resources,
                            ClaimWriter::Callback done) {
  Send(std::make_shared<PodWrite>(PodWrite{.pod = RefOf(pod, "status"),
                                           .patch = MakePatch(pod, claim_name, resources),
                                           .done = std::move(done)}));
}

void ExtendedClaims::Send(const PodWritePtr& write) {
  client_.Patch(
      write->pod, client::PatchType::kMerge, write->patch, {},
      lifetime_.Guard([this, write](client::Reply reply) {
        if (reply.ok()) {
          write->done({});
          return;
        }
        if (!MayHaveHappened(*reply.error) || write->backoff.failures() >= kMaxTries) {
          write->done(StrCat("update ExtendedResourceClaimStatus of pod ", write->pod.namespace_,
                             "/", write->pod.name, ": ", reply.error->message));
          return;
        }
        auto again = lifetime_.Guard([this, write] { Send(write); });
        // Posted, because the write owns the timer, which must not be destroyed while it
        // runs.
        write->pause =
            loop_.RunAfter(write->backoff.Next(),
                           [loop = &loop_, again = std::move(again)] { loop->Post(again); });
      }));
}

void ExtendedClaims::Delete(const PodInfo& pod, const std::string& claim_key,
                            const std::string& claim_uid) {
  const CachedClaim* claim = claims_.Find(claim_key);
  if (claim == nullptr || !deleting_.insert(claim_uid).second) return;
  CheckPod(std::make_shared<Deletion>(
      Deletion{.key = claim_key,
               .uid = claim_uid,
               .claim = {ClaimKind(), std::string(claim->latest->namespace_()),
                         std::string(claim->latest->name()), ""},
               .pod = RefOf(pod),
               .pod_uid = pod.uid}));
}

void ExtendedClaims::CheckPod(const DeletionPtr& deletion) {
  // The binding may have succeeded without us knowing yet.
  client_.Get(deletion->pod, lifetime_.Guard([this, deletion](client::Reply reply) {
    if (!reply.ok() && reply.error->code != ErrorCode::kNotFound) {
      DeleteLater(deletion, reply.error->message);
      return;
    }
    const bool is_bound = reply.ok() && reply.object->uid() == deletion->pod_uid &&
                          !reply.object->root()["spec"]["nodeName"].str().empty();
    if (is_bound) {
      deleting_.erase(deletion->uid);
    } else {
      RemoveFinalizer(deletion);
    }
  }));
}

void ExtendedClaims::RemoveFinalizer(const DeletionPtr& deletion) {
  writer_.Run(deletion->key, deletion->uid, PlanRemoveFinalizer(),
              [this, deletion](std::string error) {
                if (error.empty()) {
                  SendDelete(deletion);
                } else if (const CachedClaim* claim = claims_.Find(deletion->key);
                           claim == nullptr || claim->latest->uid() != deletion->uid) {
                  deleting_.erase(deletion->uid);
                } else {
                  DeleteLater(deletion, error);
                }
              });
}

void ExtendedClaims::SendDelete(const DeletionPtr& deletion) {
  client_.Delete(deletion->claim, {.precondition_uid = deletion->uid},
                 lifetime_.Guard([this, deletion](client::Reply reply) {
                   if (reply.ok() || reply.error->code == ErrorCode::kNotFound ||
                       reply.error->code == ErrorCode::kConflict) {
                     deleting_.erase(deletion->uid);
                   } else {
                     DeleteLater(deletion, reply.error->message);
                   }
                 }));
}

void ExtendedClaims::DeleteLater(const DeletionPtr& deletion, std::string_view why) {
  if (deletion->backoff.failures() >= kMaxTries) {
    kLog.Warning("claim of a failed attempt was not deleted",
                 {{"claim", deletion->key}, {"reason", why}});
    deleting_.erase(deletion->uid);
    return;
  }
  auto again = lifetime_.Guard([this, deletion] { CheckPod(deletion); });
  // Posted, because the deletion owns the timer, which must not be destroyed while it runs.
  deletion->pause = loop_.RunAfter(
      deletion->backoff.Next(), [loop = &loop_, again = std::move(again)] { loop->Post(again); });
}

}  // namespace drakkar::scheduler
