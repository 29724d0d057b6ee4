#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace drakkar::apiserver {

// One named check of /livez, /readyz and /healthz. It says what is wrong, or nothing.
struct HealthCheck {
  std::string name;
  std::function<std::string()> run;
  bool ready_only = false;  // part of /readyz, but nothing a restart would cure
};

struct HealthAnswer {
  int status = 200;
  std::string body;
};

bool IsHealthPath(std::string_view path);

// `path` is /livez, /readyz or /healthz, or one of them with the name of one check behind it.
// Verbose lists every check; failures do so always, without the reasons, as in Kubernetes.
HealthAnswer AnswerHealth(std::string_view path, bool verbose,
                          const std::vector<std::string_view>& excluded,
                          const std::vector<HealthCheck>& checks);

}  // namespace drakkar::apiserver
