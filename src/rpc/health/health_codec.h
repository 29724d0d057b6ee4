#pragma once

#include <string>

#include "rpc/health/health.h"

namespace drakkar::rpc::health {

std::string WatchMethod(HealthService service);
std::string EncodeReport(const HealthReport& report, HealthService service);
Result<HealthReport> DecodeReport(const std::string& bytes, HealthService service);

}  // namespace drakkar::rpc::health
