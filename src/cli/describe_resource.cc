#include "base/text/text.h"
#include "claims/claim.h"
#include "cli/age.h"
#include "cli/describe_kinds.h"
#include "cli/jsonpath.h"

namespace drakkar::cli {
namespace {

using api::Value;

std::string DeviceName(Value device) {
  std::string name =
      StrCat(device["driver"].str(), "/", device["pool"].str(), "/", device["device"].str());
  if (const std::string_view share = device["shareID"].str(); !share.empty()) {
    name += StrCat(" share ", share);
  }
  return name;
}

Entry RequestEntry(Value request) {
  Entry entry{std::string(request["name"].str()), ""};
  auto add = [&](std::string label, std::string value) {
    if (!value.empty()) entry.entries.push_back({std::move(label), std::move(value)});
  };
  auto add_exact = [&](Value exact) {
    add("Device Class", std::string(exact["deviceClassName"].str()));
    const std::string_view mode = exact["allocationMode"].str("ExactCount");
    add("Count", mode == "All" ? "all" : StrCat(exact["count"].integer(1)));
    std::vector<std::string> selectors;
    for (Value selector : exact["selectors"].elements()) {
      selectors.emplace_back(Trim(selector["cel"]["expression"].str()));
    }
    add("Selectors", Join(selectors, "\n"));
    if (exact["adminAccess"].boolean()) add("Admin Access", "true");
    if (!exact["capacity"]["requests"].empty()) {
      add("Capacity", MapText(exact["capacity"]["requests"], ": "));
    }
    DescribeAnyInto(entry, "tolerations", exact["tolerations"]);
  };
  if (request["firstAvailable"].is_array()) {
    Entry choices{"First Available Of", ""};
    for (Value choice : request["firstAvailable"].elements()) {
      choices.entries.push_back(RequestEntry(choice));
    }
    entry.entries.push_back(std::move(choices));
  } else {
    add_exact(request["exactly"].exists() ? request["exactly"] : request);
  }
  return entry;
}

std::string TextList(Value list) {
  std::vector<std::string> words;
  for (Value word : list.elements()) words.push_back(PlainText(word));
  return Join(words, ", ");
}

std::string AttributeText(Value value) {
  // An attribute has exactly one member: bool, int, string, version or a list of these.
  for (const auto& member : value.members()) return PlainText(member.value);
  return "";
}

}  // namespace

std::vector<std::string> AllocatedDevices(Value claim) {
  std::vector<std::string> devices;
  for (Value result : claim["status"]["allocation"]["devices"]["results"].elements()) {
    devices.push_back(DeviceName(result));
  }
  return devices;
}

void DescribeResourceClaim(Description& out, Value claim, const RelatedObjects& related) {
  out.Add("State", claims::StateText(claim));
  Entry& requests = out.Add("Requests");
  for (Value request : claim["spec"]["devices"]["requests"].elements()) {
    requests.entries.push_back(RequestEntry(request));
  }
  if (requests.entries.empty()) requests.value = "<none>";
  DescribeAny(out, "constraints", claim["spec"]["devices"]["constraints"]);
  DescribeAny(out, "config", claim["spec"]["devices"]["config"]);

  const Value allocation = claim["status"]["allocation"];
  Entry& allocated = out.Add("Allocation");
  if (!allocation.exists()) {
    allocated.value = "<none>";
  } else {
    if (const std::string_view time = allocation["allocationTimestamp"].str(); !time.empty()) {
      allocated.entries.push_back({"Since", StrCat(time, " (", AgeOf(time, related.now), ")")});
    }
    std::vector<std::string> nodes;
    for (Value term : allocation["nodeSelector"]["nodeSelectorTerms"].elements()) {
      for (const api::FieldName list : api::FieldNames{"matchFields", "matchExpressions"}) {
        for (Value rule : term[list].elements()) {
          nodes.push_back(StrCat(rule["key"].str(), " ", rule["operator"].str(), " ",
                                 TextList(rule["values"])));
        }
      }
    }
    allocated.entries.push_back({"Nodes", nodes.empty() ? "all" : Join(nodes, "\n")});
    Entry devices{"Devices", ""};
    for (Value result : allocation["devices"]["results"].elements()) {
      Entry device{DeviceName(result), ""};
      device.entries.push_back({"Request", std::string(result["request"].str())});
      if (result["adminAccess"].boolean()) device.entries.push_back({"Admin Access", "true"});
      if (!result["consumedCapacity"].empty()) {
        device.entries.push_back({"Capacity", MapText(result["consumedCapacity"], ": ")});
      }
      if (!result["bindingConditions"].empty()) {
        device.entries.push_back({"Binding Conditions", TextList(result["bindingConditions"])});
      }
      if (!result["bindingFailureConditions"].empty()) {
        device.entries.push_back(
            {"Binding Failure Conditions", TextList(result["bindingFailureConditions"])});
      }
      if (result["skipNodeOperations"].has_value()) {
        device.entries.push_back({"Skip Node Operations", PlainText(result["skipNodeOperations"])});
      }
      const Value status = claims::FindDeviceStatus(claim, result);
      if (!status["conditions"].empty()) {
        device.entries.push_back(ConditionsEntry(status["conditions"]));
      }
      DescribeAnyInto(device, "networkData", status["networkData"]);
      DescribeAnyInto(device, "data", status["data"]);
      devices.entries.push_back(std::move(device));
    }
    allocated.entries.push_back(std::move(devices));
    DescribeAnyInto(allocated, "config", allocation["devices"]["config"]);
  }
  std::vector<std::string> users;
  for (Value user : claim["status"]["reservedFor"].elements()) {
    users.push_back(
        StrCat(user["resource"].str(), "/", user["name"].str(), " (uid ", user["uid"].str(), ")"));
  }
  out.Add("Reserved For", users.empty() ? "<none>" : Join(users, "\n"));
}

void DescribeResourceSlice(Description& out, Value slice, const RelatedObjects&) {
  const Value spec = slice["spec"];
  out.Add("Driver", spec["driver"].str());
  out.Add("Pool",
          StrCat(spec["pool"]["name"].str(), ", generation ", spec["pool"]["generation"].integer(),
                 ", ", spec["pool"]["resourceSliceCount"].integer(), " slice(s)"));
  if (!spec["nodeName"].str().empty()) {
    out.Add("Node", spec["nodeName"].str());
  } else if (spec["allNodes"].boolean()) {
    out.Add("Node", "all");
  } else if (spec["perDeviceNodeSelection"].boolean()) {
    out.Add("Node", "set per device");
  } else {
    DescribeAny(out, "nodeSelector", spec["nodeSelector"]);
  }
  if (spec["skipNodeOperations"].has_value()) {
    out.Add("Skip Node Operations", PlainText(spec["skipNodeOperations"]));
  }
  DescribeAny(out, "sharedCounters", spec["sharedCounters"]);
  Entry& devices = out.Add("Devices");
  if (spec["devices"].empty()) devices.value = "<none>";
  for (Value device : spec["devices"].elements()) {
    Entry entry{std::string(device["name"].str()), ""};
    // v1beta1 nests these under "basic".
    const Value body = device["basic"].exists() ? device["basic"] : device;
    std::vector<std::string> lines;
    for (const auto& attribute : body["attributes"].members()) {
      lines.push_back(StrCat(attribute.name, ": ", AttributeText(attribute.value)));
    }
    if (!lines.empty()) entry.entries.push_back({"Attributes", Join(lines, "\n")});
    lines.clear();
    for (const auto& capacity : body["capacity"].members()) {
      lines.push_back(StrCat(capacity.name, ": ",
                             capacity.value.is_object() ? PlainText(capacity.value["value"])
                                                        : PlainText(capacity.value)));
    }
    if (!lines.empty()) entry.entries.push_back({"Capacity", Join(lines, "\n")});
    lines.clear();
    for (Value taint : body["taints"].elements()) {
      const std::string_view value = taint["value"].str();
      lines.push_back(
          StrCat(taint["key"].str(), value.empty() ? "" : "=", value, ":", taint["effect"].str()));
    }
    if (!lines.empty()) entry.entries.push_back({"Taints", Join(lines, "\n")});
    for (const api::FieldName field : api::FieldNames{
             "nodeName", "nodeSelector", "allNodes", "consumesCounters", "allowMultipleAllocations",
             "bindsToNode", "bindingConditions", "bindingFailureConditions"}) {
      DescribeAnyInto(entry, field, body[field]);
    }
    if (entry.entries.empty()) entry.value = "<no attributes>";
    devices.entries.push_back(std::move(entry));
  }
}

}  // namespace drakkar::cli
