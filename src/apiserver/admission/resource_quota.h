#pragma once

#include <map>
#include <string>

#include "apiserver/rest/core.h"
#include "quota/usage.h"

namespace drakkar::apiserver {

// Rejects what would exceed a ResourceQuota of the namespace.
//
// Usage is counted from the objects themselves, not taken from the quota's status, which a
// controller writes later. It is kept between requests and raised by what is admitted. Deletions
// only make it too high, so it is counted again before a request is rejected, and every
// kCountAgain. Counting a large namespace takes
// long, so it may use only a kCountShare-th of the time: requests rejected in between are judged by
// the last count. Requests in namespaces without quotas cost one lookup.
//
// On a store that several servers share, only one write at a time uses up a quota: it is written
// together with a record of the quota, which every server follows. What another server admits makes
// this one count again.
//
// Loop-bound. Remembers at most kMaxQuotas; beyond that it forgets them all and counts again.
class ResourceQuotaAdmission final : public AdmissionStep {
 public:
  static constexpr std::size_t kMaxQuotas = 10'000;
  static constexpr Duration kCountAgain = std::chrono::seconds(5);
  static constexpr int kCountShare = 20;

  std::string_view name() const override { return "ResourceQuota"; }
  bool comes_after_validation() const override { return true; }
  bool comes_last() const override { return true; }
  bool Concerns(const Request& request) const override;
  std::optional<Failure> Check(const Request& request, api::Value object, api::Value before,
                               const StrategyContext& context,
                               std::vector<std::string>& warnings) override;
  std::vector<std::string> DecidesAbout(const Request& request, api::Value object,
                                        api::Value before,
                                        const StrategyContext& context) const override;
  void OnDecidedElsewhere(std::string_view name) override;

 private:
  struct Known {
    api::ObjectPtr quota;  // for its spec
    quota::Amounts used;
    MonotonicTime counted{};
    Duration cost{};  // of counting

    // How long to wait before counting again, so that counting does not hold up everything else.
    Duration rest() const { return kCountShare * cost; }
  };
  // What the request adds to the usage of the quota.
  static quota::Amounts AskedOf(const Request& request, const api::Object& quota, api::Value object,
                                api::Value before, const StrategyContext& context);
  static Known CountNow(const api::ObjectPtr& quota, const StrategyContext& context);
  std::optional<Failure> CheckQuota(const Request& request, const api::ObjectPtr& quota,
                                    api::Value object, api::Value before,
                                    const StrategyContext& context);
  Known& Find(const api::ObjectPtr& quota, const StrategyContext& context);

  std::map<std::string, Known> known_;  // by uid
};

}  // namespace drakkar::apiserver
