#pragma once

#include <map>
#include <memory>

#include "apiserver/rest/remote_conversion.h"
#include "apiserver/webhook/transport.h"
#include "apiserver/webhook/webhook_set.h"

namespace drakkar {
class Metrics;
}

namespace drakkar::apiserver {

// Calls the conversion webhooks of CustomResourceDefinitions. Many objects are sent in several
// calls, one after the other. Bound to the core's loop.
class ConversionWebhooks final : public RemoteConversion {
 public:
  static constexpr Duration kTimeout = std::chrono::seconds(30);
  // Limits of one call. What it returns is read on the core's loop, in steps of the work budget.
  static constexpr std::size_t kMaxObjects = 500;
  static constexpr std::size_t kMaxSentBytes = std::size_t{1} << 20;
  static constexpr std::size_t kMaxAnswerBytes = std::size_t{8} << 20;
  static constexpr std::int64_t kMaxSteps = 50'000'000;

  struct Options {
    Random& random;
    WebhookTransport& transport;
    Metrics* metrics = nullptr;  // null: calls are not counted
  };
  explicit ConversionWebhooks(Options options) : options_(options) {}

  // `core` must outlive this, or Detach must come first.
  void Attach(Core& core) { core_ = &core; }
  void Detach();

  void Convert(const api::KindSchema& to, std::vector<api::TreePtr> objects,
               std::function<void(Converted)> done) override;

 private:
  struct Job;

  const WebhookClient& ClientOf(const api::KindSchema& kind);
  void Continue(const std::shared_ptr<Job>& job);
  void Observe(bool succeeded, std::string_view failure, Duration took) const;

  Options options_;
  Core* core_ = nullptr;
  // Definitions live as long as the process.
  std::map<const api::KindFamily*, std::unique_ptr<const WebhookClient>> clients_;
  Lifetime lifetime_;
};

}  // namespace drakkar::apiserver
