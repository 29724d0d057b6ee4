#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"

namespace drakkar::apiserver {

// A named check of /livez, /readyz and /healthz.
struct HealthCheck {
  std::string name;
  std::function<Result<void>()> run;
  bool ready_only = false;  // part of /readyz only: a restart would not help
};

struct HealthAnswer {
  int status = 200;
  std::string body;
};

bool IsHealthPath(std::string_view path);

// `path` is /livez, /readyz or /healthz, optionally followed by the name of one check. Verbose
// output lists every check; so does a failure, without reasons, as in Kubernetes.
HealthAnswer AnswerHealth(std::string_view path, bool verbose,
                          const std::vector<std::string_view>& excluded,
                          const std::vector<HealthCheck>& checks);

}  // namespace drakkar::apiserver
