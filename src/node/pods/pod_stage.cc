#include "node/pods/pod_stage.h"

namespace drakkar::node {

std::string_view Name(PodStage stage) {
  switch (stage) {
    case PodStage::kAdmitting:
      return "Admitting";
    case PodStage::kRunning:
      return "Running";
    case PodStage::kStoppingContainers:
      return "StoppingContainers";
    case PodStage::kStoppingSandboxes:
      return "StoppingSandboxes";
    case PodStage::kUnpreparingClaims:
      return "UnpreparingClaims";
    case PodStage::kRemovingVolumes:
      return "RemovingVolumes";
    case PodStage::kEnded:
      return "Ended";
    case PodStage::kReportingEnd:
      return "ReportingEnd";
    case PodStage::kRemovingRemains:
      return "RemovingRemains";
    case PodStage::kDeletingObject:
      return "DeletingObject";
    case PodStage::kAwaitingRemoval:
      return "AwaitingRemoval";
    case PodStage::kFinished:
      return "Finished";
  }
  return "?";
}

std::string_view Name(PodEvent event) {
  switch (event) {
    case PodEvent::kAdmitted:
      return "Admitted";
    case PodEvent::kStopRequested:
      return "StopRequested";
    case PodEvent::kContainersStopped:
      return "ContainersStopped";
    case PodEvent::kSandboxesStopped:
      return "SandboxesStopped";
    case PodEvent::kClaimsUnprepared:
      return "ClaimsUnprepared";
    case PodEvent::kVolumesRemoved:
      return "VolumesRemoved";
    case PodEvent::kDeletionRequested:
      return "DeletionRequested";
    case PodEvent::kEndReported:
      return "EndReported";
    case PodEvent::kRemainsRemoved:
      return "RemainsRemoved";
    case PodEvent::kObjectDeleted:
      return "ObjectDeleted";
    case PodEvent::kObjectGone:
      return "ObjectGone";
    case PodEvent::kFoundRunning:
      return "FoundRunning";
  }
  return "?";
}

std::string_view Name(PodOperation operation) {
  switch (operation) {
    case PodOperation::kNone:
      return "None";
    case PodOperation::kFetchingAdmissionClaims:
      return "FetchingAdmissionClaims";
    case PodOperation::kFetchingRuntimeClass:
      return "FetchingRuntimeClass";
    case PodOperation::kFetchingVolumeSources:
      return "FetchingVolumeSources";
    case PodOperation::kPreparingClaims:
      return "PreparingClaims";
    case PodOperation::kCreatingSandbox:
      return "CreatingSandbox";
    case PodOperation::kFetchingEnvironment:
      return "FetchingEnvironment";
    case PodOperation::kCreatingContainer:
      return "CreatingContainer";
    case PodOperation::kStartingContainer:
      return "StartingContainer";
    case PodOperation::kResizingContainer:
      return "ResizingContainer";
    case PodOperation::kStoppingSandbox:
      return "StoppingSandbox";
    case PodOperation::kUnpreparingClaims:
      return "UnpreparingClaims";
    case PodOperation::kRemovingVolumes:
      return "RemovingVolumes";
    case PodOperation::kRemovingSandbox:
      return "RemovingSandbox";
    case PodOperation::kRemovingFiles:
      return "RemovingFiles";
    case PodOperation::kDeletingObject:
      return "DeletingObject";
  }
  return "?";
}

}  // namespace drakkar::node
