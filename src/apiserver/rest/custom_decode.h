#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/tree/value.h"
#include "apiserver/request/request.h"

// Bodies of custom resources, whose schemas are known only at run time.
namespace drakkar::apiserver {

// Parses the text of a request, JSON or YAML, without a schema.
std::optional<Failure> ParseCustomBody(const Request& request, api::TreePtr& tree,
                                       std::vector<std::string>& warnings);

// Converts an object into its stored form: metadata as for every kind; fields that are not in the
// schema are removed and reported according to the request's field validation. Rejects objects and
// lists in the wrong places, so that later code can rely on them.
std::optional<Failure> NormalizeCustom(const api::KindSchema& kind, const Request& request,
                                       api::TreePtr& tree, std::vector<std::string>& warnings);

}  // namespace drakkar::apiserver
