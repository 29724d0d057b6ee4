#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/env/file_system.h"
#include "base/result/result.h"
#include "cdi/spec.h"

namespace drakkar::cdi {

// Directories of specs, lowest priority first: static ones, then those generated at run time.
std::vector<std::string> DefaultSpecDirectories();

// Further spec files are not read, which is recorded as an error.
constexpr std::size_t kMaxSpecFiles = 65'536;

// How many invalid spec files an error lists; it must fit into an event.
constexpr std::size_t kMaxNamedFiles = 3;

// The devices defined by the spec files in a list of directories.
//
// Files are `*.json` and `*.yaml` directly in the directories; later directories take precedence. A
// device defined twice with the same priority is dropped, with an error for both files; an invalid
// file disables only itself. Lives on one loop; calls read files.
class Cache {
 public:
  struct Options {
    std::vector<std::string> directories = DefaultSpecDirectories();
  };
  Cache(FileSystem& files, Options options);

  // Rereads all files.
  void Refresh();

  // The edits for `ids`, in order: those of each spec file once, before those of its first device.
  // Duplicate ids count once. Rescans if an id is unknown or a file in use has changed. If that
  // does not help, fails with `unresolvable CDI devices a, b`, followed by the invalid files and
  // the reasons (at most kMaxNamedFiles, those of a missing device's vendor first).
  Result<ContainerEdits> Resolve(const std::vector<std::string>& ids);

  std::vector<std::string> ListDevices() const;  // qualified, sorted
  // The file that defines a device, as of the last scan; empty if it is unknown.
  std::string FileOf(const std::string& id) const;
  // By file, or by directory if that cannot be listed. A missing directory is not an error.
  const std::map<std::string, std::vector<std::string>>& errors() const { return errors_; }

 private:
  struct File {
    std::string path;
    std::uint64_t fingerprint = 0;
    std::size_t priority = 0;
    Spec spec;
  };
  struct Entry {
    std::shared_ptr<const File> file;
    std::size_t device_index = 0;
    bool conflicted = false;
  };

  void ReadDirectory(std::size_t priority, std::size_t* budget);
  void AddDevices(const std::shared_ptr<const File>& file);
  std::vector<std::string> FindMissing(const std::vector<std::string>& ids) const;
  std::string DescribeBrokenFiles(const std::vector<std::string>& missing) const;
  bool AreFilesFresh(const std::vector<std::string>& ids);

  FileSystem& files_;
  const Options options_;
  std::map<std::string, Entry> devices_;
  std::map<std::string, std::vector<std::string>> errors_;
  bool scanned_ = false;
};

}  // namespace drakkar::cdi
