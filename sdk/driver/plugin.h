#pragma once

#include <string>
#include <vector>

#include "api/meta/object.h"
#include "base/result/result.h"
#include "rpc/dra/dra.h"

namespace drakkar::driver {

// What the author of a driver implements. Everything runs on the driver's loop.
class Plugin {
 public:
  virtual ~Plugin() = default;

  // Makes the devices of the claims ready. The claims were read from the server and checked: they
  // are allocated and have the UIDs the node asked for. `done` is called once, at once or later,
  // with one result for each claim, by UID; an error fails all of them. A claim without a result
  // fails. Must be idempotent: a node repeats the call after a restart, and for every pod.
  virtual void PrepareResourceClaims(std::vector<api::ObjectPtr> claims, rpc::PrepareDone done) = 0;

  // Undoes it. The claims may be gone from the server, may have been prepared by another instance,
  // or never: a claim that is not known has succeeded. Idempotent.
  virtual void UnprepareResourceClaims(std::vector<rpc::ClaimReference> claims,
                                       rpc::UnprepareDone done) = 0;

  // Something failed in the background. After an error that is not recoverable the driver does
  // not work any more and should end. The default logs.
  virtual void HandleError(const Error& error, bool recoverable);
};

// For drivers that need not wait: one claim at a time, the answer is what is returned.
class SynchronousPlugin : public Plugin {
 public:
  virtual Result<std::vector<rpc::PreparedDevice>> PrepareResourceClaim(
      const api::Object& claim) = 0;
  virtual Result<void> UnprepareResourceClaim(const rpc::ClaimReference& claim) = 0;

  void PrepareResourceClaims(std::vector<api::ObjectPtr> claims, rpc::PrepareDone done) final;
  void UnprepareResourceClaims(std::vector<rpc::ClaimReference> claims,
                               rpc::UnprepareDone done) final;
};

}  // namespace drakkar::driver
