#include "node/pods/environment.h"

#include <set>

#include "base/text/text.h"
#include "node/pods/environment_file.h"

namespace drakkar::node {
namespace {

using api::Value;

class Builder {
 public:
  Result<void> Set(const std::string& name, std::string value) {
    const std::size_t bytes = name.size() + value.size();
    if (bytes > left()) {
      return Error{ErrorCode::kResourceExhausted,
                   StrCat("the environment would exceed ", kMaxEnvironmentBytes, " bytes")};
    }
    auto [entry, added] = values_.try_emplace(name);
    if (added) order_.push_back(name);
    // Overwritten values still count: the limit bounds the work, not just the result.
    bytes_ += bytes;
    entry->second = std::move(value);
    return Ok();
  }
  std::size_t left() const { return kMaxEnvironmentBytes - bytes_; }
  const std::map<std::string, std::string>& values() const { return values_; }
  std::vector<EnvironmentVariable> Take() {
    std::vector<EnvironmentVariable> list;
    for (const std::string& name : order_) list.push_back({name, values_[name]});
    return list;
  }

 private:
  std::map<std::string, std::string> values_;
  std::vector<std::string> order_;
  std::size_t bytes_ = 0;
};

Result<std::optional<std::string>> ReadFileKey(const EnvironmentInput& input, Value ref) {
  const std::string volume(ref["volumeName"].str()), path(ref["path"].str());
  const bool optional = ref["optional"].boolean();
  const auto in_file = [&](const Error& error) {
    return error.Prefixed(StrCat("file ", Quote(path), " of volume ", Quote(volume)));
  };
  if (input.read_file == nullptr) return NotFound("the pod has no volumes");
  const auto text = input.read_file(volume, path);
  if (!text.ok()) {
    if (optional && text.error().code == ErrorCode::kNotFound) return std::optional<std::string>();
    return in_file(text.error());
  }
  auto value = FindVariable(*text, ref["key"].str());
  if (!value.ok()) return in_file(value.error());
  if (!*value && !optional) return in_file(NotFound(StrCat("no variable ", ref["key"].str())));
  return value;
}

// A variable whose optional source is missing is omitted.
Result<std::optional<std::string>> ReadValueFrom(const EnvironmentInput& input, Value from) {
  if (const Value field = from["fieldRef"]; field.has_value()) {
    ASSIGN_OR_RETURN(std::string value, ReadFieldRef(input.downward, field["fieldPath"].str()));
    return std::optional<std::string>(std::move(value));
  }
  if (const Value field = from["resourceFieldRef"]; field.has_value()) {
    Value container = input.container;
    if (const std::string_view name = field["containerName"].str(); !name.empty()) {
      for (const api::FieldName list : api::FieldNames{"initContainers", "containers"}) {
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
  if (const Value ref = from["fileKeyRef"]; ref.has_value()) return ReadFileKey(input, ref);
  return InvalidArgument("valueFrom has no supported source");
}

// `find` returns the text for a reference: "$(NAME)" and the name in it.
template <typename Find>
Result<std::string> Expand(std::string_view text, std::size_t max_bytes, Find&& find) {
  std::string out;
  bool has_end = true;  // whether a closing parenthesis is still ahead
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (out.size() > max_bytes) break;
    if (text[i] != '$' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    if (text[i + 1] == '$') {
      out += '$';
      ++i;
      continue;
    }
    const std::size_t end =
        text[i + 1] == '(' && has_end ? text.find(')', i) : std::string_view::npos;
    if (end == std::string_view::npos) {
      if (text[i + 1] == '(') has_end = false;
      out += text[i];
      continue;
    }
    out += find(text.substr(i, end - i + 1), text.substr(i + 2, end - i - 2));
    i = end;
  }
  if (out.size() > max_bytes) {
    return Error{ErrorCode::kResourceExhausted,
                 StrCat("its references expand to more than ", max_bytes, " bytes")};
  }
  return out;
}

}  // namespace

Result<std::string> ExpandReferences(std::string_view text,
                                     const std::map<std::string, std::string>& variables,
                                     std::size_t max_bytes) {
  return Expand(text, max_bytes, [&](std::string_view reference, std::string_view name) {
    const auto found = variables.find(std::string(name));
    return found != variables.end() ? std::string_view(found->second) : reference;
  });
}

Result<std::string> ExpandPath(std::string_view text,
                               const std::map<std::string, std::string>& variables,
                               std::size_t max_bytes) {
  std::set<std::string> missing;
  auto path = Expand(text, max_bytes, [&](std::string_view, std::string_view name) {
    const auto found = variables.find(std::string(name));
    if (found != variables.end() && !found->second.empty()) return std::string_view(found->second);
    missing.emplace(name);
    return std::string_view();
  });
  if (missing.empty()) return path;
  return InvalidArgument(
      StrCat("missing value for ", Join(std::vector(missing.begin(), missing.end()), ", ")));
}

Result<std::vector<EnvironmentVariable>> MakeEnvironment(const EnvironmentInput& input) {
  Builder builder;
  for (const auto& [name, value] : input.service_variables) {
    RETURN_IF_ERROR(builder.Set(name, value));
  }
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
    for (const auto& [name, value] : data) {
      if (auto set = builder.Set(prefix + name, value); !set.ok()) {
        return set.error().Prefixed(StrCat("environment variable ", prefix, name));
      }
    }
  }
  for (Value variable : input.container["env"].elements()) {
    const std::string name(variable["name"].str());
    auto set = [&]() -> Result<void> {
      if (const Value from = variable["valueFrom"]; from.has_value()) {
        ASSIGN_OR_RETURN(std::optional<std::string> value, ReadValueFrom(input, from));
        return value ? builder.Set(name, *std::move(value)) : Ok();
      }
      ASSIGN_OR_RETURN(std::string value,
                       ExpandReferences(variable["value"].str(), builder.values(), builder.left()));
      return builder.Set(name, std::move(value));
    }();
    if (!set.ok()) return set.error().Prefixed(StrCat("environment variable ", name));
  }
  return builder.Take();
}

}  // namespace drakkar::node
