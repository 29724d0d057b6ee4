#include "node/plugins/slice_wiper.h"

#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("node.plugins");
constexpr Duration kLongestBackoff = std::chrono::minutes(5);

client::ResourceRef Slices() {
  return {api::FindResource("resource.k8s.io", "v1", "resourceslices"), "", "", ""};
}

}  // namespace

SliceWiper::SliceWiper(EventLoop& loop, Random& random, client::Client& client,
                       std::string node_name)
    : loop_(loop), random_(random), client_(client), node_name_(std::move(node_name)) {}

SliceWiper::~SliceWiper() = default;

void SliceWiper::WipeLeftovers(bool at_once) {
  leftovers_.timer.reset();
  client_.List(Slices(), Select(""),
               [this, at_once, alive = std::weak_ptr<int>(alive_)](const client::ListReply& reply) {
                 if (!alive.lock()) return;
                 if (!reply.ok()) {
                   kLog.Warning("could not list ResourceSlices left by an earlier run",
                                {{"err", reply.error->message}});
                   leftovers_.timer = loop_.RunAfter(NextDelay(leftovers_),
                                                     [this, at_once] { WipeLeftovers(at_once); });
                   return;
                 }
                 for (const api::ObjectPtr& slice : reply.items) {
                   const std::string driver((*slice)["spec"]["driver"].str());
                   if (usable_.contains(driver) || wipes_.contains(driver)) continue;
                   WipeAfter(driver, at_once ? Duration::zero() : kDelay);
                 }
               });
}

void SliceWiper::SetUsable(const std::string& driver, bool usable) {
  if (usable) {
    usable_.insert(driver);
    wipes_.erase(driver);
    return;
  }
  usable_.erase(driver);
  if (wipes_.contains(driver)) return;  // the first deadline stays
  WipeAfter(driver, kDelay);
}

void SliceWiper::WipeAfter(const std::string& driver, Duration delay) {
  Wipe& wipe = wipes_[driver];
  wipe.id = next_id_++;
  if (delay == Duration::zero()) return Run(driver);
  wipe.timer = loop_.RunAfter(delay, [this, driver] { Run(driver); });
}

client::ListOptions SliceWiper::Select(const std::string& driver) const {
  client::ListOptions list;
  list.field_selector = StrCat("spec.nodeName=", node_name_);
  if (!driver.empty())
    list.field_selector = StrCat("spec.driver=", driver, ",", list.field_selector);
  return list;
}

Duration SliceWiper::NextDelay(Wipe& wipe) {
  const auto delay =
      std::chrono::duration_cast<Duration>(wipe.backoff * (1.0 + 0.2 * random_.Fraction()));
  wipe.backoff = std::min(wipe.backoff * 2, kLongestBackoff);
  return delay;
}

void SliceWiper::Run(const std::string& driver) {
  const std::uint64_t id = wipes_[driver].id;
  client_.DeleteCollection(
      Slices(), Select(driver), {},
      [this, driver, id, alive = std::weak_ptr<int>(alive_)](client::Reply reply) {
        if (!alive.lock()) return;
        auto found = wipes_.find(driver);
        if (found == wipes_.end() || found->second.id != id) return;  // the driver is back
        if (reply.ok() || reply.error->code == ErrorCode::kNotFound) {
          kLog.Info("removed the ResourceSlices of a driver that is not connected",
                    {{"driver", driver}});
          wipes_.erase(found);
          return;
        }
        kLog.Warning("could not remove the ResourceSlices of a driver that is not connected",
                     {{"driver", driver}, {"err", reply.error->message}});
        found->second.timer =
            loop_.RunAfter(NextDelay(found->second), [this, driver] { Run(driver); });
      });
}

}  // namespace drakkar::node
