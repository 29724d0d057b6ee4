#pragma once

#include <optional>
#include <string>

#include "api/meta/object.h"
#include "apiserver/request/failure.h"

namespace drakkar::apiserver {

// The container of a pod that a request means: the one it names, else the only one. What is wrong
// otherwise, in Kubernetes' words.
std::optional<Failure> ChooseContainer(const api::Object& pod, std::string& container);

}  // namespace drakkar::apiserver
