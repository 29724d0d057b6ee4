#pragma once

#include <optional>
#include <string>

#include "api/meta/object.h"
#include "apiserver/request/failure.h"

namespace drakkar::apiserver {

// The container of a pod that a request refers to: the one it names, or the only one. Errors are
// worded as in Kubernetes.
std::optional<Failure> ChooseContainer(const api::Object& pod, std::string& container);

}  // namespace drakkar::apiserver
