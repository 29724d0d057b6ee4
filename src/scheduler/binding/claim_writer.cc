#include "scheduler/binding/claim_writer.h"

#include <algorithm>

#include "api/meta/finalizers.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "claims/claim.h"
#include "claims/pod_group.h"
#include "device/from_api.h"
#include "device/to_api.h"
#include "scheduler/binding/binding_conditions.h"

namespace drakkar::scheduler {

using api::Value;

namespace {

const api::KindSchema* ClaimKind() {
  static const api::KindSchema* const kind =
      api::FindKind("resource.k8s.io", "v1", "ResourceClaim");
  return kind;
}

}  // namespace

void ClaimWriter::Run(const std::string& claim_key, const std::string& claim_uid, Plan plan,
                      Callback done) {
  const Backoff::Options pauses{.initial = kPause, .max = kLongestPause, .jitter = 0.1};
  auto job = std::make_shared<Job>(Job{.key = claim_key,
                                       .uid = claim_uid,
                                       .plan = std::move(plan),
                                       .done = std::move(done),
                                       .backoff = Backoff(pauses, &random_)});
  const CachedClaim* claim = claims_.Find(claim_key);
  if (claim == nullptr || claim->latest->uid() != claim_uid) {
    job->done(StrCat("claim ", claim_key, " got deleted in the meantime"));
    return;
  }
  job->ns = std::string(claim->latest->namespace_());
  job->name = std::string(claim->latest->name());
  Continue(job, claim->latest);
}

void ClaimWriter::Continue(const JobPtr& job, const api::ObjectPtr& claim) {
  Step step = job->plan(*claim);
  if (std::holds_alternative<Finished>(step)) {
    job->done({});
    return;
  }
  if (const Refused* refused = std::get_if<Refused>(&step)) {
    job->done(refused->why);
    return;
  }
  client::ResourceRef ref{ClaimKind(), job->ns, job->name, ""};
  if (WriteObject* write = std::get_if<WriteObject>(&step)) {
    client_.Update(std::move(ref), std::move(write->body), {},
                   lifetime_.Guard([this, job](client::Reply reply) {
                     OnWritten(job, false, std::move(reply));
                   }));
    return;
  }
  WriteStatus& write = std::get<WriteStatus>(step);
  ref.subresource = "status";
  client_.Update(std::move(ref), std::move(write.body), {},
                 lifetime_.Guard([this, job, last = write.last](client::Reply reply) {
                   OnWritten(job, last, std::move(reply));
                 }));
}

void ClaimWriter::OnWritten(const JobPtr& job, bool last, client::Reply reply) {
  if (reply.ok()) {
    // If the cache has a newer version, somebody else wrote in between, and the next write of the
    // plan gets a conflict.
    (void)claims_.Assume(reply.object).ok();
    if (last) {
      job->done({});
    } else {
      Continue(job, reply.object);
    }
    return;
  }
  const bool is_conflict = reply.error->code == ErrorCode::kConflict;
  if (!is_conflict && !MayHaveHappened(*reply.error)) {
    job->done(reply.error->message);
    return;
  }
  job->last_error = reply.error->message;
  ++job->tries;
  if (is_conflict && job->tries >= kMaxTries) {
    job->done(job->last_error);
    return;
  }
  ReadLater(job);
}

void ClaimWriter::ReadLater(const JobPtr& job) {
  auto read = lifetime_.Guard([this, job] { ReadAgain(job); });
  // Posted, because the job owns the timer, which must not be destroyed while it runs.
  job->pause = loop_.RunAfter(job->backoff.Next(),
                              [loop = &loop_, read = std::move(read)] { loop->Post(read); });
}

void ClaimWriter::ReadAgain(const JobPtr& job) {
  client_.Get({ClaimKind(), job->ns, job->name, ""}, lifetime_.Guard([this,
                                                                      job](client::Reply reply) {
    if (!reply.ok() && MayHaveHappened(*reply.error)) {
      ReadLater(job);
      return;
    }
    job->backoff.Reset();
    if (!reply.ok()) {
      job->done(reply.error->message);
    } else if (reply.object->uid() != job->uid) {
      job->done(StrCat("claim ", job->key, " got deleted in the meantime"));
    } else {
      (void)claims_.Assume(reply.object).ok();
      if (job->tries >= kMaxTries && !std::holds_alternative<Finished>(job->plan(*reply.object))) {
        job->done(job->last_error);
      } else {
        Continue(job, reply.object);
      }
    }
  }));
}

bool MayHaveHappened(const Error& error) {
  switch (error.code) {
    case ErrorCode::kUnavailable:
    case ErrorCode::kDeadlineExceeded:
    case ErrorCode::kCancelled:
    case ErrorCode::kInternal:
      return true;
    default:
      return false;
  }
}

namespace {

using Step = ClaimWriter::Step;

api::TreePtr WithoutAllocation(const api::Object& claim) {
  api::Draft draft(claim.tree());
  claims::ClearAllocation(draft);
  claims::RemoveReservations(draft, [](std::string_view) { return true; });
  return draft.Freeze();
}

api::TreePtr WithoutReservation(const api::Object& claim, std::string_view uid) {
  api::Draft draft(claim.tree());
  claims::RemoveReservations(draft, [&](std::string_view each) { return each == uid; });
  return draft.Freeze();
}

}  // namespace

ClaimWriter::Plan PlanAllocateAndReserve(AllocationPtr allocation, std::string timestamp,
                                         claims::Consumer consumer) {
  return [allocation = std::move(allocation), timestamp = std::move(timestamp),
          consumer = std::move(consumer)](const api::Object& claim) -> Step {
    const std::string name = claim.qualified_name();
    if (claim.is_being_deleted()) {
      return ClaimWriter::Refused{StrCat("claim ", name, " got deleted in the meantime")};
    }
    const bool allocated = claims::IsAllocated(claim.root());
    if (allocation == nullptr) {
      if (!allocated) {
        return ClaimWriter::Refused{
            StrCat("claim ", name, " got deallocated elsewhere in the meantime")};
      }
      if (claims::IsReservedFor(claim.root(), consumer.uid)) return ClaimWriter::Finished{};
    } else if (allocated) {
      // It is our own if an earlier write succeeded but its response was lost.
      const auto written = device::AllocationFromApi(claim["status"]["allocation"]);
      if (written.ok() && HoldSameDevices(*written, *allocation) &&
          claims::IsReservedFor(claim.root(), consumer.uid)) {
        return ClaimWriter::Finished{};
      }
      return ClaimWriter::Refused{
          StrCat("claim ", name, " got allocated elsewhere in the meantime")};
    } else if (!api::HasFinalizer(claim["metadata"], claims::kFinalizer)) {
      api::Draft draft(claim.tree());
      api::AddFinalizer(draft["metadata"], claims::kFinalizer);
      return ClaimWriter::WriteObject{draft.Freeze()};
    }
    api::Draft draft(claim.tree());
    if (allocation != nullptr) {
      api::Draft result = device::AllocationToApi(*allocation);
      if (!timestamp.empty()) result["allocationTimestamp"] = timestamp;
      draft["status"]["allocation"] = std::move(result);
    }
    claims::AddReservation(draft, consumer);
    return ClaimWriter::WriteStatus{draft.Freeze(), true};
  };
}

ClaimWriter::Plan PlanRelease(std::string pod_uid, AllocationPtr released,
                              std::function<bool(std::string_view pod_uid)> is_bound) {
  return [pod_uid = std::move(pod_uid), released = std::move(released),
          is_bound = std::move(is_bound)](const api::Object& claim) -> Step {
    const Value allocation = claim["status"]["allocation"];
    if (!allocation.has_value()) return ClaimWriter::Finished{};
    // Nobody waits for an allocation that cannot be read.
    const auto now = device::AllocationFromApi(allocation);
    if (!now.ok() || !HoldSameDevices(*now, *released) ||
        now->allocation_timestamp != released->allocation_timestamp) {
      return ClaimWriter::Finished{};
    }
    if (!claim.is_being_deleted() &&
        EvaluateBinding(claim, *now).kind == BindingState::Kind::kReady) {
      return ClaimWriter::Finished{};
    }
    for (Value consumer : claim["status"]["reservedFor"].elements()) {
      const std::string_view uid = consumer["uid"].str();
      if (uid == pod_uid) continue;
      // Another kind of consumer may be using the claim.
      const bool is_known = claims::IsPod(consumer) || claims::IsPodGroup(consumer);
      if (is_known && !is_bound(uid)) continue;
      if (!claims::IsReservedFor(claim.root(), pod_uid)) return ClaimWriter::Finished{};
      return ClaimWriter::WriteStatus{WithoutReservation(claim, pod_uid), true};
    }
    return ClaimWriter::WriteStatus{WithoutAllocation(claim), true};
  };
}

ClaimWriter::Plan PlanDeallocate(std::string consumer_uid) {
  return [consumer_uid = std::move(consumer_uid)](const api::Object& claim) -> Step {
    if (!claims::IsAllocated(claim.root()) ||
        !claims::IsReservedForNoneBut(claim.root(), consumer_uid)) {
      return ClaimWriter::Finished{};
    }
    return ClaimWriter::WriteStatus{WithoutAllocation(claim), true};
  };
}

ClaimWriter::Plan PlanRemoveFinalizer() {
  return [](const api::Object& claim) -> Step {
    if (!api::HasFinalizer(claim["metadata"], claims::kFinalizer)) return ClaimWriter::Finished{};
    api::Draft draft(claim.tree());
    api::RemoveFinalizer(draft["metadata"], claims::kFinalizer);
    return ClaimWriter::WriteObject{draft.Freeze()};
  };
}

}  // namespace drakkar::scheduler
