#pragma once

#include <string>
#include <vector>

#include "base/env/file_system.h"
#include "base/result/result.h"

namespace drakkar::node {

struct LayoutLayer {
  std::string digest;
  std::string path;  // of the blob, which its reader must verify
};

struct LayoutImage {
  std::string name;  // from the index's annotations; may be empty
  std::string config_digest;
  std::string config_json;          // verified
  std::vector<LayoutLayer> layers;  // lowest first
};

// More layers than this are refused; real images stay below 128.
constexpr std::size_t kMaxImageLayers = 512;

// Reads an OCI image layout directory down to its layers: index.json, nested indexes, the manifest
// for this machine's architecture, the configuration. If there are several images, `wanted_name`
// (full, or only the tag) chooses; otherwise kInvalidArgument lists them.
Result<LayoutImage> ReadOciLayout(FileSystem& files, const std::string& directory,
                                  const std::string& wanted_name);

}  // namespace drakkar::node
