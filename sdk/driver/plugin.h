#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "api/meta/object.h"
#include "api/metadata/device_metadata.h"
#include "base/result/result.h"
#include "rpc/dra/dra.h"

namespace drakkar {
class WorkerPool;
}  // namespace drakkar

namespace drakkar::driver {

// What containers that use a device are told about it (KEP-5304). Nothing is added to it.
struct DeviceMetadata {
  metadata::Attributes attributes;  // at most 32, names and values as in a ResourceSlice
  std::optional<metadata::NetworkDeviceData> network_data;

  bool operator==(const DeviceMetadata&) const = default;
};

// A device that is ready for containers.
struct PreparedDevice {
  std::vector<std::string> request_names;  // empty: belongs to all requests of the claim
  std::string pool_name;
  std::string device_name;
  std::vector<std::string> cdi_device_ids;
  std::optional<std::string> share_id;
  // Nothing: not known yet. Containers then find an empty file until
  // MetadataUpdater::UpdateRequestMetadata is called. Not looked at unless device metadata is on.
  std::optional<DeviceMetadata> metadata;

  bool operator==(const PreparedDevice&) const = default;
};

using PrepareResult = Result<std::vector<PreparedDevice>>;
using PrepareResults = std::map<std::string, PrepareResult>;  // by claim UID
using PrepareDone = absl::AnyInvocable<void(Result<PrepareResults>)>;

// What the author of a driver implements. Everything is called on the driver's loop, which also
// serves registration, health and the calls for other claims: no function may block it. Work that
// takes long belongs elsewhere (BlockingPlugin has threads for it); `done` may be called, or
// dropped, on any thread, as long as the loop exists. Calling it twice ends the process.
class Plugin {
 public:
  virtual ~Plugin() = default;

  // Makes the devices of the claims ready. The claims were read from the server and checked: they
  // are allocated and have the UIDs the node asked for. `done` is called once, at once or later,
  // with one result for each claim, by UID; an error fails all of them. A claim without a result
  // fails. Must be idempotent: a node repeats the call after a restart, and for every pod.
  virtual void PrepareResourceClaims(std::vector<api::ObjectPtr> claims, PrepareDone done) = 0;

  // Undoes it. The claims may be gone from the server, may have been prepared by another instance,
  // or never: a claim that is not known has succeeded. Idempotent.
  virtual void UnprepareResourceClaims(std::vector<rpc::ClaimReference> claims,
                                       rpc::UnprepareDone done) = 0;

  // Something failed in the background. After an error that is not recoverable the driver does
  // not work any more and should end. The default logs.
  virtual void HandleError(const Error& error, bool recoverable);
};

// For drivers that need not wait: one claim at a time, the answer is what is returned. All else
// waits meanwhile, so a call should take milliseconds.
class SynchronousPlugin : public Plugin {
 public:
  virtual Result<std::vector<PreparedDevice>> PrepareResourceClaim(const api::Object& claim) = 0;
  virtual Result<void> UnprepareResourceClaim(const rpc::ClaimReference& claim) = 0;

  void PrepareResourceClaims(std::vector<api::ObjectPtr> claims, PrepareDone done) final;
  void UnprepareResourceClaims(std::vector<rpc::ClaimReference> claims,
                               rpc::UnprepareDone done) final;
};

// For drivers whose calls take long: each claim is prepared and unprepared on a thread of the
// plugin's own, while the driver goes on with registration, health and other claims. The functions
// below must be safe to call from several threads at once, though never for one claim, and have no
// access to the loop. At most kMaxWaitingClaims wait for a thread; further ones fail.
class BlockingPlugin : public Plugin {
 public:
  static constexpr std::size_t kMaxWaitingClaims = 4'096;

  explicit BlockingPlugin(std::size_t threads = 4);
  ~BlockingPlugin() override;

  virtual Result<std::vector<PreparedDevice>> PrepareResourceClaim(const api::Object& claim) = 0;
  virtual Result<void> UnprepareResourceClaim(const rpc::ClaimReference& claim) = 0;

  void PrepareResourceClaims(std::vector<api::ObjectPtr> claims, PrepareDone done) final;
  void UnprepareResourceClaims(std::vector<rpc::ClaimReference> claims,
                               rpc::UnprepareDone done) final;

 protected:
  // Finishes what was begun. Every destructor of a derived class begins with it: the threads use
  // what it is about to destroy.
  void Stop();

 private:
  template <typename Answer, typename Claim, typename Work, typename Done>
  void RunEach(std::vector<Claim> claims, Work work, const std::function<Answer(Error)>& refuse,
               Done done);

  std::unique_ptr<WorkerPool> workers_;
};

}  // namespace drakkar::driver
