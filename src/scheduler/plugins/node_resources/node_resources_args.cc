#include "scheduler/plugins/node_resources/node_resources_args.h"

#include "base/text/text.h"
#include "scheduler/args/fields.h"

namespace drakkar::scheduler {
namespace {

using api::Value;
using Resources = std::vector<std::pair<std::string, std::int64_t>>;
constexpr std::int64_t kMaxWeight = 100;

Result<Resources> ReadResources(Value list, const std::string& path) {
  Resources resources;
  std::size_t index = 0;
  for (Value each : list.elements()) {
    Fields fields(each, StrCat(path, "[", index++, "]"));
    std::string name;
    std::int64_t weight = 1;
    fields.Text("name", name);
    fields.Int("weight", weight, 1, kMaxWeight);
    if (name.empty()) fields.Refuse("name", "must name a resource");
    RETURN_IF_ERROR(fields.Finish());
    resources.emplace_back(std::move(name), weight);
  }
  return resources;
}

void WriteResources(const Resources& resources, api::Draft& into) {
  for (const auto& [name, weight] : resources) into.Append({{"name", name}, {"weight", weight}});
}

// The shape of RequestedToCapacityRatio. Scores range to 10 in the file and to 100 here.
Result<std::vector<FitScoring::ShapePoint>> ReadShape(Value ratio, const std::string& path) {
  if (!ratio.has_value()) return InvalidArgument(StrCat(path, " is required for this type"));
  Fields fields(ratio, path);
  const Value list = fields.Get("shape");
  if (list.empty()) fields.Refuse("shape", "must have at least one point");
  std::vector<FitScoring::ShapePoint> shape;
  for (Value each : list.elements()) {
    Fields point(each, StrCat(fields.PathOf("shape"), "[", shape.size(), "]"));
    FitScoring::ShapePoint read;
    point.Int("utilization", read.utilization, 0, 100);
    point.Int("score", read.score, 0, 10);
    if (!shape.empty() && read.utilization <= shape.back().utilization) {
      point.Refuse("utilization", "must be greater than that of the previous point");
    }
    read.score *= 10;
    shape.push_back(read);
    fields.Take(point.Finish());
  }
  RETURN_IF_ERROR(fields.Finish());
  return shape;
}

// Stores the value, or records its error.
template <typename T>
void Keep(Result<T> read, T& into, Fields& fields) {
  if (read.ok()) {
    into = std::move(*read);
  } else {
    fields.Take(read.error());
  }
}

Result<void> ReadScoring(Value strategy, const std::string& path, FitScoring& scoring) {
  Fields fields(strategy, path);
  std::string type = "LeastAllocated";
  fields.Text("type", type);
  const bool by_shape = type == "RequestedToCapacityRatio";
  if (type != "LeastAllocated" && type != "MostAllocated" && !by_shape) {
    fields.Refuse("type",
                  StrCat("must be LeastAllocated, MostAllocated or RequestedToCapacityRatio, not ",
                         Quote(type)));
  }
  scoring.most_allocated = type == "MostAllocated";
  const Value ratio = fields.Get("requestedToCapacityRatio");
  if (by_shape) {
    Keep(ReadShape(ratio, fields.PathOf("requestedToCapacityRatio")), scoring.shape, fields);
  } else if (ratio.has_value()) {
    fields.Refuse("requestedToCapacityRatio", "may only be set for type RequestedToCapacityRatio");
  }
  if (const Value list = fields.Get("resources"); !list.empty()) {
    Keep(ReadResources(list, fields.PathOf("resources")), scoring.resources, fields);
  }
  return fields.Finish();
}

}  // namespace

PluginArgsPtr NodeResourcesFitArgs::Read(Fields& fields, const FeatureGates&) {
  auto args = std::make_shared<NodeResourcesFitArgs>();
  fields.Texts("ignoredResources", args->ignored_resources);
  fields.Texts("ignoredResourceGroups", args->ignored_groups);
  if (const Value strategy = fields.Get("scoringStrategy"); strategy.has_value()) {
    fields.Take(ReadScoring(strategy, fields.PathOf("scoringStrategy"), args->scoring));
  }
  return args;
}

void NodeResourcesFitArgs::Write(api::Draft& args) const {
  api::Draft strategy{{"type", !scoring.shape.empty()   ? "RequestedToCapacityRatio"
                               : scoring.most_allocated ? "MostAllocated"
                                                        : "LeastAllocated"}};
  for (const FitScoring::ShapePoint& point : scoring.shape) {
    strategy["requestedToCapacityRatio"]["shape"].Append(
        {{"utilization", point.utilization}, {"score", point.score / 10}});
  }
  WriteResources(scoring.resources, strategy["resources"]);
  args["scoringStrategy"] = std::move(strategy);
  for (const std::string& name : ignored_resources) args["ignoredResources"].Append(name);
  for (const std::string& name : ignored_groups) args["ignoredResourceGroups"].Append(name);
}

PluginArgsPtr NodeResourcesBalancedArgs::Read(Fields& fields, const FeatureGates&) {
  const Value list = fields.Get("resources");
  Resources resources;
  Keep(ReadResources(list, fields.PathOf("resources")), resources, fields);
  for (const auto& [name, weight] : resources) {
    if ((name != "cpu" && name != "memory") || weight != 1 || resources.size() != 2) {
      fields.Refuse("resources", "can only be cpu and memory with weight 1 in this scheduler");
    }
  }
  return std::make_shared<NodeResourcesBalancedArgs>();
}

void NodeResourcesBalancedArgs::Write(api::Draft& args) const {
  WriteResources({{"cpu", 1}, {"memory", 1}}, args["resources"]);
}

}  // namespace drakkar::scheduler
