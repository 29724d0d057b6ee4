#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/env/clock.h"
#include "base/result/result.h"

namespace drakkar::node {

struct VolumeFile {
  std::string content;
  std::uint32_t mode = 0644;
  std::optional<std::uint32_t> user = std::nullopt;  // its owner, if not root
};
// By path within the volume: relative, without "..", and not starting with "..", which is how the
// volume's own names begin.
using VolumeFiles = std::map<std::string, VolumeFile>;

// Makes `directory` of this machine show exactly these files, in the layout that programs know from
// other kubelets:
//
//   ..2026_01_31_12_00_00.AbCdEf/   the files
//   ..data -> ..2026_01_31_12_00_00.AbCdEf
//   key -> ..data/key               for each file or directory at the top
//
// A change is written to a new directory, and one rename of `..data` switches to it, so that
// readers never see half of a change and watchers see one event. Content that is there already is
// not written again. If it fails, the old content stays. With `group`, everything belongs to it.
Result<void> ShowVolumeFiles(const Clock& clock, const std::string& directory,
                             const VolumeFiles& files, std::optional<std::uint32_t> group);

}  // namespace drakkar::node
