#pragma once

#include "api/json/jsonpath.h"

namespace drakkar::cli {

using api::JsonPath;
using api::PlainText;

}  // namespace drakkar::cli
