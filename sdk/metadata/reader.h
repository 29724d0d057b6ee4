#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/metadata/device_metadata.h"
#include "base/env/clock.h"
#include "base/result/result.h"

namespace drakkar {
class FileSystem;
class Pause;
}  // namespace drakkar

namespace drakkar::metadata {

// Reads the metadata of a container's devices (KEP-5304).
//
//   auto gpu = metadata::Reader().ReadRequest("my-claim", "gpu");
//   if (gpu.ok()) Use(gpu->requests[0].devices);
//
// An empty or missing file (a driver may write metadata later) is a kNotFound error. With a
// timeout, the functions wait until everything is available (using inotify where it works), and
// return kDeadlineExceeded if that takes too long. A file that an older driver writes in place is
// read again. Anything else, such as an unknown version or a corrupt file, is an error that names
// the file.
//
// Reading several files returns all of them or fails. A caller that can use a partial result passes
// a list for the missing paths: it then gets what is available, after waiting if asked to. Nothing
// at all is still an error.
//
// Not thread-safe; keeps no state between calls.
class Reader {
 public:
  struct Options {
    FileSystem* files = nullptr;  // if null, the real file system
    const Clock* clock = nullptr;
    Pause* pause = nullptr;
    // Prefix of the directories in which containers find their files; for tests, and for looking
    // into a container from outside.
    std::string root;
  };
  Reader();
  explicit Reader(Options options);

  // Timeout that does not wait for missing metadata.
  static constexpr Duration kNoWait = Duration::zero();

  Result<DeviceMetadata> ReadFile(const std::string& path, Duration timeout = kNoWait);

  // The files of all drivers for a request of a claim, merged. `claim` is the name of the claim, or
  // its name in the pod if it was made from a template. An empty request means all of the claim's
  // requests that this container can see.
  Result<DeviceMetadata> ReadRequest(const std::string& claim, const std::string& request,
                                     Duration timeout = kNoWait,
                                     std::vector<std::string>* pending = nullptr);

  // Everything this container has, one entry per claim, sorted by name. The list may be empty,
  // unless waiting was asked for.
  Result<std::vector<DeviceMetadata>> ReadAll(Duration timeout = kNoWait,
                                              std::vector<std::string>* pending = nullptr);

 private:
  struct Place {
    std::string claim;  // directory name
    std::string request;
    std::string driver;
    std::string path;
  };

  Result<DeviceMetadata> ReadOnce(const std::string& path);
  // With `pending`, records missing files there and fails only if nothing is available.
  Result<DeviceMetadata> ReadPlaces(const std::vector<Place>& places,
                                    std::vector<std::string>* pending);
  // The files below a directory of claims; an empty `claim` or `request` matches any.
  std::vector<Place> FindPlaces(const std::string& directory, const std::string& claim,
                                const std::string& request);
  Result<std::vector<Place>> FindRequest(const std::string& claim, const std::string& request);
  Result<std::vector<DeviceMetadata>> ReadAllOnce(bool need_some,
                                                  std::vector<std::string>* pending);

  // What to watch for metadata of any claim: the existing directories and the files in them.
  std::vector<std::string> WatchedPaths();
  // Runs `attempt` until it returns something other than kNotFound or the time is up, again after
  // each change in the paths that `watched` returns.
  template <typename T, typename Attempt, typename Watched>
  Result<T> WaitFor(Duration timeout, Attempt attempt, Watched watched);

  FileSystem& files_;
  const Clock& clock_;
  Pause& pause_;
  const std::string root_;
};

}  // namespace drakkar::metadata
