#pragma once

#include <string_view>

#include "apiserver/registry/strategy.h"

namespace drakkar::apiserver {

// PersistentVolume, PersistentVolumeClaim and the kinds of storage.k8s.io; null for others.
const Strategy* StorageStrategyFor(std::string_view group, std::string_view kind);

}  // namespace drakkar::apiserver
