#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/meta/object.h"
#include "base/env/file_system.h"
#include "base/result/result.h"
#include "cdi/spec.h"
#include "rpc/dra/dra.h"
#include "sdk/driver/plugin.h"
#include "sdk/driver/reference/device_config.h"

namespace drakkar::driver {

// The files that the reference driver keeps for prepared claims and mounts into containers:
//
//   <directory>/devices/<device>/<name>                  a file per attribute (0644)
//   <CDI directory>/<driver>_claim_<claim UID>.json      one CDI device per request (0644)
//
// The spec's annotations name the claim and its devices, so that a claim is a single file. Older
// drivers kept a record in <directory>/claims/<claim UID>.json, which is still read, and removed
// with the claim.
//
// A device's directory is created when it is first prepared and then kept: creating and removing
// directories is slow, and they are the same for every claim.
//
// A container sees its devices as /var/run/drakkar/devices/<device>/ and in its environment:
// DRAKKAR_DEVICES and DRAKKAR_DEVICE_<REQUEST> (names, comma-separated), DRAKKAR_<DEVICE>_<NAME>
// (an attribute or capacity), DRAKKAR_CONFIG_<REQUEST> (opaque parameters of claim or class).
//
// Idempotent: unchanged files are not touched, so that running containers keep theirs. Nothing is
// synced: after a power failure there are no containers, and the node prepares again.
class ClaimFiles {
 public:
  struct Options {
    FileSystem& files;
    std::string driver_name;
    std::string directory;
    std::string cdi_directory;
  };
  explicit ClaimFiles(Options options) : options_(std::move(options)) {}

  using Devices = std::map<std::string, SimulatedDevice>;

  // Writes the files for the claim's devices of this driver in `pool_name`.
  Result<std::vector<PreparedDevice>> Prepare(const api::Object& claim,
                                              const std::string& pool_name, const Devices& devices);
  // Removes them; an unknown claim is not an error.
  Result<void> Unprepare(const std::string& claim_uid);

  // The claims that have files. If a record cannot be read, only the UID is set.
  Result<std::vector<rpc::ClaimReference>> Prepared();

  // Removes the directories of devices that are neither known nor used by a prepared claim.
  Result<void> RemoveOldDevices(const Devices& known);

 private:
  struct Record {
    rpc::ClaimReference claim;
    std::vector<std::string> devices;  // empty if the record cannot be read
  };
  using Records = std::map<std::string, Record>;  // by claim UID
  Result<Records> ReadRecords();
  Result<void> ReadOldRecords(Records& records);
  std::string OldRecordPath(const std::string& claim_uid) const;
  std::string DeviceDirectory(const std::string& device) const;
  std::string SpecPath(const std::string& claim_uid) const;
  Result<void> WriteDevice(const std::string& name,
                           const std::map<std::string, std::string>& facts);
  Result<cdi::Device> DescribeRequest(const api::Object& claim, const std::string& request,
                                      const std::vector<const SimulatedDevice*>& devices);

  const Options options_;
  std::map<std::string, std::map<std::string, std::string>>
      written_;  // facts by device, for directories that this process wrote
};

}  // namespace drakkar::driver
