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
// What is empty or not there yet (a driver may bring metadata later) is an error with the code
// kNotFound, or waited for: with a timeout, readings return as soon as everything is there (told by
// inotify where it works), and kDeadlineExceeded when the time is up. A file that a driver writes
// in place, as older ones do, is read again. Anything else, such as a file of an unknown version or
// one that is broken, is an error that names the file.
//
// A reading of several files is of all of them. Who can do with a part gives a list for what is
// still missing: then what is there is returned, after the time to wait if there is one, and the
// paths of the others are in the list. Nothing at all is an error as before.
//
// Not thread-safe; nothing is kept between calls.
class Reader {
 public:
  struct Options {
    FileSystem* files = nullptr;  // null: the machine's
    const Clock* clock = nullptr;
    Pause* pause = nullptr;
    // Prepended to the directories in which containers find their files; for tests and for looking
    // into a container from outside.
    std::string root;
  };
  Reader();
  explicit Reader(Options options);

  // How long to wait for what is not there yet; nothing: not at all.
  static constexpr Duration kNoWait = Duration::zero();

  Result<DeviceMetadata> ReadFile(const std::string& path, Duration timeout = kNoWait);

  // All drivers' files for a request of a claim, as one. `claim` is the name of the claim, or its
  // name in the pod if it was made from a template. An empty request means all of the claim's that
  // this container may see.
  Result<DeviceMetadata> ReadRequest(const std::string& claim, const std::string& request,
                                     Duration timeout = kNoWait,
                                     std::vector<std::string>* pending = nullptr);

  // Everything this container has, one entry per claim, sorted by name. None: an empty list, unless
  // waiting was asked for: then there has to be something.
  Result<std::vector<DeviceMetadata>> ReadAll(Duration timeout = kNoWait,
                                              std::vector<std::string>* pending = nullptr);

 private:
  struct Place {
    std::string claim;  // the name of the directory
    std::string request;
    std::string driver;
    std::string path;
  };

  Result<DeviceMetadata> ReadOnce(const std::string& path);
  // With `pending`: what is not there yet is noted there, and an error only if nothing is there.
  Result<DeviceMetadata> ReadPlaces(const std::vector<Place>& places,
                                    std::vector<std::string>* pending);
  // The files below a directory of claims; `claim` and `request` empty: any.
  std::vector<Place> FindPlaces(const std::string& directory, const std::string& claim,
                                const std::string& request);
  Result<std::vector<Place>> FindRequest(const std::string& claim, const std::string& request);
  Result<std::vector<DeviceMetadata>> ReadAllOnce(bool need_some,
                                                  std::vector<std::string>* pending);

  // What to watch for metadata of any claim: the directories there are, and the files in them.
  std::vector<std::string> WatchedPaths();
  // Runs `attempt` until it gives something else than kNotFound, or the time is up; again whenever
  // something has changed in the paths that `watched` gives.
  template <typename T, typename Attempt, typename Watched>
  Result<T> WaitFor(Duration timeout, Attempt attempt, Watched watched);

  FileSystem& files_;
  const Clock& clock_;
  Pause& pause_;
  const std::string root_;
};

}  // namespace drakkar::metadata
