#include "node/status/event_recorder.h"

#include <cstdio>

#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("node.events");
constexpr std::size_t kMaxMessage = 1'024;
constexpr Duration kSeriesWindow = std::chrono::minutes(10);

const api::KindSchema* EventKind() {
  return api::FindResource("", "v1", "events");
}

}  // namespace

EventRecorder::EventRecorder(EventLoop& loop, Random& random, client::Client& client,
                             std::string component, std::string host)
    : loop_(loop),
      random_(random),
      client_(client),
      component_(std::move(component)),
      host_(std::move(host)) {}

EventRecorder::~EventRecorder() = default;

void EventRecorder::Record(api::Value object, std::string_view type, std::string_view reason,
                           std::string_view message) {
  loop_.AssertInLoop();
  const api::Value metadata = object["metadata"];
  const std::string key = StrCat(metadata["uid"].str(), "|", type, "|", reason, "|", message);
  const WallTime now = loop_.clock().Now();
  if (auto found = remembered_.find(key);
      found != remembered_.end() && now - found->second.last < kSeriesWindow) {
    ++found->second.count;
    found->second.last = now;
    found->second.changed = true;
    if (!found->second.writing) CountUp(key);
    return;
  }
  Remembered& entry = remembered_[key];
  entry = Remembered{};
  char suffix[17];
  std::snprintf(suffix, sizeof(suffix), "%016llx", static_cast<unsigned long long>(random_.Next()));
  entry.name = StrCat(metadata["name"].str(), ".", suffix);
  entry.namespace_name = metadata["namespace"].str().empty() ? "default" : std::string(metadata["namespace"].str());
  entry.count = 1;
  entry.last = now;
  order_[next_++] = key;
  while (remembered_.size() > kMaxRemembered && !order_.empty()) {
    remembered_.erase(order_.begin()->second);
    order_.erase(order_.begin());
  }
  api::Draft event = api::Draft::Object();
  event["apiVersion"] = "v1";
  event["kind"] = "Event";
  event["metadata"]["name"] = entry.name;
  event["metadata"]["namespace"] = entry.namespace_name;
  api::Draft& about = event["involvedObject"];
  about["kind"] = object["kind"].str();
  about["apiVersion"] = object["apiVersion"].str();
  if (!metadata["namespace"].str().empty()) about["namespace"] = metadata["namespace"].str();
  about["name"] = metadata["name"].str();
  about["uid"] = metadata["uid"].str();
  if (!metadata["resourceVersion"].str().empty()) {
    about["resourceVersion"] = metadata["resourceVersion"].str();
  }
  event["type"] = type;
  event["reason"] = reason;
  event["message"] = message.substr(0, kMaxMessage);
  event["source"]["component"] = component_;
  event["source"]["host"] = host_;
  event["firstTimestamp"] = api::FormatTime(now);
  event["lastTimestamp"] = api::FormatTime(now);
  event["count"] = 1;
  event["reportingComponent"] = component_;
  event["reportingInstance"] = host_;
  Write(key, event.Freeze());
}

void EventRecorder::Write(const std::string& key, api::TreePtr body) {
  if (in_flight_ >= kMaxInFlight) {
    kLog.Warning("too many events at once, one was dropped", {{"event", key}});
    return;
  }
  ++in_flight_;
  Remembered& entry = remembered_[key];
  entry.writing = true;
  client_.Create({EventKind(), entry.namespace_name, "", ""}, std::move(body), {},
                 [this, key, alive = std::weak_ptr<int>(alive_)](client::Reply reply) {
                   if (alive.lock()) OnWritten(key, reply);
                 });
}

void EventRecorder::CountUp(const std::string& key) {
  if (in_flight_ >= kMaxInFlight) return;  // the next repetition carries the count
  Remembered& entry = remembered_[key];
  ++in_flight_;
  entry.writing = true;
  entry.changed = false;
  client_.Patch({EventKind(), entry.namespace_name, entry.name, ""}, client::PatchType::kMerge,
                StrCat("{\"count\":", entry.count, ",\"lastTimestamp\":\"",
                       api::FormatTime(entry.last), "\"}"),
                {}, [this, key, alive = std::weak_ptr<int>(alive_)](client::Reply reply) {
                  if (alive.lock()) OnWritten(key, reply);
                });
}

void EventRecorder::OnWritten(const std::string& key, const client::Reply& reply) {
  --in_flight_;
  if (!reply.ok()) kLog.Warning("event not written", {{"event", key}, {"err", reply.error->message}});
  auto found = remembered_.find(key);
  if (found == remembered_.end()) return;
  found->second.writing = false;
  if (!reply.ok()) {
    remembered_.erase(found);  // the next one is written anew
  } else if (found->second.changed) {
    CountUp(key);
  }
}

}  // namespace drakkar::node
