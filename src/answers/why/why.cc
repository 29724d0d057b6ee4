#include "answers/why/why.h"

#include <algorithm>
#include <map>
#include <set>

#include "answers/cluster/claim_use.h"
#include "answers/cluster/natural_order.h"
#include "answers/free/fits.h"
#include "answers/why/gates.h"
#include "answers/why/node_reason.h"
#include "answers/why/queue_state.h"
#include "answers/why/waits.h"
#include "answers/why/what_if.h"
#include "api/meta/time.h"
#include "base/env/random.h"
#include "base/exec/event_loop.h"
#include "base/text/text.h"
#include "claims/claim.h"
#include "claims/pod_claims.h"
#include "device/extended_resources.h"
#include "features/declared.h"
#include "scheduler/cache/pod_info.h"
#include "scheduler/plugins/dynamic_resources/dynamic_resources_args.h"

namespace drakkar::answers {
namespace {

using api::Value;

constexpr std::string_view kDevicePlugin = "DynamicResources";
constexpr std::string_view kFeaturePlugin = "NodeDeclaredFeatures";
// What a node reports for a claim that skips its driver, if the gate is off on the node.
constexpr std::string_view kSkipDisabled = "DRAOptionalNodePreparationDisabled";
// Maximum number of nodes on which gates are tried: one per reason is enough, and each costs one
// simulation per gate.
constexpr std::size_t kMaxProbes = 4;

api::ObjectPtr FindObject(const Objects& objects, std::string_view ns, std::string_view name) {
  for (const api::ObjectPtr& object : objects) {
    if (object->name() == name && object->namespace_() == ns) return object;
  }
  return nullptr;
}

// The explanation for one node, and its main reason.
struct Judged {
  const scheduler::NodeExplanation* node;
  NodeReason reason;
};

// Whether turning on gates could be enough: other plugins reject the pod whatever the gates are.
bool OnlyGatesMayRefuse(const scheduler::NodeExplanation& node) {
  return std::all_of(node.refusals.begin(), node.refusals.end(), [](const auto& refusal) {
    return refusal.plugin == kDevicePlugin || refusal.plugin == kFeaturePlugin;
  });
}

// The message of the condition PodScheduled if it is False: why the last attempt failed.
std::string LastFailure(const api::Object& pod) {
  for (Value condition : pod["status"]["conditions"].elements()) {
    if (condition["type"].str() == "PodScheduled" && condition["status"].str() == "False") {
      return std::string(condition["message"].str());
    }
  }
  return {};
}

bool OnlyDevicesRefuse(const scheduler::NodeExplanation& node) {
  return std::all_of(node.refusals.begin(), node.refusals.end(),
                     [](const auto& refusal) { return refusal.plugin == kDevicePlugin; });
}

std::vector<std::string> DetailsOf(const scheduler::NodeExplanation& node) {
  std::vector<std::string> details;
  for (const scheduler::NodeRefusal& refusal : node.refusals) {
    details.push_back(StrCat(refusal.plugin, ": ", Join(refusal.reasons, ", ")));
  }
  return details;
}

// The fewest claims that hold at least `missing` of `devices`, the largest holders first.
std::vector<Holder> FindHolders(const Snapshot& snapshot,
                                const std::vector<device::DeviceId>& devices, std::size_t missing) {
  const std::set<device::DeviceId> wanted(devices.begin(), devices.end());
  const PodsByUid pods = IndexPods(snapshot.pods);
  std::vector<Holder> all;
  for (const api::ObjectPtr& claim : snapshot.claims) {
    std::size_t count = 0;
    for (Value result : (*claim)["status"]["allocation"]["devices"]["results"].elements()) {
      if (wanted.contains({std::string(result["driver"].str()), std::string(result["pool"].str()),
                           std::string(result["device"].str())})) {
        ++count;
      }
    }
    if (count == 0) continue;
    const Result<ClaimUse> use = ReadClaimUse(claim, pods);
    if (!use.ok()) continue;
    Holder holder;
    holder.namespace_ = claim->namespace_();
    holder.claim = claim->name();
    holder.since = use->since;
    holder.devices = count;
    if (!use->consumers.empty()) {
      holder.pod = use->consumers.front().name;
      holder.owner = use->consumers.front().owner;
    }
    all.push_back(std::move(holder));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Holder& a, const Holder& b) { return a.devices > b.devices; });
  std::vector<Holder> enough;
  std::size_t sum = 0;
  for (Holder& holder : all) {
    if (sum >= missing) break;
    sum += holder.devices;
    enough.push_back(std::move(holder));
  }
  return enough;
}

Duration BindingTimeout(const scheduler::ProfileConfig& profile) {
  return profile.ArgsOf<scheduler::DynamicResourcesArgs>("DynamicResources").binding_timeout;
}

class Explainer {
 public:
  Explainer(const Snapshot& snapshot, const WhySubject& subject, const WhyOptions& options)
      : snapshot_(snapshot), subject_(subject), options_(options) {
    answer_.subject = subject.ToString();
    answer_.notes = snapshot.notes;
  }

  Result<WhyAnswer> Run() {
    if (subject_.kind == WhySubject::Kind::kPod) {
      RETURN_IF_ERROR(ExplainPod());
    } else {
      RETURN_IF_ERROR(ExplainClaim());
    }
    return std::move(answer_);
  }

 private:
  Error Missing(std::string_view plural) const {
    return NotFound(
        StrCat(plural, " ", Quote(subject_.name), " not found in namespace ", subject_.namespace_));
  }

  Result<void> ExplainPod() {
    const api::ObjectPtr pod = FindObject(snapshot_.pods, subject_.namespace_, subject_.name);
    if (pod == nullptr) return Missing("pods");
    const scheduler::PodInfoPtr info = scheduler::MakePodInfo(pod);
    for (const std::string& name : claims::ListClaimNames(pod->root())) {
      if (api::ObjectPtr claim = FindObject(snapshot_.claims, subject_.namespace_, name)) {
        claims_.push_back(std::move(claim));
      }
    }
    Append(answer_.deletions, FindDeletionWaits("pod", *pod, snapshot_));
    for (const api::ObjectPtr& claim : claims_) {
      Append(answer_.deletions, FindDeletionWaits("claim", *claim, snapshot_));
    }
    TakeAllocation();
    if (info->HasEnded()) {
      answer_.fits = true;
      answer_.node = info->node_name;
      answer_.blocked = StrCat("it has ended (", (*pod)["status"]["phase"].str(), ")");
      TakeRejection(*pod);
      return Ok();
    }
    if (!info->node_name.empty()) {
      answer_.fits = true;
      answer_.node = info->node_name;
      answer_.preparations = FindPreparationWaits(*pod, claims_, snapshot_.events);
      for (const PreparationWait& wait : answer_.preparations) {
        if (wait.error.find(kSkipDisabled) == std::string::npos) continue;
        HelpOnNode(wait.node, {"DraOptionalNodePreparation"});
        break;
      }
      return Ok();
    }
    if (pod->is_being_deleted()) {
      answer_.blocked = "it is being deleted";
      return Ok();
    }
    const scheduler::ProfileConfig* profile =
        FindProfile((*pod)["spec"]["schedulerName"].str("default-scheduler"));
    if (profile == nullptr) return Ok();
    for (const api::ObjectPtr& claim : claims_) {
      Append(answer_.conditions, FindConditionWaits(*claim, BindingTimeout(*profile)));
    }
    answer_.node = info->nominated_node;
    if (options_.state != nullptr) {
      TakeState(*options_.state);
      if (!answer_.blocked.empty()) return Ok();
    }
    RETURN_IF_ERROR(AskScheduler(pod, *profile));
    if (!answer_.fits) return Ok();
    // Every plugin agrees, so the last attempt can only have failed at the API server.
    std::string failure = LastFailure(*pod);
    if (std::optional<Help> help = FindServerHelp(failure)) {
      answer_.fits = false;
      answer_.rejected = std::move(failure);
      answer_.help.push_back(std::move(*help));
    }
    return Ok();
  }

  // What the scheduler remembers, which is more recent than what the API shows.
  void TakeState(const scheduler::PodState& state) {
    for (ConditionWait& wait : answer_.conditions) {
      if (const auto left = state.deadlines.find(wait.claim); left != state.deadlines.end()) {
        wait.deadline = api::FormatTime(snapshot_.now + left->second);
      }
    }
    answer_.queue = DescribeState(state);
    if (state.place != scheduler::PodState::Place::kBinding) return;
    answer_.fits = true;
    answer_.node = state.node;
    if (answer_.conditions.empty()) {
      answer_.blocked = StrCat("is being bound to node ", state.node);
    }
  }

  // A pod that its node rejected because the node lacks a feature.
  void TakeRejection(const api::Object& pod) {
    const Value status = pod["status"];
    if (status["reason"].str() != features::kPodFeatureUnsupported) return;
    answer_.fits = false;
    answer_.rejected = StrCat("node ", answer_.node, " refused it: ", status["message"].str());
    const api::ObjectPtr node = FindObject(snapshot_.nodes, "", answer_.node);
    if (node == nullptr) return;
    HelpOnNode(answer_.node, FindMissingFeatures({pod, claims_, *node, nullptr},
                                                 options_.settings.gates.emulated()));
  }

  void HelpOnNode(const std::string& name, const std::vector<std::string>& features) {
    const api::ObjectPtr node = FindObject(snapshot_.nodes, "", name);
    if (node != nullptr && !features.empty()) {
      answer_.help.push_back(MakeNodeHelp(*node, features));
    }
  }

  Result<void> ExplainClaim() {
    const api::ObjectPtr claim = FindObject(snapshot_.claims, subject_.namespace_, subject_.name);
    if (claim == nullptr) return Missing("resourceclaims");
    claims_.push_back(claim);
    Append(answer_.deletions, FindDeletionWaits("claim", *claim, snapshot_));
    const scheduler::ProfileConfig* profile = FindProfile("default-scheduler");
    if (profile == nullptr) return Ok();
    if (claims::IsAllocated(claim->root())) {
      answer_.fits = true;
      TakeAllocation();
      Append(answer_.conditions, FindConditionWaits(*claim, BindingTimeout(*profile)));
      return Ok();
    }
    NoteUsers(*claim);
    if (claim->is_being_deleted()) {
      answer_.blocked = "it is being deleted";
      return Ok();
    }
    return AskScheduler(PodForClaim(claim->namespace_(), claim->name(), claim->uid()), *profile);
  }

  // A claim is allocated only for a pod, and the pod may need more than the claim.
  void NoteUsers(const api::Object& claim) {
    std::vector<std::string> users;
    for (const api::ObjectPtr& pod : snapshot_.pods) {
      if (pod->namespace_() != claim.namespace_()) continue;
      if (scheduler::MakePodInfo(pod)->HasEnded()) continue;
      for (const std::string& name : claims::ListClaimNames(pod->root())) {
        if (name == claim.name()) users.emplace_back(pod->name());
      }
    }
    if (users.empty()) {
      answer_.notes.push_back(
          "no pod uses the claim; it gets devices when a pod that uses it is scheduled");
    } else {
      answer_.notes.push_back(StrCat("pod ", users.front(),
                                     " uses the claim and may need more: drakkar why pod ",
                                     users.front()));
    }
  }

  // Records the devices that are already allocated to the claims.
  void TakeAllocation() {
    const PodsByUid pods = IndexPods(snapshot_.pods);
    for (const api::ObjectPtr& claim : claims_) {
      if (!claims::IsAllocated(claim->root())) continue;
      const Result<ClaimUse> use = ReadClaimUse(claim, pods);
      if (!use.ok()) continue;
      for (const device::DeviceResult& result : use->allocation.results) {
        answer_.devices.push_back(result.id.ToString());
      }
      if (answer_.since.empty() || use->since < answer_.since) answer_.since = use->since;
      for (const Consumer& consumer : use->consumers) {
        if (answer_.node.empty() && consumer.pod != nullptr) {
          answer_.node = (*consumer.pod)["spec"]["nodeName"].str();
        }
      }
    }
  }

  // Null if no scheduler has this name; the answer then contains the reason.
  const scheduler::ProfileConfig* FindProfile(std::string_view name) {
    for (const scheduler::ProfileConfig& each : options_.settings.profiles) {
      if (each.name == name) return &each;
    }
    answer_.blocked =
        StrCat("no scheduler goes by the name ", Quote(name), " (spec.schedulerName)");
    return nullptr;
  }

  scheduler::SimulationOptions SimulationOptionsFor(const scheduler::ProfileConfig& profile) const {
    return {.loop = options_.loop,
            .random = options_.random,
            .compiler = options_.compiler,
            .gates = options_.settings.gates,
            .declared_features = nullptr,
            .profile = profile};
  }

  Result<void> AskScheduler(const api::ObjectPtr& pod, const scheduler::ProfileConfig& profile) {
    if (!snapshot_.has_nodes) {
      return FailedPrecondition(
          "you may not list nodes, and this server's scheduler does not answer; ask somebody who "
          "may");
    }
    if (snapshot_.nodes.empty()) {
      answer_.blocked = "the cluster has no nodes";
      return Ok();
    }
    scheduler::Simulation simulation;
    simulation.nodes = snapshot_.nodes;
    simulation.slices = snapshot_.slices;
    simulation.classes = snapshot_.classes;
    simulation.taint_rules = snapshot_.taint_rules;
    simulation.claims = snapshot_.claims;
    simulation.pods = snapshot_.pods;
    simulation.leases = snapshot_.leases;
    simulation.namespaces = snapshot_.namespaces;
    simulation.pod_groups = snapshot_.pod_groups;
    simulation.pod = pod;
    const scheduler::SimulationOptions simulated = SimulationOptionsFor(profile);
    Result<scheduler::PodExplanation> asked = scheduler::ExplainPod(simulation, simulated);
    answer_.blocked = asked.ok() ? asked->blocked : asked.error().message;
    if (!answer_.blocked.empty()) {
      HelpUnblock(simulation, simulated);
      // A claim that needs a gate is an error to the scheduler, but the user gets an answer.
      if (!asked.ok() && answer_.help.empty()) return std::move(asked).error();
      return Ok();
    }
    scheduler::PodExplanation explanation = *std::move(asked);
    if (!options_.node.empty()) {
      std::erase_if(explanation.nodes,
                    [&](const auto& each) { return each.node != options_.node; });
      if (explanation.nodes.empty()) {
        return NotFound(StrCat("there is no node ", Quote(options_.node)));
      }
    }
    Judge(explanation);
    if (!answer_.fits) FindHelp(simulation, simulated);
    if (options_.with_nodes || !options_.node.empty()) answer_.nodes = std::move(explanation.nodes);
    return Ok();
  }

  void Judge(const scheduler::PodExplanation& explanation) {
    std::map<std::string, NodeGroup> groups;
    std::vector<const scheduler::NodeExplanation*> nodes;
    for (const scheduler::NodeExplanation& node : explanation.nodes) nodes.push_back(&node);
    std::stable_sort(nodes.begin(), nodes.end(),
                     [](const auto* a, const auto* b) { return NaturalLess(a->node, b->node); });
    answer_.node_count = nodes.size();
    for (const scheduler::NodeExplanation* node : nodes) {
      if (node->fits()) {
        // If one of the candidate nodes has to wait, all of them do.
        if (node->preferred || !options_.node.empty()) answer_.then_waits_for = node->waits_for;
        answer_.fitting.push_back(node->node);
        continue;
      }
      Judged& judged = judged_.emplace_back(Judged{node, ClassifyNode(*node)});
      NodeGroup& group = groups[judged.reason.text];
      if (group.count++ == 0) {
        group.reason = judged.reason.text;
        group.details = DetailsOf(*node);
      }
      group.nodes.push_back(node->node);
    }
    answer_.fitting_count = answer_.fitting.size();
    answer_.fits = answer_.fitting_count > 0;
    for (auto& [reason, group] : groups) answer_.groups.push_back(std::move(group));
    std::stable_sort(answer_.groups.begin(), answer_.groups.end(),
                     [](const NodeGroup& a, const NodeGroup& b) { return a.count > b.count; });
    if (!answer_.fits) FindClosest();
  }

  void FindClosest() {
    for (const Judged& each : judged_) {
      if (!each.reason.only_held || !OnlyDevicesRefuse(*each.node)) continue;
      if (closest_ == nullptr || each.reason.missing < closest_->reason.missing) closest_ = &each;
    }
    if (closest_ == nullptr) return;
    answer_.closest =
        Closest{closest_->node->node, closest_->reason.missing,
                FindHolders(snapshot_, closest_->reason.held, closest_->reason.missing)};
  }

  void FindHelp(const scheduler::Simulation& simulation,
                const scheduler::SimulationOptions& options) {
    // Uncordoning a node costs nobody anything.
    for (const Judged& each : judged_) {
      if (each.reason.text != "cordoned" || answer_.help.size() == WhyAnswer::kMaxHelp) continue;
      if (each.node->devices && !each.node->devices->fits) continue;
      if (!WhatIf(simulation, each.node->node, options).FitsUncordoned()) continue;
      answer_.help.push_back({.kind = Help::Kind::kUncordon, .node = each.node->node});
      break;
    }
    HelpByGates(simulation, options);
    if (closest_ != nullptr) HelpOnClosest(WhatIf(simulation, closest_->node->node, options));
    HelpByChange();
    if (answer_.help.size() > WhyAnswer::kMaxHelp) answer_.help.resize(WhyAnswer::kMaxHelp);
  }

  // Gates of the scheduler without which it considers no node.
  void HelpUnblock(const scheduler::Simulation& simulation, scheduler::SimulationOptions options) {
    const FeatureGates before = options.gates;
    for (const std::vector<Gate>& gates : ListGatesToTry(before)) {
      options.gates = TurnOn(before, gates);
      const auto explanation = scheduler::ExplainPod(simulation, options);
      if (!explanation.ok() || !explanation->blocked.empty()) continue;
      answer_.help.push_back(MakeSchedulerHelp(gates));
      return;
    }
  }

  // Gates of the nodes or of the scheduler, tried on one node per reason.
  void HelpByGates(const scheduler::Simulation& simulation,
                   const scheduler::SimulationOptions& options) {
    std::set<std::string> reasons;
    std::set<std::string> seen;
    for (const Judged& each : judged_) {
      if (!OnlyGatesMayRefuse(*each.node) || !reasons.insert(each.reason.text).second) continue;
      if (reasons.size() > kMaxProbes) break;
      const WhatIf what_if(simulation, each.node->node, options);
      std::optional<Help> help;
      if (const api::ObjectPtr node = FindObject(snapshot_.nodes, "", each.node->node)) {
        help = FindNodeHelp(
            {*simulation.pod, claims_, *node, each.node->devices ? &*each.node->devices : nullptr},
            options.gates.emulated(), what_if);
      }
      if (!help) help = FindSchedulerHelp(each.node->node, options.gates, what_if);
      if (help && seen.insert(Join(help->gates, ",")).second) {
        answer_.help.push_back(std::move(*help));
      }
    }
  }

  void HelpOnClosest(const WhatIf& what_if) {
    const NodeReason& reason = closest_->reason;
    const std::string& node = closest_->node->node;
    if (!answer_.closest->holders.empty()) {
      std::set<std::string> claims;
      for (const Holder& holder : answer_.closest->holders) {
        claims.insert(StrCat(holder.namespace_, "/", holder.claim));
      }
      if (what_if.FitsWithout(claims)) {
        answer_.help.push_back({.kind = Help::Kind::kFree,
                                .node = node,
                                .what = {},
                                .count = reason.missing,
                                .holders = answer_.closest->holders});
      }
    }
    if (reason.candidates > 0 && !reason.request.empty() &&
        what_if.FitsWithCount(reason.claim, reason.request,
                              static_cast<std::int64_t>(reason.candidates))) {
      answer_.help.push_back(
          {.kind = Help::Kind::kCount,
           .node = node,
           .what = StrCat("request ", reason.request, " of claim ", reason.claim),
           .count = reason.candidates});
    }
  }

  // Suggests single rules whose removal would let the claims fit on a node that accepts the pod.
  void HelpByChange() {
    std::set<std::string> seen;
    for (const Judged& each : judged_) {
      if (!each.node->devices || !OnlyDevicesRefuse(*each.node)) continue;
      for (const allocator::ClosestMiss& miss : each.node->devices->closest) {
        // Skip gates, which have been tried, and devices in use, for which there are other
        // suggestions.
        if (miss.rule == allocator::Rule::kInUse || miss.rule == allocator::Rule::kPicked ||
            miss.rule == allocator::Rule::kSkipUndeclared ||
            miss.rule == allocator::Rule::kSkipDisabled ||
            miss.rule == allocator::Rule::kBindingConditionsDisabled ||
            miss.rule == allocator::Rule::kCountersDisabled) {
          continue;
        }
        for (const std::string& remedy : miss.remedies) {
          if (answer_.help.size() >= WhyAnswer::kMaxHelp || !seen.insert(remedy).second) continue;
          // Nobody can change a claim that the scheduler makes.
          if (remedy.find(device::kPlannedClaim) != std::string::npos) continue;
          answer_.help.push_back(
              {.kind = Help::Kind::kChange, .node = each.node->node, .what = remedy});
        }
      }
    }
  }

  template <typename T>
  static void Append(std::vector<T>& to, std::vector<T> from) {
    std::move(from.begin(), from.end(), std::back_inserter(to));
  }

  const Snapshot& snapshot_;
  const WhySubject& subject_;
  const WhyOptions& options_;
  WhyAnswer answer_;
  Objects claims_;  // of the subject
  std::vector<Judged> judged_;
  const Judged* closest_ = nullptr;
};

}  // namespace

std::string WhySubject::ToString() const {
  return StrCat(kind == Kind::kPod ? "pod " : "claim ", namespace_, "/", name);
}

std::string Holder::ToString() const {
  if (hidden) return "another namespace";
  if (pod.empty()) return StrCat("claim ", namespace_, "/", claim);
  return StrCat(namespace_, "/", pod);
}

Result<WhyAnswer> ExplainWhy(const Snapshot& snapshot, const WhySubject& subject,
                             const WhyOptions& options) {
  return Explainer(snapshot, subject, options).Run();
}

std::set<std::string> NamespacesIn(const WhyAnswer& answer) {
  std::set<std::string> namespaces;
  const auto add = [&](const std::vector<Holder>& holders) {
    for (const Holder& holder : holders) namespaces.insert(holder.namespace_);
  };
  if (answer.closest) add(answer.closest->holders);
  for (const Help& help : answer.help) add(help.holders);
  return namespaces;
}

void Redact(WhyAnswer& answer, const Viewer& viewer) {
  const auto hide = [&](std::vector<Holder>& holders) {
    for (Holder& holder : holders) {
      if (!viewer.sees_namespace || viewer.sees_namespace(holder.namespace_)) continue;
      holder = Holder{.devices = holder.devices, .hidden = true};
    }
  };
  if (answer.closest) hide(answer.closest->holders);
  for (Help& help : answer.help) hide(help.holders);
  if (viewer.nodes) return;
  // Remove names of nodes, and of devices and pools, which are often named after nodes.
  if (answer.closest) answer.closest->node.clear();
  answer.fitting.clear();
  answer.then_waits_for.clear();
  for (NodeGroup& group : answer.groups) {
    group.nodes.clear();
    group.details.clear();
  }
  for (Help& help : answer.help) {
    help.node.clear();
    // "... tolerations: key:NoSchedule of driver/pool/device".
    const std::size_t device = help.what.rfind(" of ");
    if (help.kind == Help::Kind::kChange && device != std::string::npos &&
        help.what.find('/', device) != std::string::npos) {
      help.what.resize(device);
    }
  }
  std::erase_if(answer.help, [](const Help& help) {
    return help.kind == Help::Kind::kUncordon ||
           (help.kind == Help::Kind::kChange && !help.what.starts_with("claim "));
  });
  answer.nodes.clear();
}

}  // namespace drakkar::answers
