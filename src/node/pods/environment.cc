#include "node/pods/environment.h"

#include "base/text/text.h"

namespace drakkar::node {
namespace {

using api::Value;

class Builder {
 public:
  void Set(const std::string& name, std::string value) {
    auto [entry, added] = values_.try_emplace(name);
    if (added) order_.push_back(name);
    entry->second = std::move(value);
  }
  const std::map<std::string, std::string>& values() const { return values_; }
  std::vector<EnvironmentVariable> Take() {
    std::vector<EnvironmentVariable> list;
    for (const std::string& name : order_) list.push_back({name, values_[name]});
    return list;
  }

 private:
  std::map<std::string, std::string> values_;
  std::vector<std::string> order_;
};

// A variable whose source is optional and missing is left out.
Result<std::optional<std::string>> ReadValueFrom(const EnvironmentInput& input, Value from) {
  if (const Value field = from["fieldRef"]; field.has_value()) {
    ASSIGN_OR_RETURN(std::string value, ReadFieldRef(input.downward, field["fieldPath"].str()));
    return std::optional<std::string>(std::move(value));
  }
  if (const Value field = from["resourceFieldRef"]; field.has_value()) {
    Value container = input.container;
    if (const std::string_view name = field["containerName"].str(); !name.empty()) {
      for (const char* list : {"initContainers", "containers"}) {
        for (Value each : input.downward.pod["spec"][list].elements()) {
          if (each["name"].str() == name) container = each;
        }
      }
    }
    ASSIGN_OR_RETURN(std::string value,
                     ReadResourceFieldRef(input.downward, container, field["resource"].str(),
                                          field["divisor"].str()));
    return std::optional<std::string>(std::move(value));
  }
  if (const Value ref = from["configMapKeyRef"]; ref.has_value()) {
    return input.sources.ConfigMapKey(std::string(ref["name"].str()), std::string(ref["key"].str()),
                                      ref["optional"].boolean());
  }
  if (const Value ref = from["secretKeyRef"]; ref.has_value()) {
    return input.sources.SecretKey(std::string(ref["name"].str()), std::string(ref["key"].str()),
                                   ref["optional"].boolean());
  }
  return InvalidArgument("valueFrom has no source this node knows");
}

}  // namespace

std::string ExpandReferences(std::string_view text,
                             const std::map<std::string, std::string>& variables) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    if (text[i + 1] == '$') {
      out += '$';
      ++i;
      continue;
    }
    const std::size_t end = text[i + 1] == '(' ? text.find(')', i) : std::string_view::npos;
    if (end == std::string_view::npos) {
      out += text[i];
      continue;
    }
    const std::string name(text.substr(i + 2, end - i - 2));
    auto found = variables.find(name);
    out += found != variables.end() ? found->second : std::string(text.substr(i, end - i + 1));
    i = end;
  }
  return out;
}

Result<std::vector<EnvironmentVariable>> MakeEnvironment(const EnvironmentInput& input) {
  Builder builder;
  for (const auto& [name, value] : input.service_variables) builder.Set(name, value);
  for (Value source : input.container["envFrom"].elements()) {
    const std::string prefix(source["prefix"].str());
    std::map<std::string, std::string> data;
    if (const Value ref = source["configMapRef"]; ref.has_value()) {
      ASSIGN_OR_RETURN(data, input.sources.ConfigMapData(std::string(ref["name"].str()),
                                                         ref["optional"].boolean()));
    } else if (const Value secret = source["secretRef"]; secret.has_value()) {
      ASSIGN_OR_RETURN(data, input.sources.SecretData(std::string(secret["name"].str()),
                                                      secret["optional"].boolean()));
    }
    for (const auto& [name, value] : data) builder.Set(prefix + name, value);
  }
  for (Value variable : input.container["env"].elements()) {
    const std::string name(variable["name"].str());
    if (const Value from = variable["valueFrom"]; from.has_value()) {
      auto value = ReadValueFrom(input, from);
      if (!value.ok()) return value.error().Prefixed(StrCat("environment variable ", name));
      if (*value) builder.Set(name, std::move(**value));
    } else {
      builder.Set(name, ExpandReferences(variable["value"].str(), builder.values()));
    }
  }
  return builder.Take();
}

}  // namespace drakkar::node
