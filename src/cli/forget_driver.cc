#include <set>

#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "cli/commands.h"
#include "cli/session.h"

namespace drakkar::cli {
namespace {

// What the node agent follows (node/status/forgotten_drivers.h).
constexpr char kAnnotation[] = "node.drakkar.io/forgotten-drivers";
constexpr int kMostAttempts = 5;

int RunForgetDriver(const Arguments& arguments, Console& console) {
  const std::string& node_name = arguments.positionals()[0];
  const std::string& driver = arguments.positionals()[1];
  const bool undo = arguments.Bool("undo");
  if (driver.find(',') != std::string::npos) {
    console.Error("name one driver at a time");
    return kExitUsage;
  }
  Result<std::unique_ptr<Session>> session = Session::Open(arguments, console);
  if (!session.ok()) {
    Report(console, session.error());
    return kExitFailure;
  }
  const client::ResourceRef ref = (*session)->Ref(*api::FindResource("", "v1", "nodes"), node_name);
  for (int attempt = 1;; ++attempt) {
    Result<api::ObjectPtr> node = (*session)->Get(ref);
    if (!node.ok()) {
      Report(console, node.error());
      return kExitFailure;
    }
    std::set<std::string> drivers;
    for (std::string_view each :
         Split((**node)["metadata"]["annotations"].Entry(kAnnotation).str(), ',')) {
      if (!Trim(each).empty()) drivers.emplace(Trim(each));
    }
    const bool changed = undo ? drivers.erase(driver) > 0 : drivers.insert(driver).second;
    if (!changed) {
      console.Out(StrCat("node/", node_name, undo ? " has not forgotten " : " has forgotten ",
                         driver, undo ? "\n" : " already\n"));
      return kExitOk;
    }
    std::string value = "null";
    if (!drivers.empty()) {
      value.clear();
      api::AppendJsonString(value,
                            Join(std::vector<std::string>(drivers.begin(), drivers.end()), ","));
    }
    // With the version read: a list somebody else has changed meanwhile is not overwritten.
    Result<api::ObjectPtr> patched = (*session)->Patch(
        ref, client::PatchType::kMerge,
        StrCat(R"({"metadata":{"resourceVersion":")", (**node)["metadata"]["resourceVersion"].str(),
               R"(","annotations":{")", kAnnotation, "\":", value, "}}}"),
        {});
    if (patched.ok()) break;
    if (patched.error().code != ErrorCode::kConflict || attempt == kMostAttempts) {
      Report(console, patched.error());
      return kExitFailure;
    }
  }
  if (undo) {
    console.Out(StrCat("node/", node_name, " waits for ", driver, " again\n"));
    return kExitOk;
  }
  console.Err(StrCat("warning: claims of pods that end on node ", node_name,
                     " are now given up without ", driver,
                     ": what the driver has set up for them stays as it is\n"));
  console.Out(StrCat("node/", node_name, " has forgotten ", driver, "\n"));
  return kExitOk;
}

}  // namespace

Command ForgetDriverCommand() {
  Command command;
  command.name = "node forget-driver";
  command.arguments = "NODE DRIVER";
  command.summary = "Let pods go although their DRA driver will not come back";
  command.help =
      "A pod with a device stays Terminating until its driver has taken the device back. When the "
      "driver is gone for good (uninstalled, replaced by one of another name), say so here: the "
      "node "
      "then gives its claims up without it and records an event. Nothing undoes what the driver "
      "had "
      "set up on the node. A driver that registers again is called again and taken off the list.";
  command.examples = "  drakkar node forget-driver node-1 gpu.example.com\n";
  command.flags = {{"undo", 0, FlagType::kBool, "Take the driver off the list.", "false"}};
  command.min_arguments = 2;
  command.max_arguments = 2;
  command.group = FlagGroup::kCluster;
  command.section = "Objects";
  command.run = RunForgetDriver;
  return command;
}

}  // namespace drakkar::cli
