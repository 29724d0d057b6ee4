#include "node/runtime/oci/oci_runtime_impl.h"

#include <unistd.h>

#include <algorithm>

#include "base/text/text.h"
#include "node/runtime/oci/cgroups.h"

namespace drakkar::node {
namespace {

constexpr Duration kReleasePause = std::chrono::milliseconds(20);
constexpr std::size_t kMaxLoggedOnce = 1000;

template <typename T>
void SortByAge(std::vector<T>& list) {
  std::sort(list.begin(), list.end(), [](const T& a, const T& b) {
    return std::tie(a.created_at, a.id) < std::tie(b.created_at, b.id);
  });
}

}  // namespace

OciRuntime::OciRuntime(UvLoop& loop, WorkerPool& workers, FileSystem& files, Random& random,
                       ImageStore& images, OciRuntimeOptions options)
    : loop_(loop),
      workers_(workers),
      files_(files),
      random_(random),
      images_(images),
      options_(std::move(options)),
      spawner_(MakeSpawner(loop)) {}

// Pending callbacks hold references to their containers: run them, or neither would be freed.
OciRuntime::~OciRuntime() {
  for (auto& [id, container] : containers_) {
    container->launch.reset();
    container->launch_timer.reset();
    container->kill_timer.reset();
    container->init_watch.reset();
    container->conmon_watch.reset();
    container->conmon_timer.reset();
    container->exit_waiters.clear();
    container->remove_waiters.clear();
  }
  for (auto& [id, sandbox] : sandboxes_) sandbox->remove_waiters.clear();
  for (auto& [number, command] : commands_with_streams_) command->Orphan();
}

void OciRuntime::Open(RuntimeCallback<void> done) {
  loop_.AssertInLoop();
  auto prepared = Prepare();
  if (!prepared.ok()) return Answer(std::move(done), std::move(prepared));
  auto found_before = std::make_shared<BundleBuilder::Found>();
  // Cleaning up after a killed agent may have to wait for killed processes to exit.
  auto tries_left = std::make_shared<int>(kReleaseAttempts);
  Retrying(
      [builder = builder_, &images = images_, &files = files_, found_before,
       tries_left]() -> Result<void> {
        const bool is_last_try = --*tries_left == 0;
        RETURN_IF_ERROR(images.Open());
        ASSIGN_OR_RETURN(*found_before, builder->Scan(is_last_try));
        for (const ContainerRecord& record : found_before->containers) {
          auto ended = EndLeftoverCommands(files, builder->paths().Container(record.id), record.id);
          if (ended.ok()) continue;
          const std::string why =
              "end the commands left in container " + record.id + ": " + ended.error().message;
          if (!is_last_try) return Unavailable(why);
          found_before->notes.push_back(why);
        }
        return Ok();
      },
      kReleaseAttempts,
      [this, found = found_before, done = std::move(done)](Result<void> scanned) mutable {
        if (!scanned.ok()) return done(std::move(scanned).error());
        for (const std::string& note : found->notes) Log(note);
        for (SandboxRecord& record : found->sandboxes) {
          const std::string id = record.id;
          auto sandbox = std::make_shared<Sandbox>();
          sandbox->record = std::move(record);
          sandboxes_[id] = std::move(sandbox);
        }
        is_open_ = true;
        std::vector<std::shared_ptr<Container>> adopted;
        for (ContainerRecord& record : found->containers) {
          auto container = std::make_shared<Container>();
          container->record = std::move(record);
          container->is_created = true;
          containers_[container->record.id] = container;
          adopted.push_back(std::move(container));
        }
        for (const auto& container : adopted) Adopt(container);
        EndLostSandboxes();
        AdoptNetworks();
        done(Ok());
      });
}

// A container cannot stay in a sandbox that lost its namespaces while the agent was not running: it
// would share nothing with containers that start later.
void OciRuntime::EndLostSandboxes() {
  std::vector<std::string> lost;
  for (const auto& [id, container] : containers_) {
    const auto sandbox = sandboxes_.find(container->record.sandbox_id);
    if (container->record.phase == Phase::kRunning && sandbox != sandboxes_.end() &&
        sandbox->second->record.phase == Phase::kExited) {
      lost.push_back(id);
    }
  }
  for (const std::string& id : lost) {
    Log("container " + id + " is stopped because its sandbox is lost");
    StopContainer(id, Duration::zero(), [](Result<void>) {});
  }
}

// Also removes the networks of sandboxes that were incomplete, or lost in a reboot.
void OciRuntime::AdoptNetworks() {
  if (options_.network == nullptr) return;
  std::vector<PodNetworkUser> users;
  for (const auto& [id, sandbox] : sandboxes_) {
    const SandboxRecord& record = sandbox->record;
    if (record.phase != Phase::kRunning || record.network_namespace.empty()) continue;
    users.push_back({id, record.network_namespace});
  }
  options_.network->Adopt(std::move(users));
}

std::vector<PodSandbox> OciRuntime::ListPodSandboxes() const {
  std::vector<PodSandbox> list;
  for (const auto& [id, sandbox] : sandboxes_) {
    if (sandbox->record.phase == Phase::kRunning || sandbox->record.phase == Phase::kExited) {
      PodSandbox found = SandboxOf(sandbox->record);
      const std::string spaces = builder_->paths().Sandbox(id) + "/ns/";
      if (!sandbox->record.host_ipc) found.namespaces["ipc"] = spaces + "ipc";
      if (sandbox->record.shares_processes) found.namespaces["pid"] = spaces + "pid";
      if (!sandbox->record.hostname.empty()) found.namespaces["uts"] = spaces + "uts";
      list.push_back(std::move(found));
    }
  }
  SortByAge(list);
  return list;
}

std::vector<ContainerStatus> OciRuntime::ListContainers() const {
  std::vector<ContainerStatus> list;
  for (const auto& [id, container] : containers_) {
    if (container->is_created) list.push_back(StatusOf(container->record));
  }
  SortByAge(list);
  return list;
}

Result<ContainerStatus> OciRuntime::GetContainerStatus(const std::string& id) const {
  auto found = containers_.find(id);
  if (found == containers_.end() || !found->second->is_created)
    return NotFound("no container " + id);
  return StatusOf(found->second->record);
}

Result<Image> OciRuntime::ImageStatus(const std::string& name) const {
  ASSIGN_OR_RETURN(StoredImage stored, images_.Find(name));
  return std::move(stored.image);
}

std::vector<Image> OciRuntime::ListImages() const {
  auto list = images_.List();
  return list.ok() ? *std::move(list) : std::vector<Image>();
}

void OciRuntime::PullImage(PullRequest request, RuntimeCallback<Image> done) {
  if (!options_.pull) {
    return Answer(std::move(done), Result<Image>(Error{ErrorCode::kUnimplemented,
                                                       "this node does not pull images"}));
  }
  options_.pull(std::move(request), std::move(done));
}

void OciRuntime::RemoveImage(const std::string& id, RuntimeCallback<void> done) {
  Blocking<bool>(
      [&images = images_, id]() -> Result<bool> {
        auto removed = images.Remove(id);
        if (!removed.ok() && removed.error().code != ErrorCode::kNotFound) return removed.error();
        return true;
      },
      [done = std::move(done)](Result<bool> removed) mutable {
        if (!removed.ok()) return done(std::move(removed).error());
        done(Ok());
      });
}

bool OciRuntime::IsImported(const std::string& name) const {
  const auto imported = images_.IsImported(name);
  return imported.ok() && *imported;
}

Result<void> OciRuntime::Prepare() {
  if (is_open_ || builder_) return FailedPrecondition("the runtime is already open");
  if (::geteuid() != 0)
    return FailedPrecondition("containers need root; run the node agent as root");
  ASSIGN_OR_RETURN(Cgroups cgroups, Cgroups::Detect(files_));
  ASSIGN_OR_RETURN(programs_, FindPrograms(files_, options_.runtime, cgroups.is_unified()));
  programs_.max_log_bytes = options_.max_log_bytes;
  for (const auto& [name, wanted] : options_.handlers) {
    ASSIGN_OR_RETURN(handlers_[name],
                     FindRuntimeProgram(files_, name, wanted, cgroups.is_unified()));
  }
  OciPaths paths;
  paths.root = options_.root;
  paths.runtime_state =
      options_.runtime_state.empty() ? options_.root + "/state" : options_.runtime_state;
  RETURN_IF_ERROR(files_.MakeDirectories(paths.Exits(), 0700));
  // Watch before the scan: every exit is then seen by at least one of the two.
  ASSIGN_OR_RETURN(watcher_, MakeFileWatcher(loop_));
  ASSIGN_OR_RETURN(exits_watch_, watcher_->Watch(paths.Exits(), [this](const FileEvent& event) {
    OnExitsEvent(event);
  }));
  builder_ = std::make_shared<BundleBuilder>(files_, images_, std::move(paths), std::move(cgroups),
                                             ProbeHostLimits());
  return Ok();
}

std::optional<std::vector<RuntimeHandler>> OciRuntime::Handlers() const {
  std::vector<RuntimeHandler> list;
  for (const auto& [name, program] : handlers_) list.push_back({.name = name});
  return list;
}

OciPrograms OciRuntime::ProgramsOf(const std::string& sandbox_id) const {
  OciPrograms programs = programs_;
  const auto sandbox = sandboxes_.find(sandbox_id);
  if (sandbox != sandboxes_.end() && !sandbox->second->record.runtime_program.empty()) {
    programs.runtime = sandbox->second->record.runtime_program;
  }
  return programs;
}

void OciRuntime::Retrying(std::function<Result<void>()> work, int attempts,
                          absl::AnyInvocable<void(Result<void>)> then) {
  Blocking<bool>(
      [work]() -> Result<bool> {
        RETURN_IF_ERROR(work());
        return true;
      },
      [this, work, attempts, then = std::move(then)](Result<bool> done) mutable {
        if (done.ok()) return then(Ok());
        if (done.error().code != ErrorCode::kUnavailable || attempts <= 1) {
          return then(std::move(done).error());
        }
        const std::uint64_t number = next_exec_++;
        retries_[number] = loop_.RunAfter(
            kReleasePause, [this, number, work, attempts, then = std::move(then)]() mutable {
              auto own = std::move(retries_[number]);
              retries_.erase(number);
              Retrying(std::move(work), attempts - 1, std::move(then));
            });
      });
}

void OciRuntime::LogOnce(const std::string& text) {
  if (logged_.size() >= kMaxLoggedOnce) logged_.clear();
  if (logged_.insert(text).second) Log(text);
}

std::unique_ptr<Runtime> MakeOciRuntime(UvLoop& loop, WorkerPool& workers, FileSystem& files,
                                        Random& random, ImageStore& images,
                                        OciRuntimeOptions options) {
  return std::make_unique<OciRuntime>(loop, workers, files, random, images, std::move(options));
}

}  // namespace drakkar::node
