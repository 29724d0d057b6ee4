#pragma once

#include <string_view>

#include "base/result/error.h"

namespace drakkar::net {

// The reason phrase of a status ("Not Found"), or "Status" for one without a registered phrase.
std::string_view StatusText(int status);

// The only table between error codes and HTTP statuses.
int HttpStatusOf(ErrorCode code);
// For statuses of 400 and above; a status without a row gets the code of its class.
ErrorCode ErrorCodeOf(int status);

}  // namespace drakkar::net
