#include "node/plugins/slice_wiper.h"

#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("node.plugins");
constexpr Backoff::Options kRetry{
    .initial = std::chrono::seconds(1), .max = std::chrono::minutes(5), .jitter = 0.2};

client::ResourceRef Slices() {
  return {api::FindResource("resource.k8s.io", "v1", "resourceslices"), "", "", ""};
}

}  // namespace

SliceWiper::SliceWiper(EventLoop& loop, Random& random, client::Client& client,
                       std::string node_name)
    : loop_(loop),
      random_(random),
      client_(client),
      node_name_(std::move(node_name)),
      leftovers_(random) {}

SliceWiper::~SliceWiper() = default;

SliceWiper::Wipe::Wipe(Random& random) : backoff(kRetry, &random) {}

void SliceWiper::WipeLeftovers(bool at_once) {
  leftovers_.timer.reset();
  client_.List(Slices(), Select(""),
               lifetime_.Guard([this, at_once](const client::ListReply& reply) {
                 if (!reply.ok()) {
                   kLog.Warning("could not list ResourceSlices left by a previous run",
                                {{"err", reply.error->message}});
                   leftovers_.timer = loop_.RunAfter(leftovers_.backoff.Next(),
                                                     [this, at_once] { WipeLeftovers(at_once); });
                   return;
                 }
                 for (const api::ObjectPtr& slice : reply.items) {
                   const std::string driver((*slice)["spec"]["driver"].str());
                   if (usable_.contains(driver) || wipes_.contains(driver)) continue;
                   WipeAfter(driver, at_once ? Duration::zero() : kDelay);
                 }
               }));
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
  Wipe& wipe = wipes_.try_emplace(driver, random_).first->second;
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

void SliceWiper::Run(const std::string& driver) {
  const std::uint64_t id = wipes_.at(driver).id;
  client_.DeleteCollection(
      Slices(), Select(driver), {}, lifetime_.Guard([this, driver, id](client::Reply reply) {
        auto found = wipes_.find(driver);
        if (found == wipes_.end() || found->second.id != id) return;  // the driver reconnected
        if (reply.ok() || reply.error->code == ErrorCode::kNotFound) {
          kLog.Info("deleted ResourceSlices of a disconnected driver", {{"driver", driver}});
          wipes_.erase(found);
          return;
        }
        kLog.Warning("could not delete ResourceSlices of a disconnected driver",
                     {{"driver", driver}, {"err", reply.error->message}});
        found->second.timer =
            loop_.RunAfter(found->second.backoff.Next(), [this, driver] { Run(driver); });
      }));
}

}  // namespace drakkar::node
