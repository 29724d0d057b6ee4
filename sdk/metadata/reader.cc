#include "sdk/metadata/reader.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "api/metadata/document.h"
#include "api/metadata/paths.h"
#include "base/env/file_system.h"
#include "base/env/pause.h"
#include "base/text/text.h"

namespace drakkar::metadata {
namespace {

// Drivers replace files atomically. One that writes in place completes the file in well under a
// millisecond.
constexpr int kReadAttempts = 8;
constexpr Duration kReadPause = std::chrono::milliseconds(1);
// Poll intervals while waiting: with inotify, which some file systems do not support, and without.
constexpr Duration kWatchedPause = std::chrono::seconds(1);
constexpr Duration kWaitPause = std::chrono::milliseconds(20);

Error NotYet(const std::string& path) {
  return NotFound(StrCat(path, ": no metadata yet"));
}

bool IsNotYet(const Error& error) {
  return error.code == ErrorCode::kNotFound || error.code == ErrorCode::kDeadlineExceeded;
}

Result<void> CheckName(std::string_view what, std::string_view name) {
  if (name == "." || name == ".." || name.find('/') != std::string_view::npos ||
      name.find('\0') != std::string_view::npos) {
    return InvalidArgument(StrCat(what, " ", Quote(name), " is not a valid name"));
  }
  return Ok();
}

// Returns `whole`, or the available part with the paths of what is missing.
template <typename T, typename Read>
Result<T> OrPart(Result<T> whole, std::vector<std::string>& pending, const Read& read) {
  if (whole.ok() || !IsNotYet(whole.error())) return whole;
  Result<T> part = read(&pending);
  if (part.ok()) return part;
  pending.clear();
  return IsNotYet(part.error()) ? whole : part;
}

// The claim's own name, or the name in the pod if the file has no other.
std::string ClaimKey(const DeviceMetadata& metadata) {
  return StrCat(metadata.claim_namespace, "/", metadata.claim_name, "/", metadata.claim_uid);
}

}  // namespace

Reader::Reader() : Reader(Options()) {}

Reader::Reader(Options options)
    : files_(options.files != nullptr ? *options.files : RealFileSystem()),
      clock_(options.clock != nullptr ? *options.clock : RealClock()),
      pause_(options.pause != nullptr ? *options.pause : RealPause()),
      root_(std::move(options.root)) {}

template <typename T, typename Attempt, typename Watched>
Result<T> Reader::WaitFor(Duration timeout, Attempt attempt, Watched watched) {
  const MonotonicTime deadline = clock_.Monotonic() + timeout;
  std::unique_ptr<ChangeWatch> watch;
  while (true) {
    Result<T> result = attempt();
    if (result.ok() || result.error().code != ErrorCode::kNotFound || timeout <= kNoWait) {
      return result;
    }
    const Duration left = deadline - clock_.Monotonic();
    if (left <= Duration::zero()) {
      return Error{
          ErrorCode::kDeadlineExceeded,
          StrCat(result.error().message, " after ",
                 std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count(), " ms")};
    }
    if (watch != nullptr) {
      watch->Wait(std::min(left, kWatchedPause));
      watch.reset();
      continue;
    }
    // Check again with the watch in place, so that no change is missed.
    watch = pause_.WatchChanges(watched());
    if (watch == nullptr) pause_.For(std::min(left, kWaitPause));
  }
}

std::vector<std::string> Reader::WatchedPaths() {
  std::vector<std::string> paths;
  const std::string kubernetes = root_ + std::string(kKubernetesContainerDirectory);
  for (const std::string& directory :
       {root_ + std::string(kContainerDirectory), JoinPath(kubernetes, kClaimsDirectory),
        JoinPath(kubernetes, kTemplatesDirectory)}) {
    // Two levels of directories, then the files.
    std::vector<std::string> level = {directory};
    for (int depth = 0; depth < 3; ++depth) {
      paths.insert(paths.end(), level.begin(), level.end());
      std::vector<std::string> below;
      for (const std::string& each : level) {
        auto names = files_.ListDirectory(each);
        if (!names.ok()) continue;
        for (const std::string& name : *names) below.push_back(JoinPath(each, name));
      }
      level = std::move(below);
    }
    paths.insert(paths.end(), level.begin(), level.end());
  }
  return paths;
}

Result<DeviceMetadata> Reader::ReadOnce(const std::string& path) {
  Result<DeviceMetadata> outcome = NotYet(path);
  std::string before;
  for (int attempt = 0; attempt < kReadAttempts; ++attempt) {
    if (attempt > 0) pause_.For(kReadPause);
    Result<std::string> text = files_.ReadFile(path);
    if (!text.ok()) {
      if (text.error().code == ErrorCode::kNotFound) return NotYet(path);
      return std::move(text).error();
    }
    // The file may be empty for a moment during an update, so look twice.
    if (text->empty() && before.empty() && attempt > 0) return NotYet(path);
    if (text->empty()) {
      before.clear();
      outcome = NotYet(path);
      continue;
    }
    Result<DeviceMetadata> decoded = DecodeMetadata(*text);
    if (decoded.ok()) {
      // Parts of two documents, written in place, may look complete. Read again: the content is the
      // same, or newer and complete.
      Result<std::string> again = files_.ReadFile(path);
      if (again.ok() && *again == *text) return decoded;
      if (again.ok()) {
        if (auto newer = DecodeMetadata(*again); newer.ok()) return newer;
      }
      before = std::move(*text);
      outcome = Error{ErrorCode::kUnavailable, StrCat(path, ": the file keeps changing")};
      continue;
    }
    const bool same = before == *text;
    before = std::move(*text);
    outcome = decoded.error().code == ErrorCode::kNotFound ? NotYet(path)
                                                           : decoded.error().Prefixed(path);
    if (same && attempt >= 2) break;
  }
  return outcome;
}

Result<DeviceMetadata> Reader::ReadPlaces(const std::vector<Place>& places,
                                          std::vector<std::string>* pending) {
  std::vector<DeviceMetadata> files;
  for (const Place& place : places) {
    auto file = ReadOnce(place.path);
    if (file.ok()) {
      files.push_back(*std::move(file));
    } else if (pending != nullptr && IsNotYet(file.error())) {
      pending->push_back(place.path);
    } else {
      return std::move(file).error();
    }
  }
  if (files.empty()) return NotYet(places.front().path);
  return MergeMetadata(files);
}

std::vector<Reader::Place> Reader::FindPlaces(const std::string& directory,
                                              const std::string& claim,
                                              const std::string& request) {
  const auto list = [this](const std::string& path, const std::string& wanted) {
    if (!wanted.empty()) return std::vector{wanted};
    auto names = files_.ListDirectory(path);
    return names.ok() ? *std::move(names) : std::vector<std::string>();
  };
  std::vector<Place> places;
  for (const std::string& claim_name : list(directory, claim)) {
    const std::string claim_path = JoinPath(directory, claim_name);
    for (const std::string& request_name : list(claim_path, request)) {
      const std::string path = JoinPath(claim_path, request_name);
      for (const std::string& file : list(path, "")) {
        if (!file.ends_with(kFileSuffix)) continue;
        const std::string driver = file.substr(0, file.size() - kFileSuffix.size());
        // Next to an individually mounted file there may be a directory with the current one.
        const std::string live =
            JoinPath(JoinPath(path, StrCat(driver, kLiveDirectorySuffix)), file);
        places.push_back(
            {claim_name, request_name, driver, files_.Exists(live) ? live : JoinPath(path, file)});
      }
    }
  }
  return places;
}

Result<std::vector<Reader::Place>> Reader::FindRequest(const std::string& claim,
                                                       const std::string& request) {
  const std::string ours = root_ + std::string(kContainerDirectory);
  const std::string kubernetes = root_ + std::string(kKubernetesContainerDirectory);
  const std::string base = BaseRequest(request);
  // Each driver mounts its file at one or more of the paths, so search all of them. A file is
  // identified by request and driver; the first one found is read.
  std::vector<Place> places;
  std::set<std::pair<std::string, std::string>> seen;
  std::string uid;  // of the claim, once a file has it
  const auto belongs = [&](const Result<DeviceMetadata>& file) {
    if (!file.ok() || file->claim_uid.empty()) return true;  // unknown yet
    for (std::size_t i = 0; uid.empty() && i < places.size(); ++i) {
      if (const auto other = ReadOnce(places[i].path); other.ok()) uid = other->claim_uid;
    }
    if (uid.empty()) uid = file->claim_uid;
    return file->claim_uid == uid;
  };
  const auto add = [&](const Place& place) {
    if (seen.emplace(place.request, place.driver).second) places.push_back(place);
  };
  const std::string templates = JoinPath(kubernetes, kTemplatesDirectory);
  for (const std::string& directory : {ours, templates, JoinPath(kubernetes, kClaimsDirectory)}) {
    const bool is_first = places.empty();
    for (const Place& place : FindPlaces(directory, claim, base)) {
      if (seen.contains({place.request, place.driver})) continue;
      // One claim's name may equal another claim's name in the pod.
      if (is_first || belongs(ReadOnce(place.path))) add(place);
    }
  }
  // A claim from a template has its own name in our directory and its name in the pod in
  // Kubernetes'. The files contain the other name.
  for (const std::string& directory : {ours, templates}) {
    for (const Place& place : FindPlaces(directory, "", base)) {
      if (place.claim == claim || seen.contains({place.request, place.driver})) continue;
      const auto file = ReadOnce(place.path);
      if (!file.ok()) continue;
      const bool is_named =
          directory == ours ? file->pod_claim_name == claim : file->claim_name == claim;
      if (is_named && belongs(file)) add(place);
    }
  }
  if (!places.empty()) return places;
  return NotFound(StrCat("no metadata files found for claim ", claim,
                         base.empty() ? std::string() : " and request " + base, " in ", ours,
                         " or ", kubernetes));
}

Result<DeviceMetadata> Reader::ReadFile(const std::string& path, Duration timeout) {
  return WaitFor<DeviceMetadata>(
      timeout, [&] { return ReadOnce(path); },
      [&] {
        return std::vector{path, DirectoryName(path)};
      });
}

Result<DeviceMetadata> Reader::ReadRequest(const std::string& claim, const std::string& request,
                                           Duration timeout, std::vector<std::string>* pending) {
  if (pending != nullptr) pending->clear();
  if (claim.empty()) return InvalidArgument("the claim name must not be empty");
  RETURN_IF_ERROR(CheckName("claim", claim));
  RETURN_IF_ERROR(CheckName("request", BaseRequest(request)));
  const auto read = [&](std::vector<std::string>* missing) -> Result<DeviceMetadata> {
    ASSIGN_OR_RETURN(const std::vector<Place> places, FindRequest(claim, request));
    return ReadPlaces(places, missing);
  };
  auto whole = WaitFor<DeviceMetadata>(
      timeout, [&] { return read(nullptr); }, [&] { return WatchedPaths(); });
  return pending == nullptr ? whole : OrPart(std::move(whole), *pending, read);
}

Result<std::vector<DeviceMetadata>> Reader::ReadAllOnce(bool need_some,
                                                        std::vector<std::string>* pending) {
  const std::string kubernetes = root_ + std::string(kKubernetesContainerDirectory);
  std::map<std::string, std::vector<DeviceMetadata>> claims;
  // A file may be mounted at two paths; driver and request identify it.
  std::set<std::string> seen;
  std::set<std::string> missing;  // an empty file does not name its claim
  for (const std::string& directory :
       {root_ + std::string(kContainerDirectory), JoinPath(kubernetes, kClaimsDirectory),
        JoinPath(kubernetes, kTemplatesDirectory)}) {
    for (const Place& place : FindPlaces(directory, "", "")) {
      const std::string file_key = StrCat("/", place.request, "/", BaseName(place.path));
      auto file = ReadOnce(place.path);
      if (!file.ok()) {
        if (pending == nullptr || !IsNotYet(file.error())) return std::move(file).error();
        const bool ours = directory == root_ + std::string(kContainerDirectory);
        if (ours || !missing.contains(file_key)) pending->push_back(place.path);
        if (ours) missing.insert(file_key);
        continue;
      }
      const std::string claim = ClaimKey(*file);
      if (!seen.insert(claim + file_key).second) continue;
      claims[claim].push_back(*std::move(file));
    }
  }
  if (claims.empty() && pending != nullptr && !pending->empty()) return NotYet(pending->front());
  if (claims.empty() && need_some) {
    return NotFound(
        StrCat("no metadata files found in ", root_, kContainerDirectory, " or ", kubernetes));
  }
  std::vector<DeviceMetadata> all;
  for (const auto& [claim, files] : claims) all.push_back(MergeMetadata(files));
  return all;
}

Result<std::vector<DeviceMetadata>> Reader::ReadAll(Duration timeout,
                                                    std::vector<std::string>* pending) {
  if (pending != nullptr) pending->clear();
  const bool need_some = timeout > kNoWait;
  auto whole = WaitFor<std::vector<DeviceMetadata>>(
      timeout, [&] { return ReadAllOnce(need_some, nullptr); }, [&] { return WatchedPaths(); });
  if (pending == nullptr) return whole;
  return OrPart(std::move(whole), *pending,
                [&](std::vector<std::string>* missing) { return ReadAllOnce(need_some, missing); });
}

}  // namespace drakkar::metadata
