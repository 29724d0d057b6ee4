#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/state/state_machine.h"

// The life of a pod on this node as data: its stages, the transitions between them, and the
// operations each stage may have in flight. PodWorker follows these tables.
namespace drakkar::node {

// Ordered: every stage after kRunning is part of taking the pod down.
enum class PodStage : std::uint8_t {
  kAdmitting,  // not admitted yet; the claims that admission asks about are being fetched
  kRunning,    // containers are started, and restarted, as the spec says
  kStoppingContainers,
  kStoppingSandboxes,
  kUnpreparingClaims,
  kRemovingVolumes,  // from here on the phase written to the API is final
  kEnded,            // nothing is held any more; the object stays until somebody deletes it
  kReportingEnd,     // deleted: the API must have the final status before anything is removed
  kRemovingRemains,  // sandboxes, files and logs
  kDeletingObject,
  kAwaitingRemoval,  // the object is deleted, the watch has not said so yet
  kFinished,
};

enum class PodEvent : std::uint8_t {
  kAdmitted,
  kStopRequested,
  kContainersStopped,
  kSandboxesStopped,
  kClaimsUnprepared,
  kVolumesRemoved,
  kDeletionRequested,
  kEndReported,
  kRemainsRemoved,
  kObjectDeleted,
  kObjectGone,
  // The runtime reports a running container or a ready sandbox although all were stopped.
  kFoundRunning,
};

std::string_view Name(PodStage stage);
std::string_view Name(PodEvent event);

inline constexpr std::array kPodStages = {
    PodStage::kAdmitting,
    PodStage::kRunning,
    PodStage::kStoppingContainers,
    PodStage::kStoppingSandboxes,
    PodStage::kUnpreparingClaims,
    PodStage::kRemovingVolumes,
    PodStage::kEnded,
    PodStage::kReportingEnd,
    PodStage::kRemovingRemains,
    PodStage::kDeletingObject,
    PodStage::kAwaitingRemoval,
    PodStage::kFinished,
};

inline constexpr TransitionTable<PodStage, PodEvent, 21> kPodTable = {{
    {PodStage::kAdmitting, PodEvent::kAdmitted, PodStage::kRunning},
    {PodStage::kAdmitting, PodEvent::kStopRequested, PodStage::kStoppingContainers},
    {PodStage::kRunning, PodEvent::kStopRequested, PodStage::kStoppingContainers},
    {PodStage::kStoppingContainers, PodEvent::kContainersStopped, PodStage::kStoppingSandboxes},
    {PodStage::kStoppingSandboxes, PodEvent::kSandboxesStopped, PodStage::kUnpreparingClaims},
    {PodStage::kUnpreparingClaims, PodEvent::kClaimsUnprepared, PodStage::kRemovingVolumes},
    {PodStage::kRemovingVolumes, PodEvent::kVolumesRemoved, PodStage::kEnded},
    {PodStage::kEnded, PodEvent::kDeletionRequested, PodStage::kReportingEnd},
    {PodStage::kReportingEnd, PodEvent::kEndReported, PodStage::kRemovingRemains},
    {PodStage::kRemovingRemains, PodEvent::kRemainsRemoved, PodStage::kDeletingObject},
    {PodStage::kDeletingObject, PodEvent::kObjectDeleted, PodStage::kAwaitingRemoval},
    {PodStage::kDeletingObject, PodEvent::kObjectGone, PodStage::kFinished},
    {PodStage::kAwaitingRemoval, PodEvent::kObjectGone, PodStage::kFinished},
    {PodStage::kStoppingSandboxes, PodEvent::kFoundRunning, PodStage::kStoppingContainers},
    {PodStage::kUnpreparingClaims, PodEvent::kFoundRunning, PodStage::kStoppingContainers},
    {PodStage::kRemovingVolumes, PodEvent::kFoundRunning, PodStage::kStoppingContainers},
    {PodStage::kEnded, PodEvent::kFoundRunning, PodStage::kStoppingContainers},
    {PodStage::kReportingEnd, PodEvent::kFoundRunning, PodStage::kStoppingContainers},
    {PodStage::kRemovingRemains, PodEvent::kFoundRunning, PodStage::kStoppingContainers},
    {PodStage::kDeletingObject, PodEvent::kFoundRunning, PodStage::kStoppingContainers},
    {PodStage::kAwaitingRemoval, PodEvent::kFoundRunning, PodStage::kStoppingContainers},
}};
static_assert(FindFlaw(kPodTable, kPodStages, {PodStage::kFinished}) == TableFlaw::kNone);

constexpr bool IsStopping(PodStage stage) {
  return stage >= PodStage::kStoppingContainers;
}
// Containers have stopped and claims are unprepared: the phase is final.
constexpr bool IsTerminated(PodStage stage) {
  return stage >= PodStage::kRemovingVolumes;
}
// Nothing is written to the API any more, except for the deletion.
constexpr bool IsReported(PodStage stage) {
  return stage >= PodStage::kRemovingRemains;
}

// The asynchronous operation in flight. A worker has at most one, and changes its stage only
// between operations.
enum class PodOperation : std::uint8_t {
  kNone,
  kFetchingAdmissionClaims,
  kFetchingRuntimeClass,
  kFetchingVolumeSources,
  kPreparingClaims,
  kCreatingSandbox,
  kFetchingEnvironment,
  kCreatingContainer,
  kStartingContainer,
  kResizingContainer,
  kStoppingSandbox,
  kUnpreparingClaims,
  kRemovingVolumes,
  kRemovingSandbox,
  kRemovingFiles,
  kDeletingObject,
};

std::string_view Name(PodOperation operation);

struct PodOperationRow {
  PodOperation operation;
  PodStage stage;  // the only stage in which it may begin
  // It starts when no operation is in flight, or directly after this one.
  PodOperation after = PodOperation::kNone;
};

inline constexpr std::array<PodOperationRow, 15> kPodOperations = {{
    {PodOperation::kFetchingAdmissionClaims, PodStage::kAdmitting},
    {PodOperation::kFetchingRuntimeClass, PodStage::kAdmitting},
    {PodOperation::kFetchingVolumeSources, PodStage::kRunning},
    {PodOperation::kPreparingClaims, PodStage::kRunning},
    {PodOperation::kCreatingSandbox, PodStage::kRunning},
    {PodOperation::kFetchingEnvironment, PodStage::kRunning},
    {PodOperation::kCreatingContainer, PodStage::kRunning, PodOperation::kFetchingEnvironment},
    {PodOperation::kStartingContainer, PodStage::kRunning, PodOperation::kCreatingContainer},
    {PodOperation::kResizingContainer, PodStage::kRunning},
    {PodOperation::kStoppingSandbox, PodStage::kStoppingSandboxes},
    {PodOperation::kUnpreparingClaims, PodStage::kUnpreparingClaims},
    {PodOperation::kRemovingVolumes, PodStage::kRemovingVolumes},
    {PodOperation::kRemovingSandbox, PodStage::kRemovingRemains},
    {PodOperation::kRemovingFiles, PodStage::kRemovingRemains},
    {PodOperation::kDeletingObject, PodStage::kDeletingObject},
}};

// Whether `operation` may start in `stage` while `current` is in flight.
constexpr bool MayBegin(PodOperation operation, PodStage stage, PodOperation current) {
  for (const PodOperationRow& row : kPodOperations) {
    if (row.operation != operation || row.stage != stage) continue;
    if (current == PodOperation::kNone || current == row.after) return true;
  }
  return false;
}

}  // namespace drakkar::node
