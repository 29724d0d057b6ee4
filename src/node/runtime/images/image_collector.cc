#include "node/runtime/images/image_collector.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>

#include "base/text/text.h"

namespace drakkar::node {
namespace {

std::string Megabytes(std::uint64_t bytes) {
  return StrCat(bytes / 1'000'000, " MB");
}

bool IsImported(const ImageStore& images, const Image& image) {
  return std::ranges::any_of(image.names, [&](const std::string& name) {
    const auto imported = images.IsImported(name);
    return !imported.ok() || *imported;
  });
}

// True if it was removed. An image that a container has begun to use meanwhile stays.
Result<bool> Remove(ImageStore& images, const Image& image, RemovedImages& removed) {
  auto gone = images.Remove(image.id);
  if (!gone.ok()) {
    const ErrorCode code = gone.error().code;
    if (code == ErrorCode::kFailedPrecondition || code == ErrorCode::kNotFound) return false;
    return std::move(gone).error();
  }
  removed.freed_bytes += image.size_bytes;
  removed.names.push_back(image.names.empty() ? image.id : image.names.front());
  return true;
}

}  // namespace

Result<DiskUsage> ReadDiskUsage(const std::string& path) {
  struct statvfs st {};
  if (::statvfs(path.c_str(), &st) != 0) return ErrnoError(errno, "look at the disk of " + path);
  const std::uint64_t total = st.f_blocks * st.f_frsize;
  // Space reserved for root counts as used, as in a kubelet.
  return DiskUsage{total - std::min<std::uint64_t>(total, st.f_bavail * st.f_frsize), total};
}

Result<RemovedImages> CollectImages(ImageStore& images, const DiskUsage& disk,
                                    const ImageCollection& settings, WallTime now) {
  RemovedImages removed;
  const auto part = [&](int percent) {
    return disk.total_bytes / 100 * static_cast<std::uint64_t>(percent);
  };
  const bool is_full =
      settings.high_percent < 100 && disk.used_bytes >= part(settings.high_percent);
  if (!is_full && settings.max_age == Duration::zero()) return removed;
  ASSIGN_OR_RETURN(const std::vector<Image> all, images.List());
  std::vector<std::pair<WallTime, const Image*>> candidates;
  for (const Image& image : all) {
    const auto is_used = images.IsUsed(image.id);
    const auto last = images.LastUsed(image.id);
    if (!is_used.ok() || *is_used || !last.ok() || now - *last < settings.min_age) continue;
    if (IsImported(images, image)) continue;
    candidates.emplace_back(*last, &image);
  }
  std::ranges::stable_sort(candidates, {}, [](const auto& each) { return each.first; });
  if (settings.max_age > Duration::zero()) {
    std::size_t old = 0;
    while (old < candidates.size() && now - candidates[old].first > settings.max_age) {
      RETURN_IF_ERROR(Remove(images, *candidates[old++].second, removed));
    }
    candidates.erase(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(old));
  }
  if (!is_full) return removed;
  removed.wanted_bytes = disk.used_bytes - std::min(disk.used_bytes, part(settings.low_percent));
  for (const auto& [last, image] : candidates) {
    if (removed.freed_bytes >= removed.wanted_bytes) break;
    RETURN_IF_ERROR(Remove(images, *image, removed));
  }
  return removed;
}

Result<RemovedImages> PruneImages(ImageStore& images, bool imported) {
  RemovedImages removed;
  ASSIGN_OR_RETURN(const std::vector<Image> all, images.List());
  for (const Image& image : all) {
    const auto is_used = images.IsUsed(image.id);
    if (!is_used.ok() || *is_used) continue;
    if (!imported && IsImported(images, image)) continue;
    RETURN_IF_ERROR(Remove(images, image, removed));
  }
  return removed;
}

void ImageCollector::Start() {
  timer_ = options_.loop.RunAfter(kPeriod, [this] { Collect(); });
}

void ImageCollector::Collect() {
  const WallTime now = options_.loop.clock().Now();
  auto owner = lifetime_.Observe();
  const bool accepted = options_.workers.Run([&images = options_.images, &loop = options_.loop,
                                              directory = options_.directory,
                                              settings = options_.settings, now, owner, this] {
    auto disk = ReadDiskUsage(directory);
    auto removed = disk.ok() ? CollectImages(images, *disk, settings, now)
                             : Result<RemovedImages>(disk.error());
    loop.Post([owner, this, removed = std::move(removed)]() mutable {
      if (owner.alive()) Done(std::move(removed));
    });
  });
  if (!accepted) Start();
}

void ImageCollector::Done(Result<RemovedImages> removed) {
  Start();
  if (!removed.ok()) {
    return options_.log(StrCat("could not remove unused images: ", removed.error().message));
  }
  if (!removed->names.empty()) {
    options_.log(StrCat(removed->wanted_bytes > 0 ? "the disk is full: " : "", "removed ",
                        removed->names.size(), " unused images, ",
                        Megabytes(removed->freed_bytes)));
  }
  if (removed->freed_bytes < removed->wanted_bytes && options_.on_full) {
    options_.on_full(StrCat("wanted to free ", removed->wanted_bytes, " bytes, but only found ",
                            removed->freed_bytes, " bytes eligible to free"));
  }
}

}  // namespace drakkar::node
