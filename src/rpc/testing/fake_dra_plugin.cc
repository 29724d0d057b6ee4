#include "rpc/testing/fake_dra_plugin.h"

#include <utility>

namespace drakkar::rpc {

FakeDraPlugin::FakeDraPlugin(std::string driver_name) {
  info.type = kDraPluginType;
  info.name = driver_name;
  info.supported_versions = {"v1.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAResourceHealth",
                             "v1alpha1.DRAResourceHealth", "v1alpha1.NodeHealth"};
  prepare_claim = [driver_name](const ClaimReference& claim) {
    PreparedDevice device;
    device.pool_name = "pool";
    device.device_name = "device-" + claim.name;
    device.cdi_device_ids = {driver_name + "/test=" + claim.uid};
    return PrepareResult{.devices = {std::move(device)}};
  };
  unprepare_claim = [](const ClaimReference&) { return UnprepareResult(); };
}

ServiceSet FakeDraPlugin::Services() {
  ServiceSet services;
  services.registration = this;
  services.dra = this;
  services.health = this;
  return services;
}

Result<PluginInfo> FakeDraPlugin::GetInfo() {
  if (get_info_error.has_value()) return *get_info_error;
  return info;
}

Result<void> FakeDraPlugin::NotifyRegistrationStatus(const RegistrationStatus& status) {
  notifications.push_back(status);
  if (notify_error.has_value()) return *notify_error;
  return Ok();
}

void FakeDraPlugin::NodePrepareResources(std::vector<ClaimReference> claims, PrepareDone done) {
  prepare_calls.push_back(claims);
  Answer([this, claims = std::move(claims), done = std::move(done)]() mutable {
    if (prepare_error.has_value()) return done(*prepare_error);
    PrepareResults results;
    for (const ClaimReference& claim : claims) results[claim.uid] = prepare_claim(claim);
    if (change_prepare_answer) change_prepare_answer(results);
    done(std::move(results));
  });
}

void FakeDraPlugin::AnnouncePrepare(std::vector<AnnouncedClaim> claims, AnnounceDone done) {
  announcements.push_back(std::move(claims));
  if (on_announcement) on_announcement();
  done();
}

void FakeDraPlugin::NodeUnprepareResources(std::vector<ClaimReference> claims, UnprepareDone done) {
  unprepare_calls.push_back(claims);
  Answer([this, claims = std::move(claims), done = std::move(done)]() mutable {
    if (unprepare_error.has_value()) return done(*unprepare_error);
    UnprepareResults results;
    for (const ClaimReference& claim : claims) results[claim.uid] = unprepare_claim(claim);
    if (change_unprepare_answer) change_unprepare_answer(results);
    done(std::move(results));
  });
}

void FakeDraPlugin::Answer(absl::AnyInvocable<void()> answer) {
  if (hold_calls) {
    held_.push_back(std::move(answer));
  } else {
    answer();
  }
}

void FakeDraPlugin::ReleaseCalls() {
  for (auto& answer : std::exchange(held_, {})) answer();
}

void FakeDraPlugin::DropCalls() {
  held_.clear();
}

void FakeDraPlugin::Watch(std::unique_ptr<HealthSink> sink) {
  if (!health_supported) {
    sink->Finish(Error{ErrorCode::kUnimplemented, "this driver does not report health"});
    return;
  }
  HealthSink* key = sink.get();
  sink->OnCancelled([this, key] { sinks_.erase(key); });
  if (latest_.has_value()) sink->Send(*latest_);
  sinks_.emplace(key, std::move(sink));
}

void FakeDraPlugin::PushHealth(HealthReport report) {
  latest_ = std::move(report);
  for (auto& [key, sink] : sinks_) sink->Send(*latest_);
}

void FakeDraPlugin::EndHealth(Result<void> result) {
  for (auto& [key, sink] : std::exchange(sinks_, {})) sink->Finish(result);
}

}  // namespace drakkar::rpc
