// drakkar explain: reports why a pod or claim fits or not, per node, plugin and rule. It reads the
// cluster and runs the scheduler's own plugins; it writes nothing.
#include <algorithm>
#include <map>

#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/env/random.h"
#include "base/exec/uv_loop.h"
#include "base/text/text.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "device/cel_expressions.h"
#include "scheduler/explain.h"
#include "scheduler/settings.h"

namespace drakkar::cli {
namespace {

using api::Value;

constexpr std::string_view kGroup = "resource.k8s.io";

// Everything the scheduler considers, as currently on the server.
class Cluster {
 public:
  explicit Cluster(Session& session) : session_(session) {}

  Result<void> Read() {
    RETURN_IF_ERROR(List("", "v1", "Node", simulation.nodes));
    RETURN_IF_ERROR(List("", "v1", "Pod", simulation.pods));
    RETURN_IF_ERROR(List(kGroup, "v1", "ResourceSlice", simulation.slices));
    RETURN_IF_ERROR(List(kGroup, "v1", "DeviceClass", simulation.classes));
    RETURN_IF_ERROR(List(kGroup, "v1", "ResourceClaim", simulation.claims));
    // Optional: a server may lack these kinds, and the user may not be allowed to read them.
    for (const std::string_view version : {"v1", "v1beta2", "v1alpha3"}) {
      if (api::FindKind(kGroup, version, "DeviceTaintRule") == nullptr) continue;
      (void)List(kGroup, version, "DeviceTaintRule", simulation.taint_rules).ok();
      break;
    }
    (void)List("coordination.k8s.io", "v1", "Lease", simulation.leases, "kube-node-lease").ok();
    return Ok();
  }

  // The scheduler's published settings; otherwise the defaults, with a note in `remark`.
  scheduler::Settings ReadSettings(std::string& remark) {
    client::ResourceRef ref =
        session_.Ref(*api::FindKind("", "v1", "ConfigMap"), scheduler::kSettingsName);
    ref.namespace_ = scheduler::kSettingsNamespace;
    const Result<api::ObjectPtr> map = session_.Get(ref);
    if (map.ok()) {
      Result<scheduler::Settings> settings = scheduler::SettingsFromConfigMap(**map);
      if (settings.ok()) return std::move(*settings);
      remark = StrCat("could not read the scheduler's settings (ConfigMap ", ref.namespace_, "/",
                      ref.name, "): ", settings.error().message);
    } else {
      remark = StrCat("the scheduler has not published its settings (ConfigMap ", ref.namespace_,
                      "/", ref.name, ")");
    }
    remark += "; assuming the defaults";
    return {};
  }

  scheduler::Simulation simulation;

 private:
  Result<void> List(std::string_view group, std::string_view version, std::string_view kind,
                    std::vector<api::ObjectPtr>& into, std::string ns = {}) {
    client::ResourceRef ref = session_.Ref(*api::FindKind(group, version, kind), {}, /*all=*/true);
    ref.namespace_ = std::move(ns);
    ASSIGN_OR_RETURN(const api::TreePtr list, session_.List(ref));
    for (Value item : list->root()["items"].elements()) {
      into.push_back(std::make_shared<const api::Object>(api::Draft(item).Freeze()));
    }
    return Ok();
  }

  Session& session_;
};

// A pod that needs only the claim.
api::ObjectPtr PodForClaim(const api::Object& claim) {
  api::Draft pod{{"apiVersion", "v1"}, {"kind", "Pod"}};
  pod["metadata"]["name"] = claim.name();
  pod["metadata"]["namespace"] = claim.namespace_();
  pod["metadata"]["uid"] = StrCat("explain-", claim.uid());
  api::Draft reference = api::Draft::Object();
  reference["name"] = "claim";
  reference["resourceClaimName"] = claim.name();
  pod["spec"]["resourceClaims"].Append(std::move(reference));
  return std::make_shared<const api::Object>(pod.Freeze());
}

void AddDevices(const allocator::Explanation& explanation, api::Draft& node) {
  if (explanation.out_of_budget) node["outOfBudget"] = true;
  for (const allocator::ClaimExplanation& claim : explanation.claims) {
    api::Draft entry = api::Draft::Object();
    entry["name"] = claim.name;
    for (const allocator::RequestExplanation& request : claim.requests) {
      api::Draft one = api::Draft::Object();
      one["name"] = request.name;
      one["wanted"] = static_cast<std::int64_t>(request.wanted);
      if (request.wants_all) one["wantsAll"] = true;
      one["candidates"] = static_cast<std::int64_t>(request.candidates);
      for (const allocator::Refusal& refusal : request.refusals) {
        api::Draft refused = api::Draft::Object();
        refused["rule"] = allocator::RuleName(refusal.rule);
        refused["count"] = static_cast<std::int64_t>(refusal.count);
        for (const device::DeviceId& example : refusal.examples) {
          refused["examples"].Append(example.ToString());
        }
        one["refusals"].Append(std::move(refused));
      }
      entry["requests"].Append(std::move(one));
    }
    node["claims"].Append(std::move(entry));
  }
  for (const allocator::PoolProblem& pool : explanation.pools) {
    api::Draft entry = api::Draft::Object();
    entry["name"] = pool.pool.ToString();
    entry["state"] = pool.invalid ? "invalid" : "incomplete";
    entry["reason"] = pool.reason;
    node["pools"].Append(std::move(entry));
  }
  for (const allocator::ClosestMiss& miss : explanation.closest) {
    node["closest"].Append(allocator::RuleName(miss.rule));
    for (const std::string& remedy : miss.remedies) node["change"].Append(remedy);
  }
}

api::Draft ToDraft(const scheduler::NodeExplanation& explanation) {
  api::Draft node = api::Draft::Object();
  node["node"] = explanation.node;
  node["fits"] = explanation.fits();
  for (const scheduler::NodeRefusal& refusal : explanation.refusals) {
    api::Draft refused = api::Draft::Object();
    refused["plugin"] = refusal.plugin;
    for (const std::string& reason : refusal.reasons) refused["reasons"].Append(reason);
    node["refusals"].Append(std::move(refused));
  }
  for (const std::string& each : explanation.waits_for) node["waitsFor"].Append(each);
  if (explanation.devices) AddDevices(*explanation.devices, node);
  return node;
}

// The result for one node, without the node's name.
std::string ToText(const scheduler::NodeExplanation& explanation) {
  std::string text = explanation.fits() ? "fits" : "does not fit";
  if (!explanation.waits_for.empty()) {
    text += StrCat(", then waits for ", Join(explanation.waits_for, ", "));
  }
  text += "\n";
  for (const scheduler::NodeRefusal& refusal : explanation.refusals) {
    text += StrCat("  ", refusal.plugin, ": ", Join(refusal.reasons, ", "), "\n");
  }
  if (explanation.devices) {
    const std::string devices = allocator::RenderText(*explanation.devices);
    const std::size_t first_line = devices.find('\n');
    if (first_line != std::string::npos) text += devices.substr(first_line + 1);
  }
  if (!text.ends_with('\n')) text += '\n';
  return text;
}

Result<scheduler::PodExplanation> Explain(Session& session, bool is_pod, const std::string& name,
                                          const std::string& only_node, std::string& remark) {
  Cluster cluster(session);
  const auto get = [&](std::string_view group, std::string_view kind) {
    return session.Get(session.Ref(*api::FindKind(group, "v1", kind), name));
  };
  if (is_pod) {
    ASSIGN_OR_RETURN(cluster.simulation.pod, get("", "Pod"));
    const std::string_view bound = cluster.simulation.pod->root()["spec"]["nodeName"].str();
    if (!bound.empty()) {
      return FailedPrecondition(StrCat("the pod is already on node ", bound));
    }
  } else {
    ASSIGN_OR_RETURN(const api::ObjectPtr claim, get(kGroup, "ResourceClaim"));
    cluster.simulation.pod = PodForClaim(*claim);
  }
  RETURN_IF_ERROR(cluster.Read());
  const scheduler::Settings settings = cluster.ReadSettings(remark);
  const std::string_view wanted =
      cluster.simulation.pod->root()["spec"]["schedulerName"].str("default-scheduler");
  const auto profile = std::find_if(settings.profiles.begin(), settings.profiles.end(),
                                    [&](const auto& each) { return each.name == wanted; });
  if (profile == settings.profiles.end()) {
    scheduler::PodExplanation nobody;
    nobody.blocked =
        StrCat("no scheduler profile is named ", Quote(wanted), " (spec.schedulerName)");
    return nobody;
  }
  if (cluster.simulation.nodes.empty()) return NotFound("the cluster has no nodes");
  UvLoop loop;  // for its clock
  device::CelExpressions compiler;
  ASSIGN_OR_RETURN(scheduler::PodExplanation explanation,
                   scheduler::ExplainPod(cluster.simulation, {.loop = loop,
                                                              .random = RealRandom(),
                                                              .compiler = compiler,
                                                              .gates = settings.gates,
                                                              .declared_features = nullptr,
                                                              .profile = *profile}));
  if (only_node.empty()) return explanation;
  std::erase_if(explanation.nodes, [&](const auto& each) { return each.node != only_node; });
  if (explanation.blocked.empty() && explanation.nodes.empty()) {
    return NotFound(StrCat("node ", Quote(only_node), " not found"));
  }
  return explanation;
}

int Run(const Arguments& arguments, Console& console) {
  const std::string& type = arguments.positionals()[0];
  const std::string& name = arguments.positionals()[1];
  const bool is_pod = type == "pod" || type == "pods" || type == "po";
  const bool is_claim = type == "claim" || type == "resourceclaim" || type == "resourceclaims";
  if (!is_pod && !is_claim) {
    console.Error(StrCat("explain works for a pod or a claim, not ", Quote(type)));
    return kExitUsage;
  }
  Result<std::unique_ptr<Session>> session = Session::Open(arguments, console);
  if (!session.ok()) {
    Report(console, session.error());
    return kExitFailure;
  }
  std::string remark;
  const Result<scheduler::PodExplanation> explanation =
      Explain(**session, is_pod, name, arguments.Text("node"), remark);
  if (!explanation.ok()) {
    Report(console, explanation.error());
    return kExitFailure;
  }
  const int code = explanation->FitsSomewhere() ? kExitOk : kExitFailure;
  if (arguments.Text("output") == "json") {
    api::Draft root = api::Draft::Object();
    root["fits"] = explanation->FitsSomewhere();
    if (!explanation->blocked.empty()) root["blocked"] = explanation->blocked;
    if (!remark.empty()) root["remark"] = remark;
    api::Draft list = api::Draft::Array();
    for (const scheduler::NodeExplanation& each : explanation->nodes) list.Append(ToDraft(each));
    root["nodes"] = std::move(list);
    console.Out(api::WriteJson(root.Freeze()->root(), {.indent = 2, .final_newline = true}));
    return code;
  }
  if (!remark.empty()) console.Out(StrCat("note: ", remark, "\n"));
  if (!explanation->blocked.empty()) {
    console.Out(StrCat("does not fit on any node: ", explanation->blocked, "\n"));
    return code;
  }
  // Group nodes with the same result.
  std::map<std::string, std::vector<std::string>> by_text;
  std::vector<std::string> order;
  for (const scheduler::NodeExplanation& each : explanation->nodes) {
    const std::string text = ToText(each);
    if (!by_text.contains(text)) order.push_back(text);
    by_text[text].push_back(each.node);
  }
  for (const std::string& text : order) {
    const std::vector<std::string>& nodes = by_text[text];
    constexpr std::size_t kShown = 3;
    std::vector<std::string> shown(
        nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, nodes.size())));
    std::string who =
        StrCat(nodes.size() == 1 ? "node " : StrCat(nodes.size(), " nodes: "), Join(shown, ", "));
    if (nodes.size() > kShown) who += StrCat(" and ", nodes.size() - kShown, " more");
    console.Out(StrCat(who, ": ", text));
  }
  return code;
}

}  // namespace

Command ExplainCommand() {
  return {.name = "explain",
          .arguments = "pod|claim NAME",
          .summary = "Show why a pod or a claim fits or does not fit on each node",
          .help =
              "Runs the scheduler's own plugins with the scheduler's settings against the current "
              "cluster. It shows the nodes where the pod (or a pod that needs only the claim) "
              "fits, what the pod would wait for there, the plugins that reject the other nodes, "
              "and how many devices each rule rejects. Nothing is changed. Exits with 1 if "
              "nothing fits.",
          .examples =
              "  drakkar explain pod train-0\n"
              "  drakkar explain claim gpu -n team --node worker-3 -o json\n",
          .flags = {{.name = "node", .help = "Check only this node.", .placeholder = "NAME"},
                    {.name = "output",
                     .short_name = 'o',
                     .help = "Output format: text or json.",
                     .default_value = "text",
                     .placeholder = "FORMAT"}},
          .min_arguments = 2,
          .max_arguments = 2,
          .group = FlagGroup::kCluster,
          .section = "Objects",
          .run = Run};
}

}  // namespace drakkar::cli
