#pragma once

namespace drakkar::allocator {

// One switch per feature, off by default. Names are those of Kubernetes' allocator.
struct Features {
  bool admin_access = false;
  bool compatibility_groups = false;
  bool consumable_capacity = false;
  bool derived_attributes = false;
  bool device_binding_and_status = false;  // both gates of binding conditions
  bool device_taints = false;
  bool fractional_capacity_range = false;
  bool list_type_attributes = false;
  bool optional_node_operations = false;
  bool partitionable_devices = false;
  bool prioritized_list = false;
  // Assume that every node supports what slices ask of it (gate NodeDeclaredFeatures is off).
  bool ignores_declared_features = false;
};

}  // namespace drakkar::allocator
