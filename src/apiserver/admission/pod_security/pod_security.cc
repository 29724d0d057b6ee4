#include "apiserver/admission/pod_security/pod_security.h"

#include <algorithm>
#include <map>
#include <set>

#include "api/scheme/scheme.h"
#include "apiserver/admission/pod_security/checks.h"
#include "base/text/text.h"
#include "features/gates/feature_gates.h"
#include "telemetry/log/log.h"

namespace drakkar::apiserver {
namespace {

using api::Value;
using pod_security::Level;
using pod_security::LevelVersion;
using pod_security::Policy;

constexpr Logger kLog("pod_security");

constexpr std::size_t kMaxPodsOfNamespace = 3000;
constexpr Duration kMaxCheckOfNamespace = std::chrono::milliseconds(25);

bool IsCore(const api::KindSchema& kind, std::string_view name) {
  return kind.group.empty() && kind.kind == name;
}

// Kinds with a pod template. The template of a core PodTemplate is not in a spec.
bool MakesPods(const api::KindSchema& kind) {
  if (kind.group.empty()) return kind.kind == "ReplicationController" || kind.kind == "PodTemplate";
  return kind.group == "apps" && kind.kind != "ControllerRevision";
}

// A change that may add something that was not checked when the pod was created.
bool HasNewImage(Value pod, Value before) {
  for (const api::FieldName list :
       api::FieldNames{"initContainers", "containers", "ephemeralContainers"}) {
    std::map<std::string_view, std::string_view> images;
    for (Value container : before["spec"][list].elements()) {
      images.emplace(container["name"].str(), container["image"].str());
    }
    for (Value container : pod["spec"][list].elements()) {
      const auto old = images.find(container["name"].str());
      if (old == images.end() || old->second != container["image"].str()) return true;
    }
  }
  return false;
}

int NewestMinor(const StrategyContext& context) {
  return context.gates.emulated().minor;
}

std::string ViolationText(std::string_view verb, const LevelVersion& policy,
                          const std::vector<pod_security::Violation>& violations) {
  return StrCat(verb, " PodSecurity ", Quote(policy.ToString()), ": ",
                pod_security::Details(violations));
}

// Violations by existing pods of a namespace whose enforced level was raised.
std::vector<std::string> CheckPodsOf(const std::string& name, const LevelVersion& enforce,
                                     const StrategyContext& context) {
  // One pod of each controller first: the others are most likely the same.
  std::vector<api::ObjectPtr> pods;
  std::vector<api::ObjectPtr> more;
  std::set<std::string, std::less<>> controllers;
  context.visit("", "pods", name, [&](const api::ObjectPtr& pod) {
    std::string_view controller;
    for (Value owner : (*pod)["metadata"]["ownerReferences"].elements()) {
      if (owner["controller"].boolean()) controller = owner["uid"].str();
    }
    const bool is_another = !controller.empty() && !controllers.emplace(controller).second;
    (is_another ? more : pods).push_back(pod);
  });
  pods.insert(pods.end(), more.begin(), more.end());

  struct Violators {
    std::string first;
    std::size_t count = 0;
  };
  std::map<std::string, Violators> by_reasons;
  std::size_t checked = 0;
  const MonotonicTime deadline = context.clock.Monotonic() + kMaxCheckOfNamespace;
  for (const api::ObjectPtr& pod : pods) {
    if (checked == kMaxPodsOfNamespace || context.clock.Monotonic() > deadline) break;
    ++checked;
    const auto violations =
        pod_security::Violations(enforce, NewestMinor(context), (*pod)["metadata"], (*pod)["spec"]);
    if (violations.empty()) continue;
    Violators& violators = by_reasons[pod_security::Reasons(violations)];
    if (violators.count++ == 0 || pod->name() < violators.first) violators.first = pod->name();
  }

  std::vector<std::string> warnings;
  if (checked < pods.size()) {
    warnings.push_back(StrCat("new PodSecurity enforce level only checked against the first ",
                              checked, " of ", pods.size(), " existing pods"));
  }
  if (by_reasons.empty()) return warnings;
  warnings.push_back(StrCat("existing pods in namespace ", Quote(name),
                            " violate the new PodSecurity enforce level ",
                            Quote(enforce.ToString())));
  std::vector<std::string> lines;
  for (const auto& [reasons, violators] : by_reasons) {
    std::string line = violators.first;
    if (violators.count == 2) line += " (and 1 other pod)";
    if (violators.count > 2) line += StrCat(" (and ", violators.count - 1, " other pods)");
    lines.push_back(StrCat(line, ": ", reasons));
  }
  std::ranges::sort(lines);
  warnings.insert(warnings.end(), lines.begin(), lines.end());
  return warnings;
}

std::optional<Failure> CheckNamespace(const Request& request, Value object, Value before,
                                      const StrategyContext& context,
                                      std::vector<std::string>& warnings) {
  api::FieldErrors errors;
  const Policy policy = pod_security::PolicyOf(object["metadata"]["labels"], errors);
  api::FieldErrors old_errors;
  const Policy old = pod_security::PolicyOf(before["metadata"]["labels"], old_errors);
  const auto same = [](const api::FieldError& a, const api::FieldError& b) {
    return a.ToString() == b.ToString();
  };
  // Existing invalid labels must not block other changes to a namespace.
  if (!errors.empty() && !std::ranges::equal(errors, old_errors, same)) {
    return InvalidFailure(*request.kind, request.name, errors);
  }
  const bool is_raised =
      before.has_value() && policy.enforce != old.enforce &&
      policy.enforce.level != Level::kPrivileged &&
      (policy.enforce.minor != old.enforce.minor || policy.enforce.level > old.enforce.level);
  if (!is_raised || !context.visit) return std::nullopt;
  for (std::string& warning : CheckPodsOf(request.name, policy.enforce, context)) {
    warnings.push_back(std::move(warning));
  }
  return std::nullopt;
}

}  // namespace

bool PodSecurity::Concerns(const Request& request) const {
  if (request.verb == Verb::kDelete) return false;
  const api::KindSchema& kind = *request.kind;
  if (IsCore(kind, "Pod")) {
    return request.subresource.empty() || request.subresource == "ephemeralcontainers" ||
           request.subresource == "resize";
  }
  return request.subresource.empty() && (IsCore(kind, "Namespace") || MakesPods(kind));
}

std::optional<Failure> PodSecurity::Check(const Request& request, Value object, Value before,
                                          const StrategyContext& context,
                                          std::vector<std::string>& warnings) {
  if (!object.has_value()) return std::nullopt;
  if (IsCore(*request.kind, "Namespace")) {
    return CheckNamespace(request, object, before, context, warnings);
  }
  const api::ObjectPtr home = context.lookup("", "namespaces", request.namespace_);
  if (home == nullptr) return std::nullopt;  // rejected by the verbs
  const Value labels = (*home)["metadata"]["labels"];
  api::FieldErrors errors;
  const Policy policy = pod_security::PolicyOf(labels, errors);
  if (policy.is_privileged()) return std::nullopt;

  const bool is_pod = IsCore(*request.kind, "Pod");
  if (is_pod && before.has_value() && !HasNewImage(object, before)) return std::nullopt;
  const Value pod = is_pod                                ? object
                    : request.kind->kind == "PodTemplate" ? object["template"]
                                                          : object["spec"]["template"];
  if (!pod.has_value()) return std::nullopt;
  const auto violations = [&](const LevelVersion& level) {
    return pod_security::Violations(level, NewestMinor(context), pod["metadata"], pod["spec"]);
  };
  if (is_pod) {
    if (const auto found = violations(policy.enforce); !found.empty()) {
      return ForbiddenFailure(*request.kind, request.name,
                              ViolationText("violates", policy.enforce, found));
    }
  }
  if (const auto found = violations(policy.audit); !found.empty()) {
    kLog.Info("pod violates the audited Pod Security level",
              {{"user", request.user.name},
               {"resource", request.kind->plural},
               {"namespace", request.namespace_},
               {"name", request.name},
               {"violations", ViolationText("would violate", policy.audit, found)}});
  }
  if (const auto found = violations(policy.warn); !found.empty()) {
    warnings.push_back(ViolationText("would violate", policy.warn, found));
  }
  return std::nullopt;
}

}  // namespace drakkar::apiserver
