#pragma once

#include "api/meta/field_error.h"
#include "api/metadata/device_metadata.h"
#include "api/metadata/document.h"
#include "base/result/result.h"

namespace drakkar::metadata {

// The problems Kubernetes finds in a document, in its words; none if it is valid. Reading does not
// require validity.
api::FieldErrors ValidateDocument(const Document& document);

// What the API requires of a device before it is written: names, at most 32 attributes with
// qualified names, texts of up to 64 bytes, valid versions, bounded lists and network data. Returns
// one sentence that names the attribute.
Result<void> ValidateDevice(const Device& device);

}  // namespace drakkar::metadata
