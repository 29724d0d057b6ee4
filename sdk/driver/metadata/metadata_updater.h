#pragma once

#include <string>
#include <vector>

#include "base/result/result.h"
#include "sdk/driver/plugin.h"

namespace drakkar::driver {

// A request of a claim that this driver prepared.
struct RequestReference {
  std::string claim_namespace;
  std::string claim_name;
  std::string claim_uid;  // if empty, whichever claim was prepared under that name
  std::string request;    // with or without a subrequest
};

// A prepared request, and the devices that UpdateRequestMetadata accepts for it.
struct PreparedRequest {
  RequestReference request;
  std::vector<PreparedDevice> devices;  // pool, device and share, without metadata
  // The pods that the claim was reserved for when it was prepared.
  std::vector<std::string> pod_uids;
  // If false, metadata was deferred, and containers still find an empty file.
  bool has_metadata = false;
};

// For drivers that learn about their devices only after prepare, such as network drivers with an
// NRI hook. `Driver` implements it; other code in the same process gets a reference.
class MetadataUpdater {
 public:
  virtual ~MetadataUpdater() = default;

  // Makes `devices` the metadata of the request, for running containers as well. The generation
  // increases by one; the first content of an empty file is generation 1. The file is on disk when
  // it returns.
  //
  // Fails without changing anything if device metadata is off, if this driver did not prepare the
  // request (or it has been unprepared), if a device is not allocated for the request by this
  // driver, or if an attribute is invalid. If writing fails, the file has the old content, or gets
  // the new one at the next call or start. Works after a restart of the driver. Must be called on
  // the driver's loop.
  virtual Result<void> UpdateRequestMetadata(const RequestReference& request,
                                             const std::vector<PreparedDevice>& devices) = 0;
};

}  // namespace drakkar::driver
