#include <set>

#include "api/meta/age.h"
#include "apiserver/http/table_cells.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Value;

void WriteNameAndAge(Cells& cells) {
  cells.AddName();
  cells.AddAge();
}

void WriteNameAndCreated(Cells& cells) {
  cells.AddName();
  cells.AddCreated();
}

void WriteNamespace(Cells& cells) {
  cells.AddName();
  cells.Add(cells["status"]["phase"].str());
  cells.AddAge();
}

std::string NodeStatus(Value node) {
  std::string text = "Unknown";
  for (Value each : node["status"]["conditions"].elements()) {
    if (each["type"].str() == "Ready") {
      text = each["status"].str() == "True" ? "Ready" : "NotReady";
    }
  }
  if (node["spec"]["unschedulable"].boolean()) text += ",SchedulingDisabled";
  return text;
}

std::string NodeRoles(Value node) {
  constexpr std::string_view kPrefix = "node-role.kubernetes.io/";
  std::set<std::string_view> roles;
  for (const api::MemberView& label : node["metadata"]["labels"].members()) {
    if (label.name.starts_with(kPrefix) && label.name.size() > kPrefix.size()) {
      roles.insert(label.name.substr(kPrefix.size()));
    } else if (label.name == "kubernetes.io/role" && !label.value.str().empty()) {
      roles.insert(label.value.str());
    }
  }
  return roles.empty() ? "<none>" : Join(roles, ",");
}

void WriteNode(Cells& cells) {
  const auto address = [&](std::string_view type) -> std::string_view {
    for (Value each : cells["status"]["addresses"].elements()) {
      if (each["type"].str() == type) return each["address"].str();
    }
    return {};
  };
  const Value info = cells["status"]["nodeInfo"];
  cells.AddName();
  cells.Add(NodeStatus(cells.object().root()));
  cells.Add(NodeRoles(cells.object().root()));
  cells.AddAge();
  cells.Add(info["kubeletVersion"].str());
  cells.AddText(address("InternalIP"), "<none>");
  cells.AddText(address("ExternalIP"), "<none>");
  cells.AddText(info["osImage"].str(), "<unknown>");
  cells.AddText(info["kernelVersion"].str(), "<unknown>");
  cells.AddText(info["containerRuntimeVersion"].str(), "<unknown>");
}

// Both kinds of Event: in events.k8s.io fields have different names.
void WriteEvent(Cells& cells) {
  const bool newer = cells["regarding"].exists();
  const Value about = newer ? cells["regarding"] : cells["involvedObject"];
  const Value source = newer ? cells["deprecatedSource"] : cells["source"];
  const Value first = newer ? cells["deprecatedFirstTimestamp"] : cells["firstTimestamp"];
  const Value last = newer ? cells["deprecatedLastTimestamp"] : cells["lastTimestamp"];
  const std::string_view controller =
      newer ? cells["reportingController"].str() : cells["reportingComponent"].str();
  std::int64_t count = (newer ? cells["deprecatedCount"] : cells["count"]).integer();

  const std::string first_seen =
      cells.AgeOf(first.str().empty() ? cells["eventTime"].str() : first.str());
  std::string last_seen = last.str().empty() ? first_seen : cells.AgeOf(last.str());
  if (cells["series"].has_value()) {
    last_seen = cells.AgeOf(cells["series"]["lastObservedTime"].str());
    count = cells["series"]["count"].integer();
  } else if (count == 0) {
    count = 1;  // events.k8s.io counts only series
  }

  std::string target = ToLower(about["kind"].str());
  if (!about["name"].str().empty()) target += StrCat("/", about["name"].str());
  std::string_view component = source["component"].str();
  if (component.empty()) component = controller;
  std::string_view instance = source["host"].str();
  if (instance.empty()) instance = cells["reportingInstance"].str();

  cells.Add(last_seen);
  cells.Add(cells["type"].str());
  cells.Add(cells["reason"].str());
  cells.Add(std::move(target));
  cells.Add(about["fieldPath"].str());
  cells.Add(instance.empty() ? std::string(component) : StrCat(component, ", ", instance));
  cells.Add(Trim((newer ? cells["note"] : cells["message"]).str()));
  cells.Add(first_seen);
  cells.Add(count);
  cells.AddName();
}

void WriteConfigMap(Cells& cells) {
  cells.AddName();
  cells.Add(cells["data"].size() + cells["binaryData"].size());
  cells.AddAge();
}

void WriteSecret(Cells& cells) {
  cells.AddName();
  cells.Add(cells["type"].str());
  cells.Add(cells["data"].size());
  cells.AddAge();
}

void WriteLease(Cells& cells) {
  cells.AddName();
  cells.Add(cells["spec"]["holderIdentity"].str());
  cells.AddAge();
}

void WritePriorityClass(Cells& cells) {
  cells.AddName();
  cells.Add(cells["value"].integer());
  cells.Add(cells["globalDefault"].boolean());
  cells.AddAge();
  cells.Add(cells["preemptionPolicy"].str("PreemptLowerPriority"));
}

void WriteRoleBinding(Cells& cells) {
  std::vector<std::string> users;
  std::vector<std::string> groups;
  std::vector<std::string> accounts;
  for (Value subject : cells["subjects"].elements()) {
    const std::string_view kind = subject["kind"].str();
    const std::string_view name = subject["name"].str();
    if (kind == "User") {
      users.emplace_back(name);
    } else if (kind == "Group") {
      groups.emplace_back(name);
    } else if (kind == "ServiceAccount") {
      accounts.push_back(StrCat(subject["namespace"].str(), "/", name));
    }
  }
  cells.AddName();
  cells.Add(StrCat(cells["roleRef"]["kind"].str(), "/", cells["roleRef"]["name"].str()));
  cells.AddAge();
  cells.Add(Join(users, ", "));
  cells.Add(Join(groups, ", "));
  cells.Add(Join(accounts, ", "));
}

void WriteRuntimeClass(Cells& cells) {
  cells.AddName();
  cells.Add(cells["handler"].str());
  cells.AddAge();
}

// "cpu: 1/2, memory: 1Gi/4Gi": used and hard, with requests and limits apart.
void WriteResourceQuota(Cells& cells) {
  std::vector<std::string> requests;
  std::vector<std::string> limits;
  for (const api::MemberView& hard : cells["status"]["hard"].members()) {
    std::string text = StrCat(hard.name, ": ", cells["status"]["used"].Entry(hard.name).str("0"),
                              "/", hard.value.str());
    (hard.name.starts_with("limits.") ? limits : requests).push_back(std::move(text));
  }
  cells.AddName();
  cells.Add(Join(requests, ", "));
  cells.Add(Join(limits, ", "));
  cells.AddAge();
}

void WriteComponentStatus(Cells& cells) {
  std::string_view status = "Unknown";
  std::string_view message;
  std::string_view error;
  for (Value each : cells["conditions"].elements()) {
    if (each["type"].str() != "Healthy") continue;
    status = each["status"].str() == "True" ? "Healthy" : "Unhealthy";
    message = each["message"].str();
    error = each["error"].str();
  }
  cells.AddName();
  cells.Add(status);
  cells.Add(message);
  cells.Add(error);
}

void WriteTrustBundle(Cells& cells) {
  cells.AddName();
  cells.AddText(cells["spec"]["signerName"].str(), "<none>");
}

void WritePodCertificate(Cells& cells) {
  cells.AddName();
  const api::Value spec = cells["spec"];
  cells.Add(spec["podName"].str());
  cells.Add(spec["serviceAccountName"].str());
  cells.Add(spec["nodeName"].str());
  cells.Add(spec["signerName"].str());
  std::string_view state = "Pending";
  for (const api::Value each : cells["status"]["conditions"].elements()) {
    const std::string_view type = each["type"].str();
    if (type == "Issued" || type == "Denied" || type == "Failed") state = type;
  }
  cells.Add(state);
  cells.Add(MapText(spec["unverifiedUserAnnotations"]));
}

void WriteWorkload(Cells& cells) {
  cells.AddName();
  cells.AddAge();
}

void WritePodGroup(Cells& cells) {
  cells.AddName();
  const api::Value spec = cells["spec"];
  cells.Add(spec["schedulingPolicy"]["gang"].has_value() ? "Gang" : "Basic");
  cells.AddText(spec["workloadRef"]["workloadName"].str(), "<none>");
  std::string status = "Pending";
  std::string disrupted;
  for (const api::Value each : cells["status"]["conditions"].elements()) {
    if (each["type"].str() == "PodGroupInitiallyScheduled") {
      status = each["status"].str() == "True" ? "Scheduled" : "Unschedulable";
    }
    if (each["type"].str() == "DisruptionTarget") disrupted = each["reason"].str();
  }
  cells.Add(disrupted.empty() ? status : disrupted);
  cells.AddAge();
}

void WriteSigningRequest(Cells& cells) {
  bool approved = false;
  bool denied = false;
  bool failed = false;
  for (Value each : cells["status"]["conditions"].elements()) {
    const std::string_view type = each["type"].str();
    approved = approved || type == "Approved";
    denied = denied || type == "Denied";
    failed = failed || type == "Failed";
  }
  std::string state = denied ? "Denied" : approved ? "Approved" : "Pending";
  if (failed) state += ",Failed";
  if (!cells["status"]["certificate"].str().empty()) state += ",Issued";
  const auto seconds = cells["spec"]["expirationSeconds"].optional_integer();
  cells.AddName();
  cells.AddAge();
  cells.AddText(cells["spec"]["signerName"].str(), "<none>");
  cells.Add(cells["spec"]["username"].str());
  cells.Add(seconds ? api::FormatAge(std::chrono::seconds(*seconds)) : "<none>");
  cells.Add(std::move(state));
}

// As kubectl names resources: "pods", "deployments.apps".
void WriteMigration(Cells& cells) {
  const Value resource = cells["spec"]["resource"];
  const std::string_view group = resource["group"].str();
  std::string_view state = "Unknown";
  for (const Value condition : cells["status"]["conditions"].elements()) {
    if (condition["status"].str() == "True") state = condition["type"].str();
  }
  cells.AddName();
  cells.Add(StrCat(resource["resource"].str(), group.empty() ? "" : ".", group));
  cells.AddText(state);
}

}  // namespace

std::vector<CellWriterEntry> ClusterCellWriters() {
  constexpr std::string_view kRbac = "rbac.authorization.k8s.io";
  return {
      {"", "Namespace", WriteNamespace},
      {"", "Node", WriteNode},
      {"", "Event", WriteEvent},
      {"events.k8s.io", "Event", WriteEvent},
      {"", "ConfigMap", WriteConfigMap},
      {"", "Secret", WriteSecret},
      {"", "ServiceAccount", WriteNameAndAge},
      {"", "LimitRange", WriteNameAndCreated},
      {"", "ResourceQuota", WriteResourceQuota},
      {"", "ComponentStatus", WriteComponentStatus},
      {"coordination.k8s.io", "Lease", WriteLease},
      {"scheduling.k8s.io", "PriorityClass", WritePriorityClass},
      {kRbac, "Role", WriteNameAndCreated},
      {kRbac, "ClusterRole", WriteNameAndCreated},
      {kRbac, "RoleBinding", WriteRoleBinding},
      {kRbac, "ClusterRoleBinding", WriteRoleBinding},
      {"node.k8s.io", "RuntimeClass", WriteRuntimeClass},
      {"certificates.k8s.io", "CertificateSigningRequest", WriteSigningRequest},
      {"certificates.k8s.io", "ClusterTrustBundle", WriteTrustBundle},
      {"certificates.k8s.io", "PodCertificateRequest", WritePodCertificate},
      {"scheduling.k8s.io", "PodGroup", WritePodGroup},
      {"scheduling.k8s.io", "Workload", WriteWorkload},
      {"storagemigration.k8s.io", "StorageVersionMigration", WriteMigration},
  };
}

}  // namespace drakkar::apiserver
