#include "api/meta/label_selector.h"
#include "apiserver/http/table_cells.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Value;

void AddParamKind(Cells& cells) {
  const Value param = cells["spec"]["paramKind"];
  cells.Add(param.has_value() ? StrCat(param["apiVersion"].str(), "/", param["kind"].str())
                              : std::string("<unset>"));
}

void WriteValidatingPolicy(Cells& cells) {
  cells.AddName();
  cells.Add(cells["spec"]["validations"].size());
  AddParamKind(cells);
  cells.AddAge();
}

void WriteMutatingPolicy(Cells& cells) {
  cells.AddName();
  cells.Add(cells["spec"]["mutations"].size());
  AddParamKind(cells);
  cells.AddAge();
}

void WritePolicyBinding(Cells& cells) {
  cells.AddName();
  cells.Add(cells["spec"]["policyName"].str());
  const Value ref = cells["spec"]["paramRef"];
  const std::string_view name = ref["name"].str();
  const std::string_view namespace_ = ref["namespace"].str();
  if (!name.empty()) {
    cells.Add(namespace_.empty() ? std::string(name) : StrCat(namespace_, "/", name));
  } else {
    cells.Add(ref["selector"].has_value() ? api::FormatLabelSelector(ref["selector"])
                                          : std::string("<unset>"));
  }
  cells.AddAge();
}

void WriteWebhooks(Cells& cells) {
  cells.AddName();
  cells.Add(cells["webhooks"].size());
  cells.AddAge();
}

void WriteDefinition(Cells& cells) {
  cells.AddName();
  cells.AddCreated();
}

void WriteApiService(Cells& cells) {
  cells.AddName();
  const Value service = cells["spec"]["service"];
  cells.Add(service.has_value() ? StrCat(service["namespace"].str(), "/", service["name"].str())
                                : std::string("Local"));
  std::string available = "Unknown";
  for (const Value each : cells["status"]["conditions"].elements()) {
    if (each["type"].str() != "Available") continue;
    const std::string_view reason = each["reason"].str();
    available = each["status"].str() == "True" || reason.empty()
                    ? std::string(each["status"].str())
                    : StrCat(each["status"].str(), " (", reason, ")");
  }
  cells.Add(available);
  cells.AddAge();
}

}  // namespace

std::vector<CellWriterEntry> AdmissionCellWriters() {
  constexpr std::string_view kGroup = "admissionregistration.k8s.io";
  return {
      {kGroup, "ValidatingAdmissionPolicy", WriteValidatingPolicy},
      {kGroup, "ValidatingAdmissionPolicyBinding", WritePolicyBinding},
      {kGroup, "MutatingAdmissionPolicy", WriteMutatingPolicy},
      {kGroup, "MutatingAdmissionPolicyBinding", WritePolicyBinding},
      {kGroup, "ValidatingWebhookConfiguration", WriteWebhooks},
      {kGroup, "MutatingWebhookConfiguration", WriteWebhooks},
      {"apiextensions.k8s.io", "CustomResourceDefinition", WriteDefinition},
      {"apiregistration.k8s.io", "APIService", WriteApiService},
  };
}

}  // namespace drakkar::apiserver
