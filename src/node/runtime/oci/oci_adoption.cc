#include "node/runtime/oci/oci_runtime_impl.h"

#include <signal.h>

#include "base/text/text.h"

namespace drakkar::node {
namespace {

constexpr int kUnknownExitCode = 255;
constexpr Duration kReadAgainAfter = std::chrono::milliseconds(50);
constexpr int kMaxExitReads = 40;

}  // namespace

void OciRuntime::Adopt(const std::shared_ptr<Container>& container) {
  ContainerRecord& record = container->record;
  if (record.phase == Phase::kExited && !record.released) return Release(container);
  if (record.phase != Phase::kRunning) return;
  // If the exit cannot be read now, it is read again once conmon has exited.
  if (auto ended = HandleExit(container); ended.ok() && *ended) return;
  const Conmon conmon = WatchConmon(container);
  auto init = ProcessHandle::Open(record.pid, record.pid_start_ticks);
  if (init.ok()) container->init = std::make_shared<ProcessHandle>(*std::move(init));
  if (conmon == Conmon::kGone) return OnConmonGone(container);
  if (conmon == Conmon::kUnknown) LookAgainForConmon(container);
}

OciRuntime::Conmon OciRuntime::WatchConmon(const std::shared_ptr<Container>& container) {
  const std::string& id = container->record.id;
  auto pid = ReadPidFile(files_, builder_->paths().Container(id) + "/conmon.pid");
  auto handle = pid.ok() ? ProcessHandle::Open(*pid) : Result<ProcessHandle>(pid.error());
  if (!handle.ok())
    return handle.error().code == ErrorCode::kNotFound ? Conmon::kGone : Conmon::kUnknown;
  // The pid may have been reused. It is our conmon if its command line has the container's id.
  auto arguments = files_.ReadFile(StrCat("/proc/", *pid, "/cmdline"));
  if (!arguments.ok()) return handle->HasEnded() ? Conmon::kGone : Conmon::kUnknown;
  if (arguments->find(id) == std::string::npos) return Conmon::kGone;
  container->conmon = *std::move(handle);
  container->conmon_watch =
      WatchReadable(loop_, container->conmon.descriptor(), [this, weak = std::weak_ptr(container)] {
        auto held = weak.lock();
        if (!held) return;
        held->conmon_watch.reset();
        OnConmonGone(held);
      });
  return container->conmon_watch != nullptr ? Conmon::kWatched : Conmon::kUnknown;
}

// A read error must not get a container killed.
void OciRuntime::LookAgainForConmon(const std::shared_ptr<Container>& container) {
  container->conmon_timer =
      loop_.RunAfter(kReadAgainAfter, [this, weak = std::weak_ptr(container)] {
        auto held = weak.lock();
        if (!held || held->record.phase != Phase::kRunning) return;
        const Conmon conmon = WatchConmon(held);
        if (conmon == Conmon::kGone) return OnConmonGone(held);
        if (conmon == Conmon::kUnknown) LookAgainForConmon(held);
      });
}

void OciRuntime::OnExitsEvent(const FileEvent& event) {
  if (event.change == FileChange::kCreated) {
    // If it cannot be read now, it is read again when conmon exits, right after writing the file.
    if (auto container = Find(event.name)) static_cast<void>(HandleExit(container).ok());
  } else if (event.change == FileChange::kEventsLost) {
    const auto all = containers_;
    for (const auto& [id, container] : all) static_cast<void>(HandleExit(container).ok());
  }
}

void OciRuntime::OnConmonGone(const std::shared_ptr<Container>& container) {
  if (container->record.phase != Phase::kRunning) return;
  auto ended = HandleExit(container);
  if (ended.ok() && *ended) return;
  if (!ended.ok() && ++container->exit_reads < kMaxExitReads) {
    container->conmon_timer =
        loop_.RunAfter(kReadAgainAfter, [this, weak = std::weak_ptr(container)] {
          if (auto held = weak.lock()) OnConmonGone(held);
        });
    return;
  }
  if (!ended.ok()) Log("container " + container->record.id + ": " + ended.error().message);
  if (container->init && container->init->ok() && !container->init->HasEnded()) {
    Log("container " + container->record.id + ": killing it because its conmon has exited");
    static_cast<void>(container->init->Signal(SIGKILL).ok());
    container->init_watch = WatchReadable(
        loop_, container->init->descriptor(), [this, weak = std::weak_ptr(container)] {
          auto held = weak.lock();
          if (!held) return;
          held->init_watch.reset();
          Lost(held, 128 + SIGKILL, kReasonError, "killed because its conmon had exited");
        });
    return;
  }
  Lost(container, kUnknownExitCode, kReasonContainerStatusUnknown,
       "the container exited together with its conmon; its exit code is unknown");
}

void OciRuntime::Lost(const std::shared_ptr<Container>& container, int exit_code,
                      std::string_view reason, std::string message) {
  ContainerRecord& record = container->record;
  if (record.phase != Phase::kRunning) return;
  record.phase = Phase::kExited;
  record.exit_code = exit_code;
  record.reason = std::string(reason);
  record.message = std::move(message);
  record.finished_at = loop_.clock().Now();
  Ended(container);
}

Result<bool> OciRuntime::HandleExit(const std::shared_ptr<Container>& container) {
  if (container->record.phase != Phase::kRunning) return container->record.phase == Phase::kExited;
  ContainerRecord updated = container->record;
  if (auto read = builder_->ReadExit(updated); !read.ok()) {
    if (read.error().code == ErrorCode::kNotFound) return false;
    return std::move(read).error();
  }
  container->record = std::move(updated);
  Ended(container);
  return true;
}

void OciRuntime::Ended(const std::shared_ptr<Container>& container) {
  container->kill_timer.reset();
  container->conmon_watch.reset();
  container->conmon_timer.reset();
  container->init_watch.reset();
  if (auto saved = builder_->Save(container->record); !saved.ok()) Log(saved.error().message);
  // Poststop hooks are part of the container's life: claims must not be unprepared before they
  // finish.
  if (!container->record.has_poststop_hooks) Notify(container);
  Release(container);
}

void OciRuntime::Notify(const std::shared_ptr<Container>& container) {
  if (listener_) listener_(StatusOf(container->record));
}

}  // namespace drakkar::node
