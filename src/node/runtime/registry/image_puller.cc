#include "node/runtime/registry/image_puller.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "api/json/json_writer.h"
#include "base/env/descriptor.h"
#include "base/hash/sha256.h"
#include "base/text/text.h"
#include "node/runtime/images/image_name.h"
#include "node/runtime/images/oci_layout.h"
#include "node/runtime/json.h"

namespace drakkar::node {
namespace {

constexpr char kManifestTypes[] =
    "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.docker.distribution.manifest.v2+json";
constexpr int kMaxIndexes = 4;

Result<void> WriteAll(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoError(errno, "write the download");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return Ok();
}

}  // namespace

Result<ImageReference> ParseImageReference(std::string_view name) {
  ASSIGN_OR_RETURN(const std::string full, NormalizeImageName(name));
  ImageReference reference;
  const std::size_t slash = full.find('/');
  reference.host = full.substr(0, slash);
  std::string rest = full.substr(slash + 1);
  if (const std::size_t at = rest.find('@'); at != std::string::npos) {
    reference.digest = rest.substr(at + 1);
    rest.resize(at);
  } else if (const std::size_t colon = rest.rfind(':'); colon != std::string::npos) {
    reference.tag = rest.substr(colon + 1);
    rest.resize(colon);
  }
  reference.repository = std::move(rest);
  return reference;
}

// The download of one image: manifest, then blobs, then the import.
class ImagePuller::Job {
 public:
  Job(ImagePuller& owner, std::string key, PullRequest request, ImageReference reference)
      : owner_(owner),
        key_(std::move(key)),
        request_(std::move(request)),
        reference_(std::move(reference)),
        endpoints_(owner.options_.endpoints(reference_.host)),
        directory_(JoinPath(owner.options_.directory, Sha256Hex(key_).substr(0, 32))) {}

  void Start() {
    auto& files = owner_.options_.files;
    auto made = files.MakeDirectories(Blobs(), 0700);
    if (!made.ok()) return Fail(std::move(made).error());
    WatchForStall();
    NextEndpoint(NotFound("no registry is configured"));
  }

  std::vector<RuntimeCallback<Image>> waiters;
  std::vector<std::function<void(const Progress&)>> watchers;

 private:
  struct Download {
    BlobDescriptor blob;
    Descriptor file;
    std::uint64_t received = 0;  // in the file
    int attempts = 0;
    TimerHandle retry;
  };

  std::string Blobs() const { return JoinPath(directory_, "blobs/sha256"); }
  std::string BlobPath(const std::string& digest) const {
    return JoinPath(Blobs(), digest.substr(sizeof("sha256:") - 1));
  }
  std::string Path(std::string_view kind, std::string_view what) const {
    return StrCat("/v2/", reference_.repository, "/", kind, "/", what);
  }

  // Mirrors may lack the image or be down; the last error is the registry's own. An HTTP error says
  // more than a failed connection to another endpoint.
  void NextEndpoint(Error error) {
    const bool is_clear =
        error_ && (error_->code == ErrorCode::kNotFound || error_->code == ErrorCode::kForbidden);
    if (endpoint_ <= 1 || !is_clear) error_ = std::move(error);
    if (endpoint_ == endpoints_.size()) return Fail(*error_);
    const RegistryEndpoint& endpoint = endpoints_[endpoint_++];
    // Credentials belong to the registry that the image's name names.
    const bool is_own = endpoint.is_own;
    fetcher_ =
        std::make_unique<RegistryFetcher>(owner_.options_.loop, endpoint, reference_.repository,
                                          is_own ? request_.credentials : endpoint.credentials);
    indexes_ = 0;
    FetchManifest(reference_.digest.empty() ? reference_.tag : reference_.digest,
                  reference_.digest);
  }

  void FetchManifest(const std::string& what, const std::string& digest) {
    auto text = std::make_shared<std::string>();
    fetcher_->Fetch({.path = Path("manifests", what),
                     .accept = kManifestTypes,
                     .from = 0,
                     .max_bytes = kMaxManifestBytes,
                     .on_response = [](const RegistryFetcher::Response&) { return Ok(); },
                     .on_data = [this, text](std::string_view bytes) -> Result<void> {
                       is_alive_ = true;
                       *text += bytes;
                       return Ok();
                     },
                     .done =
                         [this, text, digest](Result<void> done) {
                           if (!done.ok()) return NextEndpoint(std::move(done).error());
                           OnManifest(*text, digest);
                         }});
  }

  void OnManifest(const std::string& text, const std::string& wanted) {
    const std::string digest = "sha256:" + Sha256Hex(text);
    if (!wanted.empty() && digest != wanted) {
      return NextEndpoint(
          {ErrorCode::kDataLoss,
           StrCat("the registry returned a manifest with digest ", digest, " for ", wanted)});
    }
    auto manifest = ParseManifest(text);
    if (!manifest.ok()) return NextEndpoint(std::move(manifest).error());
    if (indexes_ == 0) named_digest_ = digest;
    if (!manifest->next_digest.empty()) {
      if (++indexes_ > kMaxIndexes) {
        return NextEndpoint(InvalidArgument("indexes nested too deeply"));
      }
      return FetchManifest(manifest->next_digest, manifest->next_digest);
    }
    for (const BlobDescriptor& blob : manifest->layers) {
      if (blob.size_bytes <= kMaxLayerBytes) continue;
      return NextEndpoint(InvalidArgument(
          StrCat("layer ", blob.digest, " has ", blob.size_bytes, " bytes, more than allowed")));
    }
    if (manifest->config.size_bytes > kMaxJsonBytes) {
      return NextEndpoint(InvalidArgument("the image configuration is too large"));
    }
    // The usual case for a policy that contacts the registry each time: nothing has changed.
    if (auto image = owner_.options_.images.AddName(
            manifest->config.digest, *NormalizeImageName(request_.image), named_digest_);
        image.ok()) {
      return Succeed(*std::move(image));
    }
    auto& files = owner_.options_.files;
    auto written = files.WriteFile(BlobPath(digest), text, 0600);
    if (!written.ok()) return Fail(std::move(written).error());
    manifest_digest_ = digest;
    manifest_bytes_ = text.size();
    std::vector<BlobDescriptor> wanted_blobs = manifest->layers;
    wanted_blobs.insert(wanted_blobs.begin(), manifest->config);
    for (BlobDescriptor& blob : wanted_blobs) {
      // A layer may occur twice.
      const bool is_known = std::ranges::any_of(
          queue_, [&](const BlobDescriptor& other) { return other.digest == blob.digest; });
      if (is_known) continue;
      progress_.total_bytes += blob.size_bytes;
      const auto info = files.Stat(BlobPath(blob.digest));
      if (info.ok() && info->size_bytes == blob.size_bytes) {
        progress_.received_bytes += blob.size_bytes;  // from an earlier attempt
        continue;
      }
      queue_.push_back(std::move(blob));
    }
    std::ranges::reverse(queue_);  // taken from the back
    FetchBlobs();
  }

  void FetchBlobs() {
    while (downloads_.size() < kMaxParallelLayers && !queue_.empty()) {
      auto download = std::make_shared<Download>();
      download->blob = std::move(queue_.back());
      queue_.pop_back();
      downloads_.push_back(download);
      StartDownload(download);
      if (is_over_) return;
    }
    if (downloads_.empty() && queue_.empty()) Import();
  }

  void StartDownload(const std::shared_ptr<Download>& download) {
    const std::string path = BlobPath(download->blob.digest) + ".part";
    download->file =
        Descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!download->file.ok()) return Fail(ErrnoError(errno, "open " + path));
    const off_t end = ::lseek(download->file.get(), 0, SEEK_END);
    const std::uint64_t before = end < 0 ? 0 : static_cast<std::uint64_t>(end);
    if (before > download->blob.size_bytes) return Restart(download);
    progress_.received_bytes += before - download->received;
    download->received = before;
    if (before == download->blob.size_bytes && before > 0) return FinishDownload(download);
    fetcher_->Fetch(
        {.path = Path("blobs", download->blob.digest),
         .accept = "",
         .from = before,
         .max_bytes = download->blob.size_bytes,
         .on_response =
             [this, download](const RegistryFetcher::Response& response) {
               return OnBlobResponse(download, response);
             },
         .on_data = [this,
                     download](std::string_view bytes) { return OnBlobData(download, bytes); },
         .done = [this, download](Result<void> done) { OnBlobEnd(download, std::move(done)); }});
  }

  Result<void> OnBlobResponse(const std::shared_ptr<Download>& download,
                              const RegistryFetcher::Response& response) {
    is_alive_ = true;
    const bool continues =
        response.status == 206 && response.headers.Get("content-range")
                                      .starts_with(StrCat("bytes ", download->received, "-"));
    if (download->received == 0 || continues) return Ok();
    // It sends everything.
    return Truncate(download);
  }

  Result<void> Truncate(const std::shared_ptr<Download>& download) {
    if (::ftruncate(download->file.get(), 0) != 0 ||
        ::lseek(download->file.get(), 0, SEEK_SET) != 0) {
      return ErrnoError(errno, "truncate the download");
    }
    progress_.received_bytes -= download->received;
    download->received = 0;
    return Ok();
  }

  Result<void> OnBlobData(const std::shared_ptr<Download>& download, std::string_view bytes) {
    is_alive_ = true;
    if (download->received + bytes.size() > download->blob.size_bytes) {
      return Error{ErrorCode::kDataLoss,
                   StrCat("blob ", download->blob.digest, " is larger than its manifest says")};
    }
    RETURN_IF_ERROR(WriteAll(download->file.get(), bytes));
    download->received += bytes.size();
    progress_.received_bytes += bytes.size();
    for (const auto& watcher : watchers) {
      if (watcher) watcher(progress_);
    }
    return Ok();
  }

  void OnBlobEnd(const std::shared_ptr<Download>& download, Result<void> done) {
    if (is_over_) return;
    if (done.ok() && download->received == download->blob.size_bytes) {
      return FinishDownload(download);
    }
    Error error =
        done.ok() ? Unavailable("the connection ended too early") : std::move(done).error();
    const bool may_help =
        error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kDeadlineExceeded;
    if (!may_help || ++download->attempts >= kMaxAttempts) {
      return Fail(std::move(error).Prefixed(StrCat("blob ", download->blob.digest)));
    }
    download->retry = owner_.options_.loop.RunAfter(std::chrono::seconds(download->attempts),
                                                    [this, download] { StartDownload(download); });
  }

  void Restart(const std::shared_ptr<Download>& download) {
    if (auto truncated = Truncate(download); !truncated.ok()) {
      return Fail(std::move(truncated).error());
    }
    StartDownload(download);
  }

  void FinishDownload(const std::shared_ptr<Download>& download) {
    const std::string path = BlobPath(download->blob.digest);
    auto renamed = owner_.options_.files.Rename(path + ".part", path);
    if (!renamed.ok()) return Fail(std::move(renamed).error());
    std::erase(downloads_, download);
    FetchBlobs();
  }

  void Import() {
    stall_timer_.reset();
    auto& files = owner_.options_.files;
    const std::string name = *NormalizeImageName(request_.image);
    api::JsonWriter index;
    index.BeginObject();
    index.Key("schemaVersion").Integer(2);
    index.Key("manifests").BeginArray().BeginObject();
    index.Member("digest", manifest_digest_);
    index.Key("size").Unsigned(manifest_bytes_);
    index.EndObject().EndArray();
    index.EndObject();
    auto written = files.WriteFile(JoinPath(directory_, "oci-layout"),
                                   R"({"imageLayoutVersion":"1.0.0"})", 0600);
    if (written.ok()) {
      written = files.WriteFile(JoinPath(directory_, "index.json"), index.Take(), 0600);
    }
    if (!written.ok()) return Fail(std::move(written).error());
    auto owner = owner_.lifetime_.Observe();
    const bool accepted = owner_.options_.workers.Run(
        [&images = owner_.options_.images, &files, &loop = owner_.options_.loop, name, owner,
         directory = directory_, digest = named_digest_, puller = &owner_, key = key_] {
          auto image = images.Import(directory, {.name = name, .pulled_digest = digest});
          // Do not keep a damaged download: resuming it would fail again.
          if (image.ok() || image.error().code != ErrorCode::kUnavailable) {
            static_cast<void>(files.RemoveTree(directory).ok());
          }
          loop.Post([owner, puller, key, image = std::move(image)]() mutable {
            if (owner.alive()) puller->Finish(key, std::move(image));
          });
        });
    if (!accepted) Fail(Error{ErrorCode::kResourceExhausted, "too many operations in flight"});
  }

  void Succeed(Image image) {
    is_over_ = true;
    stall_timer_.reset();
    static_cast<void>(owner_.options_.files.RemoveTree(directory_).ok());
    owner_.options_.loop.Post(
        owner_.lifetime_.Guard([owner = &owner_, key = key_, image = std::move(image)]() mutable {
          owner->Finish(key, std::move(image));
        }));
  }

  void WatchForStall() {
    is_alive_ = false;
    stall_timer_ = owner_.options_.loop.RunAfter(owner_.options_.stall_timeout, [this] {
      if (is_alive_) return WatchForStall();
      Fail({ErrorCode::kDeadlineExceeded, "the registry sent nothing for too long"});
    });
  }

  // Posted, because it destroys this object.
  void Fail(Error error) {
    if (std::exchange(is_over_, true)) return;
    stall_timer_.reset();
    owner_.options_.loop.Post(
        owner_.lifetime_.Guard([owner = &owner_, key = key_, error = std::move(error)]() mutable {
          owner->Finish(key, std::move(error));
        }));
  }

  ImagePuller& owner_;
  const std::string key_;
  const PullRequest request_;
  const ImageReference reference_;
  const std::vector<RegistryEndpoint> endpoints_;
  const std::string directory_;
  std::size_t endpoint_ = 0;
  std::optional<Error> error_;
  int indexes_ = 0;
  std::string named_digest_;  // of what the name stands for: a manifest, or an index of several
  std::string manifest_digest_;
  std::uint64_t manifest_bytes_ = 0;
  Progress progress_;
  std::vector<BlobDescriptor> queue_;
  std::vector<std::shared_ptr<Download>> downloads_;
  TimerHandle stall_timer_;
  bool is_alive_ = false;  // something arrived since the last check
  bool is_over_ = false;
  std::unique_ptr<RegistryFetcher> fetcher_;  // destroyed first: its callbacks use the rest
};

ImagePuller::ImagePuller(Options options) : options_(std::move(options)) {}
ImagePuller::~ImagePuller() = default;

void ImagePuller::Pull(PullRequest request, std::function<void(const Progress&)> progress,
                       RuntimeCallback<Image> done) {
  auto refuse = [&](Error error) {
    options_.loop.Post(lifetime_.Guard(
        [done = std::move(done), error = std::move(error)]() mutable { done(std::move(error)); }));
  };
  auto reference = ParseImageReference(request.image);
  if (!reference.ok()) return refuse(std::move(reference).error());
  // Equal requests share a job. Credentials only enter as a digest.
  std::string key = *NormalizeImageName(request.image);
  for (const RegistryCredential& credential : request.credentials) {
    key = StrCat(key, " ", Sha256Hex(StrCat(credential.username, "\n", credential.password)));
  }
  auto& job = jobs_[key];
  const bool is_new = job == nullptr;
  if (is_new) {
    if (jobs_.size() > kMaxPulls) {
      jobs_.erase(key);
      return refuse({ErrorCode::kResourceExhausted, "too many images are being pulled"});
    }
    job = std::make_unique<Job>(*this, key, std::move(request), *std::move(reference));
  }
  job->waiters.push_back(std::move(done));
  job->watchers.push_back(std::move(progress));
  if (is_new) job->Start();
}

void ImagePuller::Finish(const std::string& key, Result<Image> result) {
  const auto found = jobs_.find(key);
  if (found == jobs_.end()) return;
  const std::unique_ptr<Job> job = std::move(found->second);
  jobs_.erase(found);
  for (auto& waiter : std::exchange(job->waiters, {})) waiter(result);
}

Result<void> ImagePuller::RemoveOldDownloads(FileSystem& files, const std::string& directory,
                                             WallTime now) {
  auto names = files.ListDirectory(directory);
  if (!names.ok()) {
    return names.error().code == ErrorCode::kNotFound ? Ok() : Result<void>(names.error());
  }
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch() - kKeepDownloads)
          .count();
  for (const std::string& name : *names) {
    const std::string path = JoinPath(directory, name);
    const auto info = files.LinkStat(path);
    if (info.ok() && info->modified_seconds < seconds) RETURN_IF_ERROR(files.RemoveTree(path));
  }
  return Ok();
}

}  // namespace drakkar::node
