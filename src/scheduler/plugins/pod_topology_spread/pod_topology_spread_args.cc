#include "scheduler/plugins/pod_topology_spread/pod_topology_spread_args.h"

#include "base/text/text.h"
#include "scheduler/args/fields.h"

namespace drakkar::scheduler {

PluginArgsPtr PodTopologySpreadArgs::Read(Fields& fields, const FeatureGates&) {
  std::string type = "System";
  fields.Text("defaultingType", type);
  if (type != "System" && type != "List") {
    fields.Refuse("defaultingType", StrCat("must be System or List, not ", Quote(type)));
  }
  if (!fields.Get("defaultConstraints").empty()) {
    fields.Ignore("defaultConstraints", "pods without constraints of their own are not spread");
  }
  return std::make_shared<PodTopologySpreadArgs>();
}

void PodTopologySpreadArgs::Write(api::Draft& args) const {
  args["defaultingType"] = "List";
  args["defaultConstraints"] = api::Draft::Array();
}

}  // namespace drakkar::scheduler
