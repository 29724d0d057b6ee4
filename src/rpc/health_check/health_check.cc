#include "rpc/health_check/health_check.h"

#include <rpc_proto/grpc_health.pb.h>

#include <utility>

#include "rpc/internal/codec.h"
#include "rpc/transport/transport.h"

namespace drakkar::rpc {

namespace wire = grpc_health_wire;

std::string HealthCheckMethod() {
  return "/grpc.health.v1.Health/Check";
}

std::string EncodeHealthCheckRequest(const std::string& service) {
  wire::HealthCheckRequest request;
  request.set_service(internal::ValidUtf8(service));
  return request.SerializeAsString();
}

Result<std::string> DecodeHealthCheckRequest(const std::string& bytes) {
  ASSIGN_OR_RETURN(wire::HealthCheckRequest request,
                   internal::Parse<wire::HealthCheckRequest>(bytes, "HealthCheckRequest"));
  return std::move(*request.mutable_service());
}

std::string EncodeHealthCheckResponse(int status) {
  wire::HealthCheckResponse response;
  response.set_status(status);
  return response.SerializeAsString();
}

std::string ServingStatusName(int status) {
  switch (status) {
    case 0:
      return "UNKNOWN";
    case 1:
      return "SERVING";
    case 2:
      return "NOT_SERVING";
    case 3:
      return "SERVICE_UNKNOWN";
    default:
      return std::to_string(status);
  }
}

void CheckHealth(Channel& channel, const std::string& service, Duration timeout,
                 std::function<void(Result<std::string>)> done) {
  channel.Call(HealthCheckMethod(), EncodeHealthCheckRequest(service), timeout,
               [done = std::move(done)](Result<std::string> answer) {
                 if (!answer.ok()) return done(answer.error());
                 auto response =
                     internal::Parse<wire::HealthCheckResponse>(*answer, "HealthCheckResponse");
                 if (!response.ok()) return done(response.error());
                 done(ServingStatusName(response->status()));
               });
}

}  // namespace drakkar::rpc
