#include "apiserver/http/table_cells.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Value;

bool ConditionIs(Value conditions, std::string_view type, std::string_view status) {
  for (Value each : conditions.elements()) {
    if (each["type"].str() == type) return each["status"].str() == status;
  }
  return false;
}

// A restartable init container (sidecar).
bool IsSidecar(Value spec, std::string_view name) {
  for (Value each : spec["initContainers"].elements()) {
    if (each["name"].str() == name) return each["restartPolicy"].str() == "Always";
  }
  return false;
}

std::string ExitText(Value terminated) {
  const std::int64_t signal = terminated["signal"].integer();
  return signal != 0 ? StrCat("Signal:", signal)
                     : StrCat("ExitCode:", terminated["exitCode"].integer());
}

// The content of the status, ready and restarts columns.
struct PodSummary {
  std::string status;
  std::int64_t containers = 0;
  std::int64_t ready = 0;
  std::int64_t restarts = 0;
  std::string last_restart;  // RFC 3339 in UTC, so that later times compare greater
};

class PodReader {
 public:
  explicit PodReader(const api::Object& pod)
      : pod_(pod), spec_(pod["spec"]), status_(pod["status"]) {}

  PodSummary Read() {
    summary_.containers = static_cast<std::int64_t>(spec_["containers"].size());
    for (Value each : spec_["initContainers"].elements()) {
      if (each["restartPolicy"].str() == "Always") ++summary_.containers;
    }
    const std::string_view reason = status_["reason"].str();
    summary_.status = reason.empty() ? status_["phase"].str() : reason;
    for (Value each : status_["conditions"].elements()) {
      if (each["type"].str() == "PodScheduled" && each["reason"].str() == "SchedulingGated") {
        summary_.status = "SchedulingGated";
      }
    }
    const bool initializing = ReadInitContainers();
    if (!initializing || ConditionIs(status_["conditions"], "Initialized", "True")) {
      ReadContainers();
    }
    if (pod_.is_being_deleted()) {
      const std::string_view phase = status_["phase"].str();
      if (reason == "NodeLost") {
        summary_.status = "Unknown";
      } else if (phase != "Succeeded" && phase != "Failed") {
        summary_.status = "Terminating";
      }
    }
    return std::move(summary_);
  }

 private:
  struct Restarts {
    std::int64_t count = 0;
    std::string last;
    void Add(Value container_status) {
      count += container_status["restartCount"].integer();
      const std::string_view finished =
          container_status["lastState"]["terminated"]["finishedAt"].str();
      if (finished > last) last = finished;
    }
  };

  // True if the pod has not started its containers yet.
  bool ReadInitContainers() {
    Restarts all;
    std::size_t index = 0;
    bool initializing = false;
    for (Value each : status_["initContainerStatuses"].elements()) {
      all.Add(each);
      const std::size_t place = index++;
      const Value terminated = each["state"]["terminated"];
      const Value waiting = each["state"]["waiting"];
      const bool sidecar = IsSidecar(spec_, each["name"].str());
      if (sidecar) sidecars_.Add(each);
      if (terminated.exists() && terminated["exitCode"].integer() == 0) continue;
      if (sidecar && each["started"].boolean()) {
        if (each["ready"].boolean()) ++summary_.ready;
        continue;
      }
      if (terminated.exists()) {
        const std::string_view reason = terminated["reason"].str();
        summary_.status =
            StrCat("Init:", reason.empty() ? ExitText(terminated) : std::string(reason));
      } else if (!waiting["reason"].str().empty() && waiting["reason"].str() != "PodInitializing") {
        summary_.status = StrCat("Init:", waiting["reason"].str());
      } else {
        summary_.status = StrCat("Init:", place, "/", spec_["initContainers"].size());
      }
      initializing = true;
      break;
    }
    summary_.restarts = all.count;
    summary_.last_restart = all.last;
    return initializing;
  }

  void ReadContainers() {
    Restarts all = sidecars_;
    bool has_running = false;
    const Value statuses = status_["containerStatuses"];
    // In reverse, so that the first container with a reason determines the text.
    for (std::size_t i = statuses.size(); i-- > 0;) {
      const Value each = statuses.at(i);
      all.Add(each);
      const Value terminated = each["state"]["terminated"];
      const std::string_view waits = each["state"]["waiting"]["reason"].str();
      const std::string_view ended = terminated["reason"].str();
      if (!waits.empty()) {
        summary_.status = waits;
      } else if (!ended.empty()) {
        summary_.status = ended;
      } else if (terminated.exists()) {
        summary_.status = ExitText(terminated);
      } else if (each["ready"].boolean() && each["state"]["running"].exists()) {
        has_running = true;
        ++summary_.ready;
      }
    }
    summary_.restarts = all.count;
    summary_.last_restart = all.last;
    if (summary_.status == "Completed" && has_running) {
      summary_.status =
          ConditionIs(status_["conditions"], "Ready", "True") ? "Running" : "NotReady";
    }
  }

  const api::Object& pod_;
  Value spec_;
  Value status_;
  PodSummary summary_;
  Restarts sidecars_;
};

void WritePod(Cells& cells) {
  const PodSummary summary = PodReader(cells.object()).Read();
  const Value status = cells["status"];
  cells.AddName();
  cells.Add(StrCat(summary.ready, "/", summary.containers));
  cells.Add(summary.status);
  std::string restarts = std::to_string(summary.restarts);
  if (summary.restarts != 0 && !summary.last_restart.empty()) {
    restarts += StrCat(" (", cells.AgeOf(summary.last_restart), " ago)");
  }
  cells.Add(std::move(restarts));
  cells.AddAge();
  const std::string_view first_ip = status["podIPs"].at(0)["ip"].str();
  cells.AddText(first_ip.empty() ? status["podIP"].str() : first_ip, "<none>");
  cells.AddText(cells["spec"]["nodeName"].str(), "<none>");
  cells.AddText(status["nominatedNodeName"].str(), "<none>");
  const Value gates = cells["spec"]["readinessGates"];
  std::size_t open = 0;
  for (Value gate : gates.elements()) {
    if (ConditionIs(status["conditions"], gate["conditionType"].str(), "True")) ++open;
  }
  cells.Add(gates.empty() ? std::string("<none>") : StrCat(open, "/", gates.size()));
}

void WritePodTemplate(Cells& cells) {
  cells.AddName();
  AddContainersAndImages(cells, cells["template"]["spec"]);
  cells.Add(MapText(cells["template"]["metadata"]["labels"]));
}

}  // namespace

std::vector<CellWriterEntry> PodCellWriters() {
  return {{"", "Pod", WritePod}, {"", "PodTemplate", WritePodTemplate}};
}

}  // namespace drakkar::apiserver
