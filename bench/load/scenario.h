#pragma once

#include <map>
#include <string>
#include <vector>

#include "bench/load/api.h"
#include "bench/load/figures.h"
#include "bench/load/probe.h"

namespace drakkar::load {

struct Context {
  Api& api;
  Probe& probe;
  std::map<std::string, std::string> settings;  // --name=value

  std::size_t Count(const std::string& name, std::size_t otherwise) const;
};

struct Scenario {
  std::string id;
  std::string what;
  std::function<Result<std::vector<Figure>>(Context&)> run;
};

std::vector<Scenario> ApiScenarios();
std::vector<Scenario> SchedScenarios();
std::vector<Scenario> BindingScenarios();

// Objects that several scenarios start with.
Result<void> Create(Api& api, std::string_view path, std::string body);
Result<void> CreateNodes(Api& api, std::size_t count);
// Creates `count` pods at once and blocks until a watch has shown that many more as bound.
struct BurstResult {
  Duration elapsed{};
  std::vector<std::string> pods;  // names
};
Result<BurstResult> Burst(Api& api, std::size_t count,
                          const std::function<std::string(std::size_t)>& pod);
Result<void> DeletePods(Api& api, const std::vector<std::string>& names);
// The current version of a collection, from which a watch starts.
Result<std::string> VersionOf(Api& api, std::string_view path);
std::string BoundPodsWatch(const std::string& version);

}  // namespace drakkar::load
