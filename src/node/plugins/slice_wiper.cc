#include "node/plugins/slice_wiper.h"

#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("node.plugins");
constexpr Duration kLongestBackoff = std::chrono::minutes(5);

}  // namespace

SliceWiper::SliceWiper(EventLoop& loop, Random& random, client::Client& client,
                       std::string node_name)
    : loop_(loop), random_(random), client_(client), node_name_(std::move(node_name)) {}

SliceWiper::~SliceWiper() = default;

void SliceWiper::WipeAll() {
  wipes_[""].id = next_id_++;
  Run("");
}

void SliceWiper::SetUsable(const std::string& driver, bool usable) {
  if (usable) {
    wipes_.erase(driver);
    return;
  }
  if (wipes_.contains(driver)) return;  // the first deadline stays
  Wipe& wipe = wipes_[driver];
  wipe.id = next_id_++;
  wipe.timer = loop_.RunAfter(kDelay, [this, driver] { Run(driver); });
}

void SliceWiper::Run(const std::string& driver) {
  const std::uint64_t id = wipes_[driver].id;
  client::ListOptions list;
  list.field_selector = StrCat("spec.nodeName=", node_name_);
  if (!driver.empty())
    list.field_selector = StrCat("spec.driver=", driver, ",", list.field_selector);
  const client::ResourceRef slices{api::FindResource("resource.k8s.io", "v1", "resourceslices"), "",
                                   "", ""};
  client_.DeleteCollection(
      slices, list, {},
      [this, driver, id, alive = std::weak_ptr<int>(alive_)](client::Reply reply) {
        if (!alive.lock()) return;
        auto found = wipes_.find(driver);
        if (found == wipes_.end() || found->second.id != id) return;  // the driver is back
        if (reply.ok() || reply.error->code == ErrorCode::kNotFound) {
          kLog.Info("removed resource slices", {{"driver", driver.empty() ? "all" : driver}});
          wipes_.erase(found);
          return;
        }
        kLog.Warning("cannot remove resource slices",
                     {{"driver", driver}, {"err", reply.error->message}});
        const auto delay = std::chrono::duration_cast<Duration>(found->second.backoff *
                                                                (1.0 + 0.2 * random_.Fraction()));
        found->second.backoff = std::min(found->second.backoff * 2, kLongestBackoff);
        found->second.timer = loop_.RunAfter(delay, [this, driver] { Run(driver); });
      });
}

}  // namespace drakkar::node
