#include "answers/doctor/checks.h"

#include <algorithm>
#include <set>

#include "answers/cluster/snapshot_reader.h"
#include "answers/why/waits.h"
#include "api/meta/age.h"
#include "api/meta/time.h"
#include "base/text/text.h"
#include "claims/claim.h"
#include "claims/pod_claims.h"

namespace drakkar::answers {
namespace {

using api::Value;

std::string AgeSince(std::string_view since, WallTime now) {
  const Result<WallTime> time = api::ParseTime(since);
  return time.ok() ? StrCat(" for ", api::FormatAge(now - *time)) : std::string();
}

bool IsOlderThan(std::string_view since, WallTime now, Duration age) {
  const Result<WallTime> time = api::ParseTime(since);
  return time.ok() && now - *time > age;
}

std::set<std::string_view> NamesOf(const Objects& objects) {
  std::set<std::string_view> names;
  for (const api::ObjectPtr& object : objects) names.insert(object->name());
  return names;
}

}  // namespace

// Claims on a node are prepared by the node's instance of the driver. Slices say where a driver
// should run, and the node knows what has registered.
Finding CheckDrivers(const DoctorInput& input, const DeviceTable& table) {
  Finding finding{
      .severity = Severity::kError,
      .check = "drivers",
      .what = {},
      .advice =
          "start the driver's plugin on the node and see its log; its socket must be in "
          "the node's plugin registry directory"};
  std::set<std::pair<std::string, std::string>> seen;  // node, driver
  const auto look = [&](const std::string& node, const std::string& driver) {
    const auto asked = input.nodes.find(node);
    if (asked == input.nodes.end() || !seen.emplace(node, driver).second) return;
    const auto found = asked->second.drivers.find(driver);
    if (found != asked->second.drivers.end() && found->second) return;
    Add(finding, StrCat("driver ", driver, " on node ", node, ": ",
                        found == asked->second.drivers.end() ? "not registered"
                                                             : "registered, but not connected"));
  };
  for (const auto& [id, pool] : table.pools()) {
    for (const auto& slice : pool.slices) {
      if (!slice->target.node_name.empty()) look(slice->target.node_name, id.driver);
    }
  }
  for (const auto& use : table.claims()) {
    for (const Consumer& consumer : use->consumers) {
      if (consumer.pod == nullptr) continue;
      const std::string node((*consumer.pod)["spec"]["nodeName"].str());
      if (node.empty()) continue;
      for (const device::DeviceResult& result : use->allocation.results) {
        look(node, result.id.driver);
      }
    }
  }
  finding.what =
      StrCat(Count(finding.count, "driver"), " with devices or claims on a node ",
             finding.count == 1 ? "is" : "are", " not available there, so pods wait or cannot end");
  return finding;
}

Finding CheckClasses(const DoctorInput& input, const DeviceTable& table) {
  Finding finding{
      .severity = Severity::kWarning,
      .check = "classes",
      .what = {},
      .advice = "start the driver that publishes such devices, or correct the class's selectors"};
  std::vector<std::size_t> counts(table.classes().size());
  for (const DeviceEntry& entry : table.devices()) {
    for (const std::uint32_t index : entry.classes) ++counts[index];
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) Add(finding, StrCat("class ", table.classes()[i]));
  }
  if (input.snapshot.classes.empty()) return {};
  finding.what = StrCat(Count(finding.count, "DeviceClass", "DeviceClasses"),
                        finding.count == 1 ? " selects" : " select",
                        " no device at all: its driver publishes none");
  return finding;
}

Finding CheckPools(const DoctorInput&, const DeviceTable& table) {
  Finding finding{.severity = Severity::kError,
                  .check = "pools",
                  .what = {},
                  .advice =
                      "see the log of the driver that publishes the pool; restart it if it "
                      "does not complete the pool"};
  for (const auto& [id, pool] : table.pools()) {
    if (!pool.problem.empty()) Add(finding, StrCat(id.ToString(), ": ", pool.problem));
  }
  finding.what = StrCat(Count(finding.count, "pool"), finding.count == 1 ? " is" : " are",
                        " incomplete or invalid, so no device of it can be allocated");
  return finding;
}

Finding CheckLostNodes(const DoctorInput& input, const DeviceTable&) {
  Finding finding{.severity = Severity::kWarning,
                  .check = "slices",
                  .what = {},
                  .advice = "drakkar delete resourceslice NAME, if the node does not come back"};
  if (!input.snapshot.has_nodes) return {};
  const std::set<std::string_view> nodes = NamesOf(input.snapshot.nodes);
  for (const api::ObjectPtr& slice : input.snapshot.slices) {
    const std::string_view node = (*slice)["spec"]["nodeName"].str();
    if (node.empty() || nodes.contains(node)) continue;
    Add(finding, StrCat("slice ", slice->name(), " of node ", node));
  }
  finding.what = StrCat(Count(finding.count, "ResourceSlice"), finding.count == 1 ? " is" : " are",
                        " of nodes that no longer exist");
  return finding;
}

Finding CheckHeldButGone(const DoctorInput&, const DeviceTable& table) {
  Finding finding{.severity = Severity::kError,
                  .check = "devices",
                  .what = {},
                  .advice = "bring the device or its driver back, or delete the pods that hold it"};
  for (const DeviceEntry& entry : table.devices()) {
    if (entry.pool != nullptr || entry.holds.empty()) continue;
    Add(finding, StrCat("device ", entry.id.ToString(), " of claim ",
                        entry.holds.front().claim->claim->qualified_name()));
  }
  finding.what = StrCat(Count(finding.count, "allocated device"),
                        finding.count == 1 ? " is" : " are", " in no ResourceSlice any more");
  return finding;
}

Finding CheckUnusedClaims(const DoctorInput& input, const DeviceTable& table) {
  Finding finding{.severity = Severity::kWarning,
                  .check = "claims",
                  .what = {},
                  .advice =
                      "delete the claim to free its devices; if that does not help, see the "
                      "log of the resource claim controller"};
  const Snapshot& snapshot = input.snapshot;
  const bool sees_pods =
      snapshot.only_namespace.empty() && (snapshot.unreadable & Mask(SnapshotKind::kPods)) == 0;
  std::set<std::string> used;  // "namespace/name" of claims that a pod names
  for (const api::ObjectPtr& pod : snapshot.pods) {
    for (const std::string& name : claims::ListClaimNames(pod->root())) {
      used.insert(StrCat(pod->namespace_(), "/", name));
    }
  }
  for (const auto& use : table.claims()) {
    if (!sees_pods || !IsOlderThan(use->since, snapshot.now, kUnusedClaimGrace)) continue;
    const std::string name(use->claim->qualified_name());
    std::string why;
    if (use->consumers.empty()) {
      why = used.contains(name) ? "" : "no pod uses it";
    } else if (std::all_of(use->consumers.begin(), use->consumers.end(), [](const Consumer& each) {
                 return each.is_pod && each.pod == nullptr;
               })) {
      why = StrCat("reserved for pod ", use->consumers.front().name, ", which does not exist");
    }
    if (why.empty()) continue;
    Add(finding,
        StrCat("claim ", name, ": allocated", AgeSince(use->since, snapshot.now), ", ", why));
  }
  finding.what = StrCat(Count(finding.count, "claim"), finding.count == 1 ? " holds" : " hold",
                        " devices without a pod");
  return finding;
}

Finding CheckTerminating(const DoctorInput& input, const DeviceTable&) {
  Finding finding{.severity = Severity::kError,
                  .check = "terminating",
                  .what = {},
                  .advice =
                      "remove what the object waits for; for a driver that is gone, see drakkar "
                      "forget-driver"};
  const Snapshot& snapshot = input.snapshot;
  const auto look = [&](std::string_view kind, const api::ObjectPtr& object) {
    if (!object->is_being_deleted()) return;
    // The timestamp is the time of the request plus the grace period.
    const std::string_view due = (*object)["metadata"]["deletionTimestamp"].str();
    if (!IsOlderThan(due, snapshot.now, kTerminatingGrace)) return;
    const std::vector<DeletionWait> waits = FindDeletionWaits(kind, *object, snapshot);
    if (waits.empty()) return;
    const DeletionWait& wait = waits.front();
    Add(finding, StrCat(wait.object, ": deleted", AgeSince(wait.since, snapshot.now), " ago",
                        wait.finalizer.empty() ? "" : ", finalizer ", wait.finalizer,
                        ", waits for ", wait.owner));
  };
  for (const api::ObjectPtr& pod : snapshot.pods) look("pod", pod);
  for (const api::ObjectPtr& claim : snapshot.claims) look("claim", claim);
  for (const api::ObjectPtr& node : snapshot.nodes) look("node", node);
  finding.what = StrCat(Count(finding.count, "object"), finding.count == 1 ? " is" : " are",
                        " stuck in deletion");
  return finding;
}

Finding CheckCdi(const DoctorInput& input, const DeviceTable&) {
  Finding finding{.severity = Severity::kError,
                  .check = "cdi",
                  .what = {},
                  .advice = "correct or remove the file; the driver that wrote it writes it again"};
  for (const auto& [node, answer] : input.nodes) {
    for (const auto& [file, error] : answer.cdi_errors) {
      Add(finding, StrCat("node ", node, ", ", file, ": ", error));
    }
  }
  finding.what = StrCat(Count(finding.count, "CDI spec"), " cannot be read, so pods with ",
                        finding.count == 1 ? "its" : "their", " devices do not start");
  return finding;
}

}  // namespace drakkar::answers
