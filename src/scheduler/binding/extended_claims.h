#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "api/tree/value.h"
#include "base/exec/backoff.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "base/result/result.h"
#include "client/client.h"
#include "device/extended_resources.h"
#include "scheduler/binding/claim_writer.h"
#include "scheduler/cache/claim_cache.h"
#include "scheduler/cache/pod_info.h"

namespace drakkar::scheduler {

// Creates the claims behind pods' extended resources (KEP-5004), records them in the status of the
// pods, and deletes those of failed attempts.
//
// A new claim is reported when the claim cache has it, so that every claim is known there from its
// first write to its last; that fails after kLongestWait. Writes to the pod with an unknown outcome
// are repeated. A claim of a bound pod is never deleted. Deletions are retried with backoff, at
// most kMaxTries times; then the pod's next attempt tries again. Loop-bound; one entry per claim
// that is being created or deleted.
class ExtendedClaims {
 public:
  static constexpr int kMaxTries = 8;
  static constexpr Duration kPause = std::chrono::milliseconds(100);
  static constexpr Duration kLongestPause = std::chrono::seconds(10);
  static constexpr Duration kLongestWait = std::chrono::minutes(2);

  struct Created {
    std::string key;  // namespace/name
    std::string uid;
  };

  ExtendedClaims(EventLoop& loop, client::Client& client, ClaimCache& claims, ClaimWriter& writer)
      : loop_(loop), client_(client), claims_(claims), writer_(writer) {}
  ExtendedClaims(const ExtendedClaims&) = delete;
  ExtendedClaims& operator=(const ExtendedClaims&) = delete;

  void Create(const PodInfo& pod, const device::ExtendedResources& resources,
              std::function<void(Result<Created>)> done);
  // Writes status.extendedResourceClaimStatus of the pod. An empty error means success.
  void Record(const PodInfo& pod, std::string_view claim_name,
              const device::ExtendedResources& resources, ClaimWriter::Callback done);
  // Deletes the claim, even if it is allocated, unless the pod is bound.
  void Delete(const PodInfo& pod, const std::string& claim_key, const std::string& claim_uid);

  void OnClaimChanged(const std::string& claim_key);

 private:
  struct Wait {
    std::string uid;
    std::function<void(Result<Created>)> done;
    TimerHandle limit;
  };
  struct PodWrite {
    client::ResourceRef pod;
    std::string patch;
    ClaimWriter::Callback done;
    Backoff backoff{{.initial = kPause, .max = kLongestPause}};
    TimerHandle pause;
  };
  struct Deletion {
    std::string key;
    std::string uid;
    client::ResourceRef claim;
    client::ResourceRef pod;
    std::string pod_uid;
    Backoff backoff{{.initial = kPause, .max = kLongestPause}};
    TimerHandle pause;
  };
  using PodWritePtr = std::shared_ptr<PodWrite>;
  using DeletionPtr = std::shared_ptr<Deletion>;

  void Look(const std::string& claim_key);
  void Send(const PodWritePtr& write);
  void CheckPod(const DeletionPtr& deletion);
  void RemoveFinalizer(const DeletionPtr& deletion);
  void SendDelete(const DeletionPtr& deletion);
  void DeleteLater(const DeletionPtr& deletion, std::string_view why);

  EventLoop& loop_;
  client::Client& client_;
  ClaimCache& claims_;
  ClaimWriter& writer_;
  std::map<std::string, Wait> waits_;  // by key
  std::set<std::string> deleting_;     // uids
  Lifetime lifetime_;
};

// The object to create.
api::TreePtr MakeExtendedClaim(const PodInfo& pod, const device::ExtendedResources& resources);

}  // namespace drakkar::scheduler
