#include "answers/why/summary.h"

#include <algorithm>

#include "answers/why/gates.h"
#include "api/meta/age.h"
#include "api/meta/time.h"
#include "base/text/text.h"

namespace drakkar::answers {
namespace {

constexpr std::size_t kShownNames = 3;

std::string NamesOf(const std::vector<std::string>& names) {
  std::vector<std::string> shown(
      names.begin(),
      names.begin() + static_cast<std::ptrdiff_t>(std::min(kShownNames, names.size())));
  std::string text = Join(shown, ", ");
  if (names.size() > kShownNames) text += StrCat(" and ", names.size() - kShownNames, " more");
  return text;
}

std::string ForAge(const std::string& since, WallTime now) {
  const Result<WallTime> parsed = api::ParseTime(since);
  return parsed.ok() ? StrCat(" for ", api::FormatAge(now - *parsed)) : std::string();
}

std::string DevicesOf(const WhyAnswer& answer) {
  if (answer.devices.empty()) return {};
  std::vector<std::string> names;
  for (const std::string& id : answer.devices) names.push_back(id.substr(id.rfind('/') + 1));
  return StrCat(" with ", answer.devices.size() == 1 ? "device " : "devices ", NamesOf(names));
}

std::string HoldersOf(const std::vector<Holder>& holders) {
  std::vector<std::string> names;
  for (const Holder& holder : holders) {
    std::string name = holder.ToString();
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }
  return NamesOf(names);
}

std::string Condition(const WhyAnswer& answer, WallTime now) {
  const ConditionWait& first = answer.conditions.front();
  std::string text = first.failed
                         ? StrCat("device ", first.device, " failed (", first.condition, ")")
                         : StrCat("waits", ForAge(first.since, now), " until ", first.condition,
                                  " of ", first.device, " is true");
  if (answer.conditions.size() > 1) text += StrCat(" and ", answer.conditions.size() - 1, " more");
  if (!first.message.empty()) text += StrCat(" (", first.message, ")");
  const Result<WallTime> deadline = api::ParseTime(first.deadline);
  if (!first.failed && deadline.ok()) {
    text += *deadline > now ? StrCat("; gives up in ", api::FormatAge(*deadline - now))
                            : std::string("; its time is up");
  }
  return text;
}

std::string Deletion(const DeletionWait& wait, WallTime now) {
  std::string text = StrCat(wait.object, " is being deleted", ForAge(wait.since, now));
  if (!wait.finalizer.empty()) text += StrCat(" and has finalizer ", wait.finalizer);
  return StrCat(text, "; it waits for ", wait.owner);
}

std::string Preparation(const WhyAnswer& answer, WallTime now) {
  const PreparationWait* wait = &answer.preparations.front();
  for (const PreparationWait& each : answer.preparations) {
    if (wait->error.empty() && !each.error.empty()) wait = &each;
  }
  std::string text = StrCat("is on node ", wait->node, ForAge(wait->since, now), ", but claim ",
                            wait->claim, " is not prepared by ", Join(wait->drivers, ", "));
  if (wait->error.empty()) return StrCat(text, "; no error was reported");
  return StrCat(text, ": ", wait->error);
}

std::string Refusal(const WhyAnswer& answer) {
  std::vector<std::string> parts;
  for (const NodeGroup& group : answer.groups) {
    parts.push_back(StrCat(group.count, " ", group.reason));
  }
  std::string text = StrCat("0 of ", answer.node_count,
                            answer.node_count == 1 ? " node: " : " nodes: ", Join(parts, ", "));
  if (!answer.closest) return text;
  const Closest& closest = *answer.closest;
  text += StrCat("; closest is ", closest.node.empty() ? "a node" : closest.node, ", short by ",
                 closest.missing);
  if (!closest.holders.empty()) text += StrCat(", held by ", HoldersOf(closest.holders));
  return text;
}

}  // namespace

void Summarize(WhyAnswer& answer, WallTime now) {
  std::string& text = answer.sentence;
  if (!answer.deletions.empty()) {
    text = Deletion(answer.deletions.front(), now);
  } else if (!answer.preparations.empty()) {
    text = Preparation(answer, now);
  } else if (!answer.conditions.empty()) {
    text = Condition(answer, now);
  } else if (!answer.rejected.empty()) {
    text = answer.rejected;
  } else if (!answer.blocked.empty()) {
    text = answer.fits ? answer.blocked : StrCat("no node was tried: ", answer.blocked);
  } else if (answer.fits && answer.node_count > 0) {
    text = StrCat("fits ", answer.fitting_count, " of ", answer.node_count,
                  answer.node_count == 1 ? " node" : " nodes", answer.fitting.empty() ? "" : ": ",
                  NamesOf(answer.fitting));
    if (!answer.then_waits_for.empty()) {
      text += StrCat("; there it first waits for ", Join(answer.then_waits_for, ", "));
    }
  } else if (answer.fits) {
    text = answer.node.empty() ? StrCat("is allocated", DevicesOf(answer))
                               : StrCat("is on node ", answer.node, DevicesOf(answer));
    text += ForAge(answer.since, now);
  } else {
    text = Refusal(answer);
  }
  for (const Help& help : answer.help) {
    if (help.kind != Help::Kind::kGate) continue;
    text += StrCat("; ", GateText(help));
    break;
  }
}

}  // namespace drakkar::answers
