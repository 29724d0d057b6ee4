#include "base/text/text.h"
#include "claims/claim.h"
#include "claims/pod_claims.h"
#include "cli/describe_kinds.h"
#include "cli/jsonpath.h"

namespace drakkar::cli {
namespace {

using api::Value;

std::string Words(Value list) {
  std::vector<std::string> words;
  for (Value word : list.elements()) words.push_back(PlainText(word));
  return Join(words, "\n");
}

Entry& AddTo(Entry& parent, std::string label, std::string_view value) {
  parent.entries.push_back({std::move(label), std::string(value)});
  return parent.entries.back();
}

void AddState(Entry& parent, std::string label, Value state) {
  if (state["running"].exists()) {
    Entry& entry = AddTo(parent, std::move(label), "Running");
    AddTo(entry, "Started", state["running"]["startedAt"].str("<unknown>"));
  } else if (const Value ended = state["terminated"]; ended.exists()) {
    Entry& entry = AddTo(parent, std::move(label), "Terminated");
    if (!ended["reason"].str().empty()) AddTo(entry, "Reason", ended["reason"].str());
    if (!ended["message"].str().empty()) AddTo(entry, "Message", Trim(ended["message"].str()));
    AddTo(entry, "Exit Code", StrCat(ended["exitCode"].integer()));
    if (ended["signal"].integer() != 0) AddTo(entry, "Signal", StrCat(ended["signal"].integer()));
    AddTo(entry, "Started", ended["startedAt"].str("<unknown>"));
    AddTo(entry, "Finished", ended["finishedAt"].str("<unknown>"));
  } else if (const Value waiting = state["waiting"]; waiting.exists()) {
    Entry& entry = AddTo(parent, std::move(label), "Waiting");
    if (!waiting["reason"].str().empty()) AddTo(entry, "Reason", waiting["reason"].str());
    if (!waiting["message"].str().empty()) AddTo(entry, "Message", Trim(waiting["message"].str()));
  }
}

std::string EnvironmentText(Value list) {
  std::vector<std::string> lines;
  for (Value variable : list.elements()) {
    const Value from = variable["valueFrom"];
    lines.push_back(StrCat(variable["name"].str(), ": ",
                           from.exists() ? StrCat("<from ", PlainText(from), ">")
                                         : std::string(variable["value"].str())));
  }
  return Join(lines, "\n");
}

Entry DescribeContainer(Value container, Value status) {
  Entry entry{std::string(container["name"].str()), ""};
  auto add = [&](std::string label, std::string_view value) {
    if (!value.empty()) AddTo(entry, std::move(label), value);
  };
  add("Container ID", status["containerID"].str());
  add("Image", container["image"].str());
  add("Image ID", status["imageID"].str());
  std::vector<std::string> ports;
  for (Value port : container["ports"].elements()) {
    ports.push_back(StrCat(port["containerPort"].integer(), "/", port["protocol"].str("TCP")));
  }
  add("Ports", Join(ports, ", "));
  add("Command", Words(container["command"]));
  add("Args", Words(container["args"]));
  AddState(entry, "State", status["state"]);
  AddState(entry, "Last State", status["lastState"]);
  if (status.exists()) {
    add("Ready", status["ready"].boolean() ? "True" : "False");
    add("Restart Count", StrCat(status["restartCount"].integer()));
  }
  if (!container["resources"]["limits"].empty()) {
    add("Limits", MapText(container["resources"]["limits"], ": "));
  }
  if (!container["resources"]["requests"].empty()) {
    add("Requests", MapText(container["resources"]["requests"], ": "));
  }
  std::vector<std::string> claims;
  for (Value claim : container["resources"]["claims"].elements()) {
    const std::string_view request = claim["request"].str();
    claims.push_back(
        StrCat(claim["name"].str(), request.empty() ? "" : StrCat(" (request ", request, ")")));
  }
  add("Resource Claims", Join(claims, "\n"));
  std::vector<std::string> health;
  for (Value resource : status["allocatedResourcesStatus"].elements()) {
    for (Value device : resource["resources"].elements()) {
      const std::string_view message = device["message"].str();
      health.push_back(StrCat(resource["name"].str(), " ", device["resourceID"].str(), ": ",
                              device["health"].str("Unknown"),
                              message.empty() ? "" : StrCat(" (", message, ")")));
    }
  }
  add("Device Health", Join(health, "\n"));
  add("Environment", EnvironmentText(container["env"]));
  std::vector<std::string> mounts;
  for (Value mount : container["volumeMounts"].elements()) {
    mounts.push_back(StrCat(mount["mountPath"].str(), " from ", mount["name"].str(),
                            mount["readOnly"].boolean() ? " (ro)" : " (rw)"));
  }
  add("Mounts", Join(mounts, "\n"));
  return entry;
}

void AddContainers(Description& out, std::string label, Value specs, Value statuses) {
  if (specs.empty()) return;
  Entry& section = out.Add(std::move(label));
  for (Value container : specs.elements()) {
    Value status;
    for (Value candidate : statuses.elements()) {
      if (candidate["name"].str() == container["name"].str()) status = candidate;
    }
    section.entries.push_back(DescribeContainer(container, status));
  }
}

// The claim behind each of the pod's claim references, and its devices.
void AddClaims(Description& out, Value pod, const RelatedObjects& related) {
  if (pod["spec"]["resourceClaims"].empty()) return;
  Entry& section = out.Add("Resource Claims");
  for (Value reference : pod["spec"]["resourceClaims"].elements()) {
    const claims::PodClaim resolved = claims::ResolvePodClaim(pod, reference);
    const std::string& claim_name = resolved.claim_name;
    Entry entry{resolved.entry, ""};
    if (resolved.from_template) {
      AddTo(entry, "Template", reference["resourceClaimTemplateName"].str());
    }
    if (claim_name.empty()) {
      AddTo(entry, "Claim", "<not created yet>");
    } else {
      AddTo(entry, "Claim", claim_name);
      const Value claim =
          related.get("resourceclaims", pod["metadata"]["namespace"].str(), claim_name);
      if (!claim.exists()) {
        AddTo(entry, "State", "<not found>");
      } else {
        AddTo(entry, "State", claims::StateText(claim));
        const std::vector<std::string> devices = AllocatedDevices(claim);
        AddTo(entry, "Devices", devices.empty() ? "<none>" : Join(devices, "\n"));
      }
    }
    section.entries.push_back(std::move(entry));
  }
}

std::string TolerationsText(Value tolerations) {
  std::vector<std::string> lines;
  for (Value toleration : tolerations.elements()) {
    std::string line(toleration["key"].str());
    if (!toleration["value"].str().empty()) line += StrCat("=", toleration["value"].str());
    if (!toleration["effect"].str().empty()) line += StrCat(":", toleration["effect"].str());
    if (toleration["operator"].str() == "Exists") line += " op=Exists";
    if (const auto seconds = toleration["tolerationSeconds"].optional_integer()) {
      line += StrCat(" for ", *seconds, "s");
    }
    lines.emplace_back(Trim(line));
  }
  return lines.empty() ? "<none>" : Join(lines, "\n");
}

}  // namespace

void DescribePod(Description& out, Value pod, const RelatedObjects& related) {
  const Value spec = pod["spec"];
  const Value status = pod["status"];
  if (const auto priority = spec["priority"].optional_integer()) {
    out.Add("Priority", StrCat(*priority));
  }
  out.AddIfAny("Priority Class", spec["priorityClassName"].str());
  out.Add("Service Account", spec["serviceAccountName"].str("default"));
  const std::string_view node = spec["nodeName"].str();
  const std::string_view host = status["hostIP"].str();
  out.Add("Node", node.empty() ? "<none>" : StrCat(node, host.empty() ? "" : "/", host));
  out.AddIfAny("Start Time", status["startTime"].str());
  out.Add("Status", status["phase"].str("<unknown>"));
  out.AddIfAny("Reason", status["reason"].str());
  out.AddIfAny("Message", Trim(status["message"].str()));
  out.Add("IP", status["podIP"].str("<none>"));
  out.AddIfAny("NominatedNodeName", status["nominatedNodeName"].str());
  AddContainers(out, "Init Containers", spec["initContainers"], status["initContainerStatuses"]);
  AddContainers(out, "Containers", spec["containers"], status["containerStatuses"]);
  AddContainers(out, "Ephemeral Containers", spec["ephemeralContainers"],
                status["ephemeralContainerStatuses"]);
  AddClaims(out, pod, related);
  out.entries.push_back(ConditionsEntry(status["conditions"]));
  DescribeAny(out, "volumes", spec["volumes"]);
  out.AddIfAny("QoS Class", status["qosClass"].str());
  out.Add("Node Selectors", MapText(spec["nodeSelector"]));
  out.Add("Tolerations", TolerationsText(spec["tolerations"]));
  if (!spec["schedulingGates"].empty()) {
    std::vector<std::string_view> gates;
    for (Value gate : spec["schedulingGates"].elements()) gates.push_back(gate["name"].str());
    out.Add("Scheduling Gates", Join(gates, "\n"));
  }
}

}  // namespace drakkar::cli
