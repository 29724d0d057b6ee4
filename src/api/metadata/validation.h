#pragma once

#include "api/meta/field_error.h"
#include "api/metadata/device_metadata.h"
#include "api/metadata/document.h"
#include "base/result/result.h"

namespace drakkar::metadata {

// What Kubernetes finds wrong with a document, in its words; nothing if it is fine. Reading does
// not ask for it.
api::FieldErrors ValidateDocument(const Document& document);

// What the API asks of a device before it is written: names, at most 32 attributes with qualified
// names, texts of 64 bytes, versions that are versions, lists that are not too long, network data
// within its bounds. One sentence that names the attribute.
Result<void> ValidateDevice(const Device& device);

}  // namespace drakkar::metadata
