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

// What the reference driver keeps on disk for prepared claims, and hands to containers:
//
//   <directory>/devices/<device>/<name>                  a file per attribute (0644)
//   <CDI directory>/<driver>_claim_<claim UID>.json      one CDI device per request (0644)
//
// The spec's annotations say whose it is and which devices it has, so that a claim is one file and
// lives as long as that. Earlier drivers kept a record, <directory>/claims/<claim UID>.json: it is
// read, and goes with the claim.
//
// A device's directory is made when it is first prepared and stays: making and removing directories
// is what a file system does slowest, and they are the same for every claim.
//
// A container sees its devices as /var/run/drakkar/devices/<device>/ and in its environment:
// DRAKKAR_DEVICES and DRAKKAR_DEVICE_<REQUEST> (names, comma-separated), DRAKKAR_<DEVICE>_<NAME>
// (an attribute or capacity), DRAKKAR_CONFIG_<REQUEST> (opaque parameters of claim or class).
//
// Idempotent: files that are right already are not touched, so that running containers keep theirs.
// Nothing is synced: a node that lost power has no containers, and prepares anew.
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

  // Makes the files for the devices of `pool_name` that the claim was given from this driver.
  Result<std::vector<PreparedDevice>> Prepare(const api::Object& claim,
                                              const std::string& pool_name, const Devices& devices);
  // Removes them; a claim that is not there is fine.
  Result<void> Unprepare(const std::string& claim_uid);

  // The claims that have files. One whose record cannot be read has only a UID.
  Result<std::vector<rpc::ClaimReference>> Prepared();

  // Removes the directories of devices that are neither known nor held by a prepared claim.
  Result<void> RemoveOldDevices(const Devices& known);

 private:
  struct Record {
    rpc::ClaimReference claim;
    std::vector<std::string> devices;  // none: it cannot be read
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
      written_;  // facts by device, of directories this process made
};

}  // namespace drakkar::driver
