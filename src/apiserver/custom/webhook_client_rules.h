#pragma once

#include <string_view>

#include "api/meta/field_error.h"
#include "api/tree/value.h"

// The rules for the clientConfig of admission and conversion webhooks, with Kubernetes' wording.
namespace drakkar::apiserver {

void CheckWebhookUrl(api::FieldErrors& errors, const api::FieldPath& path, std::string_view url);
void CheckWebhookService(api::FieldErrors& errors, const api::FieldPath& path, api::Value service);

}  // namespace drakkar::apiserver
