#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apiserver/request/request.h"

namespace drakkar::apiserver {

// Parses the body of an HTTP request for its verb: the text and form of an object or a patch, or
// the options of a delete. Ignores the body if the verb has none.
std::optional<Failure> ReadBody(std::string_view content_type_header, std::string body,
                                Request& request);

}  // namespace drakkar::apiserver
