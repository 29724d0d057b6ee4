#include "apiserver/pki/cluster_keys.h"

#include <utility>
#include <vector>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "net/tls/certificates.h"
#include "net/tls/crypto.h"

namespace drakkar::apiserver {
namespace {

constexpr Duration kCaLifetime = std::chrono::hours(24 * 3650);
// Allows for small clock differences between the machines of a cluster.
constexpr Duration kBackdate = std::chrono::minutes(5);

// In the order they are written. A certificate without its key would look complete after a crash,
// so the key comes first.
constexpr struct {
  const char* name;
  std::uint32_t mode;
} kFiles[] = {
    {kCaKeyFile, 0600},        {kCaFile, 0644},       {kFrontProxyCaKeyFile, 0600},
    {kFrontProxyCaFile, 0644}, {kTokenKeyFile, 0600},
};

// Those that exist. A key whose certificate is missing does not count.
Result<ClusterKeys> ReadKeys(FileSystem& files, const std::string& directory) {
  ClusterKeys keys;
  for (const auto& file : kFiles) {
    const std::string path = JoinPath(directory, file.name);
    if (!files.Exists(path)) continue;
    ASSIGN_OR_RETURN(keys[file.name], files.ReadFile(path));
  }
  if (!keys.contains(kCaFile)) keys.erase(kCaKeyFile);
  if (!keys.contains(kFrontProxyCaFile)) keys.erase(kFrontProxyCaKeyFile);
  return keys;
}

Result<void> MakeCa(ClusterKeys& keys, const Clock& clock, std::string_view name,
                    const char* certificate_file, const char* key_file) {
  if (keys.contains(certificate_file)) {
    if (keys.contains(key_file)) return Ok();
    return FailedPrecondition(StrCat(certificate_file, " exists, but ", key_file, " is not"));
  }
  // The CAs of two clusters have the same name and differ in their random serial numbers.
  ASSIGN_OR_RETURN(net::CertificateAndKey made,
                   net::CreateCa(name, {clock.Now() - kBackdate, clock.Now() + kCaLifetime}));
  keys[certificate_file] = std::move(made.certificate_pem);
  keys[key_file] = std::move(made.key_pem);
  return Ok();
}

Result<ClusterKeys> Complete(ClusterKeys keys, const Clock& clock) {
  RETURN_IF_ERROR(MakeCa(keys, clock, "drakkar-ca", kCaFile, kCaKeyFile));
  RETURN_IF_ERROR(
      MakeCa(keys, clock, "drakkar-front-proxy-ca", kFrontProxyCaFile, kFrontProxyCaKeyFile));
  if (!keys.contains(kTokenKeyFile)) {
    ASSIGN_OR_RETURN(keys[kTokenKeyFile], net::GenerateKeyPem());
  }
  return keys;
}

Result<void> WriteMissing(FileSystem& files, const std::string& directory, const ClusterKeys& keys,
                          const ClusterKeys& there) {
  RETURN_IF_ERROR(files.MakeDirectories(directory, 0700));
  for (const auto& file : kFiles) {
    if (there.contains(file.name)) continue;
    RETURN_IF_ERROR(
        files.WriteFileAtomically(JoinPath(directory, file.name), keys.at(file.name), file.mode));
  }
  return Ok();
}

// {"ca.crt": {"content": ...}, "ca.key": {"sha256": ...}, ...}
std::string EncodeRecord(const ClusterKeys& keys, const ClusterKeys& provided) {
  api::Draft record = api::Draft::Object();
  for (const auto& [name, content] : keys) {
    if (provided.contains(name)) {
      record.Entry(name)["sha256"] = net::Sha256Hex(content);
    } else {
      record.Entry(name)["content"] = content;
    }
  }
  return api::WriteJson(record.Freeze()->root());
}

// The contents of all files, from the record and the existing files.
Result<ClusterKeys> Compare(std::string_view text, const ClusterKeys& there,
                            const std::string& directory) {
  ASSIGN_OR_RETURN(const api::TreePtr record, api::ParseJson(text));
  ClusterKeys keys;
  std::vector<std::string_view> missing;
  for (const auto& file : kFiles) {
    const api::Value entry = record->root().Entry(file.name);
    const std::string content(entry["content"].str());
    const auto own = there.find(file.name);
    if (own != there.end()) {
      const std::string expected =
          content.empty() ? std::string(entry["sha256"].str()) : net::Sha256Hex(content);
      if (net::Sha256Hex(own->second) != expected) {
        return FailedPrecondition(
            StrCat(JoinPath(directory, file.name),
                   " is not the file that the other API servers of this cluster use; replace it by "
                   "theirs, or move it away if they created it"));
      }
      keys[file.name] = own->second;
    } else if (content.empty()) {
      missing.push_back(file.name);
    } else {
      keys[file.name] = content;
    }
  }
  if (!missing.empty()) {
    return FailedPrecondition(StrCat("the first API server of this cluster was given its own ",
                                     Join(missing, ", "), "; copy them from its directory pki to ",
                                     directory));
  }
  return keys;
}

// One run of ShareClusterKeys; owned by the callbacks of the store.
struct Sharing : std::enable_shared_from_this<Sharing> {
  storage::Store& store;
  std::string key;
  FileSystem& files;
  const Clock& clock;
  std::string directory;
  std::function<void(Result<void>)> done;

  Sharing(storage::Store& s, std::string k, FileSystem& f, const Clock& c, std::string d,
          std::function<void(Result<void>)> then)
      : store(s),
        key(std::move(k)),
        files(f),
        clock(c),
        directory(std::move(d)),
        done(std::move(then)) {}

  void Look() {
    store.Range({.prefix = key, .limit = 1, .count_remaining = false},
                [self = shared_from_this()](Result<storage::RangeResult> found) {
                  if (!found.ok()) return self->done(found.error());
                  if (!found->unreadable.empty()) {
                    return self->done(Error{ErrorCode::kDataLoss, found->unreadable[0].reason});
                  }
                  const bool exists = !found->entries.empty() && found->entries[0].key == self->key;
                  if (exists) return self->done(self->TakeOver(*found->entries[0].value));
                  if (Result<void> asked = self->Record(); !asked.ok()) self->done(asked);
                });
  }

  Result<void> TakeOver(std::string_view record) {
    ASSIGN_OR_RETURN(const ClusterKeys there, ReadKeys(files, directory));
    ASSIGN_OR_RETURN(const ClusterKeys keys, Compare(record, there, directory));
    return WriteMissing(files, directory, keys, there);
  }

  // Write nothing to the directory before the store has decided whose keys are used.
  Result<void> Record() {
    ASSIGN_OR_RETURN(const ClusterKeys there, ReadKeys(files, directory));
    ASSIGN_OR_RETURN(const ClusterKeys keys, Complete(there, clock));
    storage::Transaction transaction;
    transaction.conditions.push_back({key, 0});
    transaction.operations.push_back(
        {key, std::make_shared<const std::string>(EncodeRecord(keys, there))});
    store.Commit(
        std::move(transaction),
        [self = shared_from_this()](const Result<storage::TransactionResult>& result) {
          if (!result.ok()) return self->done(result.error());
          // Our record, or that of a server that was faster: read the stored one.
          self->Look();
        },
        nullptr);
    return Ok();
  }
};

}  // namespace

Result<ClusterKeys> OpenClusterKeys(FileSystem& files, const Clock& clock,
                                    const std::string& directory) {
  ASSIGN_OR_RETURN(const ClusterKeys there, ReadKeys(files, directory));
  ASSIGN_OR_RETURN(ClusterKeys keys, Complete(there, clock));
  RETURN_IF_ERROR(WriteMissing(files, directory, keys, there));
  return keys;
}

void ShareClusterKeys(storage::Store& store, std::string key, FileSystem& files, const Clock& clock,
                      std::string directory, std::function<void(Result<void>)> done) {
  std::make_shared<Sharing>(store, std::move(key), files, clock, std::move(directory),
                            std::move(done))
      ->Look();
}

}  // namespace drakkar::apiserver
