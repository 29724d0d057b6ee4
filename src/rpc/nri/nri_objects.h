#pragma once

#include <rpc_proto/nri.pb.h>

#include "rpc/nri/nri.h"

namespace drakkar::rpc::nri {

// Plain objects to and from their messages.

void Fill(const NriResources& resources, nri_wire::LinuxResources& message);
NriResources Read(const nri_wire::LinuxResources& message);

void Fill(const NriPodSandbox& pod, nri_wire::PodSandbox& message);
NriPodSandbox Read(const nri_wire::PodSandbox& message);

void Fill(const NriContainer& container, nri_wire::Container& message);
NriContainer Read(const nri_wire::Container& message);

void Fill(const NriContainerAdjustment& adjustment, nri_wire::ContainerAdjustment& message);
NriContainerAdjustment Read(const nri_wire::ContainerAdjustment& message);

void Fill(const NriContainerUpdate& update, nri_wire::ContainerUpdate& message);
NriContainerUpdate Read(const nri_wire::ContainerUpdate& message);

}  // namespace drakkar::rpc::nri
