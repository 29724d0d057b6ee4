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

// Metadata for the containers that use a device (KEP-5304), written as is.
struct DeviceMetadata {
  metadata::Attributes attributes;  // at most 32, with names and values as in a ResourceSlice
  std::optional<metadata::NetworkDeviceData> network_data;

  bool operator==(const DeviceMetadata&) const = default;
};

// A prepared device.
struct PreparedDevice {
  std::vector<std::string> request_names;  // if empty, all requests of the claim
  std::string pool_name;
  std::string device_name;
  std::vector<std::string> cdi_device_ids;
  std::optional<std::string> share_id;
  // If absent, the metadata is not known yet: containers find an empty file until
  // MetadataUpdater::UpdateRequestMetadata is called. Ignored unless device metadata is on.
  std::optional<DeviceMetadata> metadata;

  bool operator==(const PreparedDevice&) const = default;
};

using PrepareResult = Result<std::vector<PreparedDevice>>;
using PrepareResults = std::map<std::string, PrepareResult>;  // by claim UID
using PrepareDone = absl::AnyInvocable<void(Result<PrepareResults>)>;

// What the author of a driver implements. All functions are called on the driver's loop, which also
// serves registration, health and calls for other claims, so they must not block. Slow work belongs
// elsewhere (BlockingPlugin provides threads). `done` may be called or dropped on any thread while
// the loop exists. Calling it twice aborts the process.
class Plugin {
 public:
  virtual ~Plugin() = default;

  // Prepares the devices of the claims. The SDK has read the claims from the server and checked
  // that they are allocated and have the UIDs the node asked for. Call `done` once, immediately or
  // later, with one result per claim, by UID; an error fails all of them. A claim without a result
  // fails. Must be idempotent: a node repeats the call after a restart, and for every pod.
  virtual void PrepareResourceClaims(std::vector<api::ObjectPtr> claims, PrepareDone done) = 0;

  // Undoes the preparation. The claims may no longer exist on the server, and may have been
  // prepared by another instance or never; an unknown claim counts as success. Must be idempotent.
  virtual void UnprepareResourceClaims(std::vector<rpc::ClaimReference> claims,
                                       rpc::UnprepareDone done) = 0;

  // Something failed in the background. After an error that is not recoverable the driver no longer
  // works and should exit. Logs by default.
  virtual void HandleError(const Error& error, bool recoverable);
};

// For drivers that prepare quickly: handles one claim at a time and returns the result. The loop is
// blocked meanwhile, so a call should take milliseconds.
class SynchronousPlugin : public Plugin {
 public:
  virtual Result<std::vector<PreparedDevice>> PrepareResourceClaim(const api::Object& claim) = 0;
  virtual Result<void> UnprepareResourceClaim(const rpc::ClaimReference& claim) = 0;

  void PrepareResourceClaims(std::vector<api::ObjectPtr> claims, PrepareDone done) final;
  void UnprepareResourceClaims(std::vector<rpc::ClaimReference> claims,
                               rpc::UnprepareDone done) final;
};

// For drivers that prepare slowly: handles each claim on one of the plugin's own threads, while the
// driver continues with registration, health and other claims. The functions below must be
// thread-safe, although they are never called concurrently for one claim, and must not use the
// loop. At most kMaxWaitingClaims wait for a thread; further ones fail.
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
  // Finishes started work. The destructor of every derived class must call it first, because the
  // threads use its members.
  void Stop();

 private:
  template <typename Answer, typename Claim, typename Work, typename Done>
  void RunEach(std::vector<Claim> claims, Work work, const std::function<Answer(Error)>& refuse,
               Done done);

  std::unique_ptr<WorkerPool> workers_;
};

}  // namespace drakkar::driver
