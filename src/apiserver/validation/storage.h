#pragma once

#include "api/meta/field_error.h"
#include "api/tree/value.h"

// The kinds of storage.k8s.io. On update, `before` is the current object; it does not exist on
// create.
namespace drakkar::apiserver {

api::FieldErrors ValidateStorageClass(api::Value storage_class);
api::FieldErrors ValidateStorageClassUpdate(api::Value storage_class, api::Value before);
api::FieldErrors ValidateCsiDriver(api::Value driver);
api::FieldErrors ValidateCsiDriverUpdate(api::Value driver, api::Value before);
api::FieldErrors ValidateCsiNode(api::Value node, api::Value before);
api::FieldErrors ValidateStorageCapacity(api::Value capacity, api::Value before);
api::FieldErrors ValidateVolumeAttachment(api::Value attachment, api::Value before);
api::FieldErrors ValidateVolumeAttributesClass(api::Value attributes_class, api::Value before);

}  // namespace drakkar::apiserver
