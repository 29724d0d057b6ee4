#include "node/runtime/images/image_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "api/json/json_writer.h"
#include "base/text/text.h"
#include "node/runtime/images/byte_source.h"
#include "node/runtime/images/image_name.h"
#include "node/runtime/images/oci_layout.h"
#include "node/runtime/images/tar_reader.h"
#include "node/runtime/images/unpack.h"
#include "node/runtime/json.h"

namespace drakkar::node {
namespace {

constexpr std::string_view kDigestPrefix = "sha256:";
constexpr std::size_t kMinShortId = 12;

enum class ArchiveKind { kRootfs, kLayout, kDocker };

// Reads an archive's names only, to tell images from a root file system. Newer versions of Docker
// write both formats into one archive.
Result<ArchiveKind> KindOfArchive(const std::string& path) {
  ASSIGN_OR_RETURN(auto file, OpenFileSource(path));
  auto plain = MakeDecompressor(*file);
  TarReader reader(*plain);
  bool has_manifest = false, has_configuration = false;
  while (true) {
    ASSIGN_OR_RETURN(auto entry, reader.Next());
    if (!entry) break;
    auto clean = CleanTarPath(entry->path);
    if (!clean.ok()) continue;
    if (*clean == "oci-layout") return ArchiveKind::kLayout;
    if (*clean == "manifest.json") has_manifest = true;
    // The configuration is named by its digest; a root file system has no such file at its top.
    constexpr std::size_t kNameBytes = 64 + sizeof(".json") - 1;
    if (clean->size() == kNameBytes && clean->ends_with(".json") &&
        clean->find('/') == std::string::npos) {
      has_configuration = true;
    }
  }
  return has_manifest && has_configuration ? ArchiveKind::kDocker : ArchiveKind::kRootfs;
}

Error NotPresent(std::string_view name_or_id) {
  return NotFound(
      StrCat("image ", Quote(name_or_id),
             " is not present on this node; import it with: drakkar image import FILE --name ",
             name_or_id));
}

// The full names of an image to import: the one that was asked for, or else those it came with.
Result<std::vector<std::string>> NamesToStore(const std::string& wanted,
                                              const std::vector<std::string>& own) {
  if (!wanted.empty()) {
    ASSIGN_OR_RETURN(std::string name, NormalizeImageName(wanted));
    return std::vector<std::string>{std::move(name)};
  }
  if (own.empty()) return InvalidArgument("the image has no name; pass one with --name");
  if (own.size() > kMaxImageNames) {
    return InvalidArgument(
        StrCat("the image has more than ", kMaxImageNames, " names; pass one with --name"));
  }
  std::vector<std::string> names;
  for (const std::string& each : own) {
    ASSIGN_OR_RETURN(std::string name, NormalizeImageName(each));
    names.push_back(std::move(name));
  }
  return names;
}

std::string WriteImageFile(const std::string& id, const ImageConfig& config, std::uint64_t size) {
  api::JsonWriter json;
  json.BeginObject();
  json.Member("id", id);
  json.Key("sizeBytes").Unsigned(size);
  json.Key("config").BeginObject();
  json.Array("Env", config.environment);
  json.Array("Entrypoint", config.entrypoint);
  json.Array("Cmd", config.command);
  json.Member("WorkingDir", config.working_directory);
  json.Member("User", config.user);
  json.Member("StopSignal", config.stop_signal);
  json.EndObject();
  json.EndObject();
  return json.Take();
}

}  // namespace

Result<ImageConfig> ParseImageConfig(std::string_view text) {
  ASSIGN_OR_RETURN(const api::TreePtr tree, ParseJson(text));
  if (!tree->root().is_object()) {
    return InvalidArgument("the image configuration is not an object");
  }
  ImageConfig config;
  const api::Value process = tree->root()["config"];
  config.environment = Strings(process["Env"]);
  config.entrypoint = Strings(process["Entrypoint"]);
  config.command = Strings(process["Cmd"]);
  config.working_directory = process["WorkingDir"].str();
  config.user = process["User"].str();
  config.stop_signal = process["StopSignal"].str();
  return config;
}

// Held while changing the store; other processes wait for it.
class ImageStore::Lock {
 public:
  static Result<Lock> Take(const std::string& directory, bool wait) {
    const std::string path = JoinPath(directory, "lock");
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return ErrnoError(errno, "open " + path);
    while (::flock(fd, LOCK_EX | (wait ? 0 : LOCK_NB)) != 0) {
      if (errno == EINTR) continue;
      const int reason = errno;
      ::close(fd);
      return reason == EWOULDBLOCK ? Unavailable("another import is in progress")
                                   : ErrnoError(reason, "lock " + path);
    }
    return Lock(fd);
  }
  Lock(Lock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Lock() {
    if (fd_ >= 0) ::close(fd_);
  }

 private:
  explicit Lock(int fd) : fd_(fd) {}
  int fd_;
};

ImageStore::ImageStore(FileSystem& files, Random& random, std::string directory)
    : files_(files), random_(random), directory_(std::move(directory)) {}

std::string ImageStore::ImageDirectory(const std::string& id) const {
  return JoinPath(directory_, "sha256-" + id.substr(kDigestPrefix.size()));
}

Result<void> ImageStore::Open() {
  RETURN_IF_ERROR(files_.MakeDirectories(directory_, 0700));
  // Another process is importing: its work in progress is not a leftover.
  auto lock = Lock::Take(directory_, /*wait=*/false);
  if (!lock.ok()) return lock.error().code == ErrorCode::kUnavailable ? Ok() : lock.error();
  return RemoveLeftovers();
}

Result<void> ImageStore::RemoveLeftovers() {
  ASSIGN_OR_RETURN(const auto names, files_.ListDirectory(directory_));
  for (const std::string& name : names) {
    const bool is_leftover = name.starts_with("tmp-") || name.starts_with(".names.json.") ||
                             name.starts_with(".pulled.json.");
    if (is_leftover) RETURN_IF_ERROR(files_.RemoveTree(JoinPath(directory_, name)));
  }
  return Ok();
}

Result<std::map<std::string, std::string>> ImageStore::ReadNames() const {
  return ReadMap("names.json");
}

Result<std::map<std::string, std::string>> ImageStore::ReadMap(const char* file) const {
  std::map<std::string, std::string> names;
  auto text = files_.ReadFile(JoinPath(directory_, file));
  if (!text.ok()) {
    if (text.error().code == ErrorCode::kNotFound) return names;
    return text.error();
  }
  auto json = ParseJson(*text);
  if (!json.ok()) return json.error().Prefixed(JoinPath(directory_, file));
  for (auto& [name, id] : StringMap((*json)->root())) {
    if (IsSha256Digest(id)) names[name] = id;
  }
  return names;
}

Result<void> ImageStore::WriteNames(const std::map<std::string, std::string>& names) {
  api::JsonWriter json;
  json.BeginObject();
  for (const auto& [name, id] : names) json.Member(name, id);
  json.EndObject();
  return files_.WriteFileAtomically(JoinPath(directory_, "names.json"), json.Take(), 0600);
}

Result<ImageStore::Names> ImageStore::ReadAllNames() const {
  ASSIGN_OR_RETURN(auto ids, ReadNames());
  auto pulled = ReadMap("pulled.json");
  // It only says where images came from: an unreadable one must not stop containers.
  return Names{std::move(ids),
               pulled.ok() ? *std::move(pulled) : std::map<std::string, std::string>()};
}

Result<StoredImage> ImageStore::Load(const std::string& id, const Names& names) const {
  const std::string directory = ImageDirectory(id);
  ASSIGN_OR_RETURN(const std::string text, files_.ReadFile(JoinPath(directory, "image.json")));
  auto json = ParseJson(text);
  if (!json.ok()) return json.error().Prefixed(JoinPath(directory, "image.json"));
  StoredImage stored;
  stored.image.id = id;
  stored.image.size_bytes = static_cast<std::uint64_t>((*json)->root()["sizeBytes"].integer());
  std::set<std::string> digests;
  for (const auto& [name, named] : names.ids) {
    if (named != id) continue;
    stored.image.names.push_back(name);
    const auto digest = names.pulled.find(name);
    if (digest == names.pulled.end()) continue;
    digests.insert(StrCat(RepositoryOf(name), "@", digest->second));
  }
  stored.image.digests.assign(digests.begin(), digests.end());
  ASSIGN_OR_RETURN(stored.config, ParseImageConfig(text));
  stored.rootfs = JoinPath(directory, "rootfs");
  return stored;
}

Result<std::string> ImageStore::FindId(std::string_view name_or_id,
                                       const std::map<std::string, std::string>& names) const {
  if (auto normal = NormalizeImageName(name_or_id); normal.ok()) {
    if (auto found = names.find(*normal); found != names.end()) return found->second;
    // "name@digest": the image with that digest, whatever its name here.
    if (const std::size_t at = normal->find('@'); at != std::string::npos) {
      const std::string id = normal->substr(at + 1);
      auto there = files_.Stat(JoinPath(ImageDirectory(id), "image.json"));
      if (there.ok()) return id;
      if (there.error().code != ErrorCode::kNotFound) return std::move(there).error();
    }
  }
  std::string_view digits = name_or_id;
  if (digits.starts_with(kDigestPrefix)) digits.remove_prefix(kDigestPrefix.size());
  if (digits.size() >= kMinShortId && digits.size() <= 64 &&
      digits.find_first_not_of("0123456789abcdef") == std::string_view::npos) {
    ASSIGN_OR_RETURN(const auto entries, files_.ListDirectory(directory_));
    std::set<std::string> found;
    for (const std::string& entry : entries) {
      if (entry.starts_with(StrCat("sha256-", digits))) found.insert(entry.substr(7));
    }
    // Also matches an image of which only the names are left, so that a removal can be repeated.
    for (const auto& [name, id] : names) {
      if (id.starts_with(StrCat(kDigestPrefix, digits)))
        found.insert(id.substr(kDigestPrefix.size()));
    }
    if (found.size() > 1) {
      return InvalidArgument(
          StrCat("image id ", Quote(name_or_id), " matches more than one image"));
    }
    if (found.size() == 1) return StrCat(kDigestPrefix, *found.begin());
  }
  return NotPresent(name_or_id);
}

Result<StoredImage> ImageStore::Find(std::string_view name_or_id) const {
  ASSIGN_OR_RETURN(const Names names, ReadAllNames());
  ASSIGN_OR_RETURN(const std::string id, FindId(name_or_id, names.ids));
  auto stored = Load(id, names);
  if (!stored.ok() && stored.error().code == ErrorCode::kNotFound) return NotPresent(name_or_id);
  return stored;
}

Result<std::vector<Image>> ImageStore::List() const {
  ASSIGN_OR_RETURN(const Names names, ReadAllNames());
  ASSIGN_OR_RETURN(const auto entries, files_.ListDirectory(directory_));
  std::vector<Image> images;
  for (const std::string& entry : entries) {
    if (!entry.starts_with("sha256-")) continue;
    auto stored = Load(StrCat(kDigestPrefix, entry.substr(7)), names);
    if (stored.ok()) {
      images.push_back(std::move(stored->image));
      continue;
    }
    // A damaged image, or one being removed, is skipped; one that cannot be read right now is an
    // error.
    const ErrorCode code = stored.error().code;
    if (code == ErrorCode::kNotFound || code == ErrorCode::kInvalidArgument ||
        code == ErrorCode::kDataLoss)
      continue;
    return std::move(stored).error();
  }
  return images;
}

Result<void> ImageStore::Remove(std::string_view name_or_id) {
  ASSIGN_OR_RETURN(const Lock lock, Lock::Take(directory_, /*wait=*/true));
  static_cast<void>(RemoveLeftovers().ok());  // a failure is cleaned up next time
  ASSIGN_OR_RETURN(auto names, ReadNames());
  ASSIGN_OR_RETURN(const std::string id, FindId(name_or_id, names));
  const auto normal = NormalizeImageName(name_or_id);
  const bool by_name = normal.ok() && names.contains(*normal);
  auto remaining = names;
  std::erase_if(remaining, [&](const auto& entry) {
    return by_name ? entry.first == *normal : entry.second == id;
  });
  const bool is_last = std::none_of(remaining.begin(), remaining.end(),
                                    [&](const auto& entry) { return entry.second == id; });
  const std::string directory = ImageDirectory(id);
  if (is_last) {
    auto uses = files_.ListDirectory(JoinPath(directory, "uses"));
    if (!uses.ok() && uses.error().code != ErrorCode::kNotFound) return std::move(uses).error();
    if (uses.ok() && !uses->empty()) {
      return FailedPrecondition(StrCat("image ", Quote(name_or_id), " is used by ", uses->size(),
                                       uses->size() == 1 ? " container" : " containers"));
    }
  }
  if (!is_last) return WriteNames(remaining);
  // Rename it away first: a partly removed tree must not look like an image. Names are removed
  // last: as long as they exist, a failed removal can be repeated.
  const std::string doomed = JoinPath(directory_, "tmp-" + random_.NameSuffix(12));
  auto renamed = files_.Rename(directory, doomed);
  if (renamed.ok()) {
    RETURN_IF_ERROR(files_.RemoveTree(doomed));
  } else if (renamed.error().code != ErrorCode::kNotFound) {
    return renamed;
  }
  return WriteNames(remaining);
}

Result<bool> ImageStore::IsImported(std::string_view name) const {
  ASSIGN_OR_RETURN(const std::string normal, NormalizeImageName(name));
  ASSIGN_OR_RETURN(const auto names, ReadNames());
  ASSIGN_OR_RETURN(const auto pulled, ReadMap("pulled.json"));
  return names.contains(normal) && !pulled.contains(normal);
}

Result<void> ImageStore::NotePulled(const std::string& name, const std::string& digest) {
  auto pulled = ReadMap("pulled.json");
  // An unreadable file would block every import; without it, images count as imported.
  if (!pulled.ok()) pulled = std::map<std::string, std::string>();
  if (digest.empty() && !pulled->contains(name)) return Ok();
  if (digest.empty()) {
    pulled->erase(name);
  } else {
    (*pulled)[name] = digest;
  }
  api::JsonWriter json;
  json.BeginObject();
  for (const auto& [key, value] : *pulled) json.Member(key, value);
  json.EndObject();
  return files_.WriteFileAtomically(JoinPath(directory_, "pulled.json"), json.Take(), 0600);
}

Result<Image> ImageStore::AddName(const std::string& id, const std::string& name,
                                  const std::string& pulled_digest) {
  if (!IsSha256Digest(id)) return InvalidArgument(Quote(id) + " is not an image id");
  ASSIGN_OR_RETURN(const std::string full_name, NormalizeImageName(name));
  // Without waiting: this runs on a loop, and an import may take minutes.
  ASSIGN_OR_RETURN(const Lock lock, Lock::Take(directory_, /*wait=*/false));
  ASSIGN_OR_RETURN(auto names, ReadNames());
  if (!files_.Exists(JoinPath(ImageDirectory(id), "image.json"))) return NotPresent(id);
  if (names[full_name] != id) {
    names[full_name] = id;
    RETURN_IF_ERROR(WriteNames(names));
  }
  RETURN_IF_ERROR(NotePulled(full_name, pulled_digest));
  ASSIGN_OR_RETURN(const Names all, ReadAllNames());
  ASSIGN_OR_RETURN(StoredImage stored, Load(id, all));
  return std::move(stored.image);
}

Result<WallTime> ImageStore::LastUsed(const std::string& image_id) const {
  // Adding and dropping a use changes the directory.
  ASSIGN_OR_RETURN(const FileInfo info, files_.Stat(JoinPath(ImageDirectory(image_id), "uses")));
  return WallTime(std::chrono::seconds(info.modified_seconds));
}

Result<bool> ImageStore::IsUsed(const std::string& image_id) const {
  auto uses = files_.ListDirectory(JoinPath(ImageDirectory(image_id), "uses"));
  if (!uses.ok()) {
    if (uses.error().code == ErrorCode::kNotFound) return false;
    return std::move(uses).error();
  }
  return !uses->empty();
}

Result<void> ImageStore::AddUse(const std::string& image_id, const std::string& user) {
  return files_.WriteFile(JoinPath(JoinPath(ImageDirectory(image_id), "uses"), user), "", 0600);
}

Result<void> ImageStore::DropUse(const std::string& image_id, const std::string& user) {
  if (image_id.empty()) {
    ASSIGN_OR_RETURN(const auto entries, files_.ListDirectory(directory_));
    for (const std::string& entry : entries) {
      if (!entry.starts_with("sha256-")) continue;
      RETURN_IF_ERROR(DropUse(StrCat(kDigestPrefix, entry.substr(7)), user));
    }
    return Ok();
  }
  if (!IsSha256Digest(image_id)) return Ok();
  auto removed = files_.Remove(JoinPath(JoinPath(ImageDirectory(image_id), "uses"), user));
  if (!removed.ok() && removed.error().code == ErrorCode::kNotFound) return Ok();
  return removed;
}

Result<Image> ImageStore::Import(const std::string& path, const ImportOptions& options) {
  if (!options.name.empty()) {
    ASSIGN_OR_RETURN(const std::string normal, NormalizeImageName(options.name));
    if (normal.find('@') != std::string::npos && options.pulled_digest.empty()) {
      return InvalidArgument("--name must have a tag, not a digest");
    }
  }
  ASSIGN_OR_RETURN(const FileInfo info, files_.Stat(path));
  RETURN_IF_ERROR(files_.MakeDirectories(directory_, 0700));
  ASSIGN_OR_RETURN(const Lock lock, Lock::Take(directory_, /*wait=*/true));
  static_cast<void>(RemoveLeftovers().ok());  // a failure is cleaned up next time
  const std::string work = JoinPath(directory_, "tmp-" + random_.NameSuffix(12));
  auto imported = [&]() -> Result<Image> {
    RETURN_IF_ERROR(files_.MakeDirectories(JoinPath(work, "rootfs"), 0755));
    RETURN_IF_ERROR(files_.MakeDirectories(JoinPath(work, "uses"), 0700));
    if (info.type == FileType::kDirectory) {
      if (!files_.Exists(JoinPath(path, "oci-layout"))) {
        return InvalidArgument(path +
                               " is a directory without an oci-layout file: give an OCI image"
                               " layout, or pack the root file system with tar");
      }
      return ImportLayout(path, LayoutOrigin::kDirectory, work, options);
    }
    ASSIGN_OR_RETURN(const ArchiveKind kind, KindOfArchive(path));
    if (kind == ArchiveKind::kRootfs) return ImportRootfs(path, work, options);
    const std::string layout = JoinPath(work, "layout");
    RETURN_IF_ERROR(files_.MakeDirectories(layout, 0700));
    ASSIGN_OR_RETURN(auto file, OpenFileSource(path));
    auto plain = MakeDecompressor(*file);
    TarReader reader(*plain);
    ASSIGN_OR_RETURN(const UnpackSummary unpacked, UnpackTar(reader, layout, UnpackOptions{}));
    static_cast<void>(unpacked);
    if (kind == ArchiveKind::kDocker) return ImportDockerArchive(layout, work, options);
    return ImportLayout(layout, LayoutOrigin::kArchive, work, options);
  }();
  // A published import was renamed; anything else is deleted.
  auto cleaned = files_.RemoveTree(work);
  if (!imported.ok()) {
    if (!options.pulled_digest.empty()) return std::move(imported).error();
    return std::move(imported).error().Prefixed("import " + path);
  }
  RETURN_IF_ERROR(std::move(cleaned));
  return imported;
}

Result<Image> ImageStore::ImportRootfs(const std::string& path, const std::string& work,
                                       const ImportOptions& options) {
  if (options.name.empty()) {
    return InvalidArgument("a root file system archive has no name; pass one with --name");
  }
  ASSIGN_OR_RETURN(auto file, OpenFileSource(path));
  HashingSource hashed(*file);
  auto plain = MakeDecompressor(hashed);
  TarReader reader(*plain);
  UnpackOptions unpack;
  unpack.progress = options.progress;
  ASSIGN_OR_RETURN(const UnpackSummary summary,
                   UnpackTar(reader, JoinPath(work, "rootfs"), unpack));
  if (summary.entries == 0) return InvalidArgument("the archive is empty");
  ASSIGN_OR_RETURN(const std::string id, hashed.Finish());
  ImageConfig config;
  config.command = {"/bin/sh"};
  ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesToStore(options.name, {}));
  return Publish(work, id, names, config, summary.bytes, options.pulled_digest);
}

Result<ImageStore::AppliedLayer> ImageStore::ApplyLayer(const std::string& path,
                                                        const std::string& work,
                                                        std::uint64_t bytes_before,
                                                        bool hashes_plain,
                                                        const ImportOptions& options) {
  ASSIGN_OR_RETURN(auto file, OpenFileSource(path));
  HashingSource hashed(*file);
  auto decompressed = MakeDecompressor(hashed);
  // A second hash costs as much as the first.
  HashingSource plain(*decompressed);
  TarReader reader(hashes_plain ? static_cast<ByteSource&>(plain) : *decompressed);
  UnpackOptions unpack;
  unpack.whiteouts = true;
  unpack.max_bytes -= std::min(unpack.max_bytes, bytes_before);  // layers share the limit
  if (options.progress) {
    unpack.progress = [&](std::uint64_t done) { options.progress(bytes_before + done); };
  }
  ASSIGN_OR_RETURN(const UnpackSummary summary,
                   UnpackTar(reader, JoinPath(work, "rootfs"), unpack));
  AppliedLayer applied;
  applied.bytes = summary.bytes;
  if (hashes_plain) {
    ASSIGN_OR_RETURN(applied.plain_digest, plain.Finish());
  }
  ASSIGN_OR_RETURN(applied.digest, hashed.Finish());
  return applied;
}

Result<Image> ImageStore::ImportDockerArchive(const std::string& directory, const std::string& work,
                                              const ImportOptions& options) {
  ASSIGN_OR_RETURN(const DockerArchiveImage image, ReadDockerArchive(directory, options.name));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesToStore(options.name, image.names));
  ASSIGN_OR_RETURN(const ImageConfig config, ParseImageConfig(image.config_json));
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < image.layers.size(); ++i) {
    // Layers may be links to each other, which must stay inside.
    ASSIGN_OR_RETURN(const std::string path, ResolveInRoot(directory, image.layers[i]));
    auto applied = ApplyLayer(path, work, bytes, /*hashes_plain=*/true, options);
    if (!applied.ok()) return std::move(applied).error().Prefixed("layer " + image.layers[i]);
    bytes += applied->bytes;
    if (applied->plain_digest != image.diff_ids[i]) {
      return Error{ErrorCode::kDataLoss, "layer " + image.layers[i] +
                                             " is damaged: its content has the digest " +
                                             applied->plain_digest};
    }
  }
  return Publish(work, image.config_digest, names, config, bytes, options.pulled_digest);
}

Result<Image> ImageStore::ImportLayout(const std::string& layout, LayoutOrigin origin,
                                       const std::string& work, const ImportOptions& options) {
  ASSIGN_OR_RETURN(const LayoutImage image, ReadOciLayout(files_, layout, options.name, origin));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesToStore(options.name, image.names));
  ASSIGN_OR_RETURN(const ImageConfig config, ParseImageConfig(image.config_json));
  std::uint64_t bytes = 0;
  for (const LayoutLayer& layer : image.layers) {
    auto applied = ApplyLayer(layer.path, work, bytes, /*hashes_plain=*/false, options);
    if (!applied.ok()) return std::move(applied).error().Prefixed("layer " + layer.digest);
    bytes += applied->bytes;
    const std::string& digest = applied->digest;
    if (digest != layer.digest) {
      return Error{ErrorCode::kDataLoss,
                   "layer " + layer.digest + " is damaged: its content has the digest " + digest};
    }
  }
  return Publish(work, image.config_digest, names, config, bytes, options.pulled_digest);
}

Result<Image> ImageStore::Publish(const std::string& work, const std::string& id,
                                  const std::vector<std::string>& new_names,
                                  const ImageConfig& config, std::uint64_t size_bytes,
                                  const std::string& pulled_digest) {
  RETURN_IF_ERROR(files_.RemoveTree(JoinPath(work, "layout")));
  RETURN_IF_ERROR(
      files_.WriteFile(JoinPath(work, "image.json"), WriteImageFile(id, config, size_bytes), 0600));
  const std::string final_path = ImageDirectory(id);
  if (!files_.Exists(JoinPath(final_path, "image.json"))) {
    RETURN_IF_ERROR(files_.Rename(work, final_path));
  }
  ASSIGN_OR_RETURN(auto names, ReadNames());
  for (const std::string& name : new_names) {
    names[name] = id;
    RETURN_IF_ERROR(NotePulled(name, pulled_digest));
  }
  RETURN_IF_ERROR(WriteNames(names));
  ASSIGN_OR_RETURN(const Names all, ReadAllNames());
  ASSIGN_OR_RETURN(StoredImage stored, Load(id, all));
  return std::move(stored.image);
}

}  // namespace drakkar::node
