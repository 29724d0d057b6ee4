#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/meta/object.h"
#include "api/metadata/device_metadata.h"
#include "base/env/file_lock.h"
#include "base/env/file_system.h"
#include "base/result/result.h"
#include "rpc/dra/dra.h"
#include "sdk/driver/metadata/claim_plan.h"
#include "sdk/driver/metadata/claim_record.h"
#include "sdk/driver/metadata/claim_records.h"
#include "sdk/driver/metadata/metadata_updater.h"

namespace drakkar::driver {

// Device metadata on disk (KEP-5304), for one driver:
//
//   <directory>/dra-device-metadata/<namespace>_<claim>/<request>/metadata.json
//   ... /<driver>-metadata.json                          the same, as containers see it (0644)
//   <CDI directory>/<driver>_metadata_<claim UID>_<request>.json    mounts the request's directory
//   <directory>/dra-device-metadata-spare   an empty directory of a removed claim, for reuse
//
// and a record of the claim (ClaimRecords).
//
// Readers always see a complete document, old or new: files that a container may have mounted are
// never written in place, only replaced by rename(2). Containers mount the directory, so they see
// the replacement. If several drivers share a request, containers mount each file, which keeps its
// content until the container ends, and the directory next to it.
//
// Prepare syncs nothing: after a power failure there are no containers, and the node prepares
// again. It writes as few files as possible, because pods wait for it. The next prepare replaces a
// file that a crash tore before anyone saw it. Existing files of the claim are kept, with their
// generation. An update is on disk before it is published. If it is interrupted between
// metadata.json and the containers' file, Replay or the next prepare makes them equal.
// `<directory>/dra-device-metadata-claims/<namespace>_<claim>/<request>.update` is an unfinished
// update of an older driver, and is completed in the same way.
//
// No state is kept in memory (a ClaimPlan depends only on the claim): both instances of a rolling
// update see the same files, and change them one at a time. Not thread-safe; calls block for a few
// small file operations.
class MetadataStore {
 public:
  struct Options {
    FileSystem& files;
    std::string driver_name;
    std::string directory;  // the driver's plugin directory
    std::string cdi_directory;
    // If not empty, other processes serve the same driver and change the same files; every change
    // is made under this lock. Needs a real file system.
    std::string lock_file;
    std::chrono::milliseconds lock_limit = std::chrono::seconds(5);  // after this the call fails
    // Versions of the format to write, newest first. Unknown ones are ignored.
    std::vector<std::string> versions = {std::string(metadata::kV1alpha1)};
    metadata::Dialect dialect = metadata::Dialect::kKep;
  };
  // Fails if none of the versions is known.
  static Result<std::unique_ptr<MetadataStore>> Create(Options options);

  // What Prepare needs to know of a claim, for a caller that has the claim before its devices.
  // Touches no files.
  Result<ClaimPlan> Plan(const api::Object& claim) const { return PlanClaim(claim, places_); }

  // Writes metadata and mounts for each request of the claim that has devices of this driver, and
  // adds the CDI ids of the mounts to `devices`: to a device that belongs to that request alone, or
  // as a separate entry, so that no container sees a request it does not use. A request without
  // metadata gets an empty file. `plan` is the result of Plan(claim); if absent, Prepare makes it.
  Result<void> Prepare(const api::Object& claim, std::vector<PreparedDevice>& devices,
                       std::optional<ClaimPlan> plan = std::nullopt);

  // See MetadataUpdater.
  Result<void> Update(const RequestReference& request, const std::vector<PreparedDevice>& devices);

  // Removes everything of the claim; a claim without files is not an error. Files of another claim
  // with the same name but a different UID stay. Without a UID, removes whichever claim has the
  // name.
  Result<void> Remove(const rpc::ClaimReference& claim);

  // The prepared requests, which can be updated.
  Result<std::vector<PreparedRequest>> Requests();

  // Completes interrupted updates, including those of older drivers. Tries all and returns the
  // first failure.
  Result<void> Replay();

  // The claims that have files. The UID is empty if it is unknown.
  Result<std::vector<rpc::ClaimReference>> Claims();
  // Removes CDI specs whose metadata is gone.
  Result<void> RemoveStraySpecs();

 private:
  // The state of one request during Prepare.
  struct Wanted {
    std::string reference;
    std::vector<ClaimRecord::Device> allocated;
    std::vector<const PreparedDevice*> devices;  // beside `allocated`; null: not returned
    metadata::DeviceMetadata document;           // the metadata of the devices, at generation 1
    bool deferred = false;                       // the driver returned no metadata yet
    std::string text;                            // of the document, unless deferred
  };
  using WantedRequests = std::map<std::string, Wanted>;  // by base name

  explicit MetadataStore(Options options);
  // Keeps other instances out until destroyed; may be nested.
  class Guard;
  Result<Guard> Lock();

  std::string UpdatePath(const ClaimRecord& record, const std::string& request) const;

  Result<WantedRequests> FindRequests(const ClaimPlan& plan,
                                      const std::vector<PreparedDevice>& devices) const;
  // Fills in and validates the document.
  Result<void> Describe(const ClaimRecord& record, Wanted& wanted) const;
  Result<void> PrepareRequest(const ClaimRecord& record, const ClaimRecord* before,
                              const std::string& request, const Wanted& wanted);
  // Creating and removing directories is slow, so the directory of one removed claim is kept for
  // the next. A request's directory is never reused, because a container that outlives its claim
  // still has it mounted.
  Result<void> MakeRequestDirectory(const ClaimRecord& record, const std::string& request);
  Result<void> RemoveClaimDirectory(std::string_view namespace_name, std::string_view name);
  Result<void> WriteSpec(const ClaimRecord& record, const std::string& request,
                         std::map<std::string, std::string>& planned);
  void AddIds(const ClaimRecord& record, const WantedRequests& wanted,
              std::vector<PreparedDevice>& devices) const;

  // Returns nothing if the file is absent or unreadable, and generation 0 if it is empty.
  Result<std::optional<metadata::DeviceMetadata>> ReadCurrent(const ClaimRecord& record,
                                                              const std::string& request,
                                                              bool* is_absent = nullptr);
  // Writes files that no container can have mounted yet.
  Result<void> WriteFirst(const ClaimRecord& record, const std::string& request,
                          const std::string& text);
  // The file is on disk when it returns.
  Result<void> Replace(const ClaimRecord& record, const std::string& request,
                       const std::string& text);
  // Copies metadata.json to the containers' file, if it is complete.
  Result<void> EnsureContainerFile(const ClaimRecord& record, const std::string& request);
  Result<void> ReplayRequest(const ClaimRecord& record, const std::string& request);
  Result<void> RemoveSpecs(std::string_view claim_uid);

  const Options options_;
  const MetadataPlaces places_;
  const ClaimRecords records_;
  std::unique_ptr<FileLock> lock_;
  int lock_depth_ = 0;
};

}  // namespace drakkar::driver
