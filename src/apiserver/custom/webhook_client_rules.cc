#include "apiserver/custom/webhook_client_rules.h"

namespace drakkar::apiserver {

using api::FieldError;
using api::FieldErrors;
using api::FieldPath;
using api::Value;

void CheckWebhookUrl(FieldErrors& errors, const FieldPath& path, std::string_view url) {
  constexpr std::string_view kScheme = "https://";
  if (!url.starts_with(kScheme)) {
    errors.push_back(FieldError::Invalid(
        path, url, "'https' is the only allowed URL scheme; desired format: https://host[/path]"));
    return;
  }
  const std::string_view rest = url.substr(kScheme.size());
  const std::string_view host = rest.substr(0, rest.find_first_of("/?#"));
  if (host.empty()) {
    errors.push_back(FieldError::Invalid(
        path, url, "host must be specified; desired format: https://host[/path]"));
  }
  if (host.find('@') != std::string_view::npos) {
    errors.push_back(
        FieldError::Invalid(path, url, "user information is not permitted in the URL"));
  }
  if (rest.find('#') != std::string_view::npos) {
    errors.push_back(FieldError::Invalid(path, url, "fragments are not permitted in the URL"));
  }
  if (rest.find('?') != std::string_view::npos) {
    errors.push_back(
        FieldError::Invalid(path, url, "query parameters are not permitted in the URL"));
  }
}

void CheckWebhookService(FieldErrors& errors, const FieldPath& path, Value service) {
  if (service["name"].str().empty()) {
    errors.push_back(FieldError::Required(path.Child("name"), "service name is required"));
  }
  if (service["namespace"].str().empty()) {
    errors.push_back(
        FieldError::Required(path.Child("namespace"), "service namespace is required"));
  }
  if (const std::int64_t port = service["port"].integer(443); port < 1 || port > 65'535) {
    errors.push_back(FieldError::Invalid(
        path.Child("port"), port, "port is not valid: must be between 1 and 65535, inclusive"));
  }
  const std::string_view where = service["path"].str();
  if (!where.empty() && where[0] != '/') {
    errors.push_back(FieldError::Invalid(path.Child("path"), where, "must start with a '/'"));
  }
}

}  // namespace drakkar::apiserver
