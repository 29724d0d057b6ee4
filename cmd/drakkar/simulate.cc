// drakkar simulate: would a pod, with its devices, fit on a node that does not exist yet? Runs the
// scheduler's own plugins and allocator; equal input gives identical output.
#include <map>

#include "api/codec/object_reader.h"
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "apiserver/registry/schema_defaults.h"
#include "apiserver/registry/strategy.h"
#include "base/exec/uv_loop.h"
#include "base/text/text.h"
#include "claims/pod_claims.h"
#include "cli/features.h"
#include "cli/manifest.h"
#include "cmd/drakkar/command_groups.h"
#include "device/cel_expressions.h"
#include "features/catalog/catalog.h"
#include "scheduler/simulation.h"

namespace drakkar::cmd {
namespace {

using cli::Arguments;
using cli::Console;
using cli::ManifestObject;

constexpr int kExitDoesNotFit = 1;
constexpr int kExitBadInput = 2;

// Objects as a server would store them: defaulted, validated, with server-set fields.
class Stage {
 public:
  Stage(EventLoop& loop, Random& random, const FeatureGates& gates)
      : loop_(loop), random_(random), gates_(gates) {}

  Result<api::ObjectPtr> Admit(const ManifestObject& object, api::Draft draft) {
    const api::KindSchema& kind = *object.kind;
    if (!kind.storage_version) {
      return InvalidArgument(StrCat(object.source, ": ", kind.kind, " in version ", kind.version,
                                    " cannot be simulated; use v1"));
    }
    const std::string name(draft["metadata"]["name"].str());
    if (name.empty()) {
      return InvalidArgument(StrCat(object.source, ": ", kind.kind, " has no metadata.name"));
    }
    if (kind.namespaced && draft["metadata"]["namespace"].str().empty()) {
      draft["metadata"]["namespace"] = "default";
    }
    if (draft["metadata"]["uid"].str().empty()) {
      draft["metadata"]["uid"] = StrCat(ToLower(kind.kind), "-", name);
    }
    if (draft["metadata"]["resourceVersion"].str().empty())
      draft["metadata"]["resourceVersion"] = "1";
    const apiserver::UserInfo user{.name = "simulation"};
    const apiserver::StrategyContext context{
        .clock = loop_.clock(),
        .random = random_,
        .gates = gates_,
        .user = user,
        .lookup = [](std::string_view, std::string_view,
                     const std::string&) { return api::ObjectPtr(); },
        .authorize = [](std::string_view, std::string_view, std::string_view, std::string_view,
                        std::string_view,
                        std::string_view) { return apiserver::Decision::Allow(); }};
    // Normalizes values as a server does, for example numbers that are quantities.
    Result<api::ObjectReadResult> read = api::ConvertObject(draft.Freeze()->root(), *kind.schema);
    if (!read.ok()) return std::move(read).error().Prefixed(object.source);
    api::Draft canonical(read->tree);
    const apiserver::Strategy& strategy = apiserver::StrategyFor(kind);
    apiserver::ApplySchemaDefaults(canonical, *kind.schema);
    strategy.Default(canonical, context);
    api::TreePtr tree = canonical.Freeze();
    const api::FieldErrors errors = strategy.Validate(tree->root(), context);
    if (!errors.empty()) {
      return InvalidArgument(StrCat(object.source, ": ", errors[0].ToString()));
    }
    return std::make_shared<const api::Object>(std::move(tree));
  }
  Result<api::ObjectPtr> Admit(const ManifestObject& object) {
    return Admit(object, api::Draft(object.tree));
  }

 private:
  EventLoop& loop_;
  Random& random_;
  const FeatureGates& gates_;
};

// Fills in what a template node may omit.
Result<void> CompleteNode(const ManifestObject& object, const cli::NodeDescription* description,
                          Console& console, api::Draft& node) {
  api::Draft& status = node["status"];
  if (!status.is_object()) status = api::Draft::Object();
  if (status["allocatable"].size() == 0) {
    if (status["capacity"].size() == 0) {
      return InvalidArgument(
          StrCat(object.source,
                 ": the Node has neither status.allocatable nor status.capacity; set cpu, memory "
                 "and pods"));
    }
    status["allocatable"] = api::Draft(status["capacity"]);
  }
  if (description == nullptr) return Ok();
  ASSIGN_OR_RETURN(const features::DiscoverReport report,
                   features::ReportDiscover(features::DefaultFramework(), description->input));
  for (const std::string& note : report.notes) console.Err(StrCat("note: ", note, "\n"));
  api::Draft list = api::Draft::Array();
  for (const std::string& name : report.declared) list.Append(name);
  status["declaredFeatures"] = std::move(list);
  return Ok();
}

// Creates the claims that the claim controller would make for the pod, and adds them to its status.
Result<void> MakeTemplateClaims(Stage& stage, const ManifestObject& pod_object,
                                const std::map<std::string, const ManifestObject*>& templates,
                                api::Draft& pod, std::vector<api::ObjectPtr>& claims) {
  const api::Value root = pod_object.tree->root();
  for (api::Value entry : root["spec"]["resourceClaims"].elements()) {
    const claims::PodClaim resolved = claims::ResolvePodClaim(root, entry);
    if (resolved.state != claims::PodClaim::State::kNotCreated) continue;
    const std::string wanted(entry["resourceClaimTemplateName"].str());
    const std::string& name = resolved.entry;
    const auto found = templates.find(wanted);
    if (found == templates.end()) {
      return InvalidArgument(StrCat(pod_object.source,
                                    ": the pod references ResourceClaimTemplate ", Quote(wanted),
                                    ", which is not in the given files"));
    }
    const api::Value content = found->second->tree->root()["spec"];
    const std::string claim_name = StrCat(root["metadata"]["name"].str(), "-", name);
    api::Draft claim(content);
    claim.Remove("metadata");
    claim["apiVersion"] = "resource.k8s.io/v1";
    claim["kind"] = "ResourceClaim";
    claim["metadata"]["name"] = claim_name;
    claim["metadata"]["namespace"] = root["metadata"]["namespace"].str("default");
    claim["metadata"]["ownerReferences"].Append(
        {{"apiVersion", api::Draft("v1")},
         {"kind", api::Draft("Pod")},
         {"name", api::Draft(root["metadata"]["name"].str())},
         {"uid", api::Draft(pod["metadata"]["uid"].str())},
         {"controller", api::Draft(true)}});
    ManifestObject made = *found->second;
    made.kind = api::FindKind("resource.k8s.io", "v1", "ResourceClaim");
    ASSIGN_OR_RETURN(api::ObjectPtr object, stage.Admit(made, std::move(claim)));
    claims.push_back(std::move(object));
    pod["status"]["resourceClaimStatuses"].Append(
        {{"name", api::Draft(name)}, {"resourceClaimName", api::Draft(claim_name)}});
  }
  return Ok();
}

Result<scheduler::SimulationAnswer> Run(const Arguments& arguments, Console& console,
                                        std::string& pod_name) {
  const std::string& gates_text = arguments.Text("scheduler-feature-gates");
  ASSIGN_OR_RETURN(const FeatureGates gates,
                   FeatureGates::Create({.emulated = kOurVersion,
                                         .overrides = gates_text,
                                         .turned_on = {Gate::kDRAOptionalNodePreparation}}));
  std::optional<cli::NodeDescription> description;
  for (const char* flag :
       {"kubelet-config", "feature-gates", "runtime-features", "version", "agent"}) {
    if (!arguments.Has(flag) || description) continue;
    ASSIGN_OR_RETURN(description, cli::ReadNodeDescription(arguments, console));
  }
  std::vector<std::string> paths = arguments.List("node-template");
  if (paths.empty()) {
    return InvalidArgument(
        "--node-template is required: a file with the Node, its ResourceSlices and DeviceClasses");
  }
  const std::vector<std::string> pods = arguments.List("filename");
  if (pods.empty()) return InvalidArgument("-f is required: a file with the pod and its claims");
  paths.insert(paths.end(), pods.begin(), pods.end());
  const cli::Manifests manifests = cli::ReadManifests(console, paths, {});
  if (!manifests.problems.empty()) return manifests.problems.front();

  UvLoop loop;
  SeededRandom random(1);
  Stage stage(loop, random, gates);
  scheduler::Simulation simulation;
  const ManifestObject* pod = nullptr;
  std::map<std::string, const ManifestObject*> templates;
  for (const ManifestObject& object : manifests.objects) {
    const std::string_view kind = object.kind->kind;
    if (kind == "Pod") {
      if (pod != nullptr) {
        return InvalidArgument(
            StrCat(object.source, ": only one pod is allowed; the first one is at ", pod->source));
      }
      pod = &object;
    } else if (kind == "Node") {
      api::Draft node(object.tree);
      RETURN_IF_ERROR(CompleteNode(object, description ? &*description : nullptr, console, node));
      ASSIGN_OR_RETURN(api::ObjectPtr admitted, stage.Admit(object, std::move(node)));
      simulation.nodes.push_back(std::move(admitted));
    } else if (kind == "ResourceClaimTemplate") {
      templates[std::string(object.tree->root()["metadata"]["name"].str())] = &object;
    } else {
      auto* list = kind == "ResourceSlice"     ? &simulation.slices
                   : kind == "DeviceClass"     ? &simulation.classes
                   : kind == "DeviceTaintRule" ? &simulation.taint_rules
                   : kind == "ResourceClaim"   ? &simulation.claims
                                               : nullptr;
      if (list == nullptr) {
        return InvalidArgument(StrCat(object.source, ": unexpected kind ", kind,
                                      "; use Node, ResourceSlice, DeviceClass, DeviceTaintRule, "
                                      "Pod, ResourceClaim or ResourceClaimTemplate"));
      }
      ASSIGN_OR_RETURN(api::ObjectPtr admitted, stage.Admit(object));
      list->push_back(std::move(admitted));
    }
  }
  if (simulation.nodes.empty()) {
    return InvalidArgument(StrCat(Join(arguments.List("node-template"), ", "), ": no Node found"));
  }
  if (pod == nullptr) return InvalidArgument(StrCat(Join(pods, ", "), ": no Pod found"));
  for (const api::ObjectPtr& slice : simulation.slices) {
    const std::string_view node = slice->root()["spec"]["nodeName"].str();
    bool is_known = node.empty();
    for (const api::ObjectPtr& each : simulation.nodes) is_known = is_known || each->name() == node;
    if (!is_known) {
      console.Err(StrCat("note: ResourceSlice ", slice->name(), " belongs to node ", Quote(node),
                         ", which is not in the template\n"));
    }
  }
  api::Draft draft(pod->tree);
  if (draft["metadata"]["uid"].str().empty()) draft["metadata"]["uid"] = "simulated-pod";
  RETURN_IF_ERROR(MakeTemplateClaims(stage, *pod, templates, draft, simulation.claims));
  ASSIGN_OR_RETURN(simulation.pod, stage.Admit(*pod, std::move(draft)));
  pod_name = simulation.pod->qualified_name();
  device::CelExpressions compiler;
  return scheduler::Simulate(simulation, {.loop = loop,
                                          .random = random,
                                          .compiler = compiler,
                                          .gates = gates,
                                          .declared_features = nullptr});
}

int RunSimulate(const Arguments& arguments, Console& console) {
  const std::string& output = arguments.Text("output");
  if (output != "text" && output != "json") {
    console.Error(StrCat("--output must be text or json, not ", Quote(output)));
    return kExitBadInput;
  }
  std::string pod;
  const Result<scheduler::SimulationAnswer> answer = Run(arguments, console, pod);
  if (!answer.ok()) {
    console.Error(answer.error().message);
    return kExitBadInput;
  }
  if (output == "json") {
    api::Draft root = api::Draft::Object();
    root["fits"] = answer->fits;
    if (answer->fits) {
      root["node"] = answer->node;
      api::Draft devices = api::Draft::Array();
      for (const scheduler::SimulatedDevice& each : answer->devices) {
        devices.Append({{"claim", api::Draft(each.claim)},
                        {"request", api::Draft(each.request)},
                        {"driver", api::Draft(each.driver)},
                        {"pool", api::Draft(each.pool)},
                        {"device", api::Draft(each.device)}});
      }
      root["devices"] = std::move(devices);
    } else {
      root["message"] = answer->message;
    }
    console.Out(api::WriteJson(root.Freeze()->root(), {.indent = 2, .final_newline = true}));
  } else if (answer->fits) {
    std::string text = StrCat("fits: pod ", pod, " would run on node ", answer->node, "\n");
    for (const scheduler::SimulatedDevice& each : answer->devices) {
      text += StrCat("  claim ", each.claim, ", request ", each.request, ": ", each.driver, "/",
                     each.pool, "/", each.device, "\n");
    }
    console.Out(text);
  } else {
    console.Out(StrCat("does not fit: ", answer->message, "\n"));
  }
  return answer->fits ? cli::kExitOk : kExitDoesNotFit;
}

}  // namespace

void AddSimulateCommand(cli::App& app) {
  std::vector<cli::Flag> flags = {
      {.name = "node-template",
       .type = cli::FlagType::kRepeated,
       .help = "File with the Node as it would register, its ResourceSlices and the DeviceClasses.",
       .placeholder = "FILE"},
      {.name = "filename",
       .short_name = 'f',
       .type = cli::FlagType::kRepeated,
       .help = "File with the pod, its ResourceClaims and ResourceClaimTemplates; - for standard "
               "input.",
       .placeholder = "FILE"},
      {.name = "scheduler-feature-gates",
       .help = "Feature gates of the scheduler: A=true,B=false.",
       .placeholder = "GATES"},
      {.name = "output",
       .short_name = 'o',
       .help = "Output format: text or json.",
       .default_value = "text",
       .placeholder = "FORMAT"}};
  for (cli::Flag& flag : cli::NodeDescriptionFlags()) flags.push_back(std::move(flag));
  app.Add({.name = "simulate",
           .summary = "Check whether a pod fits on a node that does not exist yet",
           .help =
               "Puts the objects of the template into an empty cluster and runs one scheduling "
               "decision with the scheduler's own filters and allocator: resources, taints, "
               "affinity, declared features and devices. No server is contacted and nothing is "
               "written.\n\nThe node's declared features come from the template's "
               "status.declaredFeatures, or are computed from the node's configuration if that is "
               "given (--kubelet-config, --feature-gates, --runtime-features, --version, "
               "--agent).\n\nExits with 0 if the pod fits, 1 if it does not, and 2 if the input "
               "is invalid.",
           .examples = "  drakkar simulate --node-template node.yaml -f pod.yaml\n"
                       "  drakkar simulate --node-template node.yaml -f pod.yaml --version 1.36 "
                       "--kubelet-config kubelet.yaml -o json\n",
           .flags = std::move(flags),
           .max_arguments = 0,
           .section = "Node features",
           .run = RunSimulate});
}

}  // namespace drakkar::cmd
