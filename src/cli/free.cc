// drakkar free: counts devices that are free, held, tainted or unhealthy, and how many more claims
// of a given shape fit. One consistent read; nothing is written.
#include "answers/free/free.h"
#include "answers/free/fits.h"
#include "api/scheme/scheme.h"
#include "base/env/random.h"
#include "base/exec/uv_loop.h"
#include "base/text/text.h"
#include "cli/answer.h"
#include "cli/commands.h"
#include "cli/manifest.h"
#include "device/cel_expressions.h"

namespace drakkar::cli {
namespace {

using answers::Mask;
using answers::SnapshotKind;

// The only claim or template in the file.
Result<api::TreePtr> ReadClaim(Console& console, const std::string& path) {
  const Manifests manifests = ReadManifests(console, {path}, {});
  if (!manifests.problems.empty()) return manifests.problems.front();
  const ManifestObject* found = nullptr;
  for (const ManifestObject& each : manifests.objects) {
    const std::string_view kind = each.kind == nullptr ? "" : each.kind->kind;
    if (kind != "ResourceClaim" && kind != "ResourceClaimTemplate") continue;
    if (found != nullptr) {
      return InvalidArgument(StrCat(path, " has more than one claim; --fits takes one"));
    }
    found = &each;
  }
  if (found == nullptr) {
    return InvalidArgument(StrCat(path, " has no ResourceClaim or ResourceClaimTemplate"));
  }
  return found->tree;
}

int RunFits(const Arguments& arguments, Console& console, Session& session, AnswerFormat format) {
  const Result<api::TreePtr> claim = ReadClaim(console, arguments.Text("fits"));
  if (!claim.ok()) {
    Report(console, claim.error());
    return kExitFailure;
  }
  Result<answers::Snapshot> snapshot = ReadSnapshot(
      session, answers::kEveryKind & ~Mask(SnapshotKind::kPods) & ~Mask(SnapshotKind::kNamespaces));
  if (!snapshot.ok()) {
    Report(console, snapshot.error());
    return kExitFailure;
  }
  std::string note;
  const scheduler::Settings settings = ReadSchedulerSettings(session, note);
  if (!note.empty()) snapshot->notes.push_back(note);
  UvLoop loop;  // for its clock
  device::CelExpressions compiler;
  const Result<answers::FitsAnswer> answer =
      answers::CountFits(*snapshot, (*claim)->root(),
                         {.loop = loop,
                          .random = RealRandom(),
                          .compiler = compiler,
                          .gates = settings.gates,
                          .declared_features = nullptr,
                          .profile = settings.profiles.front()});
  if (!answer.ok()) {
    Report(console, answer.error());
    return kExitFailure;
  }
  if (format == AnswerFormat::kJson || format == AnswerFormat::kYaml) {
    PrintJson(console, format, answers::FitsToJson(*answer));
  } else {
    console.Out(
        answers::RenderFits(*answer, RenderOptionsFor(session, console, arguments, format)));
  }
  return kExitOk;
}

int Run(const Arguments& arguments, Console& console) {
  const Result<AnswerFormat> format = ParseAnswerFormat(arguments.Text("output"));
  const Result<answers::Grouping> by = answers::ParseGrouping(arguments.Text("by"));
  for (const Error* error :
       {format.ok() ? nullptr : &format.error(), by.ok() ? nullptr : &by.error()}) {
    if (error == nullptr) continue;
    console.Error(error->message);
    return kExitUsage;
  }
  Result<std::unique_ptr<Session>> session = Session::Open(arguments, console);
  if (!session.ok()) {
    Report(console, session.error());
    return kExitFailure;
  }
  if (!arguments.Text("fits").empty()) return RunFits(arguments, console, **session, *format);
  Result<answers::Snapshot> snapshot = ReadSnapshot(**session, answers::kEveryKind);
  if (!snapshot.ok()) {
    Report(console, snapshot.error());
    return kExitFailure;
  }
  if (arguments.Bool("ask-nodes")) AddNodeHealth(**session, console, *snapshot);
  device::CelExpressions compiler;
  const answers::DeviceTable table(*snapshot, {.compiler = &compiler});
  answers::FreeAnswer answer = answers::CountFree(table, *by,
                                                  {.device_class = arguments.Text("class"),
                                                   .driver = arguments.Text("driver"),
                                                   .node = arguments.Text("node"),
                                                   .pool = arguments.Text("pool")});
  answer.notes.insert(answer.notes.begin(), snapshot->notes.begin(), snapshot->notes.end());
  if (*format == AnswerFormat::kJson || *format == AnswerFormat::kYaml) {
    PrintJson(console, *format, answers::FreeToJson(answer));
  } else {
    console.Out(
        answers::RenderFree(answer, RenderOptionsFor(**session, console, arguments, *format)));
  }
  return kExitOk;
}

}  // namespace

Command FreeCommand() {
  return {
      .name = "free",
      .arguments = "",
      .summary = "Count the devices that are free, held, tainted or unhealthy",
      .help =
          "Counts devices by class, model, driver, node, pool or any attribute. FREE devices can "
          "be "
          "allocated now. A device can be held, tainted and unhealthy at once, so the columns need "
          "not add up. UNUSABLE devices are in an incomplete pool, on a node that is gone, not "
          "ready or cordoned, or are partitions whose counters are used up. Shared capacity and "
          "counters follow if there are any; LARGEST is the most that one device or counter set "
          "has left.\n\n"
          "With --fits, it shows how many more claims like the one in the file could be allocated, "
          "and on which nodes; CPU and memory are not counted.",
      .examples =
          "  drakkar free\n"
          "  drakkar free --by model\n"
          "  drakkar free --by node --class gpu.example.com\n"
          "  drakkar free --by gpu.example.com/driverVersion -o json\n"
          "  drakkar free --fits claim.yaml\n",
      .flags =
          {{.name = "by",
            .help = "Group by class, model, driver, node, pool or an attribute (ID or DOMAIN/ID).",
            .default_value = "class",
            .placeholder = "KEY"},
           {.name = "class", .help = "Only devices of this DeviceClass.", .placeholder = "NAME"},
           {.name = "driver", .help = "Only devices of this driver.", .placeholder = "NAME"},
           {.name = "node", .help = "Only devices of this node.", .placeholder = "NAME"},
           {.name = "pool",
            .help = "Only devices of this pool (POOL or DRIVER/POOL).",
            .placeholder = "NAME"},
           {.name = "fits",
            .help = "Count how many more claims like the one in this file fit.",
            .placeholder = "FILE"},
           {.name = "ask-nodes",
            .type = FlagType::kBool,
            .help = "Also ask every node for the health of its devices.",
            .default_value = "false"},
           {.name = "no-headers",
            .type = FlagType::kBool,
            .help = "Omit the column headers.",
            .default_value = "false"},
           AnswerFormatFlag()},
      .min_arguments = 0,
      .max_arguments = 0,
      .group = FlagGroup::kCluster,
      .section = "Devices",
      .run = Run};
}

}  // namespace drakkar::cli
