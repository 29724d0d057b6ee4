#include "scheduler/plugins/node_affinity/node_affinity_args.h"

#include <vector>

#include "base/text/text.h"
#include "scheduler/args/fields.h"

namespace drakkar::scheduler {
namespace {

using api::Value;
constexpr std::int64_t kMaxWeight = 100;

Result<void> CheckRequirement(Value requirement, const std::string& path, bool is_field) {
  Fields fields(requirement, path);
  std::string key, op;
  std::vector<std::string> values;
  fields.Text("key", key);
  fields.Text("operator", op);
  fields.Texts("values", values);
  if (key.empty()) fields.Refuse("key", "must not be empty");
  if (is_field && key != "metadata.name") fields.Refuse("key", "must be metadata.name");
  if (op == "In" || op == "NotIn") {
    if (values.empty()) fields.Refuse("values", StrCat("must not be empty for the operator ", op));
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (!values.empty()) fields.Refuse("values", StrCat("must be empty for the operator ", op));
  } else if (op == "Gt" || op == "Lt") {
    if (values.size() != 1 || !ParseInt64(values[0])) {
      fields.Refuse("values", StrCat("must be one whole number for the operator ", op));
    }
  } else {
    fields.Refuse("operator", "must be In, NotIn, Exists, DoesNotExist, Gt or Lt");
  }
  return fields.Finish();
}

Result<void> CheckTerm(Value term, const std::string& path) {
  Fields fields(term, path);
  for (const api::FieldName name : api::FieldNames{"matchExpressions", "matchFields"}) {
    std::size_t index = 0;
    for (Value each : fields.Get(name).elements()) {
      fields.Take(CheckRequirement(each, StrCat(fields.PathOf(name), "[", index++, "]"),
                                   name == "matchFields"));
    }
  }
  return fields.Finish();
}

Result<void> CheckNodeAffinity(Value affinity, const std::string& path) {
  Fields fields(affinity, path);
  constexpr char kRequired[] = "requiredDuringSchedulingIgnoredDuringExecution";
  constexpr char kPreferred[] = "preferredDuringSchedulingIgnoredDuringExecution";
  if (const Value required = fields.Get(kRequired); required.has_value()) {
    Fields inner(required, fields.PathOf(kRequired));
    const Value terms = inner.Get("nodeSelectorTerms");
    if (terms.empty()) inner.Refuse("nodeSelectorTerms", "must have at least one term");
    std::size_t index = 0;
    for (Value term : terms.elements()) {
      inner.Take(CheckTerm(term, StrCat(inner.PathOf("nodeSelectorTerms"), "[", index++, "]")));
    }
    fields.Take(inner.Finish());
  }
  std::size_t index = 0;
  for (Value each : fields.Get(kPreferred).elements()) {
    Fields inner(each, StrCat(fields.PathOf(kPreferred), "[", index++, "]"));
    std::int64_t weight = 0;
    inner.Int("weight", weight, 1, kMaxWeight);
    if (weight == 0)
      inner.Refuse("weight", StrCat("must be a whole number from 1 to ", kMaxWeight));
    inner.Take(CheckTerm(inner.Get("preference"), inner.PathOf("preference")));
    fields.Take(inner.Finish());
  }
  return fields.Finish();
}

}  // namespace

PluginArgsPtr NodeAffinityArgs::Read(Fields& fields, const FeatureGates&) {
  auto args = std::make_shared<NodeAffinityArgs>();
  if (const Value added = fields.Get("addedAffinity"); added.has_value()) {
    const Result<void> checked = CheckNodeAffinity(added, fields.PathOf("addedAffinity"));
    fields.Take(checked);
    if (checked.ok()) args->added_affinity = api::Draft(added).Freeze();
  }
  return args;
}

void NodeAffinityArgs::Write(api::Draft& args) const {
  if (added_affinity != nullptr) args["addedAffinity"] = api::Draft(added_affinity);
}

}  // namespace drakkar::scheduler
