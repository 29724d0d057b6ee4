#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace drakkar::api {

// The syntax of names in the API. Each function gives what is wrong, in Kubernetes' words and
// order; nothing if the text is fine.
using Problems = std::vector<std::string>;

Problems CheckDnsLabel(std::string_view text);      // RFC 1123 label, 63 bytes
Problems CheckDnsSubdomain(std::string_view text);  // RFC 1123 subdomain, 253 bytes
Problems CheckDns1035Label(std::string_view text);  // starts with a letter, 63 bytes
// "name" or "prefix.example.com/name": keys of labels, annotations, taints and conditions.
Problems CheckLabelKey(std::string_view text);
Problems CheckLabelValue(std::string_view text);

}  // namespace drakkar::api
