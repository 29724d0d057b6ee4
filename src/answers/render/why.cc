#include "answers/render/why.h"

#include <algorithm>

#include "allocator/explain/explanation.h"
#include "answers/render/columns.h"
#include "answers/render/json.h"
#include "answers/why/gates.h"
#include "api/meta/age.h"
#include "api/meta/time.h"
#include "base/text/text.h"

namespace drakkar::answers {
namespace {

std::string OrNone(const std::string& text) {
  return text.empty() ? "<none>" : text;
}

std::string RenderGroups(const WhyAnswer& answer, const RenderOptions& options) {
  if (answer.groups.empty()) return {};
  // Names are missing if the viewer may not see them.
  const bool named = !answer.fitting.empty() ||
                     std::any_of(answer.groups.begin(), answer.groups.end(),
                                 [](const NodeGroup& group) { return !group.nodes.empty(); });
  std::vector<Column> columns = {{"NODES", true}, {"REASON", false, true}};
  if (named) columns.push_back({"WHICH", false, true});
  TextTable table(std::move(columns));
  const auto add = [&](std::size_t count, const std::string& reason,
                       const std::vector<std::string>& nodes) {
    constexpr std::size_t kShown = 4;
    std::string which;
    for (std::size_t i = 0; i < nodes.size() && i < kShown; ++i) {
      which += StrCat(i == 0 ? "" : ", ", nodes[i]);
    }
    if (nodes.size() > kShown) which += ", ...";
    std::vector<std::string> row = {std::to_string(count), reason};
    if (named) row.push_back(which);
    table.AddRow(std::move(row));
  };
  if (answer.fitting_count > 0) add(answer.fitting_count, "fits", answer.fitting);
  for (const NodeGroup& group : answer.groups) add(group.count, group.reason, group.nodes);
  return "\n" + table.Render(options.width, options.headers);
}

std::string RenderHolders(const Closest& closest, const RenderOptions& options) {
  if (closest.holders.empty()) return {};
  std::string text =
      StrCat("\nHeld on ", closest.node.empty() ? "the closest node" : closest.node, ":\n");
  TextTable table({{"POD", false, true},
                   {"CLAIM", false, true},
                   {"OWNER", false, true},
                   {"DEVICES", true},
                   {"SINCE"}});
  for (const Holder& holder : closest.holders) {
    if (holder.hidden) {
      table.AddRow({"(another namespace)", "", "", std::to_string(holder.devices), ""});
      continue;
    }
    table.AddRow({holder.pod.empty() ? "<none>" : StrCat(holder.namespace_, "/", holder.pod),
                  holder.claim, OrNone(holder.owner), std::to_string(holder.devices),
                  AgeText(holder.since, options.now)});
  }
  return text + table.Render(options.width, options.headers);
}

std::string RenderConditions(const WhyAnswer& answer, const RenderOptions& options) {
  if (answer.conditions.empty()) return {};
  TextTable table({{"CONDITION", false, true},
                   {"DEVICE", false, true},
                   {"CLAIM", false, true},
                   {"WAITING"},
                   {"DEADLINE"}});
  for (const ConditionWait& wait : answer.conditions) {
    table.AddRow({wait.failed ? StrCat(wait.condition, " (failed)") : wait.condition, wait.device,
                  wait.claim, AgeText(wait.since, options.now),
                  wait.deadline.empty() ? "<unknown>" : wait.deadline});
  }
  return "\n" + table.Render(options.width, options.headers);
}

std::string RenderDeletions(const WhyAnswer& answer, const RenderOptions& options) {
  std::string text;
  for (const DeletionWait& wait : answer.deletions) {
    text += Wrap(StrCat("- ", wait.object, ": deleted ", AgeText(wait.since, options.now), " ago",
                        wait.finalizer.empty() ? "" : ", finalizer ", wait.finalizer,
                        ", waits for ", wait.owner),
                 options.width, 2);
  }
  return text.empty() ? text : "\nBeing deleted:\n" + text;
}

std::string RenderPreparations(const WhyAnswer& answer, const RenderOptions& options) {
  std::string text;
  for (const PreparationWait& wait : answer.preparations) {
    text += Wrap(
        StrCat("- claim ", wait.claim, " on node ", wait.node, " by ", Join(wait.drivers, ", "),
               ": ", wait.error.empty() ? "no error reported" : wait.error,
               wait.error_at.empty() ? std::string()
                                     : StrCat(" (", AgeText(wait.error_at, options.now), " ago)")),
        options.width, 2);
  }
  return text.empty() ? text : "\nNot prepared:\n" + text;
}

std::string HelpText(const Help& help) {
  switch (help.kind) {
    case Help::Kind::kUncordon:
      return StrCat("uncordon node ", help.node);
    case Help::Kind::kCount:
      return StrCat("ask for ", help.count, help.count == 1 ? " device" : " devices", " in ",
                    help.what, help.node.empty() ? "" : ": fits ", help.node);
    case Help::Kind::kGate:
      // A gate of a node names the node itself.
      return help.component == Help::Component::kNode || help.node.empty()
                 ? GateText(help)
                 : StrCat(GateText(help), ": fits ", help.node);
    case Help::Kind::kChange:
      return StrCat("change ", help.what, help.node.empty() ? "" : ": fits ", help.node);
    case Help::Kind::kFree:
      break;
  }
  std::vector<std::string> names;
  std::size_t hidden = 0;
  for (const Holder& holder : help.holders) {
    if (holder.hidden) {
      ++hidden;
      continue;
    }
    names.push_back(StrCat(holder.pod.empty() ? "" : "pod ", holder.ToString()));
  }
  if (hidden > 0) {
    names.push_back(StrCat(hidden, hidden == 1 ? " pod" : " pods", " of other namespaces"));
  }
  return StrCat("end ", Join(names, ", "), ": frees ", help.count,
                help.count == 1 ? " device" : " devices", help.node.empty() ? "" : " on ",
                help.node);
}

std::string RenderHelp(const WhyAnswer& answer, const RenderOptions& options) {
  std::string text;
  for (const Help& help : answer.help) text += Wrap("- " + HelpText(help), options.width, 2);
  return text.empty() ? text : "\nWhat would help:\n" + text;
}

std::string RenderNodes(const WhyAnswer& answer, const RenderOptions& options) {
  std::string text;
  for (const scheduler::NodeExplanation& node : answer.nodes) {
    text += StrCat("\nnode ", node.node, ": ", node.fits() ? "fits" : "does not fit");
    if (!node.waits_for.empty()) text += StrCat(", then waits for ", Join(node.waits_for, ", "));
    text += "\n";
    for (const scheduler::NodeRefusal& refusal : node.refusals) {
      text +=
          Wrap(StrCat("  ", refusal.plugin, ": ", Join(refusal.reasons, ", ")), options.width, 4);
    }
    if (!node.devices) continue;
    const std::string devices = allocator::RenderText(*node.devices);
    const std::size_t first_line = devices.find('\n');
    if (first_line != std::string::npos) {
      text += WrapTree(Trim(devices.substr(first_line + 1)), options.width);
    }
  }
  return text;
}

void HolderToJson(JsonOut& json, const Holder& holder) {
  json.BeginObject().Field("devices", holder.devices);
  if (holder.hidden) {
    json.Field("hidden", true);
  } else {
    json.Field("namespace", holder.namespace_)
        .FieldIfAny("pod", holder.pod)
        .Field("claim", holder.claim)
        .FieldIfAny("owner", holder.owner)
        .FieldIfAny("since", holder.since);
  }
  json.EndObject();
}

void HoldersToJson(JsonOut& json, const std::vector<Holder>& holders) {
  json.Key("holders").BeginArray();
  for (const Holder& holder : holders) HolderToJson(json, holder);
  json.EndArray();
}

void WaitsToJson(JsonOut& json, const WhyAnswer& answer) {
  json.Key("conditions").BeginArray();
  for (const ConditionWait& wait : answer.conditions) {
    json.BeginObject()
        .Field("claim", wait.claim)
        .Field("device", wait.device)
        .Field("condition", wait.condition)
        .Field("failed", wait.failed)
        .FieldIfAny("message", wait.message)
        .FieldIfAny("since", wait.since)
        .FieldIfAny("deadline", wait.deadline)
        .EndObject();
  }
  json.EndArray().Key("deletions").BeginArray();
  for (const DeletionWait& wait : answer.deletions) {
    json.BeginObject()
        .Field("object", wait.object)
        .FieldIfAny("since", wait.since)
        .FieldIfAny("finalizer", wait.finalizer)
        .Field("waitsFor", wait.owner)
        .EndObject();
  }
  json.EndArray().Key("preparations").BeginArray();
  for (const PreparationWait& wait : answer.preparations) {
    json.BeginObject()
        .Field("claim", wait.claim)
        .Field("node", wait.node)
        .Texts("drivers", wait.drivers)
        .FieldIfAny("since", wait.since)
        .FieldIfAny("error", wait.error)
        .FieldIfAny("errorAt", wait.error_at)
        .EndObject();
  }
  json.EndArray();
}

void DevicesToJson(JsonOut& json, const allocator::Explanation& explanation) {
  if (explanation.out_of_budget) json.Field("outOfBudget", true);
  json.Key("claims").BeginArray();
  for (const allocator::ClaimExplanation& claim : explanation.claims) {
    json.BeginObject().Field("name", claim.name).Key("requests").BeginArray();
    for (const allocator::RequestExplanation& request : claim.requests) {
      json.BeginObject().Field("name", request.name).Field("wanted", request.wanted);
      if (request.wants_all) json.Field("wantsAll", true);
      json.Field("candidates", request.candidates).Field("held", request.held_count);
      json.Key("refusals").BeginArray();
      for (const allocator::Refusal& refusal : request.refusals) {
        json.BeginObject()
            .Field("rule", allocator::RuleName(refusal.rule))
            .Field("count", refusal.count)
            .Key("examples")
            .BeginArray();
        for (const device::DeviceId& example : refusal.examples) json.Text(example.ToString());
        json.EndArray().EndObject();
      }
      json.EndArray().EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray();
  if (!explanation.pools.empty()) {
    json.Key("pools").BeginArray();
    for (const allocator::PoolProblem& pool : explanation.pools) {
      json.BeginObject()
          .Field("name", pool.pool.ToString())
          .Field("state", pool.invalid ? "invalid" : "incomplete")
          .Field("reason", pool.reason)
          .EndObject();
    }
    json.EndArray();
  }
  if (explanation.closest.empty()) return;
  json.Key("closest").BeginArray();
  for (const allocator::ClosestMiss& miss : explanation.closest) {
    json.Text(allocator::RuleName(miss.rule));
  }
  json.EndArray().Key("change").BeginArray();
  for (const allocator::ClosestMiss& miss : explanation.closest) {
    for (const std::string& remedy : miss.remedies) json.Text(remedy);
  }
  json.EndArray();
}

void NodesToJson(JsonOut& json, const std::vector<scheduler::NodeExplanation>& nodes) {
  json.Key("nodes").BeginArray();
  for (const scheduler::NodeExplanation& node : nodes) {
    json.BeginObject().Field("node", node.node).Field("fits", node.fits());
    json.Key("refusals").BeginArray();
    for (const scheduler::NodeRefusal& refusal : node.refusals) {
      json.BeginObject()
          .Field("plugin", refusal.plugin)
          .Texts("reasons", refusal.reasons)
          .EndObject();
    }
    json.EndArray();
    if (!node.waits_for.empty()) json.Texts("waitsFor", node.waits_for);
    if (node.devices) DevicesToJson(json, *node.devices);
    json.EndObject();
  }
  json.EndArray();
}

std::string_view HelpName(Help::Kind kind) {
  switch (kind) {
    case Help::Kind::kFree:
      return "free";
    case Help::Kind::kCount:
      return "count";
    case Help::Kind::kUncordon:
      return "uncordon";
    case Help::Kind::kGate:
      return "gate";
    case Help::Kind::kChange:
      return "change";
  }
  return "";
}

std::string_view ComponentName(Help::Component component) {
  switch (component) {
    case Help::Component::kScheduler:
      return "scheduler";
    case Help::Component::kApiServer:
      return "apiserver";
    case Help::Component::kNode:
      return "node";
  }
  return "";
}

}  // namespace

std::string RenderWhy(const WhyAnswer& answer, const RenderOptions& options) {
  std::string text = RenderNotes(answer.notes, options.width);
  text += Wrap(StrCat(answer.subject, ": ", answer.sentence), options.width);
  if (!answer.queue.empty()) text += Wrap(StrCat("scheduler: ", answer.queue), options.width);
  if (answer.nodes.empty()) text += RenderGroups(answer, options);
  if (answer.closest && !answer.fits) text += RenderHolders(*answer.closest, options);
  text += RenderConditions(answer, options);
  text += RenderDeletions(answer, options);
  text += RenderPreparations(answer, options);
  text += RenderHelp(answer, options);
  text += RenderNodes(answer, options);
  return text;
}

std::string WhyToJson(const WhyAnswer& answer, std::string_view text) {
  JsonOut json;
  json.BeginObject()
      .Field("subject", answer.subject)
      .Field("fits", answer.fits)
      .Field("sentence", answer.sentence)
      .FieldIfAny("blocked", answer.blocked)
      .FieldIfAny("rejected", answer.rejected)
      .FieldIfAny("node", answer.node)
      .FieldIfAny("since", answer.since)
      .FieldIfAny("queue", answer.queue)
      .Texts("devices", answer.devices)
      .Field("nodeCount", answer.node_count)
      .Field("fittingCount", answer.fitting_count)
      .Texts("fitting", answer.fitting)
      .Texts("thenWaitsFor", answer.then_waits_for);
  json.Key("groups").BeginArray();
  for (const NodeGroup& group : answer.groups) {
    json.BeginObject()
        .Field("reason", group.reason)
        .Field("count", group.count)
        .Texts("nodes", group.nodes)
        .Texts("details", group.details)
        .EndObject();
  }
  json.EndArray();
  if (answer.closest) {
    json.Key("closest")
        .BeginObject()
        .FieldIfAny("node", answer.closest->node)
        .Field("missing", answer.closest->missing);
    HoldersToJson(json, answer.closest->holders);
    json.EndObject();
  }
  WaitsToJson(json, answer);
  json.Key("help").BeginArray();
  for (const Help& help : answer.help) {
    json.BeginObject()
        .Field("kind", HelpName(help.kind))
        .Field("text", HelpText(help))
        .FieldIfAny("node", help.node);
    if (help.kind == Help::Kind::kFree) HoldersToJson(json, help.holders);
    if (help.kind == Help::Kind::kGate) {
      json.Field("component", ComponentName(help.component)).Texts("gates", help.gates);
    }
    json.EndObject();
  }
  json.EndArray();
  if (!answer.nodes.empty()) NodesToJson(json, answer.nodes);
  return json.Texts("notes", answer.notes).FieldIfAny("text", text).EndObject().Take();
}

}  // namespace drakkar::answers
