#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/env/clock.h"
#include "base/result/result.h"

namespace drakkar::rpc {

class Channel;

// "/grpc.health.v1.Health/Check", gRPC's own health service.
std::string HealthCheckMethod();

std::string EncodeHealthCheckRequest(const std::string& service);
Result<std::string> DecodeHealthCheckRequest(const std::string& bytes);
std::string EncodeHealthCheckResponse(int status);

// "SERVING", "NOT_SERVING", ...; the number for a status unknown to the protocol.
std::string ServingStatusName(int status);

// Queries the status of `service` ("" is the server as a whole). `done` runs once with the name of
// the status, never inside the call, and not after the channel is destroyed.
void CheckHealth(Channel& channel, const std::string& service, Duration timeout,
                 std::function<void(Result<std::string>)> done);

}  // namespace drakkar::rpc
