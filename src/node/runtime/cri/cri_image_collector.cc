#include "node/runtime/cri/cri_image_collector.h"

#include <algorithm>
#include <set>

#include "base/text/text.h"

namespace drakkar::node {

struct CriImageCollector::Removal {
  std::vector<Image> candidates;
  std::size_t next = 0;
  std::uint64_t wanted_bytes = 0;
  std::uint64_t freed_bytes = 0;
  std::size_t count = 0;
  std::function<void()> done;
};

void CriImageCollector::Start() {
  timer_ = options_.loop.RunAfter(kPeriod, [this] { Collect(); });
}

std::vector<Image> CriImageCollector::Candidates(Duration min_age) {
  const WallTime now = options_.loop.clock().Now();
  std::set<std::string> used;
  for (const ContainerStatus& container : options_.runtime.ListContainers()) {
    used.insert(container.image_id);
    used.insert(container.image);
  }
  std::map<std::string, WallTime> last_used;
  std::vector<Image> candidates;
  for (const Image& image : options_.runtime.ListImages()) {
    const bool in_use = image.is_pinned || used.contains(image.id) ||
                        std::any_of(image.names.begin(), image.names.end(),
                                    [&](const std::string& name) { return used.contains(name); });
    const auto before = last_used_.find(image.id);
    const WallTime last = in_use || before == last_used_.end() ? now : before->second;
    last_used[image.id] = last;
    if (!in_use && now - last >= min_age) candidates.push_back(image);
  }
  last_used_ = std::move(last_used);
  std::stable_sort(candidates.begin(), candidates.end(), [this](const Image& a, const Image& b) {
    return last_used_[a.id] < last_used_[b.id];
  });
  return candidates;
}

void CriImageCollector::Collect() {
  Start();
  // Also records what is currently in use.
  std::vector<Image> candidates = Candidates(options_.settings.min_age);
  RemoveOld(candidates);
  if (options_.settings.high_percent >= 100 || candidates.empty()) return;
  options_.runtime.ReadUsage(
      UsageScope::kWithoutFiles,
      lifetime_.Guard([this, candidates = std::move(candidates)](Result<RuntimeUsage> usage) {
        if (!usage.ok() || usage->images.path.empty()) return;
        const auto disk = options_.disk(usage->images.path);
        if (!disk.ok())
          return options_.log(
              StrCat("could not read the usage of the image file system: ", disk.error().message));
        const auto part = [&](int percent) {
          return disk->total_bytes / 100 * static_cast<std::uint64_t>(percent);
        };
        if (disk->used_bytes < part(options_.settings.high_percent)) return;
        auto removal = std::make_shared<Removal>();
        removal->candidates = candidates;
        removal->wanted_bytes =
            disk->used_bytes - std::min(disk->used_bytes, part(options_.settings.low_percent));
        removal->done = [this, removal_view = std::weak_ptr<Removal>(removal)] {
          const auto finished = removal_view.lock();
          if (finished == nullptr) return;
          if (finished->count > 0) {
            options_.log(StrCat("the disk is full: removed ", finished->count, " unused images, ",
                                finished->freed_bytes / 1'000'000, " MB"));
          }
          if (finished->freed_bytes < finished->wanted_bytes && options_.on_full) {
            options_.on_full(StrCat("wanted to free ", finished->wanted_bytes,
                                    " bytes, but only found ", finished->freed_bytes,
                                    " bytes eligible to free"));
          }
        };
        RemoveNext(removal);
      }));
}

void CriImageCollector::RemoveOld(std::vector<Image>& candidates) {
  const Duration max_age = options_.settings.max_age;
  if (max_age == Duration::zero()) return;
  const WallTime now = options_.loop.clock().Now();
  auto removal = std::make_shared<Removal>();
  removal->wanted_bytes = UINT64_MAX;
  std::erase_if(candidates, [&](const Image& image) {
    const bool is_old = now - last_used_[image.id] > max_age;
    if (is_old) removal->candidates.push_back(image);
    return is_old;
  });
  removal->done = [] {};
  RemoveNext(removal);
}

void CriImageCollector::RemoveUnused(std::function<void()> done) {
  auto removal = std::make_shared<Removal>();
  removal->candidates = Candidates(Duration::zero());
  removal->wanted_bytes = UINT64_MAX;
  removal->done = std::move(done);
  RemoveNext(removal);
}

void CriImageCollector::RemoveNext(const std::shared_ptr<Removal>& removal) {
  if (removal->next >= removal->candidates.size() ||
      removal->freed_bytes >= removal->wanted_bytes) {
    return removal->done();
  }
  const Image image = removal->candidates[removal->next++];
  options_.runtime.RemoveImage(
      image.id, lifetime_.Guard([this, removal, image](Result<void> removed) {
        if (removed.ok()) {
          removal->freed_bytes += image.size_bytes;
          ++removal->count;
        } else {
          options_.log(StrCat("could not remove image ",
                              image.names.empty() ? image.id : image.names.front(), ": ",
                              removed.error().message));
        }
        RemoveNext(removal);
      }));
}

}  // namespace drakkar::node
