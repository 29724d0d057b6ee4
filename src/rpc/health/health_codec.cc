#include "rpc/health/health_codec.h"

#include <rpc_proto/health.pb.h>
#include <rpc_proto/node_health.pb.h>

#include <utility>

#include "rpc/grpc/limits.h"
#include "rpc/internal/codec.h"

namespace drakkar::rpc {

std::string_view HealthServiceName(HealthService service) {
  switch (service) {
    case HealthService::kV1:
      return "v1.DRAResourceHealth";
    case HealthService::kV1alpha1:
      return "v1alpha1.DRAResourceHealth";
    case HealthService::kNodeHealth:
      return "v1alpha1.NodeHealth";
  }
  return "";
}

std::optional<HealthService> FindHealthService(std::string_view service_name) {
  for (const HealthService service :
       {HealthService::kV1, HealthService::kV1alpha1, HealthService::kNodeHealth}) {
    if (HealthServiceName(service) == service_name) return service;
  }
  return std::nullopt;
}

std::string_view DeviceHealthStateName(DeviceHealthState state) {
  switch (state) {
    case DeviceHealthState::kUnknown:
      return "Unknown";
    case DeviceHealthState::kHealthy:
      return "Healthy";
    case DeviceHealthState::kUnhealthy:
      return "Unhealthy";
  }
  return "";
}

DeviceHealthState ParseDeviceHealthState(std::string_view name) {
  if (name == "Healthy") return DeviceHealthState::kHealthy;
  if (name == "Unhealthy") return DeviceHealthState::kUnhealthy;
  return DeviceHealthState::kUnknown;
}

namespace health {
namespace {

namespace flat = node_health_wire;
namespace wire = health_wire;

wire::HealthStatus ToWire(DeviceHealthState state) {
  switch (state) {
    case DeviceHealthState::kUnknown:
      return wire::UNKNOWN;
    case DeviceHealthState::kHealthy:
      return wire::HEALTHY;
    case DeviceHealthState::kUnhealthy:
      return wire::UNHEALTHY;
  }
  return wire::UNKNOWN;
}

DeviceHealthState FromWire(wire::HealthStatus status) {
  if (status == wire::HEALTHY) return DeviceHealthState::kHealthy;
  if (status == wire::UNHEALTHY) return DeviceHealthState::kUnhealthy;
  return DeviceHealthState::kUnknown;  // also for numbers a newer driver may send
}

std::string EncodeNested(const HealthReport& report) {
  wire::NodeWatchResourcesResponse message;
  for (const DeviceHealth& device : report) {
    wire::DeviceHealth* added = message.add_devices();
    added->mutable_device()->set_pool_name(internal::ValidUtf8(device.pool_name));
    added->mutable_device()->set_device_name(internal::ValidUtf8(device.device_name));
    added->set_health(ToWire(device.health));
    added->set_last_updated_time(device.last_updated_seconds);
    added->set_health_check_timeout_seconds(device.health_check_timeout_seconds);
    added->set_message(internal::ValidUtf8(device.message));
  }
  return message.SerializeAsString();
}

std::string EncodeFlat(const HealthReport& report) {
  flat::WatchResourcesResponse message;
  for (const DeviceHealth& device : report) {
    flat::DeviceHealth* added = message.add_devices();
    added->set_pool_name(internal::ValidUtf8(device.pool_name));
    added->set_device_name(internal::ValidUtf8(device.device_name));
    added->set_health(std::string(DeviceHealthStateName(device.health)));
    added->set_last_updated(device.last_updated_seconds);
    if (device.resource_name.has_value()) {
      added->set_resource_name(internal::ValidUtf8(*device.resource_name));
    }
  }
  return message.SerializeAsString();
}

Result<void> CheckDevices(int count) {
  if (count <= kMaxDriverDevices) return Ok();
  return InvalidArgument(StrCat("a report about more than ", kMaxDriverDevices, " devices"));
}

Result<HealthReport> DecodeNested(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message, internal::Parse<wire::NodeWatchResourcesResponse>(
                                           bytes, "NodeWatchResourcesResponse"));
  RETURN_IF_ERROR(CheckDevices(message.devices_size()));
  HealthReport report;
  for (const wire::DeviceHealth& device : message.devices()) {
    report.push_back({.pool_name = device.device().pool_name(),
                      .device_name = device.device().device_name(),
                      .health = FromWire(device.health()),
                      .last_updated_seconds = device.last_updated_time(),
                      .health_check_timeout_seconds = device.health_check_timeout_seconds(),
                      .message = device.message()});
  }
  return report;
}

Result<HealthReport> DecodeFlat(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   internal::Parse<flat::WatchResourcesResponse>(bytes, "WatchResourcesResponse"));
  RETURN_IF_ERROR(CheckDevices(message.devices_size()));
  HealthReport report;
  for (const flat::DeviceHealth& device : message.devices()) {
    DeviceHealth& added = report.emplace_back();
    added.pool_name = device.pool_name();
    added.device_name = device.device_name();
    added.health = ParseDeviceHealthState(device.health());
    added.last_updated_seconds = device.last_updated();
    if (device.has_resource_name()) added.resource_name = device.resource_name();
  }
  return report;
}

}  // namespace

std::string WatchMethod(HealthService service) {
  return StrCat("/", HealthServiceName(service),
                service == HealthService::kNodeHealth ? "/WatchResources" : "/NodeWatchResources");
}

std::string EncodeReport(const HealthReport& report, HealthService service) {
  return service == HealthService::kNodeHealth ? EncodeFlat(report) : EncodeNested(report);
}

Result<HealthReport> DecodeReport(const std::string& bytes, HealthService service) {
  return service == HealthService::kNodeHealth ? DecodeFlat(bytes) : DecodeNested(bytes);
}

}  // namespace health
}  // namespace drakkar::rpc
