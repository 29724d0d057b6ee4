#pragma once

#include <string>
#include <string_view>

struct fy_token;

namespace drakkar::api {

// The text of a token as libfyaml holds it.
std::string_view YamlTokenText(fy_token* token);

// The text of a scalar token of `document`, either in the token or in `decoded`. libfyaml 0.7.12
// truncates texts with doubled single quotes, and leaks memory on them and on line breaks between
// quotes, so those are decoded here without calling it.
std::string_view YamlScalarText(fy_token* token, std::string_view document, std::string& decoded);

}  // namespace drakkar::api
