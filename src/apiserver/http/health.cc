#include "apiserver/http/health.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

constexpr std::string_view kEndpoints[] = {"/healthz", "/livez", "/readyz"};

std::string_view EndpointOf(std::string_view path) {
  for (std::string_view each : kEndpoints) {
    if (path == each || (path.starts_with(each) && path[each.size()] == '/')) return each;
  }
  return {};
}

}  // namespace

bool IsHealthPath(std::string_view path) {
  return !EndpointOf(path).empty();
}

HealthAnswer AnswerHealth(std::string_view path, bool verbose,
                          const std::vector<std::string_view>& excluded,
                          const std::vector<HealthCheck>& checks) {
  const std::string_view endpoint = EndpointOf(path);
  const bool ready = endpoint == "/readyz";
  if (path.size() > endpoint.size() + 1) {
    const std::string_view wanted = path.substr(endpoint.size() + 1);
    for (const HealthCheck& check : checks) {
      if (check.name != wanted || (check.ready_only && !ready)) continue;
      const Result<void> result = check.run();
      if (result.ok()) return {200, "ok"};
      return {500, StrCat("internal server error: ", result.error().message, "\n")};
    }
    return {404, "404 page not found\n"};
  }
  HealthAnswer answer;
  for (const HealthCheck& check : checks) {
    if (check.ready_only && !ready) continue;
    if (std::ranges::find(excluded, check.name) != excluded.end()) {
      answer.body += StrCat("[+]", check.name, " excluded: ok\n");
      continue;
    }
    if (check.run().ok()) {
      answer.body += StrCat("[+]", check.name, " ok\n");
    } else {
      answer.body += StrCat("[-]", check.name, " failed: reason withheld\n");
      answer.status = 500;
    }
  }
  for (std::string_view name : excluded) {
    if (std::ranges::none_of(checks, [&](const HealthCheck& each) { return each.name == name; })) {
      answer.body +=
          StrCat("warn: some health checks cannot be excluded: no matches for ", Quote(name), "\n");
    }
  }
  const std::string_view what = endpoint.substr(1);
  if (answer.status != 200) {
    answer.body += StrCat(what, " check failed\n");
  } else if (verbose) {
    answer.body += StrCat(what, " check passed\n");
  } else {
    answer.body = "ok";
  }
  return answer;
}

}  // namespace drakkar::apiserver
