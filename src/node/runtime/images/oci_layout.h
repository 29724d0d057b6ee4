#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/env/file_system.h"
#include "base/result/result.h"

namespace drakkar::node {

struct LayoutLayer {
  std::string digest;
  std::string path;  // of the blob, which its reader must verify
};

struct LayoutImage {
  std::vector<std::string> names;  // from the index's annotations; may be empty
  std::string config_digest;
  std::string config_json;          // verified
  std::vector<LayoutLayer> layers;  // lowest first
};

// A blob as a manifest describes it.
struct BlobDescriptor {
  std::string digest;  // sha256
  std::uint64_t size_bytes = 0;
};

// A manifest from a registry: either an index, of which the image for this machine is next, or an
// image.
struct ImageManifest {
  std::string next_digest;
  BlobDescriptor config;
  std::vector<BlobDescriptor> layers;  // lowest first
};
Result<ImageManifest> ParseManifest(std::string_view text);

// What `docker save` wrote before version 25: manifest.json, which names a configuration and layers
// in the directory. Verified: the layers against the configuration by whoever unpacks them.
struct DockerArchiveImage {
  std::vector<std::string> names;  // RepoTags; may be empty
  std::string config_digest;
  std::string config_json;
  std::vector<std::string> layers;    // paths below the directory, lowest first
  std::vector<std::string> diff_ids;  // digests of the uncompressed layers
};
Result<DockerArchiveImage> ReadDockerArchive(const std::string& directory,
                                             const std::string& wanted_name);

// More layers than this are refused; real images stay below 128.
constexpr std::size_t kMaxImageLayers = 512;

// An archive that gives its image more names is refused: all of them are read with every lookup.
constexpr std::size_t kMaxImageNames = 128;

// Where a layout came from decides whether its files may be links. In a directory that the user
// names they may. In an unpacked archive they may not: a link would lead to files of this machine,
// and opening a fifo would block.
enum class LayoutOrigin { kDirectory, kArchive };

// Reads an OCI image layout directory down to its layers: index.json, nested indexes, the manifest
// for this machine's architecture, the configuration. If there are several images, `wanted_name`
// (full, or only the tag) chooses; otherwise kInvalidArgument lists them. Entries of one image
// under several names count as one.
Result<LayoutImage> ReadOciLayout(FileSystem& files, const std::string& directory,
                                  const std::string& wanted_name, LayoutOrigin origin);

}  // namespace drakkar::node
