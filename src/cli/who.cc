// drakkar who: which pod holds which device through which claim, since when, and the device's
// health. One consistent read; nothing is written.
#include "answers/who/who.h"

#include "base/text/text.h"
#include "cli/answer.h"
#include "cli/commands.h"

namespace drakkar::cli {
namespace {

using answers::Mask;
using answers::SnapshotKind;

int Run(const Arguments& arguments, Console& console) {
  const Result<AnswerFormat> format = ParseAnswerFormat(arguments.Text("output"));
  if (!format.ok()) {
    console.Error(format.error().message);
    return kExitUsage;
  }
  Result<answers::WhoFilter> filter = WhoFilterFrom(arguments);
  std::optional<answers::HolderGrouping> by;
  if (filter.ok() && !arguments.Text("by").empty()) {
    Result<answers::HolderGrouping> parsed = answers::ParseHolderGrouping(arguments.Text("by"));
    if (parsed.ok()) {
      by = *parsed;
    } else {
      filter = parsed.error();
    }
  }
  if (!filter.ok()) {
    console.Error(filter.error().message);
    return kExitUsage;
  }
  Result<std::unique_ptr<Session>> session = Session::Open(arguments, console);
  if (!session.ok()) {
    Report(console, session.error());
    return kExitFailure;
  }
  Result<answers::Snapshot> snapshot =
      ReadSnapshot(**session, answers::kEveryKind & ~Mask(SnapshotKind::kClasses) &
                                  ~Mask(SnapshotKind::kLeases) & ~Mask(SnapshotKind::kNamespaces));
  if (!snapshot.ok()) {
    Report(console, snapshot.error());
    return kExitFailure;
  }
  if (arguments.Bool("ask-nodes")) AddNodeHealth(**session, console, *snapshot);
  const answers::DeviceTable table(*snapshot);
  answers::WhoAnswer answer = answers::FindHolders(table, *filter);
  answer.notes.insert(answer.notes.begin(), snapshot->notes.begin(), snapshot->notes.end());
  const bool json = *format == AnswerFormat::kJson || *format == AnswerFormat::kYaml;
  const answers::RenderOptions options = RenderOptionsFor(**session, console, arguments, *format);
  if (by) {
    const std::vector<answers::HolderGroup> groups = answers::GroupHolders(answer, *by);
    if (json) {
      PrintJson(console, *format, answers::HolderGroupsToJson(groups, *by));
    } else {
      console.Out(answers::RenderHolderGroups(groups, *by, options));
    }
  } else if (json) {
    PrintJson(console, *format, answers::WhoToJson(answer));
  } else {
    console.Out(answers::RenderWho(answer, options));
  }
  return kExitOk;
}

}  // namespace

Result<answers::WhoFilter> WhoFilterFrom(const Arguments& arguments) {
  answers::WhoFilter filter;
  filter.devices = arguments.positionals();
  filter.node = arguments.Text("node");
  if (arguments.Has("namespace") && !arguments.Bool("all-namespaces")) {
    filter.namespace_ = arguments.Text("namespace");
  }
  filter.owner = arguments.Text("owner");
  ASSIGN_OR_RETURN(filter.labels, api::LabelSelector::Parse(arguments.Text("selector")));
  return filter;
}

std::vector<Flag> WhoFilterFlags() {
  return {{.name = "node", .help = "Only devices of this node.", .placeholder = "NAME"},
          {.name = "owner",
           .help = "Only devices of pods controlled by this owner: KIND/NAME or NAME.",
           .placeholder = "OWNER"},
          {.name = "selector",
           .short_name = 'l',
           .help = "Only devices of pods with these labels.",
           .placeholder = "SELECTOR"},
          {.name = "all-namespaces",
           .short_name = 'A',
           .type = FlagType::kBool,
           .help = "Show holders in all namespaces; the default without -n.",
           .default_value = "false"},
          {.name = "ask-nodes",
           .type = FlagType::kBool,
           .help = "Also ask every node for the health of its devices.",
           .default_value = "false"},
          {.name = "no-headers",
           .type = FlagType::kBool,
           .help = "Omit the column headers.",
           .default_value = "false"}};
}

Command WhoCommand() {
  std::vector<Flag> flags = WhoFilterFlags();
  flags.push_back({.name = "by",
                   .help = "Count holders by node, namespace, owner or label=KEY.",
                   .placeholder = "KEY"});
  flags.push_back(AnswerFormatFlag());
  return {.name = "who",
          .arguments = "[DEVICE...]",
          .summary = "Show which pod holds which device, since when",
          .help =
              "Lists held devices with their pod, claim, age of the allocation and health. DEVICE "
              "is a name, POOL/NAME or DRIVER/POOL/NAME. Without -n, holders in all namespaces are "
              "shown. Health comes from pod statuses; --ask-nodes also asks the nodes. -o wide "
              "adds driver, pool, owner and how much of a shared device is used.",
          .examples =
              "  drakkar who\n"
              "  drakkar who gpu-0 --node worker-3\n"
              "  drakkar who -n team-b --owner Job/tune\n"
              "  drakkar who --by owner\n"
              "  drakkar who --by label=team -o json\n",
          .flags = std::move(flags),
          .min_arguments = 0,
          .group = FlagGroup::kCluster,
          .section = "Devices",
          .run = Run};
}

}  // namespace drakkar::cli
