// drakkar features: what nodes declare, what pods require, and what a feature depends on
// (KEP-5328). Pure: contacts no server, and equal input gives identical output.
#include "cli/features.h"

#include <algorithm>

#include "api/codec/yaml_reader.h"
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "claims/pod_claims.h"
#include "cli/commands.h"
#include "cli/manifest.h"
#include "features/catalog/catalog.h"
#include "features/gates/feature_gates.h"
#include "features/report.h"

namespace drakkar::cli {
namespace {

constexpr char kSection[] = "Node features";

int Fail(Console& console, const Error& error) {
  console.Error(error.message);
  return kExitFailure;
}

Flag OutputFlag() {
  return {.name = "output",
          .short_name = 'o',
          .help = "Output format: text or json.",
          .default_value = "text",
          .placeholder = "FORMAT"};
}

// Prints an error and returns false if --output is invalid.
bool CheckOutput(const Arguments& arguments, Console& console) {
  const std::string& output = arguments.Text("output");
  if (output == "text" || output == "json") return true;
  console.Error(StrCat("--output must be text or json, not ", Quote(output)));
  return false;
}

void Print(Console& console, const api::TreePtr& tree) {
  console.Out(api::WriteJson(tree->root(), {.indent = 2, .final_newline = true}));
}

Flag CatalogFlag() {
  return {.name = "catalog",
          .help = "Feature names and rules: kep (the proposals) or kubernetes (release 1.37).",
          .default_value = "kep",
          .placeholder = "NAME"};
}

Result<const features::Framework*> ReadCatalog(const Arguments& arguments) {
  const std::string& name = arguments.Text("catalog");
  if (name == "kep") return &features::DefaultFramework(features::CatalogSetting::kKep);
  if (name == "kubernetes")
    return &features::DefaultFramework(features::CatalogSetting::kKubernetes);
  return InvalidArgument(StrCat("--catalog must be kep or kubernetes, not ", Quote(name)));
}

Result<void> CheckAgent(const Arguments& arguments) {
  const std::string& agent = arguments.Text("agent");
  if (agent == "kubelet" || agent == "drakkar") return Ok();
  return InvalidArgument(StrCat("--agent must be kubelet or drakkar, not ", Quote(agent)));
}

int RunDiscover(const Arguments& arguments, Console& console) {
  if (!CheckOutput(arguments, console)) return kExitUsage;
  if (const Result<void> checked = CheckAgent(arguments); !checked.ok()) {
    console.Error(checked.error().message);
    return kExitUsage;
  }
  Result<const features::Framework*> framework = ReadCatalog(arguments);
  if (!framework.ok()) return Fail(console, framework.error());
  Result<NodeDescription> node = ReadNodeDescription(arguments, console);
  if (!node.ok()) return Fail(console, node.error());
  const Result<features::DiscoverReport> report =
      features::ReportDiscover(**framework, node->input);
  if (!report.ok()) return Fail(console, report.error());
  if (arguments.Text("output") == "json") {
    Print(console, features::ToTree(*report));
    return kExitOk;
  }
  console.Out(features::ToText(*report));
  for (const std::string& note : report->notes) console.Err(StrCat("note: ", note, "\n"));
  return kExitOk;
}

int RunRequire(const Arguments& arguments, Console& console) {
  if (!CheckOutput(arguments, console)) return kExitUsage;
  Result<const features::Framework*> framework = ReadCatalog(arguments);
  if (!framework.ok()) return Fail(console, framework.error());
  if (const std::string& version = arguments.Text("version"); !version.empty()) {
    const Result<features::Version> parsed = features::ParseVersion(version);
    if (!parsed.ok()) return Fail(console, parsed.error());
  }
  const std::vector<std::string> paths = arguments.List("filename");
  if (paths.empty()) {
    console.Error("no pod given; use -f with a file that has the pod and its ResourceClaims");
    return kExitUsage;
  }
  const Manifests manifests = ReadManifests(console, paths, {});
  if (!manifests.problems.empty()) return Fail(console, manifests.problems.front());
  const ManifestObject* pod = nullptr;
  std::vector<const ManifestObject*> claims;
  for (const ManifestObject& object : manifests.objects) {
    if (object.kind->kind == "ResourceClaim") {
      claims.push_back(&object);
    } else if (object.kind->kind != "Pod") {
      console.Error(
          StrCat(object.source, ": expected a Pod or a ResourceClaim, not ", object.kind->kind));
      return kExitFailure;
    } else if (pod != nullptr) {
      console.Error(
          StrCat(object.source, ": only one pod is allowed; the first one is at ", pod->source));
      return kExitFailure;
    } else {
      pod = &object;
    }
  }
  if (pod == nullptr) {
    console.Error(StrCat(Join(paths, ", "), ": no Pod found"));
    return kExitFailure;
  }
  // Only the claims that the pod uses matter.
  std::vector<api::Value> used;
  const api::Value root = pod->tree->root();
  const std::vector<std::string> pod_claims = claims::ListClaimNames(root);
  const auto is_used = [&](api::Value claim) {
    const std::string_view name = claim["metadata"]["name"].str();
    if (claim["metadata"]["namespace"].str("default") !=
        root["metadata"]["namespace"].str("default")) {
      return false;
    }
    return std::ranges::find(pod_claims, name) != pod_claims.end();
  };
  for (const ManifestObject* claim : claims) {
    if (is_used(claim->tree->root())) {
      used.push_back(claim->tree->root());
    } else {
      console.Err(StrCat("note: ", claim->source, ": the pod does not use this claim\n"));
    }
  }
  const Result<features::RequireReport> report =
      features::ReportRequire(**framework, root, used, arguments.Text("version"));
  if (!report.ok()) return Fail(console, report.error().Prefixed(pod->source));
  if (arguments.Text("output") == "json") {
    Print(console, features::ToTree(*report));
  } else {
    console.Out(features::ToText(*report, arguments.Bool("why")));
  }
  return kExitOk;
}

// The gates of a release: defaults, locks and dependencies.
int RunGates(const Arguments& arguments, Console& console) {
  if (!CheckOutput(arguments, console)) return kExitUsage;
  ReleaseVersion release = kOurVersion;
  if (const std::string& text = arguments.Text("version"); !text.empty()) {
    const std::optional<ReleaseVersion> parsed = ParseReleaseVersion(text);
    if (!parsed || *parsed > kOurVersion) {
      console.Error(StrCat("--version must be a release up to ", kOurVersion.ToString(), ", not ",
                           Quote(text)));
      return kExitUsage;
    }
    release = *parsed;
  }
  api::Draft list = api::Draft::Array();
  std::string lines;
  for (int i = 0; i < static_cast<int>(Gate::kCount); ++i) {
    const GateFacts facts = FactsOf(static_cast<Gate>(i), release);
    if (!facts.is_known) continue;
    api::Draft gate = api::Draft::Object();
    gate["name"] = facts.name;
    if (!facts.alias.empty()) gate["alias"] = facts.alias;
    gate["default"] = facts.is_on;
    gate["locked"] = facts.is_locked;
    gate["needs"] = api::Draft::Array();
    for (std::string_view needed : facts.needs) gate["needs"].Append(std::string(needed));
    list.Append(std::move(gate));
    lines +=
        StrCat(facts.name, "=", facts.is_on ? "true" : "false", facts.is_locked ? " (locked)" : "");
    if (!facts.alias.empty()) lines += StrCat(", also ", facts.alias);
    if (!facts.needs.empty()) lines += StrCat(", needs ", Join(facts.needs, ", "));
    lines += "\n";
  }
  if (arguments.Text("output") == "json") {
    Print(console, list.Freeze());
  } else {
    console.Out(lines);
  }
  return kExitOk;
}

int RunNeeds(const Arguments& arguments, Console& console) {
  if (!CheckOutput(arguments, console)) return kExitUsage;
  Result<const features::Framework*> framework = ReadCatalog(arguments);
  if (!framework.ok()) return Fail(console, framework.error());
  const features::Registry& registry = (*framework)->registry();
  if (arguments.positionals().empty()) {
    // List all features.
    for (std::size_t i = 0; i < registry.size(); ++i) {
      console.Out(StrCat(registry.feature(i).Name(), "\n"));
    }
    return kExitOk;
  }
  const std::string& name = arguments.positionals()[0];
  const Result<features::NeedsReport> report = features::ReportNeeds(**framework, name);
  if (!report.ok()) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < registry.size(); ++i) {
      names.emplace_back(registry.feature(i).Name());
      for (std::string& alias : registry.feature(i).Aliases()) names.push_back(std::move(alias));
    }
    const std::string near = Nearest(name, names);
    console.Error(StrCat(report.error().message,
                         near.empty() ? "; `drakkar features needs` lists the known ones"
                                      : StrCat("; did you mean ", near, "?")));
    return kExitFailure;
  }
  if (arguments.Text("output") == "json") {
    Print(console, features::ToTree(*report));
  } else {
    console.Out(features::ToText(*report));
  }
  return kExitOk;
}

}  // namespace

std::vector<Flag> NodeDescriptionFlags() {
  return {{.name = "kubelet-config",
           .help = "A KubeletConfiguration file; - reads standard input.",
           .placeholder = "FILE"},
          {.name = "feature-gates",
           .help = "Feature gates of the node; override those in the file: A=true,B=false.",
           .placeholder = "GATES"},
          {.name = "runtime-features",
           .help = "Features of the container runtime: UserNamespacesHostNetwork, MountOptions.",
           .placeholder = "NAMES"},
          {.name = "version",
           .help = "Version of the node; defaults to this program's.",
           .placeholder = "VERSION"},
          {.name = "agent",
           .help = "Node agent: kubelet, or drakkar for our own, which declares only what it "
                   "implements.",
           .default_value = "kubelet",
           .placeholder = "NAME"}};
}

Result<NodeDescription> ReadNodeDescription(const Arguments& arguments, Console& console) {
  NodeDescription node;
  node.input.feature_gates = arguments.Text("feature-gates");
  node.input.runtime_features = arguments.Text("runtime-features");
  node.input.version = arguments.Text("version");
  node.input.agent = arguments.Text("agent");
  RETURN_IF_ERROR(CheckAgent(arguments));
  const std::string& path = arguments.Text("kubelet-config");
  if (path.empty()) return node;
  Result<std::string> text = path == "-" ? console.ReadInput() : console.files().ReadFile(path);
  if (!text.ok()) return std::move(text).error();
  Result<std::vector<api::TreePtr>> documents = api::ParseYaml(*text);
  if (!documents.ok()) return std::move(documents).error().Prefixed(path);
  if (documents->size() != 1 || !documents->front()->root().is_object()) {
    return InvalidArgument(StrCat(path, ": expected exactly one KubeletConfiguration"));
  }
  node.kept = documents->front();
  const auto settings = features::ReadKubeletConfiguration(node.kept->root());
  if (!settings.ok()) return settings.error().Prefixed(path);
  node.input.kubelet_configuration = node.kept->root();
  return node;
}

void AddFeatureCommands(App& app) {
  std::vector<Flag> discover_flags = NodeDescriptionFlags();
  discover_flags.push_back(CatalogFlag());
  discover_flags.push_back(OutputFlag());
  app.Add({.name = "features discover",
           .summary = "Show what a node with a given configuration declares",
           .help = "Prints what a node would put into status.declaredFeatures, computed from its "
                   "version, feature gates, static settings and runtime. The node need not exist. "
                   "Gates that are not given have the defaults of that version.",
           .examples = "  drakkar features discover --kubelet-config kubelet.yaml --version 1.36\n"
                       "  drakkar features discover --feature-gates "
                       "UserNamespacesHostNetworkSupport=true \\\n"
                       "    --runtime-features UserNamespacesHostNetwork -o json\n",
           .flags = std::move(discover_flags),
           .max_arguments = 0,
           .section = kSection,
           .run = RunDiscover});
  app.Add(
      {.name = "features require",
       .summary = "Show which features a pod requires",
       .help = "Prints the features that a node must declare to run the pod. Requirements of "
               "claims come from their allocation, so pass the claims as well.",
       .examples = "  drakkar features require -f pod.yaml\n"
                   "  drakkar features require -f pod.yaml -f claim.yaml --why\n",
       .flags = {{.name = "filename",
                  .short_name = 'f',
                  .type = FlagType::kRepeated,
                  .help = "The pod and its claims; - reads standard input.",
                  .placeholder = "FILE"},
                 {.name = "why",
                  .type = FlagType::kBool,
                  .help = "Also print the field that causes each requirement.",
                  .default_value = "false"},
                 {.name = "version",
                  .help =
                      "Version of the caller (scheduler, autoscaler); defaults to this program's.",
                  .placeholder = "VERSION"},
                 CatalogFlag(),
                 OutputFlag()},
       .max_arguments = 0,
       .section = kSection,
       .run = RunRequire});
  app.Add({.name = "features gates",
           .summary = "List the feature gates of a release",
           .help = "Prints the feature gates of a release with their defaults, whether they are "
                   "locked, and which other gates they depend on.",
           .examples = "  drakkar features gates --version 1.36\n",
           .flags = {{.name = "version",
                      .help = "The release; defaults to this program's.",
                      .placeholder = "VERSION"},
                     OutputFlag()},
           .max_arguments = 0,
           .section = kSection,
           .run = RunGates});
  app.Add({.name = "features needs",
           .arguments = "[FEATURE]",
           .summary = "Show what a feature depends on",
           .help = "Prints the feature gates, settings and runtime features that a node needs to "
                   "declare the feature. Without a name, lists all known features.",
           .examples = "  drakkar features needs\n"
                       "  drakkar features needs UserNamespacesHostNetworkSupport\n",
           .flags = {CatalogFlag(), OutputFlag()},
           .max_arguments = 1,
           .section = kSection,
           .run = RunNeeds});
}

}  // namespace drakkar::cli
