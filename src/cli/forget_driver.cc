#include <set>

#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "cli/commands.h"
#include "cli/session.h"

namespace drakkar::cli {
namespace {

// Read by the node agent (node/status/forgotten_drivers.h).
constexpr char kAnnotation[] = "node.drakkar.io/forgotten-drivers";
constexpr int kMostAttempts = 5;

int RunForgetDriver(const Arguments& arguments, Console& console) {
  const std::string& node_name = arguments.positionals()[0];
  const std::string& driver = arguments.positionals()[1];
  const bool undo = arguments.Bool("undo");
  if (driver.find(',') != std::string::npos) {
    console.Error("give exactly one driver name");
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
      console.Out(StrCat("node/", node_name, ": driver ", driver,
                         undo ? " was not forgotten\n" : " is already forgotten\n"));
      return kExitOk;
    }
    std::string value = "null";
    if (!drivers.empty()) {
      value.clear();
      api::AppendJsonString(value,
                            Join(std::vector<std::string>(drivers.begin(), drivers.end()), ","));
    }
    // Includes the resourceVersion, so that a concurrent change of the list is not overwritten.
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
    console.Out(StrCat("node/", node_name, ": driver ", driver, " is expected again\n"));
    return kExitOk;
  }
  console.Err(StrCat("warning: node ", node_name, " now releases claims without calling ", driver,
                     "; anything the driver set up for them stays\n"));
  console.Out(StrCat("node/", node_name, ": driver ", driver, " forgotten\n"));
  return kExitOk;
}

}  // namespace

Command ForgetDriverCommand() {
  Command command;
  command.name = "node forget-driver";
  command.arguments = "NODE DRIVER";
  command.summary = "Release claims held by a driver that is gone, so that its pods can terminate";
  command.help =
      "A pod with a device stays Terminating until its driver has unprepared the claim. If the "
      "driver will not come back (uninstalled, or replaced by one with another name), run this "
      "command: the node then releases the claims without the driver and emits an event. Anything "
      "the driver set up on the node stays. If the driver registers again, it is called again and "
      "removed from the list.";
  command.examples = "  drakkar node forget-driver node-1 gpu.example.com\n";
  command.flags = {{"undo", 0, FlagType::kBool, "Wait for the driver again.", "false"}};
  command.min_arguments = 2;
  command.max_arguments = 2;
  command.group = FlagGroup::kCluster;
  command.section = "Objects";
  command.run = RunForgetDriver;
  return command;
}

}  // namespace drakkar::cli
