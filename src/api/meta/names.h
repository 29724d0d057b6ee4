#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace drakkar::api {

// Syntax of names in the API. Each function returns the problems in Kubernetes' words and order;
// none if the text is valid.
using Problems = std::vector<std::string>;

Problems CheckDnsLabel(std::string_view text);      // RFC 1123 label, 63 bytes
Problems CheckDnsSubdomain(std::string_view text);  // RFC 1123 subdomain, 253 bytes
Problems CheckDns1035Label(std::string_view text);  // starts with a letter, 63 bytes
// "name" or "prefix.example.com/name": keys of labels, annotations, taints and conditions.
Problems CheckLabelKey(std::string_view text);
Problems CheckLabelValue(std::string_view text);

}  // namespace drakkar::api
