#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/env/file_system.h"
#include "base/env/random.h"
#include "base/result/result.h"
#include "node/runtime/images/oci_layout.h"
#include "node/runtime/runtime.h"

namespace drakkar::node {

// How to run an image (OCI image configuration).
struct ImageConfig {
  std::vector<std::string> environment;  // "K=V"
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  std::string working_directory;
  std::string user;
  std::string stop_signal;
};

Result<ImageConfig> ParseImageConfig(std::string_view json);

struct StoredImage {
  Image image;
  ImageConfig config;
  std::string rootfs;  // the unpacked tree; read-only by convention
};

struct ImportOptions {
  std::string name;  // empty: all names that the archive or layout gives the image
  // The digest of the manifest, or of the index that led to it, if the image was pulled; empty if
  // it was imported.
  std::string pulled_digest = {};
  std::function<void(std::uint64_t bytes)> progress = nullptr;
};

// Images on disk, under one directory:
//   names.json             full name -> image id
//   pulled.json            full name -> digest of the manifest, for images from a registry
//   sha256-<hex>/          image.json, rootfs/ (all layers applied, whiteouts resolved), uses/
//   tmp-<random>/          an import in progress
//   lock                   held while writing, because `drakkar image import` may run meanwhile
//
// The layers of an image are unpacked into one tree. A container then needs a single overlay lower
// directory, however many layers there are, but images do not share layers. An image appears
// atomically (by rename) or not at all. Every call reads the directory again, so that an import by
// another process is seen immediately. All calls block: run an import on a worker; the others are a
// few small reads.
class ImageStore {
 public:
  ImageStore(FileSystem& files, Random& random, std::string directory);

  // Creates the directory and removes what interrupted imports left behind.
  Result<void> Open();

  // Imports an OCI image layout (directory or archive), the output of `docker save`, or a root file
  // system. Archives are tar files, plain or compressed with gzip or zstd.
  // Digests are verified. Importing the same image again only adds the name; an existing name moves
  // to the new image.
  Result<Image> Import(const std::string& path, const ImportOptions& options);

  // By name, or by id ("sha256:<hex>" or at least 12 digits of it).
  Result<StoredImage> Find(std::string_view name_or_id) const;
  Result<std::vector<Image>> List() const;
  // Removes a name; the image is deleted with its last name. An id removes all names.
  // kFailedPrecondition while a container uses the image. Can be repeated after an error.
  Result<void> Remove(std::string_view name_or_id);

  // Whether somebody imported the image of that name here, instead of pulling it.
  Result<bool> IsImported(std::string_view name) const;
  // Gives a name to an image that is here already; kNotFound if it is not.
  Result<Image> AddName(const std::string& id, const std::string& name,
                        const std::string& pulled_digest);
  // When the image was last used by a container or stored.
  Result<WallTime> LastUsed(const std::string& image_id) const;
  // Whether a container uses it.
  Result<bool> IsUsed(const std::string& image_id) const;

  // Keeps an image from being removed while `user` (a container id) is built on it.
  Result<void> AddUse(const std::string& image_id, const std::string& user);
  // For all images if `image_id` is empty: for a user whose record is lost.
  Result<void> DropUse(const std::string& image_id, const std::string& user);

 private:
  class Lock;

  // Removes what interrupted or failed imports and removals left. Requires the lock, so that none
  // is in progress.
  Result<void> RemoveLeftovers();
  Result<std::map<std::string, std::string>> ReadNames() const;
  Result<void> WriteNames(const std::map<std::string, std::string>& names);
  // Both by full name.
  struct Names {
    std::map<std::string, std::string> ids;
    std::map<std::string, std::string> pulled;  // digests of manifests
  };
  Result<Names> ReadAllNames() const;
  Result<StoredImage> Load(const std::string& id, const Names& names) const;
  Result<std::string> FindId(std::string_view name_or_id,
                             const std::map<std::string, std::string>& names) const;
  Result<Image> ImportLayout(const std::string& layout, LayoutOrigin origin,
                             const std::string& work, const ImportOptions& options);
  Result<Image> ImportDockerArchive(const std::string& directory, const std::string& work,
                                    const ImportOptions& options);
  // Applies a layer to the image in `work`; returns the bytes unpacked and the digests.
  struct AppliedLayer {
    std::uint64_t bytes = 0;
    std::string digest;        // of the file
    std::string plain_digest;  // of its uncompressed content, if asked for
  };
  Result<AppliedLayer> ApplyLayer(const std::string& path, const std::string& work,
                                  std::uint64_t bytes_before, bool hashes_plain,
                                  const ImportOptions& options);
  Result<void> NotePulled(const std::string& name, const std::string& digest);
  Result<std::map<std::string, std::string>> ReadMap(const char* file) const;
  Result<Image> ImportRootfs(const std::string& path, const std::string& work,
                             const ImportOptions& options);
  Result<Image> Publish(const std::string& work, const std::string& id,
                        const std::vector<std::string>& names, const ImageConfig& config,
                        std::uint64_t size_bytes, const std::string& pulled_digest);
  std::string ImageDirectory(const std::string& id) const;

  FileSystem& files_;
  Random& random_;
  std::string directory_;
};

}  // namespace drakkar::node
