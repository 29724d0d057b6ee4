#include "api/meta/age.h"
#include "api/meta/label_selector.h"
#include "api/meta/time.h"
#include "apiserver/conversion/autoscaler_versions.h"
#include "apiserver/http/table.h"
#include "apiserver/http/table_cells.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Value;

bool HasCondition(Value status, std::string_view type) {
  for (Value condition : status["conditions"].elements()) {
    if (condition["type"].str() == type) return condition["status"].str() == "True";
  }
  return false;
}

std::string_view JobStatus(const Cells& cells) {
  const Value status = cells["status"];
  for (std::string_view type : {"Complete", "Failed"}) {
    if (HasCondition(status, type)) return type;
  }
  if (cells.object().is_being_deleted()) return "Terminating";
  for (std::string_view type : {"Suspended", "FailureTarget", "SuccessCriteriaMet"}) {
    if (HasCondition(status, type)) return type;
  }
  return "Running";
}

std::string Completions(const Cells& cells) {
  const std::int64_t succeeded = cells["status"]["succeeded"].integer();
  if (const Value wanted = cells["spec"]["completions"]; wanted.has_value()) {
    return StrCat(succeeded, "/", wanted.integer());
  }
  const std::int64_t parallelism = cells["spec"]["parallelism"].integer();
  return parallelism > 1 ? StrCat(succeeded, "/1 of ", parallelism) : StrCat(succeeded, "/1");
}

// How long the Job took, or has been running.
std::string JobDuration(const Cells& cells) {
  const Result<WallTime> start = api::ParseTime(cells["status"]["startTime"].str());
  if (!start.ok()) return "";
  const Result<WallTime> end = api::ParseTime(cells["status"]["completionTime"].str());
  return api::FormatAge((end.ok() ? *end : cells.options().now) - *start);
}

void WriteJob(Cells& cells) {
  cells.AddName();
  cells.AddText(JobStatus(cells));
  cells.Add(Completions(cells));
  cells.Add(JobDuration(cells));
  cells.AddAge();
  AddContainersAndImages(cells, cells["spec"]["template"]["spec"]);
  cells.Add(api::FormatLabelSelector(cells["spec"]["selector"]));
}

void WriteCronJob(Cells& cells) {
  const Value spec = cells["spec"];
  const std::string_view last = cells["status"]["lastScheduleTime"].str();
  cells.AddName();
  cells.AddText(spec["schedule"].str());
  cells.AddText(spec["timeZone"].str(), "<none>");
  cells.Add(spec["suspend"].boolean() ? "True" : "False");
  cells.Add(static_cast<std::int64_t>(cells["status"]["active"].size()));
  cells.Add(last.empty() ? "<none>" : cells.AgeOf(last));
  cells.AddAge();
  const Value job = spec["jobTemplate"]["spec"];
  AddContainersAndImages(cells, job["template"]["spec"]);
  cells.Add(api::FormatLabelSelector(job["selector"]));
}

std::string TargetText(Value target, Value current) {
  const auto show = [](Value value) {
    if (const auto percent = value["averageUtilization"].optional_integer()) {
      return StrCat(*percent, "%");
    }
    const std::string_view average = value["averageValue"].str();
    return std::string(average.empty() ? value["value"].str("<unknown>") : average);
  };
  return StrCat(current.has_value() ? show(current) : "<unknown>", "/", show(target));
}

void WriteAutoscaler(Cells& cells) {
  // In autoscaling/v1 annotations hold most metrics.
  const api::TreePtr tree = AutoscalerToV2(cells.object().tree());
  const Value spec = tree->root()["spec"];
  const Value status = tree->root()["status"];
  std::vector<std::string> targets;
  std::size_t index = 0;
  for (Value metric : spec["metrics"].elements()) {
    const Value current = status["currentMetrics"].at(index++);
    const std::string_view type = metric["type"].str();
    if (type == "Resource") {
      targets.push_back(
          StrCat(metric["resource"]["name"].str(), ": ",
                 TargetText(metric["resource"]["target"], current["resource"]["current"])));
    } else if (type == "ContainerResource") {
      targets.push_back(StrCat(metric["containerResource"]["name"].str(), ": ",
                               TargetText(metric["containerResource"]["target"],
                                          current["containerResource"]["current"])));
    } else if (type == "Pods") {
      targets.push_back(TargetText(metric["pods"]["target"], current["pods"]["current"]));
    } else if (type == "Object") {
      targets.push_back(TargetText(metric["object"]["target"], current["object"]["current"]));
    } else {
      targets.push_back(TargetText(metric["external"]["target"], current["external"]["current"]));
    }
  }
  cells.AddName();
  cells.Add(
      StrCat(spec["scaleTargetRef"]["kind"].str(), "/", spec["scaleTargetRef"]["name"].str()));
  cells.AddText(Join(targets, ", "), "<none>");
  const Value least = spec["minReplicas"];
  cells.Add(least.has_value() ? std::to_string(least.integer()) : "<unset>");
  cells.Add(spec["maxReplicas"].integer());
  cells.Add(status["currentReplicas"].integer());
  cells.AddAge();
}

void WriteFlowSchema(Cells& cells) {
  const Value spec = cells["spec"];
  std::string_view missing = "?";
  for (Value condition : cells["status"]["conditions"].elements()) {
    if (condition["type"].str() == "Dangling") missing = condition["status"].str();
  }
  cells.AddName();
  cells.AddText(spec["priorityLevelConfiguration"]["name"].str());
  cells.Add(spec["matchingPrecedence"].integer());
  cells.AddText(spec["distinguisherMethod"]["type"].str(), "<none>");
  cells.AddAge();
  cells.AddText(missing);
}

void WritePriorityLevel(Cells& cells) {
  const Value spec = cells["spec"];
  const Value limited = spec["limited"];
  const Value shares = (limited.has_value() ? limited : spec["exempt"])["nominalConcurrencyShares"];
  const Value queuing = limited["limitResponse"]["queuing"];
  const auto number = [](Value value) {
    return value.has_value() ? std::to_string(value.integer()) : std::string("<none>");
  };
  cells.AddName();
  cells.AddText(spec["type"].str());
  cells.Add(number(shares));
  cells.Add(number(queuing["queues"]));
  cells.Add(number(queuing["handSize"]));
  cells.Add(number(queuing["queueLengthLimit"]));
  cells.AddAge();
}

}  // namespace

std::vector<CellWriterEntry> BatchCellWriters() {
  return {
      {"batch", "Job", WriteJob},
      {"batch", "CronJob", WriteCronJob},
      {"autoscaling", "HorizontalPodAutoscaler", WriteAutoscaler},
      {"flowcontrol.apiserver.k8s.io", "FlowSchema", WriteFlowSchema},
      {"flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration", WritePriorityLevel},
  };
}

}  // namespace drakkar::apiserver
