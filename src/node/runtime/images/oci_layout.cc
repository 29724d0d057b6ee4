#include "node/runtime/images/oci_layout.h"

#include "base/hash/sha256.h"
#include "base/text/text.h"
#include "node/runtime/images/image_name.h"
#include "node/runtime/images/unpack.h"
#include "node/runtime/json.h"

namespace drakkar::node {
namespace {

using api::Value;

#if defined(__x86_64__)
constexpr std::string_view kArchitecture = "amd64";
#elif defined(__aarch64__)
constexpr std::string_view kArchitecture = "arm64";
#else
#error "name this architecture as Go does, for image indexes"
#endif

constexpr int kMaxIndexDepth = 4;

// The files of a layout.
class LayoutFiles {
 public:
  LayoutFiles(FileSystem& files, std::string directory, LayoutOrigin origin)
      : files_(files), directory_(std::move(directory)), origin_(origin) {}

  Result<std::string> Read(const std::string& name) const {
    ASSIGN_OR_RETURN(const std::string path, PathOf(name));
    ASSIGN_OR_RETURN(std::string content, files_.ReadFileRange(path, 0, kMaxJsonBytes + 1));
    if (content.size() > kMaxJsonBytes) return InvalidArgument(name + " is too large");
    return content;
  }

  Result<std::string> BlobPath(const std::string& digest) const {
    if (!IsSha256Digest(digest)) {
      return Error{ErrorCode::kUnimplemented,
                   "digest " + Quote(digest) + " is not of the form sha256:<64 hex digits>"};
    }
    return PathOf(BlobName(digest));
  }

  Result<std::string> ReadBlob(const std::string& digest) const {
    RETURN_IF_ERROR(BlobPath(digest));
    ASSIGN_OR_RETURN(std::string content, Read(BlobName(digest)));
    const std::string actual = "sha256:" + Sha256Hex(content);
    if (actual != digest) {
      return Error{ErrorCode::kDataLoss,
                   "blob " + digest + " is damaged: its content has the digest " + actual};
    }
    return content;
  }

 private:
  static std::string BlobName(const std::string& digest) {
    return "blobs/sha256/" + digest.substr(7);
  }

  Result<std::string> PathOf(const std::string& name) const {
    std::string path = directory_;
    if (origin_ == LayoutOrigin::kDirectory) return JoinPath(path, name);
    const auto parts = Split(name, '/');
    for (std::size_t i = 0; i < parts.size(); ++i) {
      path = JoinPath(path, std::string(parts[i]));
      ASSIGN_OR_RETURN(const FileInfo info, files_.LinkStat(path));
      const bool is_last = i + 1 == parts.size();
      if (info.type != (is_last ? FileType::kRegular : FileType::kDirectory)) {
        return InvalidArgument(StrCat("the archive's ", name, " is not a regular file"));
      }
    }
    return path;
  }

  FileSystem& files_;
  const std::string directory_;
  const LayoutOrigin origin_;
};

std::string NameOf(Value descriptor) {
  const Value annotations = descriptor["annotations"];
  // containerd writes the full name; the specification asks for a reference, which may be only a
  // tag.
  const std::string_view full = annotations.Entry("io.containerd.image.name").str();
  return std::string(full.empty() ? annotations.Entry("org.opencontainers.image.ref.name").str()
                                  : full);
}

bool FitsMachine(Value descriptor) {
  const Value platform = descriptor["platform"];
  if (!platform.has_value()) return true;
  return platform["os"].str() == "linux" && platform["architecture"].str() == kArchitecture;
}

bool SameName(const std::string& given, const std::string& wanted) {
  if (given.empty()) return false;
  const auto a = NormalizeImageName(given), b = NormalizeImageName(wanted);
  if (a.ok() && b.ok() && *a == *b) return true;
  const std::size_t colon = wanted.rfind(':');
  return colon != std::string::npos && wanted.substr(colon + 1) == given;
}

struct Choice {
  Value descriptor;
  std::vector<std::string> names;  // of all entries of this image
};

// The one image to follow in an index.
Result<Choice> Choose(Value index, const std::string& wanted_name) {
  std::vector<Value> fitting;
  for (const Value descriptor : index["manifests"].elements()) {
    if (FitsMachine(descriptor)) fitting.push_back(descriptor);
  }
  if (fitting.empty()) {
    return InvalidArgument(StrCat("the index has no image for linux/", kArchitecture));
  }
  Choice choice{fitting[0], {}};
  std::vector<std::string> names;
  bool is_one_image = true;
  for (const Value descriptor : fitting) {
    const std::string name = NameOf(descriptor);
    if (!wanted_name.empty() && SameName(name, wanted_name)) return Choice{descriptor, {name}};
    is_one_image = is_one_image && descriptor["digest"].str() == fitting[0]["digest"].str();
    if (!name.empty()) choice.names.push_back(name);
    names.push_back(name.empty() ? "(no name)" : name);
  }
  if (is_one_image) return choice;
  return InvalidArgument("the index has several images; choose one with --name: " +
                         Join(names, ", "));
}

}  // namespace

namespace {

Result<BlobDescriptor> ReadDescriptor(Value json) {
  BlobDescriptor blob;
  blob.digest = json["digest"].str();
  const std::int64_t size = json["size"].integer(-1);
  if (!IsSha256Digest(blob.digest) || size < 0) {
    return InvalidArgument(StrCat("the manifest describes ", Quote(blob.digest),
                                  ", which is not a sha256 digest with a size"));
  }
  blob.size_bytes = static_cast<std::uint64_t>(size);
  return blob;
}

}  // namespace

Result<ImageManifest> ParseManifest(std::string_view text) {
  ASSIGN_OR_RETURN(const api::TreePtr tree, ParseJson(text));
  const Value root = tree->root();
  ImageManifest manifest;
  if (root["manifests"].is_array()) {
    for (const Value descriptor : root["manifests"].elements()) {
      if (!FitsMachine(descriptor)) continue;
      ASSIGN_OR_RETURN(const BlobDescriptor blob, ReadDescriptor(descriptor));
      manifest.next_digest = blob.digest;
      return manifest;
    }
    return InvalidArgument(StrCat("the image has no variant for linux/", kArchitecture));
  }
  if (root["schemaVersion"].integer() == 1) {
    return Error{ErrorCode::kUnimplemented,
                 "the image has a manifest of the obsolete schema version 1; push it again with a "
                 "current tool"};
  }
  if (!root["config"].is_object() || !root["layers"].is_array()) {
    return InvalidArgument("the manifest lacks its config or its layers");
  }
  if (root["layers"].size() > kMaxImageLayers) {
    return InvalidArgument(StrCat("more than ", kMaxImageLayers, " layers"));
  }
  ASSIGN_OR_RETURN(manifest.config, ReadDescriptor(root["config"]));
  for (const Value layer : root["layers"].elements()) {
    if (!layer["urls"].empty()) {
      return Error{ErrorCode::kUnimplemented,
                   "the image has layers outside of its registry, which are not supported"};
    }
    ASSIGN_OR_RETURN(BlobDescriptor blob, ReadDescriptor(layer));
    manifest.layers.push_back(std::move(blob));
  }
  return manifest;
}

Result<DockerArchiveImage> ReadDockerArchive(const std::string& directory,
                                             const std::string& wanted_name) {
  ASSIGN_OR_RETURN(const std::string text,
                   ReadFileInRoot(directory, "manifest.json", kMaxJsonBytes));
  ASSIGN_OR_RETURN(const api::TreePtr tree, ParseJson(text));
  std::vector<std::string> all_names;
  Value chosen;
  for (const Value entry : tree->root().elements()) {
    const std::vector<std::string> tags = Strings(entry["RepoTags"]);
    for (const std::string& tag : tags) {
      all_names.push_back(tag);
      if (!wanted_name.empty() && SameName(tag, wanted_name)) chosen = entry;
    }
  }
  if (!chosen.has_value()) {
    if (tree->root().size() != 1) {
      return InvalidArgument("the archive has several images; choose one with --name: " +
                             Join(all_names, ", "));
    }
    for (const Value entry : tree->root().elements()) chosen = entry;
  }
  DockerArchiveImage image;
  image.names = Strings(chosen["RepoTags"]);
  const std::string config(chosen["Config"].str());
  ASSIGN_OR_RETURN(image.config_json, ReadFileInRoot(directory, config, kMaxJsonBytes));
  image.config_digest = "sha256:" + Sha256Hex(image.config_json);
  image.layers = Strings(chosen["Layers"]);
  ASSIGN_OR_RETURN(const api::TreePtr parsed, ParseJson(image.config_json));
  image.diff_ids = Strings(parsed->root()["rootfs"]["diff_ids"]);
  if (image.layers.size() > kMaxImageLayers || image.layers.size() != image.diff_ids.size()) {
    return InvalidArgument(StrCat("the archive has ", image.layers.size(),
                                  " layers, but its configuration names ", image.diff_ids.size()));
  }
  return image;
}

Result<LayoutImage> ReadOciLayout(FileSystem& file_system, const std::string& directory,
                                  const std::string& wanted_name, LayoutOrigin origin) {
  const LayoutFiles files(file_system, directory, origin);
  ASSIGN_OR_RETURN(const std::string version_text, files.Read("oci-layout"));
  ASSIGN_OR_RETURN(const api::TreePtr layout, ParseJson(version_text));
  const std::string_view version = layout->root()["imageLayoutVersion"].str();
  if (!version.starts_with("1.")) {
    return Error{ErrorCode::kUnimplemented, StrCat("image layout version ", Quote(version),
                                                   " is not supported; expected 1.0.0")};
  }
  ASSIGN_OR_RETURN(std::string text, files.Read("index.json"));
  LayoutImage image;
  for (int depth = 0;; ++depth) {
    if (depth > kMaxIndexDepth) return InvalidArgument("indexes nested too deeply");
    ASSIGN_OR_RETURN(const api::TreePtr tree, ParseJson(text));
    const Value config = tree->root()["config"];
    const Value layers = tree->root()["layers"];
    if (config.has_value() || layers.has_value()) {
      if (!config.has_value() || !layers.has_value()) {
        return InvalidArgument("the manifest lacks its config or its layers");
      }
      if (layers.size() > kMaxImageLayers) {
        return InvalidArgument(StrCat("more than ", kMaxImageLayers, " layers"));
      }
      image.config_digest = config["digest"].str();
      ASSIGN_OR_RETURN(image.config_json, files.ReadBlob(image.config_digest));
      for (const Value layer : layers.elements()) {
        LayoutLayer entry;
        entry.digest = layer["digest"].str();
        ASSIGN_OR_RETURN(entry.path, files.BlobPath(entry.digest));
        image.layers.push_back(std::move(entry));
      }
      return image;
    }
    ASSIGN_OR_RETURN(const Choice choice, Choose(tree->root(), wanted_name));
    if (image.names.empty()) image.names = choice.names;
    ASSIGN_OR_RETURN(text, files.ReadBlob(std::string(choice.descriptor["digest"].str())));
  }
}

}  // namespace drakkar::node
