#include "api/metadata/paths.h"

#include "api/meta/request_name.h"

namespace drakkar::metadata {

std::string BaseRequest(std::string_view request) {
  return std::string(api::BaseRequest(request));
}

}  // namespace drakkar::metadata
