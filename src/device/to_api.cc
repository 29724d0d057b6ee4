#include "device/to_api.h"

#include <string>

#include "api/keys.h"

namespace drakkar::device {

namespace key = api::key;

namespace {

using api::Draft;

Draft Texts(const std::vector<std::string>& texts) {
  Draft array = Draft::Array();
  for (const std::string& text : texts) array.Append(text);
  return array;
}

void SetText(Draft& object, const api::Key& name, const std::string& text) {
  if (!text.empty()) object[name] = text;
}

void SetTexts(Draft& object, const api::Key& name, const std::vector<std::string>& texts) {
  if (!texts.empty()) object[name] = Texts(texts);
}

Draft SkipToApi(const SkipNodeOperations& skip) {
  if (const bool* all = std::get_if<bool>(&skip.form)) return Draft(*all);
  if (const auto* list = std::get_if<std::vector<std::string>>(&skip.form)) return Texts(*list);
  return Draft();
}

Draft RequirementsToApi(const std::vector<NodeSelectorRequirement>& requirements) {
  Draft array = Draft::Array();
  for (const NodeSelectorRequirement& requirement : requirements) {
    Draft object = Draft::Object();
    object[key::kKey] = requirement.key;
    object[key::kOperator] = requirement.op;
    SetTexts(object, key::kValues, requirement.values);
    array.Append(std::move(object));
  }
  return array;
}

Draft DeviceToApi(const DeviceResult& result) {
  Draft object = Draft::Object();
  object[key::kRequest] = result.request;
  object[key::kDriver] = result.id.driver;
  object[key::kPool] = result.id.pool;
  object[key::kDevice] = result.id.device;
  if (result.admin_access) object[key::kAdminAccess] = true;
  for (const Toleration& toleration : result.tolerations) {
    object[key::kTolerations].Append(TolerationToApi(toleration));
  }
  SetTexts(object, key::kBindingConditions, result.binding_conditions);
  SetTexts(object, key::kBindingFailureConditions, result.binding_failure_conditions);
  SetText(object, key::kShareID, result.share_id);
  for (const ConsumedCapacity& consumed : result.consumed_capacity) {
    object[key::kConsumedCapacity].Set(consumed.name, consumed.value.ToString());
  }
  if (result.skip_node_operations.IsSet()) {
    object[key::kSkipNodeOperations] = SkipToApi(result.skip_node_operations);
  }
  return object;
}

Draft ConfigToApi(const AllocatedConfig& config) {
  Draft object = Draft::Object();
  object[key::kSource] =
      config.source == AllocatedConfig::Source::kClass ? "FromClass" : "FromClaim";
  SetTexts(object, key::kRequests, config.requests);
  if (config.opaque) {
    Draft opaque = Draft::Object();
    opaque[key::kDriver] = config.opaque->driver;
    opaque[key::kParameters] = Draft::Raw(config.opaque->parameters);
    object[key::kOpaque] = std::move(opaque);
  }
  return object;
}

}  // namespace

Draft TolerationToApi(const Toleration& toleration) {
  Draft object = Draft::Object();
  SetText(object, key::kKey, toleration.key);
  SetText(object, key::kOperator, toleration.op);
  SetText(object, key::kValue, toleration.value);
  SetText(object, key::kEffect, toleration.effect);
  if (toleration.toleration_seconds) {
    object[key::kTolerationSeconds] = *toleration.toleration_seconds;
  }
  return object;
}

Draft NodeSelectorToApi(const NodeSelector& selector) {
  Draft terms = Draft::Array();
  for (const NodeSelectorTerm& term : selector.terms) {
    Draft object = Draft::Object();
    if (!term.match_expressions.empty()) {
      object[key::kMatchExpressions] = RequirementsToApi(term.match_expressions);
    }
    if (!term.match_fields.empty()) {
      object[key::kMatchFields] = RequirementsToApi(term.match_fields);
    }
    terms.Append(std::move(object));
  }
  Draft object = Draft::Object();
  object[key::kNodeSelectorTerms] = std::move(terms);
  return object;
}

Draft AllocationToApi(const AllocationResult& allocation) {
  Draft devices = Draft::Object();
  for (const DeviceResult& result : allocation.results) {
    devices[key::kResults].Append(DeviceToApi(result));
  }
  for (const AllocatedConfig& config : allocation.config) {
    devices[key::kConfig].Append(ConfigToApi(config));
  }
  Draft object = Draft::Object();
  object[key::kDevices] = std::move(devices);
  if (allocation.node_selector) {
    object[key::kNodeSelector] = NodeSelectorToApi(*allocation.node_selector);
  }
  SetText(object, key::kAllocationTimestamp, allocation.allocation_timestamp);
  return object;
}

}  // namespace drakkar::device
