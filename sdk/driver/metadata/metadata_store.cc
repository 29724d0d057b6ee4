#include "sdk/driver/metadata/metadata_store.h"

#include <algorithm>
#include <set>
#include <utility>

#include "api/metadata/document.h"
#include "api/metadata/paths.h"
#include "api/metadata/validation.h"
#include "base/hash/sha256.h"
#include "base/text/text.h"
#include "cdi/spec_reader.h"

namespace drakkar::driver {
namespace {

using metadata::BaseRequest;
using metadata::Dialect;

constexpr char kSpareDirectory[] = "dra-device-metadata-spare";
constexpr char kUpdateSuffix[] = ".update";
bool IsAbsent(const Error& error) {
  return error.code == ErrorCode::kNotFound;
}

Result<void> IgnoreAbsent(Result<void> result) {
  if (!result.ok() && IsAbsent(result.error())) return Ok();
  return result;
}

bool Matches(const PreparedDevice& device, const ClaimRecord::Device& allocated) {
  return device.pool_name == allocated.pool_name && device.device_name == allocated.device_name &&
         (!device.share_id.has_value() || device.share_id == allocated.share_id);
}

metadata::Device Describe(const std::string& driver_name, const std::string& pool_name,
                          const std::string& device_name,
                          const std::optional<DeviceMetadata>& metadata) {
  metadata::Device device;
  device.driver = driver_name;
  device.pool = pool_name;
  device.name = device_name;
  if (metadata.has_value()) {
    device.attributes = metadata->attributes;
    device.network_data = metadata->network_data;
  }
  return device;
}

// The digest of metadata at generation 1, in an encoding that never changes, because records of
// older drivers contain it too.
std::string Digest(const metadata::DeviceMetadata& metadata,
                   const std::vector<std::string>& versions, const std::string& encoded) {
  // Only network data is encoded differently in the dialects.
  const bool is_encoded_so =
      versions.size() == 1 && versions.front() == metadata::kV1alpha1 &&
      std::ranges::none_of(metadata.requests, [](const metadata::Request& request) {
        return std::ranges::any_of(request.devices, [](const metadata::Device& device) {
          return device.network_data.has_value();
        });
      });
  if (is_encoded_so) return Sha256Hex(encoded);
  return Sha256Hex(EncodeMetadata(metadata, std::vector{std::string(metadata::kV1alpha1)}));
}

bool EqualExceptGeneration(const metadata::DeviceMetadata& a, metadata::DeviceMetadata b) {
  b.generation = a.generation;
  return a == b;
}

std::string NotPrepared(const RequestReference& request) {
  return StrCat("request ", Quote(request.request), " not found in prepared claim ",
                request.claim_namespace, "/", request.claim_name);
}

}  // namespace

class MetadataStore::Guard {
 public:
  explicit Guard(MetadataStore& store) : store_(&store) { ++store.lock_depth_; }
  Guard(Guard&& other) noexcept : store_(std::exchange(other.store_, nullptr)) {}
  Guard& operator=(Guard&&) = delete;
  ~Guard() {
    if (store_ == nullptr || --store_->lock_depth_ > 0) return;
    if (store_->lock_ != nullptr) store_->lock_->Unlock();
  }

 private:
  MetadataStore* store_;
};

MetadataStore::MetadataStore(Options options)
    : options_(std::move(options)),
      places_{options_.driver_name, options_.directory, options_.cdi_directory, options_.dialect},
      records_(options_.files, options_.directory) {
  if (!options_.lock_file.empty()) lock_ = std::make_unique<FileLock>(options_.lock_file);
}

Result<MetadataStore::Guard> MetadataStore::Lock() {
  if (lock_ != nullptr && lock_depth_ == 0) {
    if (auto locked = lock_->LockWithin(options_.lock_limit); !locked.ok()) {
      return std::move(locked).error().Prefixed("acquire the lock between driver instances");
    }
  }
  return Guard(*this);
}

Result<std::unique_ptr<MetadataStore>> MetadataStore::Create(Options options) {
  std::vector<std::string> known;
  for (const std::string& version : options.versions) {
    if (metadata::IsKnownVersion(version)) known.push_back(version);
  }
  if (known.empty()) {
    return InvalidArgument(StrCat("none of the requested metadata API versions [",
                                  Join(options.versions, " "), "] are supported"));
  }
  options.versions = std::move(known);
  return std::unique_ptr<MetadataStore>(new MetadataStore(std::move(options)));
}

// --- paths ---

std::string MetadataStore::UpdatePath(const ClaimRecord& record, const std::string& request) const {
  return JoinPath(records_.UpdateDirectory(record.namespace_name, record.name),
                  request + kUpdateSuffix);
}

// --- prepare ---

Result<MetadataStore::WantedRequests> MetadataStore::FindRequests(
    const ClaimPlan& plan, const std::vector<PreparedDevice>& devices) const {
  WantedRequests wanted;
  if (options_.dialect == Dialect::kKubernetes) {
    // Kubernetes uses the devices that the driver returned.
    for (const PreparedDevice& device : devices) {
      for (const std::string& reference : device.request_names) {
        const std::string name = BaseRequest(reference);
        RETURN_IF_ERROR(CheckRequestName(name));
        Wanted& request = wanted[name];
        request.reference = reference;
        request.allocated.push_back({device.pool_name, device.device_name, device.share_id});
        request.devices.push_back(&device);
      }
    }
    return wanted;
  }
  for (const auto& [name, request] : plan.record.requests) {
    wanted[name] = {.reference = request.reference,
                    .allocated = request.devices,
                    .devices = std::vector<const PreparedDevice*>(request.devices.size(), nullptr)};
  }
  for (const PreparedDevice& device : devices) {
    bool found = false;
    for (auto& [name, request] : wanted) {
      const bool named =
          device.request_names.empty() ||
          std::ranges::any_of(device.request_names,
                              [&, base = std::string_view(name)](const std::string& reference) {
                                return BaseRequest(reference) == base;
                              });
      if (!named) continue;
      for (std::size_t i = 0; i < request.allocated.size(); ++i) {
        if (request.devices[i] != nullptr || !Matches(device, request.allocated[i])) continue;
        request.devices[i] = &device;
        found = true;
        break;
      }
    }
    if (!found && device.metadata.has_value()) {
      return InvalidArgument(StrCat("the driver returned metadata for device ", device.pool_name,
                                    "/", device.device_name, ", which is not allocated for ",
                                    device.request_names.empty()
                                        ? "any request"
                                        : "request " + device.request_names.front()));
    }
  }
  return wanted;
}

Result<void> MetadataStore::Describe(const ClaimRecord& record, Wanted& wanted) const {
  // In the Kubernetes dialect, deferred metadata is a file without attributes.
  wanted.deferred = options_.dialect == Dialect::kKep &&
                    std::ranges::none_of(wanted.devices, [](const PreparedDevice* device) {
                      return device != nullptr && device->metadata.has_value();
                    });
  metadata::DeviceMetadata& document = wanted.document;
  document.claim_name = record.name;
  document.claim_namespace = record.namespace_name;
  document.claim_uid = record.uid;
  document.generation = 1;
  document.pod_claim_name = record.pod_claim_name;
  metadata::Request& request = document.requests.emplace_back();
  request.name = wanted.reference;
  for (std::size_t i = 0; i < wanted.allocated.size(); ++i) {
    const PreparedDevice* device = wanted.devices[i];
    request.devices.push_back(driver::Describe(
        options_.driver_name, wanted.allocated[i].pool_name, wanted.allocated[i].device_name,
        device == nullptr ? std::nullopt : device->metadata));
    if (options_.dialect == Dialect::kKubernetes) continue;
    RETURN_IF_ERROR(metadata::ValidateDevice(request.devices.back()));
  }
  if (!wanted.deferred) wanted.text = EncodeMetadata(document, options_.versions, options_.dialect);
  return Ok();
}

Result<void> MetadataStore::Prepare(const api::Object& claim, std::vector<PreparedDevice>& devices,
                                    std::optional<ClaimPlan> plan) {
  if (!plan) {
    ASSIGN_OR_RETURN(plan, Plan(claim));
  }
  ASSIGN_OR_RETURN(WantedRequests wanted, FindRequests(*plan, devices));
  ClaimRecord& record = plan->record;
  // Validate all metadata before the first file is touched.
  for (auto& [name, request] : wanted) RETURN_IF_ERROR(Describe(record, request));
  if (wanted.empty()) return Ok();

  ASSIGN_OR_RETURN(const Guard guard, Lock());
  ASSIGN_OR_RETURN(std::optional<ClaimRecord> before,
                   records_.Find(record.namespace_name, record.name));
  if (before.has_value() && before->uid != record.uid) {
    RETURN_IF_ERROR(Remove(
        {.namespace_name = before->namespace_name, .uid = before->uid, .name = before->name}));
    before.reset();
  }
  // Write the record first, so that everything written after it can be found and removed. It has
  // the digests of new requests, but those of changed requests only after the change is done.
  ClaimRecord finished = record;
  for (const auto& [name, request] : wanted) {
    ClaimRecord::Request& entry = finished.requests[name];
    entry.reference = request.reference;
    entry.devices = request.allocated;
    if (!request.deferred)
      entry.prepared = Digest(request.document, options_.versions, request.text);
    if (before.has_value() && before->requests.contains(name)) {
      const std::string& known = before->requests.at(name).prepared;
      if (request.deferred) entry.prepared = known;
      record.requests[name] = entry;
      if (entry.prepared != known) record.requests[name].prepared.clear();
    } else {
      record.requests[name] = entry;
    }
  }
  const ClaimRecord* known = before.has_value() ? &*before : nullptr;
  RETURN_IF_ERROR(records_.Write(record, known));
  for (const auto& [name, request] : wanted) {
    auto done = PrepareRequest(finished, known, name, request);
    if (done.ok()) done = WriteSpec(finished, name, plan->specs);
    if (!done.ok()) {
      return std::move(done).error().Prefixed("request " + Quote(request.reference));
    }
  }
  RETURN_IF_ERROR(records_.Write(finished, &record));
  AddIds(finished, wanted, devices);
  return Ok();
}

Result<void> MetadataStore::PrepareRequest(const ClaimRecord& record, const ClaimRecord* before,
                                           const std::string& request, const Wanted& wanted) {
  const std::string path = places_.MetadataPath(record, request);
  // Without a record there is nothing to replay.
  if (before != nullptr) RETURN_IF_ERROR(ReplayRequest(record, request));
  bool is_absent = false;
  ASSIGN_OR_RETURN(const auto current, ReadCurrent(record, request, &is_absent));
  if (is_absent) {
    RETURN_IF_ERROR(MakeRequestDirectory(record, request));
    if (before == nullptr) return WriteFirst(record, request, wanted.text);
    RETURN_IF_ERROR(options_.files.WriteFileAtomically(path, wanted.text, 0644, /*sync=*/false));
  } else if (!current.has_value()) {
    RETURN_IF_ERROR(options_.files.WriteFileAtomically(path, wanted.text, 0644, /*sync=*/false));
  } else if (!wanted.deferred) {
    // Compare with what prepare returned last time, so that an update in between is kept.
    const bool known = before != nullptr && before->requests.contains(request);
    const bool same =
        known && !before->requests.at(request).prepared.empty()
            ? before->requests.at(request).prepared == record.requests.at(request).prepared
            : EqualExceptGeneration(*current, wanted.document);
    if (!same || current->generation == 0) {
      metadata::DeviceMetadata document = wanted.document;
      document.generation = current->generation + 1;
      return Replace(record, request,
                     EncodeMetadata(document, options_.versions, options_.dialect));
    }
  }
  return EnsureContainerFile(record, request);
}

Result<void> MetadataStore::MakeRequestDirectory(const ClaimRecord& record,
                                                 const std::string& request) {
  const std::string claim_directory = places_.ClaimDirectory(record.namespace_name, record.name);
  // Reuse the spare directory. Fails if there is none, or if the claim already has a directory.
  static_cast<void>(
      options_.files.Rename(JoinPath(options_.directory, kSpareDirectory), claim_directory));
  const std::string directory = places_.RequestDirectory(record, request);
  RETURN_IF_ERROR(options_.files.MakeDirectories(directory, 0755));
  return options_.files.SetMode(directory, 0755);  // despite the umask: any user may read it
}

Result<void> MetadataStore::RemoveClaimDirectory(std::string_view namespace_name,
                                                 std::string_view name) {
  const std::string directory = places_.ClaimDirectory(namespace_name, name);
  const auto requests = options_.files.ListDirectory(directory);
  if (requests.ok() && requests->size() == 1) {
    RETURN_IF_ERROR(options_.files.RemoveTree(JoinPath(directory, requests->front())));
    // Fails if there already is a spare directory.
    if (options_.files.Rename(directory, JoinPath(options_.directory, kSpareDirectory)).ok()) {
      return Ok();
    }
  }
  return options_.files.RemoveTree(directory);
}

Result<void> MetadataStore::WriteSpec(const ClaimRecord& record, const std::string& request,
                                      std::map<std::string, std::string>& planned) {
  std::string& text = planned[request];
  if (text.empty()) {
    ASSIGN_OR_RETURN(text, places_.SpecText(record, request, /*is_shared=*/false));
  }
  return options_.files.EnsureFile(places_.SpecPath(record, request), text, 0644);
}

void MetadataStore::AddIds(const ClaimRecord& record, const WantedRequests& wanted,
                           std::vector<PreparedDevice>& devices) const {
  for (const auto& [name, request] : wanted) {
    const std::string id = StrCat(places_.SpecKind(), "=", places_.SpecDevice(record, name));
    const auto alone = std::ranges::find_if(
        devices, [&, base = std::string_view(name)](const PreparedDevice& device) {
          return device.request_names.size() == 1 && BaseRequest(device.request_names[0]) == base;
        });
    if (alone != devices.end()) {
      alone->cdi_device_ids.push_back(id);
      continue;
    }
    // No device belongs to this request alone: add entries for its devices, with the mount on the
    // first one.
    const bool shared = std::ranges::any_of(
        request.devices, [](const PreparedDevice* device) { return device != nullptr; });
    for (const ClaimRecord::Device& allocated : request.allocated) {
      PreparedDevice& device = devices.emplace_back();
      device.request_names = {request.reference};
      device.pool_name = allocated.pool_name;
      device.device_name = allocated.device_name;
      device.share_id = allocated.share_id;
      if (&allocated == &request.allocated.front()) device.cdi_device_ids = {id};
      if (shared) break;
    }
  }
}

// --- update ---

Result<void> MetadataStore::Update(const RequestReference& request,
                                   const std::vector<PreparedDevice>& devices) {
  RETURN_IF_ERROR(CheckClaimNames(request.claim_namespace, request.claim_name, request.claim_uid));
  const std::string name = BaseRequest(request.request);
  RETURN_IF_ERROR(CheckRequestName(name));
  ASSIGN_OR_RETURN(const Guard guard, Lock());
  ASSIGN_OR_RETURN(const std::optional<ClaimRecord> record,
                   records_.Find(request.claim_namespace, request.claim_name));
  if (!record.has_value()) return FailedPrecondition(NotPrepared(request));
  if (!request.claim_uid.empty() && request.claim_uid != record->uid) {
    return FailedPrecondition(StrCat(NotPrepared(request), ": it was prepared with UID ",
                                     record->uid, ", not ", request.claim_uid));
  }
  const auto known = record->requests.find(name);
  if (known == record->requests.end()) return FailedPrecondition(NotPrepared(request));

  metadata::DeviceMetadata document;
  document.claim_name = record->name;
  document.claim_namespace = record->namespace_name;
  document.claim_uid = record->uid;
  document.pod_claim_name = record->pod_claim_name;
  document.requests.emplace_back().name = known->second.reference;
  std::vector<ClaimRecord::Device> left = known->second.devices;
  for (const PreparedDevice& device : devices) {
    if (options_.dialect == Dialect::kKep) {
      const auto own = std::ranges::find_if(
          left, [&](const ClaimRecord::Device& allocated) { return Matches(device, allocated); });
      if (own == left.end()) {
        return InvalidArgument(StrCat("device ", device.pool_name, "/", device.device_name,
                                      " is not allocated for request ", Quote(request.request),
                                      " of claim ", request.claim_namespace, "/",
                                      request.claim_name, " by driver ", options_.driver_name));
      }
      left.erase(own);
    }
    document.requests.front().devices.push_back(driver::Describe(
        options_.driver_name, device.pool_name, device.device_name, device.metadata));
    if (options_.dialect == Dialect::kKep) {
      RETURN_IF_ERROR(metadata::ValidateDevice(document.requests.front().devices.back()));
    }
  }
  RETURN_IF_ERROR(ReplayRequest(*record, name));
  ASSIGN_OR_RETURN(const auto current, ReadCurrent(*record, name));
  // The record has no files if someone else removed them.
  if (!current.has_value()) return FailedPrecondition(NotPrepared(request));
  document.generation = current->generation + 1;
  return Replace(*record, name, EncodeMetadata(document, options_.versions, options_.dialect));
}

Result<void> MetadataStore::WriteFirst(const ClaimRecord& record, const std::string& request,
                                       const std::string& text) {
  std::vector<std::string> paths = {places_.MetadataPath(record, request)};
  if (options_.dialect == Dialect::kKep) {
    paths.push_back(places_.ContainerFilePath(record, request));
  }
  for (const std::string& path : paths) {
    RETURN_IF_ERROR(options_.files.WriteFile(path, text, 0644));
    RETURN_IF_ERROR(options_.files.SetMode(path, 0644));  // despite the umask
  }
  return Ok();
}

Result<void> MetadataStore::Replace(const ClaimRecord& record, const std::string& request,
                                    const std::string& text) {
  RETURN_IF_ERROR(
      options_.files.WriteFileAtomically(places_.MetadataPath(record, request), text, 0644));
  if (options_.dialect == Dialect::kKubernetes) return Ok();
  return options_.files.WriteFileAtomically(places_.ContainerFilePath(record, request), text, 0644,
                                            /*sync=*/false);
}

Result<void> MetadataStore::EnsureContainerFile(const ClaimRecord& record,
                                                const std::string& request) {
  if (options_.dialect == Dialect::kKubernetes) return Ok();
  auto text = options_.files.ReadFile(places_.MetadataPath(record, request));
  if (!text.ok()) {
    if (IsAbsent(text.error())) return Ok();
    return std::move(text).error();
  }
  if (!text->empty()) {
    const auto decoded = metadata::DecodeMetadata(*text);
    if (!decoded.ok() || decoded->claim_uid != record.uid) return Ok();
  }
  RETURN_IF_ERROR(options_.files.SetMode(places_.RequestDirectory(record, request), 0755));
  return options_.files.EnsureFile(places_.ContainerFilePath(record, request), *text, 0644);
}

Result<void> MetadataStore::ReplayRequest(const ClaimRecord& record, const std::string& request) {
  const std::string update = UpdatePath(record, request);
  auto text = options_.files.ReadFile(update);
  if (!text.ok()) {
    if (IsAbsent(text.error())) return Ok();
    return std::move(text).error();
  }
  // The update was renamed into place, so it is complete. Ignore one for another claim.
  const auto decoded = metadata::DecodeMetadata(*text);
  if (decoded.ok() && decoded->claim_uid == record.uid) {
    RETURN_IF_ERROR(
        options_.files.MakeDirectories(places_.RequestDirectory(record, request), 0755));
    RETURN_IF_ERROR(Replace(record, request, *text));
  }
  return IgnoreAbsent(options_.files.Remove(update));
}

Result<std::vector<PreparedRequest>> MetadataStore::Requests() {
  ASSIGN_OR_RETURN(const Guard guard, Lock());
  ASSIGN_OR_RETURN(const std::set<std::string> names, records_.List());
  std::vector<PreparedRequest> requests;
  for (const std::string& name : names) {
    const std::size_t line = name.find('_');
    if (line == std::string::npos) continue;
    ASSIGN_OR_RETURN(const auto record, records_.Find(name.substr(0, line), name.substr(line + 1)));
    if (!record.has_value()) continue;
    for (const auto& [base, entry] : record->requests) {
      PreparedRequest& request = requests.emplace_back();
      request.request = {record->namespace_name, record->name, record->uid, entry.reference};
      request.pod_uids = record->pods;
      const auto file = options_.files.Stat(places_.MetadataPath(*record, base));
      request.has_metadata = file.ok() && file->size_bytes > 0;
      for (const ClaimRecord::Device& known : entry.devices) {
        PreparedDevice& device = request.devices.emplace_back();
        device.request_names = {entry.reference};
        device.pool_name = known.pool_name;
        device.device_name = known.device_name;
        device.share_id = known.share_id;
      }
    }
  }
  return requests;
}

Result<void> MetadataStore::Replay() {
  ASSIGN_OR_RETURN(const Guard guard, Lock());
  ASSIGN_OR_RETURN(const std::set<std::string> names, records_.List());
  Result<void> outcome = Ok();
  for (const std::string& name : names) {
    const std::size_t line = name.find('_');
    if (line == std::string::npos) continue;
    auto record = records_.Find(name.substr(0, line), name.substr(line + 1));
    if (!record.ok() || !record->has_value()) {
      if (!record.ok() && outcome.ok()) outcome = std::move(record).error();
      continue;
    }
    for (const auto& [request, entry] : (*record)->requests) {
      auto replayed = ReplayRequest(**record, request);
      if (replayed.ok()) replayed = EnsureContainerFile(**record, request);
      if (!replayed.ok() && outcome.ok()) outcome = std::move(replayed);
    }
  }
  return outcome;
}

// --- clean-up ---

Result<void> MetadataStore::Remove(const rpc::ClaimReference& claim) {
  // A claim with an invalid name cannot have been prepared.
  if (!CheckClaimNames(claim.namespace_name, claim.name, claim.uid).ok()) return Ok();
  ASSIGN_OR_RETURN(const Guard guard, Lock());
  ASSIGN_OR_RETURN(const std::optional<ClaimRecord> record,
                   records_.Find(claim.namespace_name, claim.name));
  // Remove the record last: until then the next call or start can repair a failure.
  if (!claim.uid.empty()) RETURN_IF_ERROR(RemoveSpecs(claim.uid));
  if (record.has_value() && !claim.uid.empty() && record->uid != claim.uid) return Ok();
  RETURN_IF_ERROR(RemoveClaimDirectory(claim.namespace_name, claim.name));
  // Without a UID the spec's name is unknown, but it mounts files that no longer exist.
  if (claim.uid.empty()) RETURN_IF_ERROR(RemoveStraySpecs());
  return records_.Remove(claim.namespace_name, claim.name);
}

Result<void> MetadataStore::RemoveSpecs(std::string_view claim_uid) {
  auto names = options_.files.ListDirectory(options_.cdi_directory);
  if (!names.ok()) {
    if (IsAbsent(names.error())) return Ok();
    return std::move(names).error();
  }
  const std::string prefix = places_.SpecPrefixOf(claim_uid);
  for (const std::string& name : *names) {
    if (!name.starts_with(prefix) || !name.ends_with(".json")) continue;
    RETURN_IF_ERROR(IgnoreAbsent(options_.files.Remove(JoinPath(options_.cdi_directory, name))));
  }
  return Ok();
}

Result<std::vector<rpc::ClaimReference>> MetadataStore::Claims() {
  ASSIGN_OR_RETURN(std::set<std::string> names, records_.List());
  auto with_files =
      options_.files.ListDirectory(JoinPath(options_.directory, metadata::kHostDirectory));
  if (!with_files.ok() && !IsAbsent(with_files.error())) return std::move(with_files).error();
  if (with_files.ok()) names.insert(with_files->begin(), with_files->end());
  std::vector<rpc::ClaimReference> claims;
  for (const std::string& name : names) {
    const std::size_t line = name.find('_');
    if (line == std::string::npos) continue;
    rpc::ClaimReference claim{
        .namespace_name = name.substr(0, line), .uid = "", .name = name.substr(line + 1)};
    if (!CheckClaimNames(claim.namespace_name, claim.name, "").ok()) continue;
    ASSIGN_OR_RETURN(const auto record, records_.Find(claim.namespace_name, claim.name));
    if (record.has_value()) {
      claim.uid = record->uid;
    } else if (auto requests = options_.files.ListDirectory(
                   places_.ClaimDirectory(claim.namespace_name, claim.name));
               requests.ok()) {
      // No record, perhaps written by another library: the files contain the claim.
      for (const std::string& request : *requests) {
        auto text = options_.files.ReadFile(
            JoinPath(JoinPath(places_.ClaimDirectory(claim.namespace_name, claim.name), request),
                     metadata::kHostFile));
        if (!text.ok()) continue;
        if (auto decoded = metadata::DecodeMetadata(*text); decoded.ok()) {
          claim.uid = decoded->claim_uid;
        }
      }
    }
    claims.push_back(std::move(claim));
  }
  return claims;
}

Result<void> MetadataStore::RemoveStraySpecs() {
  ASSIGN_OR_RETURN(const Guard guard, Lock());
  auto names = options_.files.ListDirectory(options_.cdi_directory);
  if (!names.ok()) {
    if (IsAbsent(names.error())) return Ok();
    return std::move(names).error();
  }
  const std::string prefix = places_.SpecPrefix();
  for (const std::string& name : *names) {
    if (!name.starts_with(prefix) || !name.ends_with(".json")) continue;
    const std::string path = JoinPath(options_.cdi_directory, name);
    auto text = options_.files.ReadFile(path);
    if (!text.ok()) continue;
    const auto spec = cdi::ReadSpecJson(*text);
    if (!spec.ok() || spec->devices.empty()) continue;
    const bool stray = std::ranges::all_of(
        spec->devices.front().container_edits.mounts, [&](const cdi::Mount& mount) {
          const auto host = options_.files.Stat(mount.host_path);
          if (!host.ok()) return true;
          return host->type == FileType::kDirectory &&
                 !options_.files.Exists(JoinPath(mount.host_path, metadata::kHostFile));
        });
    if (stray) RETURN_IF_ERROR(IgnoreAbsent(options_.files.Remove(path)));
  }
  return Ok();
}

// --- files ---

Result<std::optional<metadata::DeviceMetadata>> MetadataStore::ReadCurrent(
    const ClaimRecord& record, const std::string& request, bool* is_absent) {
  std::optional<metadata::DeviceMetadata> current;
  auto text = options_.files.ReadFile(places_.MetadataPath(record, request));
  if (is_absent != nullptr) *is_absent = !text.ok() && IsAbsent(text.error());
  if (!text.ok()) {
    if (IsAbsent(text.error())) return current;
    return std::move(text).error();
  }
  if (text->empty()) return std::optional(metadata::DeviceMetadata());
  auto decoded = metadata::DecodeMetadata(*text);
  if (decoded.ok() && decoded->claim_uid == record.uid) current = *std::move(decoded);
  return current;
}

}  // namespace drakkar::driver
