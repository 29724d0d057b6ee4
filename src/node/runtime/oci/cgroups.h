#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/env/file_system.h"
#include "base/result/result.h"
#include "node/runtime/runtime_config.h"

namespace drakkar::node {

// The machine's cgroups through cgroupfs: one unified hierarchy (v2), or one per controller (v1 and
// hybrid). Paths are as in the bundle: "/drakkar/pod<uid>/<container>". Blocking but short.
class Cgroups {
 public:
  // Parses the text of /proc/self/mountinfo.
  static Cgroups Parse(FileSystem& files, std::string_view mountinfo);
  static Result<Cgroups> Detect(FileSystem& files);

  bool is_unified() const { return unified_; }
  const std::vector<std::string>& roots() const { return roots_; }
  // Where the controller's hierarchy is mounted; empty: nowhere.
  std::string RootOf(std::string_view controller) const;

  // Whether the kernel offers the controller here.
  bool HasController(std::string_view controller) const;
  // Whether there is such a cgroup, with a controller that limits or without.
  bool Exists(const std::string& path) const;
  // Whether the kernel limits swap in this existing cgroup.
  bool CountsSwap(const std::string& path) const;

  // Creates the cgroup in the hierarchies that can hold limits, and sets them.
  Result<void> Create(const std::string& path, const CgroupResources& resources);
  // Updates the limits of an existing cgroup: unset ones of cpu and memory become unlimited, others
  // stay. A missing cgroup is no error.
  Result<void> Update(const std::string& path, const CgroupResources& resources);
  // Changes single settings of an existing cgroup. An error names the setting; those before it
  // have been made.
  Result<void> Change(const std::string& path, const CgroupChanges& changes);
  // Kills all processes in it and below, then removes it from all hierarchies; a missing cgroup is
  // no error. kUnavailable while the kernel still counts dying processes: try again.
  Result<void> Remove(const std::string& path);
  // Removes it only if it has no children.
  void RemoveIfEmpty(const std::string& path);
  // The number of OOM kills in it.
  std::int64_t OomKills(const std::string& path) const;
  Result<bool> Contains(const std::string& path, int pid) const;
  // Sends SIGKILL to every process in it and below. Returns how many there were.
  std::size_t Kill(const std::string& path);

 private:
  struct Controller {
    std::string name;
    std::string root;
  };

  class Writer;

  Result<void> RemoveTree(const std::string& directory);
  // Collects what it can; returns an error if the result may be incomplete.
  Result<void> Collect(const std::string& directory, std::vector<int>& pids) const;
  Result<void> Processes(const std::string& path, std::vector<int>& pids) const;

  FileSystem* files_ = nullptr;
  bool unified_ = false;
  std::vector<std::string> roots_;
  std::vector<Controller> controllers_;
};

}  // namespace drakkar::node
