#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/env/clock.h"
#include "base/env/file_system.h"
#include "base/result/result.h"
#include "storage/store.h"

namespace drakkar::apiserver {

// What all API servers of a cluster share, by file name: the CA, the CA of front proxies, and the
// key that signs service account tokens.
using ClusterKeys = std::map<std::string, std::string>;

inline constexpr char kCaFile[] = "ca.crt";
inline constexpr char kCaKeyFile[] = "ca.key";
inline constexpr char kFrontProxyCaFile[] = "front-proxy-ca.crt";
inline constexpr char kFrontProxyCaKeyFile[] = "front-proxy-ca.key";
inline constexpr char kTokenKeyFile[] = "service-accounts.key";

// Reads the keys in `directory`, and creates those that do not exist.
Result<ClusterKeys> OpenClusterKeys(FileSystem& files, const Clock& clock,
                                    const std::string& directory);

// Ensures that all API servers on a shared store have the same keys in their directories. The first
// one records its keys in the store under `key`; later ones compare theirs and adopt what they
// lack. Keys that the first one had to create are recorded with their contents. For files that were
// already in its directory, only the digest is recorded, and the same files have to be put into the
// directories of the others; the error names them.
//
// `files` and `clock` must outlive the call. `done` runs on the store's loop.
void ShareClusterKeys(storage::Store& store, std::string key, FileSystem& files, const Clock& clock,
                      std::string directory, std::function<void(Result<void>)> done);

}  // namespace drakkar::apiserver
