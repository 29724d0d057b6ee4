#include "apiserver/validation/endpoints.h"

#include <set>

#include "apiserver/validation/cause.h"
#include "apiserver/validation/metadata.h"
#include "apiserver/validation/value_rules.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::FieldErrors;
using api::FieldPath;
using api::Value;

void CheckAddress(FieldErrors& errors, const FieldPath& path, Value address) {
  CheckIpAddress(errors, path.Child("ip"), address["ip"].str());
  const std::string_view host = address["hostname"].str();
  if (!host.empty()) CheckDnsLabel(errors, path.Child("hostname"), host);
  if (address["nodeName"].has_value()) {
    CheckDnsSubdomain(errors, path.Child("nodeName"), address["nodeName"].str());
  }
  CheckEndpointAddress(errors, path.Child("ip"), address["ip"].str());
}

void CheckApplication(FieldErrors& errors, const FieldPath& path, Value port) {
  const Value application = port["appProtocol"];
  if (!application.has_value()) return;
  AddProblems(errors, path.Child("appProtocol"), application.str(),
              api::CheckLabelKey(application.str()));
}

void CheckSubset(FieldErrors& errors, const FieldPath& path, Value subset) {
  if (subset["addresses"].empty() && subset["notReadyAddresses"].empty()) {
    errors.push_back(Required(path, "must specify `addresses` or `notReadyAddresses`"));
  }
  for (const api::FieldName list : api::FieldNames{"addresses", "notReadyAddresses"}) {
    std::size_t index = 0;
    for (const Value address : subset[list].elements()) {
      if (WorkBudget::IsExceeded()) return;
      CheckAddress(errors, path.Child(list.view()).Index(index++), address);
    }
  }
  std::size_t index = 0;
  for (const Value port : subset["ports"].elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = path.Child("ports").Index(index++);
    const std::string_view name = port["name"].str();
    if (!name.empty()) {
      CheckDnsLabel(errors, at.Child("name"), name);
    } else if (subset["ports"].size() > 1) {
      errors.push_back(Required(at.Child("name")));
    }
    CheckPortNumber(errors, at.Child("port"), port["port"].integer());
    RequireOneOf(errors, at.Child("protocol"), port["protocol"].str(), {"SCTP", "TCP", "UDP"});
    CheckApplication(errors, at, port);
  }
}

void CheckSliceAddress(FieldErrors& errors, const FieldPath& list, std::size_t index,
                       std::string_view address, std::string_view type) {
  const FieldPath at = list.Index(index);
  if (type == "FQDN") {
    CheckDnsSubdomain(errors, at,
                      address.ends_with('.') ? address.substr(0, address.size() - 1) : address);
    return;
  }
  const std::size_t before = errors.size();
  CheckIpAddress(errors, at, address);
  if (errors.size() != before) return;
  const bool is_v6 = address.find(':') != std::string_view::npos;
  if (type == "IPv4" && is_v6) {
    errors.push_back(Invalid(list, address, "must be an IPv4 address"));
  } else if (type == "IPv6" && !is_v6) {
    errors.push_back(Invalid(list, address, "must be an IPv6 address"));
  }
  CheckEndpointAddress(errors, at, address);
}

void CheckHints(FieldErrors& errors, const FieldPath& path, Value hints) {
  for (const api::FieldName list : api::FieldNames{"forZones", "forNodes"}) {
    std::set<std::string_view> names;
    std::size_t index = 0;
    for (const Value hint : hints[list].elements()) {
      if (WorkBudget::IsExceeded()) return;
      const FieldPath at = path.Child(list.view()).Index(index++).Child("name");
      const std::string_view name = hint["name"].str();
      if (!names.insert(name).second) errors.push_back(Duplicate(at, name));
      if (list == api::FieldName("forZones")) {
        AddProblems(errors, at, name, api::CheckLabelValue(name));
      } else {
        CheckDnsSubdomain(errors, at, name);
      }
    }
  }
}

void CheckSliceEndpoints(FieldErrors& errors, Value slice) {
  constexpr std::size_t kMaxTopologyLabels = 16;
  const std::string_view type = slice["addressType"].str();
  std::size_t index = 0;
  for (const Value endpoint : slice["endpoints"].elements()) {
    if (WorkBudget::IsExceeded()) return;
    const FieldPath at = FieldPath("endpoints").Index(index++);
    std::size_t place = 0;
    for (const Value address : endpoint["addresses"].elements()) {
      if (WorkBudget::IsExceeded()) return;
      CheckSliceAddress(errors, at.Child("addresses"), place++, address.str(), type);
    }
    const Value topology = endpoint["deprecatedTopology"];
    const FieldPath topology_path = at.Child("deprecatedTopology");
    if (topology.size() > kMaxTopologyLabels) {
      errors.push_back(
          api::FieldError::TooMany(topology_path, topology.size(), kMaxTopologyLabels));
    }
    if (!topology.empty()) {
      Findings labels;
      CheckLabels(labels, topology_path, topology);
      errors.Append(PlainErrors(labels));
    }
    if (endpoint["hints"].has_value()) CheckHints(errors, at.Child("hints"), endpoint["hints"]);
  }
}

}  // namespace

FieldErrors ValidateEndpoints(Value endpoints, Value before) {
  FieldErrors errors;
  if (before.exists() && api::Equal(endpoints["subsets"], before["subsets"])) return errors;
  std::size_t index = 0;
  for (const Value subset : endpoints["subsets"].elements()) {
    if (WorkBudget::IsExceeded()) return errors;
    CheckSubset(errors, FieldPath("subsets").Index(index++), subset);
  }
  return errors;
}

FieldErrors ValidateEndpointSlice(Value slice, Value before) {
  FieldErrors errors;
  std::set<std::string_view> names;
  std::size_t index = 0;
  for (const Value port : slice["ports"].elements()) {
    if (WorkBudget::IsExceeded()) return errors;
    const FieldPath at = FieldPath("ports").Index(index++);
    const std::string_view name = port["name"].str();
    if (!name.empty()) CheckDnsLabel(errors, at.Child("name"), name);
    if (!names.insert(name).second) errors.push_back(Duplicate(at.Child("name"), name));
    CheckApplication(errors, at, port);
  }
  if (!before.exists() || !api::Equal(slice["endpoints"], before["endpoints"])) {
    CheckSliceEndpoints(errors, slice);
  }
  return errors;
}

}  // namespace drakkar::apiserver
