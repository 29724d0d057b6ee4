// drakkar-load: generates the load of one scenario and prints its figures. tools/bench.py starts
// it.
#include <algorithm>
#include <cstdio>

#include "base/env/file_system.h"
#include "base/text/text.h"
#include "bench/load/scenario.h"
#include "client/kubeconfig.h"

namespace drakkar::load {
namespace {

std::vector<Scenario> AllScenarios() {
  std::vector<Scenario> all = ApiScenarios();
  for (Scenario& each : SchedScenarios()) all.push_back(std::move(each));
  for (Scenario& each : BindingScenarios()) all.push_back(std::move(each));
  return all;
}

int Usage(const std::vector<Scenario>& scenarios) {
  std::string text =
      "usage: drakkar-load SCENARIO --kubeconfig=FILE [--pids=PID,PID] [--http1=1]\n"
      "                    [--connections=N] [--count=N] [--nodes=N] [--pods=N] ...\n";
  for (const Scenario& each : scenarios) {
    text += StrCat("  ", each.id, std::string(each.id.size() < 28 ? 28 - each.id.size() : 1, ' '),
                   each.what, "\n");
  }
  std::fputs(text.c_str(), stderr);
  return 2;
}

int Main(const std::vector<std::string>& arguments) {
  const std::vector<Scenario> scenarios = AllScenarios();
  std::string id;
  std::map<std::string, std::string> settings;
  for (const std::string& argument : arguments) {
    if (!argument.starts_with("--")) {
      id = argument;
    } else if (const std::size_t equals = argument.find('='); equals != std::string::npos) {
      settings[argument.substr(2, equals - 2)] = argument.substr(equals + 1);
    } else {
      return Usage(scenarios);
    }
  }
  const auto scenario = std::ranges::find(scenarios, id, &Scenario::id);
  if (scenario == scenarios.end()) return Usage(scenarios);
  Result<client::ClusterAccess> access =
      client::LoadKubeconfig(RealFileSystem(), settings["kubeconfig"]);
  if (!access.ok()) {
    std::fprintf(stderr, "drakkar-load: %s\n", access.error().message.c_str());
    return 1;
  }
  std::vector<std::string> pids;
  for (std::string_view pid : Split(settings["pids"], ',')) {
    if (!pid.empty()) pids.emplace_back(pid);
  }
  UvLoop loop;
  const bool http2 = settings["http1"] != "1";
  const std::size_t few = id.starts_with("api.") ? 32 : 8;
  const auto connections = static_cast<std::size_t>(
      ParseInt64(settings["connections"]).value_or(static_cast<std::int64_t>(few)));
  Api api(loop, *access, {.connections = connections, .http2 = http2});
  Probe probe(api, pids);
  Context context{api, probe, settings};
  Result<std::vector<Figure>> figures = scenario->run(context);
  if (!figures.ok()) {
    std::fprintf(stderr, "drakkar-load: %s: %s\n", id.c_str(), figures.error().message.c_str());
    return 1;
  }
  for (Figure& figure : *figures) {
    figure.detail.Text("protocol", http2 ? "HTTP/2" : "HTTP/1.1");
    figure.detail.Number("connections", static_cast<double>(connections));
  }
  std::fputs(FiguresJson(*figures).c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace drakkar::load

int main(int argc, char** argv) {
  return drakkar::load::Main(std::vector<std::string>(argv + 1, argv + argc));
}
