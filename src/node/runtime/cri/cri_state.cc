// The cache of what the runtime has: lists, events, exits.
#include <algorithm>

#include "base/text/text.h"
#include "node/runtime/cri/cri_runtime_impl.h"
#include "node/runtime/images/image_name.h"

namespace drakkar::node {
namespace {

constexpr Duration kQuick = std::chrono::minutes(2);
// How often a failed lookup may request the list of images.
constexpr Duration kImagesEvery = std::chrono::seconds(1);

template <typename Known, typename Value>
std::vector<Value> InOrder(const std::map<std::string, Known>& known,
                           const Value& (*value_of)(const Known&)) {
  std::vector<const Known*> order;
  for (const auto& [id, each] : known) order.push_back(&each);
  std::sort(order.begin(), order.end(), [&](const Known* a, const Known* b) {
    if (value_of(*a).created_at != value_of(*b).created_at) {
      return value_of(*a).created_at < value_of(*b).created_at;
    }
    return a->sequence < b->sequence;
  });
  std::vector<Value> values;
  for (const Known* each : order) values.push_back(value_of(*each));
  return values;
}

}  // namespace

// One comparison of the cache with the lists.
struct CriRuntimeImpl::Relisting {
  std::uint64_t generation = 0;
  std::vector<cri::Sandbox> sandboxes;
  std::vector<ContainerStatus> containers;
  std::size_t pending = 1;
  std::optional<Error> error;
  absl::AnyInvocable<void(Result<void>)> done;
};

std::vector<PodSandbox> CriRuntimeImpl::ListPodSandboxes() const {
  return InOrder<KnownSandbox, PodSandbox>(
      sandboxes_,
      +[](const KnownSandbox& known) -> const PodSandbox& { return known.details.sandbox; });
}

std::vector<ContainerStatus> CriRuntimeImpl::ListContainers() const {
  return InOrder<KnownContainer, ContainerStatus>(
      containers_,
      +[](const KnownContainer& known) -> const ContainerStatus& { return known.status; });
}

Result<ContainerStatus> CriRuntimeImpl::GetContainerStatus(const std::string& id) const {
  const auto found = containers_.find(id);
  if (found == containers_.end()) return NotFound("no container " + id);
  return found->second.status;
}

void CriRuntimeImpl::Relist(absl::AnyInvocable<void(Result<void>)> done) {
  relisting_ = true;
  relist_again_ = false;
  auto relisting = std::make_shared<Relisting>();
  relisting->generation = generation_;
  relisting->done = std::move(done);
  auto finish = [this](const std::shared_ptr<Relisting>& failed, Error error) {
    failed->error = std::move(error);
    StepDone(failed);
  };
  Ask(cri::kListPodSandbox, "", kQuick, [this, relisting, finish](Result<std::string> bytes) {
    if (!bytes.ok()) return finish(relisting, bytes.error());
    auto sandboxes = cri::DecodeListPodSandbox(*bytes);
    if (!sandboxes.ok()) return finish(relisting, sandboxes.error());
    relisting->sandboxes = *std::move(sandboxes);
    Ask(cri::kListContainers, "", kQuick, [this, relisting, finish](Result<std::string> listed) {
      if (!listed.ok()) return finish(relisting, listed.error());
      auto containers = cri::DecodeListContainers(*listed);
      if (!containers.ok()) return finish(relisting, containers.error());
      relisting->containers = *std::move(containers);
      ApplyLists(relisting);
    });
  });
}

void CriRuntimeImpl::ApplyLists(const std::shared_ptr<Relisting>& relisting) {
  const bool is_current = relisting->generation == generation_;
  // The cache changed meanwhile: what is missing in the list may be new, and what it has may have
  // been removed.
  if (!is_current) relist_again_ = true;
  auto step = [this, relisting](Result<void> read) {
    if (!read.ok() && read.error().code != ErrorCode::kNotFound) relisting->error = read.error();
    StepDone(relisting);
  };
  std::set<std::string> listed_sandboxes;
  std::set<std::string> listed_containers;
  for (const cri::Sandbox& each : relisting->sandboxes) {
    listed_sandboxes.insert(each.sandbox.id);
    const auto known = sandboxes_.find(each.sandbox.id);
    if (known != sandboxes_.end() && known->second.details.sandbox.state == each.sandbox.state) {
      continue;
    }
    if (known == sandboxes_.end() && !is_current) continue;
    ++relisting->pending;
    RefreshSandbox(each.sandbox.id, step);
  }
  for (const ContainerStatus& each : relisting->containers) {
    if (!listed_sandboxes.contains(each.sandbox_id)) continue;
    listed_containers.insert(each.id);
    const auto known = containers_.find(each.id);
    if (known != containers_.end() && known->second.status.state == each.state) continue;
    if (known == containers_.end() && !is_current) continue;
    ++relisting->pending;
    RefreshContainer(each.id, each.sandbox_id, step);
  }
  if (is_current) {
    std::vector<std::string> gone;
    for (const auto& [id, known] : containers_) {
      if (!listed_containers.contains(id)) gone.push_back(id);
    }
    for (const std::string& id : gone) Forget(id);
    std::erase_if(sandboxes_,
                  [&](const auto& entry) { return !listed_sandboxes.contains(entry.first); });
    // Drop the records of containers that no longer exist.
    const std::size_t before = reported_.size();
    std::erase_if(reported_,
                  [&](const std::string& id) { return !listed_containers.contains(id); });
    if (reported_.size() != before) WriteReported();
  }
  StepDone(relisting);
}

void CriRuntimeImpl::StepDone(const std::shared_ptr<Relisting>& relisting) {
  if (--relisting->pending > 0) return;
  relisting_ = false;
  ScheduleRelist();
  if (relisting->error) return relisting->done(*relisting->error);
  relisting->done(Ok());
}

void CriRuntimeImpl::ScheduleRelist() {
  const Duration wait = relist_again_ || !has_events_ ? kPollEvery : kRelistEvery;
  relist_timer_ = loop_.RunAfter(wait, [this] {
    if (relisting_) return;
    if (!connected_) return ScheduleRelist();
    Relist([this](Result<void> listed) {
      if (!listed.ok()) return;
      RefreshImages([this](Result<void> images) {
        // The first list failed while opening.
        if (images.ok()) FinishOpening(Ok());
      });
    });
  });
}

void CriRuntimeImpl::RelistSoon() {
  relist_again_ = true;
  if (!relisting_) ScheduleRelist();
}

void CriRuntimeImpl::WatchEvents() {
  events_timer_.reset();
  if (events_unimplemented_ || !connected_) return;
  has_events_ = true;
  events_ = channel_->Watch(
      cri::kEvents, "",
      {.on_message = [this](std::string message) { OnEvent(message); },
       .on_end =
           [this](Result<void> ended) {
             has_events_ = false;
             if (!ended.ok() && ended.error().code == ErrorCode::kUnimplemented) {
               events_unimplemented_ = true;
               Log("the container runtime has no events; its containers are polled");
             } else if (connected_) {
               events_timer_ = loop_.RunAfter(events_backoff_.Next(), [this] { WatchEvents(); });
             }
             // Close the stream, but not from within its own callback.
             loop_.Post(lifetime_.Guard([this] {
               if (!has_events_) events_.reset();
             }));
             RelistSoon();
           }});
}

void CriRuntimeImpl::OnEvent(const std::string& message) {
  auto event = cri::DecodeEvent(message);
  if (!event.ok()) return Log(event.error().message);
  events_backoff_.Reset();
  const std::string& id = event->container_id;
  if (sandboxes_.contains(id)) return RefreshSandbox(id, [](Result<void>) {});
  if (const auto known = containers_.find(id); known != containers_.end()) {
    if (event->deleted) return Forget(id);
    return RefreshContainer(id, known->second.status.sandbox_id, [](Result<void>) {});
  }
  if (!event->deleted && sandboxes_.contains(event->sandbox_id)) {
    RefreshContainer(id, event->sandbox_id, [](Result<void>) {});
  }
}

void CriRuntimeImpl::RefreshSandbox(const std::string& id,
                                    absl::AnyInvocable<void(Result<void>)> done) {
  Ask(cri::kPodSandboxStatus, cri::EncodePodSandboxStatusRequest(id), kQuick,
      [this, id, done = std::move(done)](Result<std::string> bytes) mutable {
        if (!bytes.ok()) return done(std::move(bytes).error());
        auto read = cri::DecodePodSandboxStatus(*bytes);
        if (!read.ok()) return done(std::move(read).error());
        KnownSandbox& known = sandboxes_[id];
        if (known.sequence == 0) known.sequence = next_sequence_++;
        known.details = *std::move(read);
        known.details.sandbox.id = id;
        done(Ok());
      });
}

void CriRuntimeImpl::RefreshContainer(const std::string& id, const std::string& sandbox_id,
                                      absl::AnyInvocable<void(Result<void>)> done) {
  Ask(cri::kContainerStatus, cri::EncodeContainerStatusRequest(id), kQuick,
      [this, id, sandbox_id, done = std::move(done)](Result<std::string> bytes) mutable {
        if (!bytes.ok()) return done(std::move(bytes).error());
        auto read = cri::DecodeContainerStatus(*bytes);
        if (!read.ok()) return done(std::move(read).error());
        ContainerStatus status = *std::move(read);
        status.id = id;
        if (!sandbox_id.empty()) status.sandbox_id = sandbox_id;
        const Lifetime::Observer self = lifetime_.Observe();
        Absorb(std::move(status));
        if (self.alive()) done(Ok());
      });
}

void CriRuntimeImpl::RefreshContainersOf(const std::string& sandbox_id,
                                         absl::AnyInvocable<void()> done) {
  struct Waiting {
    std::size_t pending = 1;
    absl::AnyInvocable<void()> done;
  };
  auto waiting = std::make_shared<Waiting>();
  waiting->done = std::move(done);
  auto step = [waiting](Result<void>) {
    if (--waiting->pending == 0) waiting->done();
  };
  for (const auto& [id, known] : containers_) {
    if (known.status.sandbox_id != sandbox_id || known.status.state != ContainerState::kRunning) {
      continue;
    }
    ++waiting->pending;
    RefreshContainer(id, sandbox_id, step);
  }
  step(Ok());
}

void CriRuntimeImpl::Absorb(ContainerStatus fresh) {
  if (removing_.contains(fresh.id)) return;
  const std::string id = fresh.id;
  auto [entry, is_new] = containers_.try_emplace(id);
  KnownContainer& known = entry->second;
  if (is_new) known.sequence = next_sequence_++;
  // Answers may overtake each other. An exit is final.
  if (!is_new && known.status.state == ContainerState::kExited &&
      fresh.state != ContainerState::kExited) {
    return;
  }
  if (fresh.sandbox_id.empty()) fresh.sandbox_id = known.status.sandbox_id;
  known.status = std::move(fresh);
  for (const auto& [name, value] : known.updated_annotations) {
    known.status.annotations[name] = value;
  }
  if (known.status.state != ContainerState::kExited) return;
  if (!reported_.insert(id).second) return;
  WriteReported();
  const ContainerStatus copy = known.status;
  if (listener_) listener_(copy);
}

void CriRuntimeImpl::Forget(const std::string& container_id) {
  containers_.erase(container_id);
  if (reported_.erase(container_id) > 0) WriteReported();
}

void CriRuntimeImpl::ReadReported() {
  if (options_.reported_path.empty()) return;
  const auto text = options_.files.ReadFile(options_.reported_path);
  if (!text.ok()) return;
  for (const std::string_view line : Split(*text, '\n')) {
    if (!line.empty()) reported_.emplace(line);
  }
}

void CriRuntimeImpl::WriteReported() {
  if (options_.reported_path.empty()) return;
  std::string text;
  for (const std::string& id : reported_) text += id + "\n";
  const auto written = options_.files.WriteFile(options_.reported_path, text, 0600);
  if (!written.ok()) Log(written.error().message);
}

void CriRuntimeImpl::RefreshImages(absl::AnyInvocable<void(Result<void>)> done) {
  Ask(cri::kListImages, "", kQuick,
      [this, done = std::move(done)](Result<std::string> bytes) mutable {
        if (!bytes.ok()) return done(std::move(bytes).error());
        auto images = cri::DecodeListImages(*bytes);
        if (!images.ok()) return done(std::move(images).error());
        images_ = *std::move(images);
        done(Ok());
      });
}

Result<Image> CriRuntimeImpl::ImageStatus(const std::string& name) const {
  const auto full = NormalizeImageName(name);
  for (const cri::CriImage& each : images_) {
    if (each.image.id == name) return each.image;
    const auto& names = each.image.names;
    if (std::find(names.begin(), names.end(), name) != names.end()) return each.image;
    if (full.ok() && std::find(names.begin(), names.end(), *full) != names.end()) return each.image;
  }
  // Somebody may just have imported it: the next attempt sees it.
  if (is_open_ && connected_ && loop_.clock().Monotonic() >= images_wanted_at_) {
    images_wanted_at_ = loop_.clock().Monotonic() + kImagesEvery;
    loop_.Post(lifetime_.Guard(
        [self = const_cast<CriRuntimeImpl*>(this)] { self->RefreshImages([](Result<void>) {}); }));
  }
  return NotFound(StrCat("image ", Quote(name), " is not present in ", version_.runtime_name,
                         "; pull it, or import it with the runtime's own tools"));
}

std::vector<Image> CriRuntimeImpl::ListImages() const {
  std::vector<Image> list;
  for (const cri::CriImage& each : images_) list.push_back(each.image);
  return list;
}

void CriRuntimeImpl::RemoveImage(const std::string& id, RuntimeCallback<void> done) {
  if (auto error = Refuse()) return Reply<void>(std::move(done), *error);
  Ask(cri::kRemoveImage, cri::EncodeRemoveImage(id), kQuick,
      [this, done = std::move(done)](Result<std::string> bytes) mutable {
        if (!bytes.ok() && bytes.error().code != ErrorCode::kNotFound) {
          return done(std::move(bytes).error());
        }
        RefreshImages(std::move(done));
      });
}

std::vector<std::string> CriRuntimeImpl::SandboxesLoggingBelow(const std::string& directory) const {
  std::vector<std::string> ids;
  for (const auto& [id, sandbox] : sandboxes_) {
    if (cri::LogDirectoryOf(sandbox.details.config).starts_with(StrCat(directory, "/"))) {
      ids.push_back(id);
    }
  }
  return ids;
}

bool CriRuntimeImpl::IsImported(const std::string& name) const {
  const auto image = ImageStatus(name);
  if (!image.ok()) return false;
  for (const cri::CriImage& each : images_) {
    if (each.image.id == image->id) return !each.pulled;
  }
  return false;
}

}  // namespace drakkar::node
