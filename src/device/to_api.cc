#include "device/to_api.h"

#include <string>

namespace drakkar::device {

namespace {

using api::Draft;

Draft Texts(const std::vector<std::string>& texts) {
  Draft array = Draft::Array();
  for (const std::string& text : texts) array.Append(text);
  return array;
}

void SetText(Draft& object, api::FieldName name, const std::string& text) {
  if (!text.empty()) object[name] = text;
}

void SetTexts(Draft& object, api::FieldName name, const std::vector<std::string>& texts) {
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
    object["key"] = requirement.key;
    object["operator"] = requirement.op;
    SetTexts(object, "values", requirement.values);
    array.Append(std::move(object));
  }
  return array;
}

Draft DeviceToApi(const DeviceResult& result) {
  Draft object = Draft::Object();
  object["request"] = result.request;
  object["driver"] = result.id.driver;
  object["pool"] = result.id.pool;
  object["device"] = result.id.device;
  if (result.admin_access) object["adminAccess"] = true;
  for (const Toleration& toleration : result.tolerations) {
    object["tolerations"].Append(TolerationToApi(toleration));
  }
  SetTexts(object, "bindingConditions", result.binding_conditions);
  SetTexts(object, "bindingFailureConditions", result.binding_failure_conditions);
  SetText(object, "shareID", result.share_id);
  for (const ConsumedCapacity& consumed : result.consumed_capacity) {
    object["consumedCapacity"].Entry(consumed.name) = consumed.value.ToString();
  }
  if (result.skip_node_operations.IsSet()) {
    object["skipNodeOperations"] = SkipToApi(result.skip_node_operations);
  }
  return object;
}

Draft ConfigToApi(const AllocatedConfig& config) {
  Draft object = Draft::Object();
  object["source"] = config.source == AllocatedConfig::Source::kClass ? "FromClass" : "FromClaim";
  SetTexts(object, "requests", config.requests);
  if (config.opaque) {
    Draft opaque = Draft::Object();
    opaque["driver"] = config.opaque->driver;
    opaque["parameters"] = Draft::Raw(config.opaque->parameters);
    object["opaque"] = std::move(opaque);
  }
  return object;
}

}  // namespace

Draft TolerationToApi(const Toleration& toleration) {
  Draft object = Draft::Object();
  SetText(object, "key", toleration.key);
  SetText(object, "operator", toleration.op);
  SetText(object, "value", toleration.value);
  SetText(object, "effect", toleration.effect);
  if (toleration.toleration_seconds) {
    object["tolerationSeconds"] = *toleration.toleration_seconds;
  }
  return object;
}

Draft NodeSelectorToApi(const NodeSelector& selector) {
  Draft terms = Draft::Array();
  for (const NodeSelectorTerm& term : selector.terms) {
    Draft object = Draft::Object();
    if (!term.match_expressions.empty()) {
      object["matchExpressions"] = RequirementsToApi(term.match_expressions);
    }
    if (!term.match_fields.empty()) {
      object["matchFields"] = RequirementsToApi(term.match_fields);
    }
    terms.Append(std::move(object));
  }
  Draft object = Draft::Object();
  object["nodeSelectorTerms"] = std::move(terms);
  return object;
}

Draft AllocationToApi(const AllocationResult& allocation) {
  Draft devices = Draft::Object();
  for (const DeviceResult& result : allocation.results) {
    devices["results"].Append(DeviceToApi(result));
  }
  for (const AllocatedConfig& config : allocation.config) {
    devices["config"].Append(ConfigToApi(config));
  }
  Draft object = Draft::Object();
  object["devices"] = std::move(devices);
  if (allocation.node_selector) {
    object["nodeSelector"] = NodeSelectorToApi(*allocation.node_selector);
  }
  SetText(object, "allocationTimestamp", allocation.allocation_timestamp);
  return object;
}

}  // namespace drakkar::device
