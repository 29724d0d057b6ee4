#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "base/result/result.h"

namespace drakkar::api {
struct KindSchema;
}

// ConversionReview: the request to a conversion webhook and its response.
namespace drakkar::apiserver {

// `version` is "v1" or "v1beta1" of apiextensions.k8s.io.
std::string WriteConversionReview(std::string_view version, std::string_view uid,
                                  const api::KindSchema& to,
                                  const std::vector<api::TreePtr>& objects);

// The converted objects, with the metadata of the originals except for labels and annotations.
// Errors are those of Kubernetes; what the webhook returned is pruned and defaulted by the schema
// of the version.
Result<std::vector<api::TreePtr>> ReadConversionAnswer(api::Value review, std::string_view version,
                                                       std::string_view uid,
                                                       const api::KindSchema& to,
                                                       const std::vector<api::TreePtr>& originals);

}  // namespace drakkar::apiserver
