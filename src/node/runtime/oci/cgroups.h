#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/env/file_system.h"
#include "base/result/result.h"
#include "node/runtime/runtime_config.h"

namespace drakkar::node {

// The machine's control groups through cgroupfs: one unified tree (v2), or one tree per controller
// (v1, also hybrid). Paths are as in the bundle: "/drakkar/pod<uid>/<container>". Blocking but
// short.
class Cgroups {
 public:
  // From /proc/self/mountinfo's text.
  static Cgroups Parse(FileSystem& files, std::string_view mountinfo);
  static Result<Cgroups> Detect(FileSystem& files);

  bool is_unified() const { return unified_; }
  const std::vector<std::string>& roots() const { return roots_; }

  // Makes the group in the trees that can hold limits and sets them.
  Result<void> Create(const std::string& path, const CgroupResources& resources);
  // New limits for cpu and memory of a group that is there; what is not set becomes unlimited.
  Result<void> Update(const std::string& path, const CgroupResources& resources);
  // Kills what is left in it and below, then removes it everywhere; absent is fine. kUnavailable if
  // the kernel still counts dying processes: try again.
  Result<void> Remove(const std::string& path);
  // Only where nothing is below it; otherwise it stays.
  void RemoveIfEmpty(const std::string& path);
  // How often the kernel killed for lack of memory in it.
  std::int64_t OomKills(const std::string& path) const;
  Result<bool> Contains(const std::string& path, int pid) const;
  // SIGKILL to every process in it and below. Returns how many there were.
  std::size_t Kill(const std::string& path);

 private:
  struct Controller {
    std::string name;
    std::string root;
  };

  Result<void> RemoveTree(const std::string& directory);
  // Collects what it can; an error if that may not be all.
  Result<void> Collect(const std::string& directory, std::vector<int>& pids) const;
  Result<void> Processes(const std::string& path, std::vector<int>& pids) const;
  std::string RootOf(std::string_view controller) const;

  FileSystem* files_ = nullptr;
  bool unified_ = false;
  std::vector<std::string> roots_;
  std::vector<Controller> controllers_;
};

}  // namespace drakkar::node
