#pragma once

namespace drakkar::allocator {

// What the allocator may do, one switch per feature. Everything is off unless switched on; the
// names are those of Kubernetes' allocator.
struct Features {
  bool admin_access = false;
  bool compatibility_groups = false;
  bool consumable_capacity = false;
  bool derived_attributes = false;
  bool device_binding_and_status = false;  // both of the gates it depends on
  bool device_taints = false;
  bool fractional_capacity_range = false;
  bool list_type_attributes = false;
  bool optional_node_operations = false;
  bool partitionable_devices = false;
  bool prioritized_list = false;
  // Every node is taken to do what slices ask of it (gate NodeDeclaredFeatures off).
  bool ignores_declared_features = false;
};

// One bit under two names: the KEP's, which we show, and that of Kubernetes 1.37.
inline constexpr char kOptionalNodePreparation[] = "DraOptionalNodePreparation";
inline constexpr char kOptionalNodeOperations[] = "DRAOptionalNodeOperations";

}  // namespace drakkar::allocator
