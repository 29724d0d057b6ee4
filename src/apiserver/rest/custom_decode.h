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

// Brings an object into the form in which it is stored: metadata as for every kind, fields that the
// schema does not have removed and reported according to the request's field validation. Rejects
// objects and lists in the wrong places, so that the code behind it can rely on them.
std::optional<Failure> NormalizeCustom(const api::KindSchema& kind, const Request& request,
                                       api::TreePtr& tree, std::vector<std::string>& warnings);

}  // namespace drakkar::apiserver
