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
  std::string claim_uid;  // empty: of whatever claim was prepared under that name
  std::string request;    // with or without a subrequest
};

// One that was prepared, and the devices that UpdateRequestMetadata takes for it.
struct PreparedRequest {
  RequestReference request;
  std::vector<PreparedDevice> devices;  // pool, device and share; no metadata
  // The pods that the claim was reserved for when it was prepared.
  std::vector<std::string> pod_uids;
  // False: containers find an empty file, metadata was deferred and has not come yet.
  bool has_metadata = false;
};

// For drivers that learn what their devices are only after prepare, such as network drivers from an
// NRI hook. `Driver` is one; code that runs beside it in the same process gets a reference.
class MetadataUpdater {
 public:
  virtual ~MetadataUpdater() = default;

  // Makes `devices` the metadata of the request: what containers read, from now on, those that run
  // already included. The generation goes up by one; the first content of a file that was empty is
  // generation 1. When it returns the text is on disk.
  //
  // Refused if device metadata is off, for a request that this driver did not prepare (or that was
  // unprepared meanwhile), for a device that the request was not given from this driver, and for
  // attributes that the API would not take; then nothing has changed. When writing fails the file
  // has the old text, or gets the new one at the next call or start. Works after a restart of the
  // driver. Must be called on the driver's loop.
  virtual Result<void> UpdateRequestMetadata(const RequestReference& request,
                                             const std::vector<PreparedDevice>& devices) = 0;
};

}  // namespace drakkar::driver
