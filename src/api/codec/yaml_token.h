#pragma once

#include <string>
#include <string_view>

struct fy_token;

namespace drakkar::api {

// The text of a token, as libfyaml has it.
std::string_view YamlTokenText(fy_token* token);

// The text of a scalar's token of `document`, in the token or in `decoded`. libfyaml 0.7.12 gets
// texts with doubled single quotes wrong (it drops what follows two of them), and loses memory over
// many of them and over line ends between quotes, so those are decoded here and it is never asked.
std::string_view YamlScalarText(fy_token* token, std::string_view document, std::string& decoded);

}  // namespace drakkar::api
