// drakkar explain: why the claims of a pod do or do not fit, node by node and rule by rule. It
// reads the cluster and asks the same allocator the scheduler uses; nothing is written.
#include <algorithm>
#include <map>

#include "allocator/allocator.h"
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/env/random.h"
#include "base/text/text.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "device/cel_expressions.h"
#include "device/from_api.h"

namespace drakkar::cli {
namespace {

using api::Value;

constexpr std::string_view kGroup = "resource.k8s.io";

// Everything the allocator looks at, as the server has it now.
class ClusterDevices {
 public:
  explicit ClusterDevices(Session& session)
      : session_(session),
        allocator_({.inventory = inventory_,
                    .allocated = allocated_,
                    .compiler = compiler_,
                    .random = RealRandom(),
                    .features = AllFeatures()}) {}

  // `mine` are the claims that are explained: what they hold already does not stand in their way.
  Result<void> Read(const std::map<std::string, Value>& mine) {
    ASSIGN_OR_RETURN(slices_, ListAll("ResourceSlice"));
    for (Value item : slices_->root()["items"].elements()) {
      ASSIGN_OR_RETURN(device::Slice slice, device::SliceFromApi(item));
      inventory_.SetSlice(std::make_shared<const device::Slice>(std::move(slice)));
    }
    ASSIGN_OR_RETURN(api::TreePtr claims, ListAll("ResourceClaim"));
    for (Value item : claims->root()["items"].elements()) {
      const Value allocation = item["status"]["allocation"];
      if (!allocation.has_value() || mine.contains(std::string(item["metadata"]["uid"].str()))) {
        continue;
      }
      ASSIGN_OR_RETURN(device::AllocationResult result, device::AllocationFromApi(allocation));
      allocated_.Add(result);
    }
    ASSIGN_OR_RETURN(api::TreePtr classes, ListAll("DeviceClass"));
    for (Value item : classes->root()["items"].elements()) {
      ASSIGN_OR_RETURN(device::DeviceClass device_class, device::DeviceClassFromApi(item));
      std::string name(item["metadata"]["name"].str());
      classes_[name] = std::make_shared<const device::DeviceClass>(std::move(device_class));
    }
    ASSIGN_OR_RETURN(api::TreePtr nodes,
                     session_.List(session_.Ref(*api::FindKind("", "v1", "Node"))));
    for (Value item : nodes->root()["items"].elements()) {
      nodes_.emplace_back(item["metadata"]["name"].str());
      allocator_.SetNode(device::NodeFromApi(item));
    }
    return Ok();
  }

  Result<std::vector<allocator::Explanation>> Explain(const std::map<std::string, Value>& claims,
                                                      const std::string& only_node) {
    std::vector<std::shared_ptr<const device::Claim>> wanted;
    for (const auto& [uid, claim] : claims) {
      ASSIGN_OR_RETURN(device::Claim read, device::ClaimFromApi(claim));
      wanted.push_back(std::make_shared<const device::Claim>(std::move(read)));
    }
    const allocator::Problem problem =
        allocator_.Prepare(wanted, [this](std::string_view name) { return FindClass(name); });
    std::vector<allocator::Explanation> explanations;
    for (const std::string& node : nodes_) {
      if (!only_node.empty() && node != only_node) continue;
      ASSIGN_OR_RETURN(allocator::Explanation explanation, allocator_.Explain(problem, node, {}));
      explanations.push_back(std::move(explanation));
    }
    if (explanations.empty()) {
      return NotFound(only_node.empty() ? std::string("the cluster has no nodes")
                                        : StrCat("there is no node ", Quote(only_node)));
    }
    return explanations;
  }

 private:
  static allocator::Features AllFeatures() {
    // What the server stores is what its gates let through; here everything is understood.
    allocator::Features features;
    features.admin_access = features.compatibility_groups = features.consumable_capacity = true;
    features.derived_attributes = features.device_binding_and_status = features.device_taints =
        true;
    features.fractional_capacity_range = features.list_type_attributes = true;
    features.optional_node_operations = features.partitionable_devices = true;
    features.prioritized_list = true;
    return features;
  }

  Result<api::TreePtr> ListAll(std::string_view kind) {
    return session_.List(session_.Ref(*api::FindKind(kGroup, "v1", kind), {}, /*all=*/true));
  }

  Result<std::shared_ptr<const device::DeviceClass>> FindClass(std::string_view name) const {
    auto found = classes_.find(name);
    if (found == classes_.end()) return NotFound(StrCat("device class ", name, " does not exist"));
    return found->second;
  }

  Session& session_;
  device::Inventory inventory_;
  device::AllocatedState allocated_;
  device::CelExpressions compiler_;
  allocator::Allocator allocator_;
  api::TreePtr slices_;
  std::map<std::string, std::shared_ptr<const device::DeviceClass>, std::less<>> classes_;
  std::vector<std::string> nodes_;
};

// The claims of a pod by uid; `kept` keeps their trees alive.
Result<std::map<std::string, Value>> ClaimsOfPod(Session& session, const api::Object& pod,
                                                 std::vector<api::ObjectPtr>& kept) {
  std::map<std::string, Value> claims;
  for (Value reference : pod["spec"]["resourceClaims"].elements()) {
    std::string name(reference["resourceClaimName"].str());
    for (Value status : pod["status"]["resourceClaimStatuses"].elements()) {
      if (status["name"].str() == reference["name"].str()) name = status["resourceClaimName"].str();
    }
    if (name.empty()) {
      return FailedPrecondition(StrCat("the claim for ", Quote(reference["name"].str()),
                                       " has not been made yet: is there a template ",
                                       Quote(reference["resourceClaimTemplateName"].str()), "?"));
    }
    client::ResourceRef ref = session.Ref(*api::FindKind(kGroup, "v1", "ResourceClaim"), name);
    ref.namespace_ = pod.namespace_();
    ASSIGN_OR_RETURN(api::ObjectPtr claim, session.Get(ref));
    kept.push_back(claim);
    claims.emplace(claim->uid(), claim->root());
  }
  if (claims.empty()) return FailedPrecondition("the pod asks for no devices: it has no claims");
  return claims;
}

api::Draft ToDraft(const allocator::Explanation& explanation) {
  api::Draft node = api::Draft::Object();
  node["node"] = explanation.node;
  node["fits"] = explanation.fits;
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
  return node;
}

int Run(const Arguments& arguments, Console& console) {
  const std::string& type = arguments.positionals()[0];
  const std::string& name = arguments.positionals()[1];
  const bool is_pod = type == "pod" || type == "pods" || type == "po";
  const bool is_claim = type == "claim" || type == "resourceclaim" || type == "resourceclaims";
  if (!is_pod && !is_claim) {
    console.Error(StrCat("explain takes a pod or a claim, not ", Quote(type)));
    return kExitUsage;
  }
  Result<std::unique_ptr<Session>> session = Session::Open(arguments, console);
  if (!session.ok()) {
    Report(console, session.error());
    return kExitFailure;
  }
  auto explain = [&]() -> Result<std::vector<allocator::Explanation>> {
    std::vector<api::ObjectPtr> kept;
    std::map<std::string, Value> claims;
    if (is_pod) {
      ASSIGN_OR_RETURN(api::ObjectPtr pod,
                       (*session)->Get((*session)->Ref(*api::FindKind("", "v1", "Pod"), name)));
      ASSIGN_OR_RETURN(claims, ClaimsOfPod(**session, *pod, kept));
    } else {
      ASSIGN_OR_RETURN(
          api::ObjectPtr claim,
          (*session)->Get((*session)->Ref(*api::FindKind(kGroup, "v1", "ResourceClaim"), name)));
      kept.push_back(claim);
      claims.emplace(claim->uid(), claim->root());
    }
    ClusterDevices cluster(**session);
    RETURN_IF_ERROR(cluster.Read(claims));
    return cluster.Explain(claims, arguments.Text("node"));
  };
  Result<std::vector<allocator::Explanation>> explanations = explain();
  if (!explanations.ok()) {
    Report(console, explanations.error());
    return kExitFailure;
  }
  if (arguments.Text("output") == "json") {
    api::Draft list = api::Draft::Array();
    for (const allocator::Explanation& each : *explanations) list.Append(ToDraft(each));
    api::Draft root = api::Draft::Object();
    root["nodes"] = std::move(list);
    console.Out(api::WriteJson(root.Freeze()->root(), {.indent = 2, .final_newline = true}));
    return kExitOk;
  }
  // Nodes with the same answer are told together.
  std::map<std::string, std::vector<std::string>> by_text;
  std::vector<std::string> order;
  for (const allocator::Explanation& each : *explanations) {
    std::string text = allocator::RenderText(each);
    const std::size_t first_line = text.find('\n');
    const std::string rest = first_line == std::string::npos ? "" : text.substr(first_line);
    const std::string key = StrCat(each.fits ? "fits" : "does not fit", rest);
    if (!by_text.contains(key)) order.push_back(key);
    by_text[key].push_back(each.node);
  }
  for (const std::string& key : order) {
    const std::vector<std::string>& nodes = by_text[key];
    constexpr std::size_t kShown = 3;
    std::vector<std::string> shown(
        nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, nodes.size())));
    std::string who =
        StrCat(nodes.size() == 1 ? "node " : StrCat(nodes.size(), " nodes: "), Join(shown, ", "));
    if (nodes.size() > kShown) who += StrCat(" and ", nodes.size() - kShown, " more");
    console.Out(StrCat(who, ": ", key, key.ends_with('\n') ? "" : "\n"));
  }
  return kExitOk;
}

}  // namespace

Command ExplainCommand() {
  return {.name = "explain",
          .arguments = "pod|claim NAME",
          .summary = "Say why claims do or do not fit, node by node and rule by rule",
          .help =
              "Asks the scheduler's own allocator, with the cluster as it is now, whether the "
              "claims of a pod (or one claim) fit each node, how many devices each rule refused, "
              "and which single rule stands in the way. Nothing is changed.",
          .examples =
              "  drakkar explain pod train-0\n"
              "  drakkar explain claim gpu -n team --node worker-3 -o json\n",
          .flags = {{.name = "node", .help = "Only this node.", .placeholder = "NAME"},
                    {.name = "output",
                     .short_name = 'o',
                     .help = "text or json.",
                     .default_value = "text",
                     .placeholder = "FORMAT"}},
          .min_arguments = 2,
          .max_arguments = 2,
          .group = FlagGroup::kCluster,
          .section = "Objects",
          .run = Run};
}

}  // namespace drakkar::cli
