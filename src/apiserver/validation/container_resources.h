#pragma once

#include <optional>
#include <set>
#include <string_view>

#include "api/meta/field_error.h"
#include "api/meta/names.h"
#include "api/meta/quantity.h"
#include "api/tree/value.h"

// Requests and limits of containers and pods.
namespace drakkar::apiserver {

// What a list of resources belongs to: each allows other names.
enum class ResourceScope { kContainer, kPod };

// Requests and limits: names, amounts, and that requests do not exceed limits.
void CheckResourceRequirements(api::FieldErrors& errors, const api::FieldPath& path,
                               api::Value resources, ResourceScope scope);
// spec.overhead: amounts like the limits of a container.
void CheckOverhead(api::FieldErrors& errors, const api::FieldPath& path, api::Value overhead);
// The resources of the pod as a whole, compared with those of its containers.
void CheckPodLevelResources(api::FieldErrors& errors, const api::FieldPath& spec_path,
                            api::Value spec);
// A container's claims must refer to claims of the pod. Each is used either as a whole or by
// request.
void CheckClaimReferences(api::FieldErrors& errors, const api::FieldPath& path, api::Value claims,
                          const std::set<std::string_view>& known);

// The name of a resource that a container may use.
void CheckContainerResourceName(api::FieldErrors& errors, const api::FieldPath& path,
                                std::string_view name);
// The name of any resource: without a domain, a known one.
api::Problems ResourceNameProblems(std::string_view name);
bool IsNativeResource(std::string_view name);
bool IsHugePageResource(std::string_view name);
// Counted in whole numbers.
bool IsIntegerResource(std::string_view name);
// An amount of the resource `name`: not negative, and whole if the resource is counted. Returns it,
// if it can be read.
std::optional<api::Quantity> CheckResourceAmount(api::FieldErrors& errors,
                                                 const api::FieldPath& path, std::string_view name,
                                                 api::Value amount);

}  // namespace drakkar::apiserver
