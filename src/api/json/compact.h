#pragma once

#include <string>
#include <string_view>

namespace drakkar::api {

// JSON without the spaces and line breaks between its tokens. Text that is not JSON is changed in
// some way, and never read beyond its end.
std::string CompactJson(std::string_view text);

}  // namespace drakkar::api
