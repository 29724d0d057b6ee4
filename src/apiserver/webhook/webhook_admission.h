#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "apiserver/rest/remote_admission.h"
#include "apiserver/webhook/transport.h"
#include "apiserver/webhook/webhook_metrics.h"
#include "apiserver/webhook/webhook_set.h"

namespace drakkar::apiserver {

class RbacAuthorizer;

// Calls the webhooks of MutatingWebhookConfigurations one after the other, each with what the one
// before it returned, and those of ValidatingWebhookConfigurations all at once.
//
// Bound to the core's loop. A webhook that does not answer holds up at most kMaxCallsPerWebhook
// requests, each for its timeout (30 seconds at most), with at most kMaxBytesPerWebhook of reviews;
// those of all webhooks have at most kMaxBytes. Further calls fail at once and are subject to the
// webhook's failurePolicy.
class WebhookAdmission final : public RemoteAdmission {
 public:
  static constexpr std::size_t kMaxCallsPerWebhook = 500;
  static constexpr std::size_t kMaxBytesPerWebhook = std::size_t{32} << 20;
  static constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
  // Longer answers are errors. An object and its patch in base64 have room.
  static constexpr std::size_t kMaxAnswerBytes = std::size_t{6} << 20;

  struct Options {
    Random& random;
    WebhookTransport& transport;
    Metrics* metrics = nullptr;      // null: calls are not counted
    RbacAuthorizer* rbac = nullptr;  // for the authorizer of match conditions
  };
  explicit WebhookAdmission(Options options);
  ~WebhookAdmission() override;

  // `core` must outlive this object, unless Detach is called first. Before Attach there are no
  // webhooks.
  void Attach(Core& core);
  void Detach();

  // Reviews that wait for their answers.
  std::size_t bytes_in_flight() const { return bytes_in_flight_; }

  bool Concerns(Phase phase, const api::KindSchema& kind) override;
  bool Matches(Phase phase, const AdmissionSubject& subject) override;
  void Mutate(RemoteQuestion question, Reinvocation& reinvocation,
              std::function<void(RemoteAnswer)> done) override;
  void Validate(RemoteQuestion question, std::function<void(RemoteAnswer)> done) override;

 private:
  struct Mutation;
  struct Validation;
  struct Outcome;

  WebhookSet& SetOf(Phase phase) { return phase == Phase::kMutate ? mutating_ : validating_; }
  // The kind in the version to show to the webhook; null: it is not called. A failure is that of
  // its conditions or selectors.
  const api::KindSchema* Choose(const Webhook& webhook, const RemoteQuestion& question,
                                api::Value object, std::string_view type,
                                std::optional<Failure>& failure);
  bool Holds(const Webhook& webhook, const RemoteQuestion& question, const api::KindSchema& shown,
             api::Value object, std::string_view type, std::optional<Failure>& failure);
  void Call(const WebhookPtr& webhook, const RemoteQuestion& question, const api::KindSchema& shown,
            const api::TreePtr& object, bool may_mutate, std::function<void(Outcome)> done);
  // Counts and logs; returns the failure for the client, if any.
  std::optional<Failure> Judge(const Webhook& webhook, const RemoteQuestion& question,
                               std::string_view type, const Outcome& outcome);
  void Continue(const std::shared_ptr<Mutation>& mutation);
  // Applies a webhook's patch; returns why that is impossible.
  static std::optional<Failure> Patch(Mutation& mutation, const Webhook& webhook,
                                      const api::KindSchema& shown, const api::TreePtr& sent,
                                      const api::TreePtr& patch);
  void Later(std::function<void()> task);

  Options options_;
  WebhookMetrics metrics_;
  Core* core_ = nullptr;
  WebhookSet mutating_{"mutatingwebhookconfigurations"};
  WebhookSet validating_{"validatingwebhookconfigurations"};
  struct InFlight {
    std::size_t calls = 0;
    std::size_t bytes = 0;
  };
  std::unordered_map<std::string, InFlight> in_flight_;  // by webhook; none without calls
  std::size_t bytes_in_flight_ = 0;
  Lifetime lifetime_;
};

}  // namespace drakkar::apiserver
