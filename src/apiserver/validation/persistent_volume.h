#pragma once

#include "api/meta/field_error.h"
#include "api/tree/value.h"

// PersistentVolumes and the claims for them.
namespace drakkar::apiserver {

api::FieldErrors ValidatePersistentVolume(api::Value volume);
api::FieldErrors ValidatePersistentVolumeUpdate(api::Value volume, api::Value before);

api::FieldErrors ValidateVolumeClaim(api::Value claim);
api::FieldErrors ValidateVolumeClaimUpdate(api::Value claim, api::Value before);
api::FieldErrors ValidateVolumeClaimStatus(api::Value claim);

void CheckVolumeClaimSpec(api::FieldErrors& errors, const api::FieldPath& path, api::Value spec);
// The template of a claim in a pod's ephemeral volume.
void CheckClaimTemplate(api::FieldErrors& errors, const api::FieldPath& path, api::Value claim);

}  // namespace drakkar::apiserver
