#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rpc/server/service_set.h"

namespace drakkar::rpc {

// A driver's side of every service, scripted by a test. Serve it with any transport:
// `CreateServer(transport, path, plugin.Services())`. Lives on the server's loop.
class FakeDraPlugin final : public RegistrationHandler,
                            public DraPluginService,
                            public HealthSource {
 public:
  explicit FakeDraPlugin(std::string driver_name);

  // All services but pod resources.
  ServiceSet Services();

  // Registration.
  PluginInfo info;
  std::optional<Error> get_info_error;
  std::optional<Error> notify_error;
  std::vector<RegistrationStatus> notifications;  // received from the node

  // Calls. Each claim is answered by the hooks; the default is one device named after the claim.
  std::function<PrepareResult(const ClaimReference&)> prepare_claim;
  std::function<UnprepareResult(const ClaimReference&)> unprepare_claim;
  // May change the whole answer, even to one that does not match the request.
  std::function<void(PrepareResults&)> change_prepare_answer;
  std::function<void(UnprepareResults&)> change_unprepare_answer;
  std::optional<Error> prepare_error;  // fails the whole call
  std::optional<Error> unprepare_error;
  bool hold_calls = false;  // keep calls unanswered until ReleaseCalls
  void ReleaseCalls();
  void DropCalls();  // destroy held calls without an answer
  std::size_t held_calls() const { return held_.size(); }
  std::vector<std::vector<ClaimReference>> prepare_calls;
  std::vector<std::vector<ClaimReference>> unprepare_calls;
  std::vector<std::vector<AnnouncedClaim>> announcements;
  std::function<void()> on_announcement;  // may be empty

  // Health. A new watcher gets the latest report at once, if there is one.
  bool health_supported = true;
  void PushHealth(HealthReport report);
  void EndHealth(Result<void> result);
  std::size_t health_watchers() const { return sinks_.size(); }

  Result<PluginInfo> GetInfo() override;
  Result<void> NotifyRegistrationStatus(const RegistrationStatus& status) override;
  void NodePrepareResources(std::vector<ClaimReference> claims, PrepareDone done) override;
  void NodeUnprepareResources(std::vector<ClaimReference> claims, UnprepareDone done) override;
  void AnnouncePrepare(std::vector<AnnouncedClaim> claims, AnnounceDone done) override;
  void Watch(std::unique_ptr<HealthSink> sink) override;

 private:
  void Answer(absl::AnyInvocable<void()> answer);

  std::vector<absl::AnyInvocable<void()>> held_;
  std::map<HealthSink*, std::unique_ptr<HealthSink>> sinks_;
  std::optional<HealthReport> latest_;
};

}  // namespace drakkar::rpc
