#include "api/metadata/paths.h"

namespace drakkar::metadata {

std::string BaseRequest(std::string_view request) {
  return std::string(request.substr(0, request.find('/')));
}

}  // namespace drakkar::metadata
