#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apiserver/request/request.h"

namespace drakkar::apiserver {

// The body of an HTTP request into what its verb makes of it: the text and form of an object or a
// patch, the options of a delete. A body that its verb does not have is left alone.
std::optional<Failure> ReadBody(std::string_view content_type_header, std::string body,
                                Request& request);

}  // namespace drakkar::apiserver
