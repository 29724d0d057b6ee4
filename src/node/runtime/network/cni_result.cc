#include "node/runtime/network/cni_result.h"

#include <arpa/inet.h>

#include <algorithm>

#include "api/json/writer.h"
#include "base/text/text.h"
#include "node/runtime/json.h"

namespace drakkar::node {
namespace {

using api::Value;

bool IsFamily(std::string_view address, bool ipv6) {
  return (address.find(':') != std::string_view::npos) == ipv6;
}

// The text without characters that a terminal or a status cannot show, truncated.
std::string Printable(std::string_view text) {
  std::string out;
  for (char c : Trim(text).substr(0, kMaxCniMessageBytes)) {
    const bool is_control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    out += is_control ? ' ' : c;
  }
  // The cut may have split a character.
  while (!out.empty() && !IsValidUtf8(out)) out.pop_back();
  return out;
}

}  // namespace

bool IsIpAddress(const std::string& text) {
  unsigned char bytes[16];
  if (text.find('\0') != std::string::npos) return false;  // C ends the text there
  return ::inet_pton(AF_INET, text.c_str(), bytes) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), bytes) == 1;
}

Result<CniResult> ParseCniResult(std::string_view output, std::string_view interface) {
  if (output.size() > kMaxCniResultBytes) {
    return InvalidArgument(StrCat("its result has more than ", kMaxCniResultBytes, " bytes"));
  }
  if (Trim(output).empty()) return InvalidArgument("it returned no result");
  auto tree = ParseJson(output);
  if (!tree.ok()) return std::move(tree).error().Prefixed("its result is not valid");
  const Value root = (*tree)->root();
  if (!root.is_object()) return InvalidArgument("its result is not a JSON object");
  CniResult result;
  const Value interfaces = root["interfaces"];
  for (Value ip : root["ips"].elements()) {
    if (result.addresses.size() == kMaxCniAddresses) {
      return InvalidArgument(StrCat("its result has more than ", kMaxCniAddresses, " addresses"));
    }
    if (const auto index = ip["interface"].optional_integer()) {
      if (*index < 0 || *index >= static_cast<std::int64_t>(interfaces.size())) {
        return InvalidArgument(
            StrCat("its result names interface ", *index, ", of which it has ", interfaces.size()));
      }
      std::int64_t at = 0;
      bool is_pods = false;
      for (Value each : interfaces.elements()) {
        if (at++ == *index) is_pods = each["name"].str() == interface;
      }
      if (!is_pods) continue;
    }
    const std::string text(ip["address"].str());
    const std::string address = text.substr(0, text.find('/'));
    if (!IsIpAddress(address)) {
      return InvalidArgument(StrCat("its result has the address ", Quote(Printable(text)),
                                    ", which is not an IP address"));
    }
    result.addresses.push_back(address);
  }
  result.json = api::WriteJson(root);
  return result;
}

std::string DescribeCniFailure(std::string_view output, std::string_view error_output,
                               int exit_code) {
  if (auto tree = ParseJson(output.substr(0, kMaxCniResultBytes)); tree.ok()) {
    const Value root = (*tree)->root();
    const std::string message = Printable(root["msg"].str());
    const std::string details = Printable(root["details"].str());
    if (!message.empty()) return details.empty() ? message : StrCat(message, ": ", details);
  }
  std::string text = Printable(error_output);
  if (text.empty()) text = Printable(output);
  if (text.empty()) return StrCat("exit code ", exit_code, " without an explanation");
  return StrCat("exit code ", exit_code, ": ", text);
}

std::vector<std::string> ChoosePodAddresses(const std::vector<std::string>& addresses,
                                            std::string_view node_address) {
  std::vector<std::string> chosen;
  for (const std::string& each : addresses) {
    const bool ipv6 = IsFamily(each, true);
    const bool has_family = std::ranges::any_of(
        chosen, [&](const std::string& other) { return IsFamily(other, ipv6); });
    if (!has_family) chosen.push_back(each);
  }
  const bool node_ipv6 = IsFamily(node_address, true);
  if (chosen.size() == 2 && !IsFamily(chosen[0], node_ipv6)) std::swap(chosen[0], chosen[1]);
  return chosen;
}

}  // namespace drakkar::node
