#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/env/file_system.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "base/exec/worker_pool.h"
#include "node/runtime/images/image_store.h"
#include "node/runtime/registry/registry_fetch.h"

namespace drakkar::node {

// The parts of a full image name: "registry.example.com:5000/team/app:1".
struct ImageReference {
  std::string host;        // "registry.example.com:5000"
  std::string repository;  // "team/app"
  std::string tag;         // empty with a digest
  std::string digest;      // "sha256:..."; empty with a tag
};
Result<ImageReference> ParseImageReference(std::string_view name);

// Pulls images from registries that speak the OCI distribution protocol.
//
// A pull downloads into an image layout on disk, layers in parallel, and then imports it, which
// verifies every digest. An interrupted download is resumed. Endpoints are tried in order until one
// has the image. Everything a registry sends is bounded. Loop-bound; imports run on `workers`.
class ImagePuller {
 public:
  struct Progress {
    std::uint64_t received_bytes = 0;
    std::uint64_t total_bytes = 0;  // 0: not known yet
  };
  struct Options {
    EventLoop& loop;
    FileSystem& files;
    WorkerPool& workers;
    ImageStore& images;
    std::string directory;  // for downloads
    // Mirrors first; the registry itself last.
    std::function<std::vector<RegistryEndpoint>(const std::string& host)> endpoints;
    // Ends a download that makes no progress.
    Duration stall_timeout = std::chrono::seconds(60);
  };
  static constexpr std::uint64_t kMaxManifestBytes = 4 << 20;
  static constexpr std::uint64_t kMaxLayerBytes = std::uint64_t{32} << 30;
  static constexpr std::size_t kMaxParallelLayers = 3;
  static constexpr std::size_t kMaxPulls = 100;  // further ones are refused
  static constexpr int kMaxAttempts = 4;         // per blob, if the connection breaks
  static constexpr Duration kKeepDownloads = std::chrono::hours(24);

  explicit ImagePuller(Options options);
  ~ImagePuller();

  // `done` runs once on the loop, never inside the call.
  void Pull(PullRequest request, std::function<void(const Progress&)> progress,
            RuntimeCallback<Image> done);
  // Removes what abandoned pulls left behind. Blocking.
  static Result<void> RemoveOldDownloads(FileSystem& files, const std::string& directory,
                                         WallTime now);

 private:
  class Job;
  void Finish(const std::string& key, Result<Image> result);

  const Options options_;
  std::map<std::string, std::unique_ptr<Job>> jobs_;  // by name and credentials
  Lifetime lifetime_;
};

}  // namespace drakkar::node
