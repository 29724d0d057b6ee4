#pragma once

#include <string_view>

namespace drakkar::api {

// The request itself where `request` names one of its alternatives: "gpu" for "gpu/large". Requests
// without alternatives have no slash.
inline std::string_view BaseRequest(std::string_view request) {
  return request.substr(0, request.find('/'));
}

}  // namespace drakkar::api
