#include "node/hollow/hollow_host.h"

#include "base/result/check.h"
#include "base/text/text.h"

namespace drakkar::node {

HollowHost::HollowHost(EventLoop& loop) : watcher(loop), transport(loop) {
  CHECK(files.MakeDirectories(kRegistry, 0750).ok());
  CHECK(files.MakeDirectories(kCdiDirectory, 0755).ok());
  transport.OnSocketChange([this](const std::string& path, bool listening) {
    if (listening) {
      files.MakeSocket(path);
    } else {
      (void)files.Remove(path);
    }
    watcher.Emit(DirectoryName(path), listening ? FileChange::kCreated : FileChange::kRemoved,
                 std::string(BaseName(path)));
  });
  machine.images.push_back(
      {.id = "sha256:1", .names = {"docker.io/library/busybox:1"}, .size_bytes = 1});
}

DeviceNodeProbe& HollowHost::NoDevices() {
  class Absent final : public DeviceNodeProbe {
   public:
    Result<DeviceNodeInfo> Probe(const std::string& path) override {
      return NotFound("no device " + path);
    }
  };
  static Absent probe;
  return probe;
}

NodeFacts HollowHost::Facts(const std::string& name, std::int64_t cpus, std::int64_t memory_gib) {
  NodeFacts facts;
  facts.hostname = name;
  facts.addresses = {"10.0.0.1"};
  facts.cpu_count = cpus;
  facts.memory_bytes = memory_gib << 30;
  facts.architecture = "amd64";
  facts.runtime_version = "drakkar://0";
  facts.agent_version = "v1.37.0";
  return facts;
}

}  // namespace drakkar::node
