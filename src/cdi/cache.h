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

// Where specs live, lowest priority first: static ones, then those made at run time.
std::vector<std::string> DefaultSpecDirectories();

// Spec files beyond this many are not read, and that is recorded as an error.
constexpr std::size_t kMaxSpecFiles = 65'536;

// Broken spec files that one error names; it has to fit into an event.
constexpr std::size_t kMaxNamedFiles = 3;

// The devices that the spec files in a list of directories define.
//
// Files are `*.json` and `*.yaml` directly in the directories; a later directory wins over an
// earlier one. A device defined twice at the same priority is dropped, with an error recorded for
// both files; a broken file disables only itself. Lives on one loop; calls read files.
class Cache {
 public:
  struct Options {
    std::vector<std::string> directories = DefaultSpecDirectories();
  };
  Cache(FileSystem& files, Options options);

  // Reads all files anew.
  void Refresh();

  // What the container needs for `ids`, in that order: the edits of each spec file once, before
  // those of its first device. An id given twice counts once. Scans again when an id is unknown or
  // a file in use has changed; `unresolvable CDI devices a, b` if it does not help, followed by the
  // files that could not be used and why (at most kMaxNamedFiles, those of a missing device's
  // vendor first).
  Result<ContainerEdits> Resolve(const std::vector<std::string>& ids);

  std::vector<std::string> ListDevices() const;  // qualified, sorted
  // By file, or by directory if that cannot be listed. An absent directory is no error.
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
