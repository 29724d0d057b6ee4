#include "scheduler/plugins/unsupported_fields/unsupported_fields.h"

#include "base/text/text.h"

namespace drakkar::scheduler {

using api::Value;

std::string FindUnsupportedField(const PodInfo& pod) {
  const Value spec = pod.spec();
  std::size_t index = 0;
  for (Value volume : spec["volumes"].elements()) {
    // The first two need volume binding; the others must not be attached to two nodes.
    for (const api::FieldName kind :
         api::FieldNames{"persistentVolumeClaim", "ephemeral", "awsElasticBlockStore",
                         "gcePersistentDisk", "iscsi", "rbd"}) {
      if (volume[kind].has_value()) return StrCat("spec.volumes[", index, "].", kind);
    }
    ++index;
  }
  index = 0;
  for (Value toleration : spec["tolerations"].elements()) {
    const std::string_view op = toleration["operator"].str();
    if (!op.empty() && op != "Equal" && op != "Exists") {
      return StrCat("spec.tolerations[", index, "].operator ", op);
    }
    ++index;
  }
  if (spec["schedulingGroup"].has_value()) return "spec.schedulingGroup";
  return {};
}

Status UnsupportedFields::PreFilter(Cycle& cycle) {
  const std::string field = FindUnsupportedField(*cycle.pod);
  if (field.empty()) return Status::Skip();
  return Status::Unresolvable(StrCat(field, " is not supported by this scheduler"));
}

}  // namespace drakkar::scheduler
