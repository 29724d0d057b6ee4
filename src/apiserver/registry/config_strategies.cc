#include "apiserver/registry/config_strategies.h"

#include <algorithm>

#include "api/json/reader.h"
#include "api/tree/member_index.h"
#include "apiserver/validation/cause.h"
#include "apiserver/validation/value_rules.h"
#include "base/hash/base64.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

constexpr std::string_view kImmutable = "field is immutable when `immutable` is set";

// The decoded size of a base64 string; the reader has made it canonical.
std::size_t DecodedSize(std::string_view base64) {
  const std::size_t padding = base64.ends_with("==") ? 2 : base64.ends_with('=') ? 1 : 0;
  return base64.size() / 4 * 3 - std::min(padding, base64.size() / 4 * 3);
}

api::FieldPath KeyPath(std::string_view field, std::string_view key) {
  return api::FieldPath(field).Key(key);
}

void CheckKey(std::string_view field, std::string_view key, api::FieldErrors& errors) {
  for (const std::string& problem : ConfigKeyProblems(key)) {
    errors.push_back(api::FieldError::Invalid(KeyPath(field, key), key, problem));
  }
}

// Once set, `immutable` cannot be unset, and `fields` cannot change.
void CheckImmutable(api::Value object, api::Value before, api::FieldNames fields,
                    api::FieldErrors& errors) {
  if (!before["immutable"].boolean()) return;
  if (!object["immutable"].boolean()) errors.push_back(Forbidden("immutable", kImmutable));
  for (const api::FieldName field : fields) {
    const bool both_empty = object[field].empty() && before[field].empty();
    if (!both_empty && !api::Equal(object[field], before[field])) {
      errors.push_back(Forbidden(field, kImmutable));
    }
  }
}

// The required keys of the well-known secret types.
void CheckSecretType(api::Value object, api::FieldErrors& errors) {
  const std::string_view type = object["type"].str();
  const api::Value data = object["data"];
  const auto require = [&](std::string_view key) {
    if (!data.Entry(key).exists())
      errors.push_back(api::FieldError::Required(KeyPath("data", key), ""));
  };
  const auto require_json = [&](std::string_view key) {
    if (!data.Entry(key).exists()) {
      errors.push_back(api::FieldError::Required(KeyPath("data", key), ""));
      return;
    }
    const Result<std::string> text = Base64Decode(data.Entry(key).str());
    const Result<api::TreePtr> tree =
        text.ok() ? api::ParseJson(*text, {.refuse_duplicates = false}) : text.error();
    if (!tree.ok()) {
      errors.push_back(api::FieldError::Invalid(KeyPath("data", key),
                                                std::string_view("<secret contents redacted>"),
                                                tree.error().message));
    }
  };
  if (type == "kubernetes.io/service-account-token") {
    constexpr std::string_view kName = "kubernetes.io/service-account.name";
    if (object["metadata"]["annotations"].Entry(kName).str().empty()) {
      errors.push_back(api::FieldError::Required(
          api::FieldPath("metadata").Child("annotations").Key(kName), ""));
    }
  } else if (type == "kubernetes.io/dockercfg") {
    require_json(".dockercfg");
  } else if (type == "kubernetes.io/dockerconfigjson") {
    require_json(".dockerconfigjson");
  } else if (type == "kubernetes.io/basic-auth") {
    if (!data.Entry("username").exists() && !data.Entry("password").exists()) {
      require("username");
      require("password");
    }
  } else if (type == "kubernetes.io/ssh-auth") {
    if (data.Entry("ssh-privatekey").str().empty()) {
      errors.push_back(api::FieldError::Required(KeyPath("data", "ssh-privatekey"), ""));
    }
  } else if (type == "kubernetes.io/tls") {
    require("tls.crt");
    require("tls.key");
  }
}

api::FieldErrors ValidateSecret(api::Value object) {
  api::FieldErrors errors;
  std::size_t total = 0;
  for (const auto& [key, name, value] : object["data"].members()) {
    CheckKey("data", name, errors);
    total += DecodedSize(value.str());
  }
  if (total > kMaxConfigBytes) {
    errors.push_back(api::FieldError::TooLong(api::FieldPath("data"), kMaxConfigBytes));
  }
  CheckSecretType(object, errors);
  return errors;
}

api::FieldErrors ValidateConfigMap(api::Value object) {
  api::FieldErrors errors;
  std::size_t total = 0;
  const api::Value data = object["data"];
  const api::Value binary = object["binaryData"];
  for (const auto& [key, name, value] : data.members()) {
    CheckKey("data", name, errors);
    if (binary.Entry(name).exists()) {
      errors.push_back(api::FieldError::Invalid(KeyPath("data", name), name,
                                                "duplicate of key present in binaryData"));
    }
    total += value.str().size();
  }
  for (const auto& [key, name, value] : binary.members()) {
    CheckKey("binaryData", name, errors);
    if (data.Entry(name).exists()) {
      errors.push_back(api::FieldError::Invalid(KeyPath("binaryData", name), name,
                                                "duplicate of key present in data"));
    }
    total += DecodedSize(value.str());
  }
  // The size of the whole object.
  if (total > kMaxConfigBytes) {
    errors.push_back(api::FieldError::TooLong(api::FieldPath(""), kMaxConfigBytes));
  }
  return errors;
}

}  // namespace

void SecretStrategy::Default(api::Draft& object, const StrategyContext&) const {
  if (api::Draft* texts = object.Find("stringData"); texts != nullptr && texts->exists()) {
    const api::TreePtr given = texts->Freeze();
    object.Remove("stringData");
    api::MemberIndex data(object["data"]);
    for (const auto& [key, name, value] : given->root().members()) {
      data.Entry(name) = Base64Encode(value.str());
    }
  }
  if (object["type"].str().empty()) object["type"] = "Opaque";
}

api::FieldErrors SecretStrategy::Validate(api::Value object, const StrategyContext&) const {
  return ValidateSecret(object);
}

api::FieldErrors SecretStrategy::ValidateUpdate(api::Value object, api::Value before,
                                                std::string_view, const StrategyContext&) const {
  api::FieldErrors errors;
  const std::string_view type = object["type"].str();
  // Secrets from before the field existed have no type.
  if (type != before["type"].str("Opaque")) {
    errors.push_back(Invalid("type", type, "field is immutable"));
  }
  CheckImmutable(object, before, {"data"}, errors);
  errors.Append(ValidateSecret(object));
  return errors;
}

api::FieldErrors ConfigMapStrategy::Validate(api::Value object, const StrategyContext&) const {
  return ValidateConfigMap(object);
}

api::FieldErrors ConfigMapStrategy::ValidateUpdate(api::Value object, api::Value before,
                                                   std::string_view, const StrategyContext&) const {
  api::FieldErrors errors;
  CheckImmutable(object, before, {"data", "binaryData"}, errors);
  errors.Append(ValidateConfigMap(object));
  return errors;
}

}  // namespace drakkar::apiserver
