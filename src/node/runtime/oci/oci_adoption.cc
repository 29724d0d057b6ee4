#include "node/runtime/oci/oci_runtime_impl.h"

#include <signal.h>

#include "base/text/text.h"

namespace drakkar::node {
namespace {

constexpr int kUnknownExitCode = 255;

}  // namespace

void OciRuntime::Adopt(const std::shared_ptr<Container>& container) {
  ContainerRecord& record = container->record;
  if (record.phase == Phase::kExited && !record.released) return Release(container);
  if (record.phase != Phase::kRunning) return;
  if (HandleExit(container)) return;
  WatchConmon(container);
  auto init = ProcessHandle::Open(record.pid, record.pid_start_ticks);
  if (init.ok()) container->init = std::make_shared<ProcessHandle>(*std::move(init));
  if (container->conmon_watch != nullptr) return;  // it tells the rest
  OnConmonGone(container);
}

void OciRuntime::WatchConmon(const std::shared_ptr<Container>& container) {
  const std::string& id = container->record.id;
  auto text = files_.ReadFile(builder_->paths().Container(id) + "/conmon.pid");
  const auto pid = text.ok() ? ParseInt64(Trim(*text)) : std::nullopt;
  if (!pid) return;
  auto handle = ProcessHandle::Open(static_cast<int>(*pid));
  if (!handle.ok()) return;
  // The number may be another process's by now. It is ours if it carries the container's id.
  auto arguments = files_.ReadFile(StrCat("/proc/", *pid, "/cmdline"));
  if (!arguments.ok() || arguments->find(id) == std::string::npos) return;
  container->conmon = *std::move(handle);
  container->conmon_watch =
      WatchReadable(loop_, container->conmon.descriptor(), [this, weak = std::weak_ptr(container)] {
        auto alive = weak.lock();
        if (!alive) return;
        alive->conmon_watch.reset();
        OnConmonGone(alive);
      });
}

void OciRuntime::OnExitsEvent(const FileEvent& event) {
  if (event.change == FileChange::kCreated) {
    if (auto container = Find(event.name)) HandleExit(container);
  } else if (event.change == FileChange::kEventsLost) {
    const auto all = containers_;
    for (const auto& [id, container] : all) HandleExit(container);
  }
}

void OciRuntime::OnConmonGone(const std::shared_ptr<Container>& container) {
  if (container->record.phase != Phase::kRunning || HandleExit(container)) return;
  if (container->init && container->init->ok() && !container->init->HasEnded()) {
    Log("container " + container->record.id + ": its conmon is gone, so it is killed");
    static_cast<void>(container->init->Signal(SIGKILL).ok());
    container->init_watch =
        WatchReadable(loop_, container->init->descriptor(), [this, weak = std::weak_ptr(container)] {
          auto alive = weak.lock();
          if (!alive) return;
          alive->init_watch.reset();
          Lost(alive, 128 + SIGKILL, kReasonError, "killed: its conmon had ended");
        });
    return;
  }
  Lost(container, kUnknownExitCode, kReasonContainerStatusUnknown,
       "the container ended together with its conmon; its exit code is not known");
}

void OciRuntime::Lost(const std::shared_ptr<Container>& container, int exit_code, std::string_view reason,
                      std::string message) {
  ContainerRecord& record = container->record;
  if (record.phase != Phase::kRunning) return;
  record.phase = Phase::kExited;
  record.exit_code = exit_code;
  record.reason = std::string(reason);
  record.message = std::move(message);
  record.finished_at = loop_.clock().Now();
  Ended(container);
}

bool OciRuntime::HandleExit(const std::shared_ptr<Container>& container) {
  if (container->record.phase != Phase::kRunning) return container->record.phase == Phase::kExited;
  ContainerRecord updated = container->record;
  if (!builder_->ReadExit(updated).ok()) return false;
  container->record = std::move(updated);
  Ended(container);
  return true;
}

void OciRuntime::Ended(const std::shared_ptr<Container>& container) {
  container->kill_timer.reset();
  container->conmon_watch.reset();
  container->init_watch.reset();
  if (auto saved = builder_->Save(container->record); !saved.ok()) Log(saved.error().message);
  // Poststop hooks belong to the container's life: whoever unprepares devices must wait for them.
  if (!container->record.has_poststop_hooks) Notify(container);
  Release(container);
}

void OciRuntime::Notify(const std::shared_ptr<Container>& container) {
  if (listener_) listener_(StatusOf(container->record));
}

}  // namespace drakkar::node
