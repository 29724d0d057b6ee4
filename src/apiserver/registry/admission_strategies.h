#pragma once

#include <string_view>

#include "apiserver/registry/strategy.h"

namespace drakkar::apiserver {

// The strategies of admissionregistration.k8s.io; null for kinds without rules of their own.
const Strategy* AdmissionStrategyFor(std::string_view group, std::string_view kind);

}  // namespace drakkar::apiserver
