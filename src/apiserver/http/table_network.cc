#include <algorithm>

#include "api/meta/label_selector.h"
#include "apiserver/http/table_cells.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Value;

// The first three, then how many more.
std::string FirstFew(const std::vector<std::string>& texts, std::string_view none) {
  constexpr std::size_t kShown = 3;
  if (texts.empty()) return std::string(none);
  if (texts.size() <= kShown) return Join(texts, ",");
  const std::vector<std::string> shown(texts.begin(), texts.begin() + kShown);
  return StrCat(Join(shown, ","), " + ", texts.size() - kShown, " more...");
}

void WriteEndpointSlice(Cells& cells) {
  std::vector<std::string> ports, addresses;
  for (Value port : cells["ports"].elements()) {
    const Value number = port["port"];
    ports.push_back(number.has_value() ? std::to_string(number.integer()) : "<unset>");
  }
  for (Value endpoint : cells["endpoints"].elements()) {
    for (Value address : endpoint["addresses"].elements()) addresses.emplace_back(address.str());
  }
  cells.AddName();
  cells.AddText(cells["addressType"].str());
  cells.Add(FirstFew(ports, "<unset>"));
  cells.Add(FirstFew(addresses, "<unset>"));
  cells.AddAge();
}

void WriteIngress(Cells& cells) {
  const Value spec = cells["spec"];
  std::vector<std::string> hosts, addresses;
  for (Value rule : spec["rules"].elements()) {
    if (!rule["host"].str().empty()) hosts.emplace_back(rule["host"].str());
  }
  for (Value each : cells["status"]["loadBalancer"]["ingress"].elements()) {
    const std::string_view ip = each["ip"].str();
    addresses.emplace_back(ip.empty() ? each["hostname"].str() : ip);
  }
  std::ranges::sort(addresses);
  cells.AddName();
  cells.AddText(spec["ingressClassName"].str(), "<none>");
  cells.Add(FirstFew(hosts, "*"));
  cells.Add(Join(addresses, ","));
  cells.Add(spec["tls"].empty() ? "80" : "80, 443");
  cells.AddAge();
}

void WriteIngressClass(Cells& cells) {
  const Value parameters = cells["spec"]["parameters"];
  std::string text = "<none>";
  if (parameters.has_value()) {
    const std::string_view group = parameters["apiGroup"].str();
    text = StrCat(parameters["kind"].str(), group.empty() ? "" : ".", group, "/",
                  parameters["name"].str());
  }
  cells.AddName();
  cells.AddText(cells["spec"]["controller"].str());
  cells.Add(std::move(text));
  cells.AddAge();
}

void WriteNetworkPolicy(Cells& cells) {
  cells.AddName();
  cells.Add(api::FormatLabelSelector(cells["spec"]["podSelector"]));
  cells.AddAge();
}

void WriteIpAddress(Cells& cells) {
  const Value parent = cells["spec"]["parentRef"];
  std::vector<std::string_view> parts;
  for (Value part : {parent["group"], parent["resource"], parent["namespace"], parent["name"]}) {
    if (!part.str().empty()) parts.push_back(part.str());
  }
  cells.AddName();
  cells.AddText(Join(parts, "/"), "<none>");
}

void WriteServiceCidr(Cells& cells) {
  cells.AddName();
  cells.Add(JoinTexts(cells["spec"]["cidrs"], ","));
  cells.AddAge();
}

}  // namespace

std::vector<CellWriterEntry> NetworkCellWriters() {
  return {
      {"discovery.k8s.io", "EndpointSlice", WriteEndpointSlice},
      {"networking.k8s.io", "Ingress", WriteIngress},
      {"networking.k8s.io", "IngressClass", WriteIngressClass},
      {"networking.k8s.io", "NetworkPolicy", WriteNetworkPolicy},
      {"networking.k8s.io", "IPAddress", WriteIpAddress},
      {"networking.k8s.io", "ServiceCIDR", WriteServiceCidr},
  };
}

}  // namespace drakkar::apiserver
