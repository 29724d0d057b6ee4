#include <algorithm>

#include "answers/doctor/checks.h"
#include "api/meta/age.h"
#include "api/meta/time.h"
#include "base/text/text.h"
#include "features/gates/feature_gates.h"

namespace drakkar::answers {
namespace {

using api::Value;

Duration Abs(Duration duration) {
  return duration < Duration::zero() ? -duration : duration;
}

std::string Skew(Duration skew) {
  return StrCat(api::FormatAge(Abs(skew)), skew > Duration::zero() ? " ahead of" : " behind");
}

// When the server last wrote the object, by its own clock.
std::optional<WallTime> LastWrite(const api::Object& object) {
  std::optional<WallTime> last;
  for (Value entry : object["metadata"]["managedFields"].elements()) {
    const Result<WallTime> time = api::ParseTime(entry["time"].str());
    if (time.ok() && (!last || *time > *last)) last = *time;
  }
  return last;
}

bool DeclaresSkipping(const api::Object& node) {
  for (Value feature : node["status"]["declaredFeatures"].elements()) {
    if (feature.str() == "DraOptionalNodePreparation" ||
        feature.str() == "DRAOptionalNodeOperations") {
      return true;
    }
  }
  return false;
}

}  // namespace

// A node stamps its lease with its own clock, and the server records the write with the server's.
Finding CheckClocks(const DoctorInput& input, const DeviceTable&) {
  Finding finding{.severity = Severity::kError,
                  .check = "clocks",
                  .what = {},
                  .advice =
                      "synchronise the clocks (chrony, systemd-timesyncd); leases, tokens, "
                      "certificates and binding deadlines depend on them"};
  if (input.server) {
    const Duration skew = input.snapshot.now - input.server->now;
    if (Abs(skew) > kMaxClockSkew) {
      Add(finding, StrCat("this machine: ", Skew(skew), " the API server"));
    }
  }
  for (const api::ObjectPtr& lease : input.snapshot.leases) {
    const Result<WallTime> renewed = api::ParseTime((*lease)["spec"]["renewTime"].str());
    const std::optional<WallTime> written = LastWrite(*lease);
    if (!renewed.ok() || !written) continue;
    const Duration skew = *renewed - *written;
    if (Abs(skew) > kMaxClockSkew) {
      Add(finding, StrCat("node ", lease->name(), ": ", Skew(skew), " the API server"));
    }
  }
  finding.what = StrCat(Count(finding.count, "clock"), finding.count == 1 ? " is" : " are",
                        " wrong by more than ", api::FormatAge(kMaxClockSkew));
  return finding;
}

Finding CheckGates(const DoctorInput& input, const DeviceTable&) {
  Finding finding{.severity = Severity::kError,
                  .check = "gates",
                  .what = {},
                  .advice =
                      "give API server and scheduler the same --feature-gates and "
                      "--emulated-version"};
  if (!input.server || input.scheduler_gates.empty()) return {};
  for (const auto& [name, on] : input.scheduler_gates) {
    const auto server = input.server->gates.find(name);
    if (server == input.server->gates.end() || server->second == on) continue;
    Add(finding, StrCat(name, ": ", on ? "on" : "off", " in the scheduler, ",
                        server->second ? "on" : "off", " in the API server"));
  }
  finding.what =
      StrCat(Count(finding.count, "feature gate"), finding.count == 1 ? " differs" : " differ",
             " between scheduler and API server, so one ignores what the other relies on");
  return finding;
}

Finding CheckDeclaredFeatures(const DoctorInput& input, const DeviceTable&) {
  Finding finding{.severity = Severity::kWarning,
                  .check = "features",
                  .what = {},
                  .advice = "turn on feature gate DRAOptionalNodePreparation on these nodes"};
  std::map<std::string_view, const api::Object*> nodes;
  for (const api::ObjectPtr& node : input.snapshot.nodes) nodes[node->name()] = node.get();
  for (const api::ObjectPtr& slice : input.snapshot.slices) {
    const Value spec = (*slice)["spec"];
    const Value skip = spec["skipNodeOperations"];
    if (!skip.boolean() && !(skip.is_array() && !skip.empty())) continue;
    const auto node = nodes.find(spec["nodeName"].str());
    if (node == nodes.end() || DeclaresSkipping(*node->second)) continue;
    Add(finding, StrCat("slice ", slice->name(), " on node ", node->first));
  }
  finding.what =
      StrCat(Count(finding.count, "ResourceSlice"), finding.count == 1 ? " skips" : " skip",
             " operations of a node that does not support it, so its devices are never "
             "allocated");
  return finding;
}

Finding CheckCertificates(const DoctorInput& input, const DeviceTable&) {
  Finding finding{.severity = Severity::kWarning,
                  .check = "certificates",
                  .what = {},
                  .advice = "renew them before they expire"};
  const WallTime now = input.server ? input.server->now : input.snapshot.now;
  const auto look = [&](const CertificateFact& each) {
    const Duration left = each.not_after - now;
    if (left > kExpirySoon) return;
    if (left <= Duration::zero()) finding.severity = Severity::kError;
    Add(finding, StrCat(each.what, left > Duration::zero() ? ": expires in " : ": expired ",
                        api::FormatAge(Abs(left)), left > Duration::zero() ? "" : " ago",
                        each.renewal.empty() ? "" : "; ", each.renewal));
  };
  for (const CertificateFact& each : input.certificates) look(each);
  if (input.server) {
    for (const CertificateFact& each : input.server->certificates) look(each);
  }
  finding.what = StrCat(Count(finding.count, "certificate"), finding.count == 1 ? " has" : " have",
                        " expired or ", finding.count == 1 ? "expires" : "expire", " soon");
  return finding;
}

Finding CheckUnattended(const DoctorInput& input, const DeviceTable&) {
  Finding finding{.severity = Severity::kWarning,
                  .check = "unattended",
                  .what = {},
                  .advice = "attach a controller that acts on them, or delete them"};
  if (!input.server) return {};
  std::size_t objects = 0;
  for (const ServerFacts::Unattended& each : input.server->unattended) {
    if (each.count == 0) continue;
    objects += each.count;
    Add(finding, StrCat(each.count, " ", each.kind, ": ", each.warning));
  }
  finding.count = objects;
  finding.what = StrCat(Count(objects, "object is", "objects are"), " stored, but nothing acts on ",
                        objects == 1 ? "it" : "them");
  return finding;
}

}  // namespace drakkar::answers
