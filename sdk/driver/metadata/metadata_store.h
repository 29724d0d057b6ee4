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
//   <directory>/dra-device-metadata-spare   an empty directory of a claim that went
//
// and a record of whose it is (ClaimRecords).
//
// Readers see a complete document at any time, the old one or the new one: files that a container
// may have mounted are never written in place, only replaced by rename(2). Containers mount the
// directory, where they see that. Where several drivers share a request they mount each file, which
// keeps its content until the container ends, and the directory beside it.
//
// Prepare syncs nothing: a node that lost power has no containers, and prepares anew. Its files,
// and with them what the file system has to do, are as few as can be: pods wait for it. A new file
// that a crash tore is written anew by the next prepare, and nobody saw it. What is there for the
// claim already is kept, with its generation. An update is on disk before it is published; where
// that was cut off between metadata.json and the containers' file, Replay or the next prepare makes
// them equal. `<directory>/dra-device-metadata-claims/<namespace>_<claim>/<request>.update` is an
// update that an earlier version of the driver did not finish, and is completed likewise.
//
// Not a word of it is kept in memory (a ClaimPlan says what the claim says, not what is on disk):
// instances of a driver that hand over to each other see the same, and change it one at a time. Not
// thread-safe; calls block for the time of a few small files.
class MetadataStore {
 public:
  struct Options {
    FileSystem& files;
    std::string driver_name;
    std::string directory;  // the driver's own
    std::string cdi_directory;
    // Not empty: other processes that serve the same driver change the same files, and each change
    // is made under this lock. On a real file system.
    std::string lock_file;
    std::chrono::milliseconds lock_limit = std::chrono::seconds(5);  // then a call fails
    // Versions of the format to write, newest first. Unknown ones are passed over.
    std::vector<std::string> versions = {std::string(metadata::kV1alpha1)};
    metadata::Dialect dialect = metadata::Dialect::kKep;
  };
  // An error if none of the versions is known.
  static Result<std::unique_ptr<MetadataStore>> Create(Options options);

  // What Prepare needs to know of a claim, for a caller that has the claim before its devices.
  // Touches no files.
  Result<ClaimPlan> Plan(const api::Object& claim) const { return PlanClaim(claim, places_); }

  // Writes metadata and mounts for each request of the claim that this driver has devices of, and
  // adds the CDI ids of the mounts to `devices`: to one that belongs to that request alone, or as
  // an entry of its own, so that no container sees what is for a request it does not use.
  // A request without metadata gets an empty file. `plan` is what Plan(claim) returned; without it
  // Prepare plans itself.
  Result<void> Prepare(const api::Object& claim, std::vector<PreparedDevice>& devices,
                       std::optional<ClaimPlan> plan = std::nullopt);

  // See MetadataUpdater.
  Result<void> Update(const RequestReference& request, const std::vector<PreparedDevice>& devices);

  // Removes all of the claim; a claim that is not there is fine. What belongs to a claim of the
  // same name with another UID stays. Without a UID: whatever claim has the name.
  Result<void> Remove(const rpc::ClaimReference& claim);

  // What was prepared and can be updated.
  Result<std::vector<PreparedRequest>> Requests();

  // Completes updates that were cut off, also those of earlier versions of the driver. Returns the
  // first failure but tries all.
  Result<void> Replay();

  // The claims that have files. The UID is empty where it cannot be told.
  Result<std::vector<rpc::ClaimReference>> Claims();
  // Removes CDI specs whose metadata is gone.
  Result<void> RemoveStraySpecs();

 private:
  // A request on its way through Prepare.
  struct Wanted {
    std::string reference;
    std::vector<ClaimRecord::Device> allocated;
    std::vector<const PreparedDevice*> devices;  // beside `allocated`; null: not returned
    metadata::DeviceMetadata document;           // what they say, as generation 1
    bool deferred = false;                       // the driver said nothing about them yet
    std::string text;                            // of the document, unless deferred
  };
  using WantedRequests = std::map<std::string, Wanted>;  // by base name

  explicit MetadataStore(Options options);
  // Keeps other instances out until it is destroyed; may be nested.
  class Guard;
  Result<Guard> Lock();

  std::string UpdatePath(const ClaimRecord& record, const std::string& request) const;

  Result<WantedRequests> FindRequests(const ClaimPlan& plan,
                                      const std::vector<PreparedDevice>& devices) const;
  // Fills in the document, and checks what the API would not take.
  Result<void> Describe(const ClaimRecord& record, Wanted& wanted) const;
  Result<void> PrepareRequest(const ClaimRecord& record, const ClaimRecord* before,
                              const std::string& request, const Wanted& wanted);
  // Directories are what a file system makes and removes slowest: that of one claim that went is
  // kept for the next. Never the directory of a request, which a container that outlives its claim
  // still has mounted.
  Result<void> MakeRequestDirectory(const ClaimRecord& record, const std::string& request);
  Result<void> RemoveClaimDirectory(std::string_view namespace_name, std::string_view name);
  Result<void> WriteSpec(const ClaimRecord& record, const std::string& request,
                         std::map<std::string, std::string>& planned);
  void AddIds(const ClaimRecord& record, const WantedRequests& wanted,
              std::vector<PreparedDevice>& devices) const;

  // Nothing for a file that is absent or cannot be read; generation 0 for an empty one.
  Result<std::optional<metadata::DeviceMetadata>> ReadCurrent(const ClaimRecord& record,
                                                              const std::string& request,
                                                              bool* is_absent = nullptr);
  // Files of a claim that no container can have mounted yet.
  Result<void> WriteFirst(const ClaimRecord& record, const std::string& request,
                          const std::string& text);
  // On disk when it returns.
  Result<void> Replace(const ClaimRecord& record, const std::string& request,
                       const std::string& text);
  // Makes the containers' file that of metadata.json, if that is whole.
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
