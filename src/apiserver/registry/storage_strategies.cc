#include "apiserver/registry/storage_strategies.h"

#include "apiserver/validation/persistent_volume.h"
#include "apiserver/validation/storage.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::FieldErrors;
using api::Value;

class PersistentVolumeStrategy final : public Strategy {
 public:
  FieldErrors Validate(Value object, const StrategyContext&) const override {
    return ValidatePersistentVolume(object);
  }
  FieldErrors ValidateUpdate(Value object, Value before, std::string_view subresource,
                             const StrategyContext&) const override {
    if (subresource == "status") return {};
    return ValidatePersistentVolumeUpdate(object, before);
  }
};

class PersistentVolumeClaimStrategy final : public Strategy {
 public:
  // dataSource is the older form of dataSourceRef; whichever is given sets the other.
  void PrepareForCreate(Draft& object, const StrategyContext&) const override {
    Draft* spec = object.Find("spec");
    if (spec == nullptr || !spec->is_object()) return;
    const Draft* source = spec->Find("dataSource");
    const Draft* reference = spec->Find("dataSourceRef");
    const bool has_source = source != nullptr && source->is_object();
    const bool has_reference = reference != nullptr && reference->is_object();
    if (has_source && !has_reference) {
      (*spec)["dataSourceRef"] = Draft(*source);
    } else if (has_reference && !has_source) {
      // The older form cannot name a namespace.
      Draft copy(*reference);
      if (!copy["namespace"].str().empty()) return;
      copy.Remove("namespace");
      (*spec)["dataSource"] = std::move(copy);
    }
  }
  FieldErrors Validate(Value object, const StrategyContext&) const override {
    return ValidateVolumeClaim(object);
  }
  FieldErrors ValidateUpdate(Value object, Value before, std::string_view subresource,
                             const StrategyContext&) const override {
    if (subresource == "status") return ValidateVolumeClaimStatus(object);
    return ValidateVolumeClaimUpdate(object, before);
  }
};

class StorageClassStrategy final : public Strategy {
 public:
  FieldErrors Validate(Value object, const StrategyContext&) const override {
    return ValidateStorageClass(object);
  }
  FieldErrors ValidateUpdate(Value object, Value before, std::string_view,
                             const StrategyContext&) const override {
    return ValidateStorageClassUpdate(object, before);
  }
};

class CsiDriverStrategy final : public Strategy {
 public:
  // Volumes of a driver that says nothing about their life are persistent.
  void Default(Draft& object, const StrategyContext&) const override {
    Draft* spec = object.Find("spec");
    const Draft* modes = spec == nullptr ? nullptr : spec->Find("volumeLifecycleModes");
    if (modes == nullptr || modes->size() == 0) {
      object["spec"]["volumeLifecycleModes"].Append("Persistent");
    }
  }
  FieldErrors Validate(Value object, const StrategyContext&) const override {
    return ValidateCsiDriver(object);
  }
  FieldErrors ValidateUpdate(Value object, Value before, std::string_view,
                             const StrategyContext&) const override {
    return ValidateCsiDriverUpdate(object, before);
  }
};

class CsiNodeStrategy final : public Strategy {
 public:
  FieldErrors Validate(Value object, const StrategyContext&) const override {
    return ValidateCsiNode(object, Value());
  }
  FieldErrors ValidateUpdate(Value object, Value before, std::string_view subresource,
                             const StrategyContext&) const override {
    return subresource == "status" ? FieldErrors() : ValidateCsiNode(object, before);
  }
};

class CapacityStrategy final : public Strategy {
 public:
  FieldErrors Validate(Value object, const StrategyContext&) const override {
    return ValidateStorageCapacity(object, Value());
  }
  FieldErrors ValidateUpdate(Value object, Value before, std::string_view,
                             const StrategyContext&) const override {
    return ValidateStorageCapacity(object, before);
  }
};

class AttachmentStrategy final : public Strategy {
 public:
  bool StatusUpdateKeepsMetadata() const override { return false; }
  FieldErrors Validate(Value object, const StrategyContext&) const override {
    return ValidateVolumeAttachment(object, Value());
  }
  FieldErrors ValidateUpdate(Value object, Value before, std::string_view,
                             const StrategyContext&) const override {
    return ValidateVolumeAttachment(object, before);
  }
};

class AttributesClassStrategy final : public Strategy {
 public:
  FieldErrors Validate(Value object, const StrategyContext&) const override {
    return ValidateVolumeAttributesClass(object, Value());
  }
  FieldErrors ValidateUpdate(Value object, Value before, std::string_view,
                             const StrategyContext&) const override {
    return ValidateVolumeAttributesClass(object, before);
  }
};

}  // namespace

const Strategy* StorageStrategyFor(std::string_view group, std::string_view kind) {
  static const PersistentVolumeStrategy volume;
  static const PersistentVolumeClaimStrategy claim;
  static const StorageClassStrategy storage_class;
  static const CsiDriverStrategy driver;
  static const CsiNodeStrategy node;
  static const CapacityStrategy capacity;
  static const AttachmentStrategy attachment;
  static const AttributesClassStrategy attributes_class;
  if (group.empty()) {
    if (kind == "PersistentVolume") return &volume;
    return kind == "PersistentVolumeClaim" ? &claim : nullptr;
  }
  if (group != "storage.k8s.io") return nullptr;
  if (kind == "StorageClass") return &storage_class;
  if (kind == "CSIDriver") return &driver;
  if (kind == "CSINode") return &node;
  if (kind == "CSIStorageCapacity") return &capacity;
  if (kind == "VolumeAttachment") return &attachment;
  if (kind == "VolumeAttributesClass") return &attributes_class;
  return nullptr;
}

}  // namespace drakkar::apiserver
