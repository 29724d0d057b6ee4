#include "dashboard/board/replies.h"

#include <algorithm>
#include <set>

#include "answers/claims/claims.h"
#include "answers/cluster/attributes.h"
#include "answers/free/free.h"
#include "answers/render/devices.h"
#include "answers/render/json.h"
#include "api/meta/time.h"
#include "base/text/text.h"

namespace drakkar::dashboard {
namespace {

using answers::JsonOut;

constexpr std::size_t kDefaultListed = 100;
constexpr std::size_t kMaxFilterBytes = 200;
// Waits and rates are shown for this time.
constexpr std::int64_t kRecentSeconds = 600;

// The part of a list that the page requests.
struct Range {
  std::string filter;  // lower case
  std::size_t offset = 0;
  std::size_t limit = kDefaultListed;

  bool Matches(std::initializer_list<std::string_view> texts) const {
    if (filter.empty()) return true;
    return std::any_of(texts.begin(), texts.end(), [this](std::string_view text) {
      return ToLower(text).find(filter) != std::string::npos;
    });
  }
};

Result<std::size_t> ReadNumber(const net::Query& query, std::string_view name,
                               std::size_t fallback) {
  const std::string* text = query.Find(name);
  if (text == nullptr) return fallback;
  const std::optional<std::int64_t> number = ParseInt64(*text);
  if (!number || *number < 0) {
    return InvalidArgument(StrCat(name, " must be a number of at least 0, not ", Quote(*text)));
  }
  return static_cast<std::size_t>(*number);
}

Result<Range> ReadRange(const net::Query& query) {
  Range range;
  range.filter = ToLower(query.Get("filter").substr(0, kMaxFilterBytes));
  ASSIGN_OR_RETURN(range.offset, ReadNumber(query, "offset", 0));
  ASSIGN_OR_RETURN(range.limit, ReadNumber(query, "limit", kDefaultListed));
  range.limit = std::min(range.limit, kMaxListed);
  return range;
}

// Writes the entries of the range with `write`, then how many match in total.
template <typename Entries, typename Write>
void ListToJson(JsonOut& json, const Entries& matching, const Range& range, Write write) {
  json.Field("total", matching.size()).Key("items").BeginArray();
  const std::size_t begin = std::min(range.offset, matching.size());
  const std::size_t end = begin + std::min(range.limit, matching.size() - begin);
  for (std::size_t i = begin; i < end; ++i) write(*matching[i]);
  json.EndArray();
}

void HealthEventToJson(JsonOut& json, const HealthEvent& event) {
  json.BeginObject()
      .Field("at", event.at)
      .Field("what", event.what)
      .FieldIfAny("message", event.message)
      .FieldIfAny("node", event.node)
      .Field("driver", event.device.driver)
      .Field("pool", event.device.pool)
      .Field("device", event.device.device)
      .EndObject();
}

void HoldsToJson(JsonOut& json, const answers::DeviceEntry& entry) {
  json.Key("holders").BeginArray();
  for (const answers::Hold& hold : entry.holds) {
    json.BeginObject()
        .Field("namespace", hold.claim->claim->namespace_())
        .Field("claim", hold.claim->claim->name())
        .Field("request", hold.result->request)
        .Field("since", hold.claim->since)
        .Field("waiting", hold.claim->waiting)
        .Field("adminAccess", hold.result->admin_access);
    json.Key("consumed").BeginObject();
    for (const device::ConsumedCapacity& each : hold.result->consumed_capacity) {
      json.Field(each.name, each.value.ToString());
    }
    json.EndObject().Key("pods").BeginArray();
    for (const answers::Consumer& consumer : hold.claim->consumers) {
      json.BeginObject()
          .Field("name", consumer.name)
          .FieldIfAny("owner", consumer.owner)
          .FieldIfAny("node", consumer.pod == nullptr ? std::string_view()
                                                      : (*consumer.pod)["spec"]["nodeName"].str())
          .EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray();
}

}  // namespace

Result<std::string> DeviceReply(const View& view, const History& history, const net::Query& query) {
  const device::DeviceId id{std::string(query.Get("driver")), std::string(query.Get("pool")),
                            std::string(query.Get("device"))};
  const answers::DeviceEntry* entry = view.table->Find(id);
  if (entry == nullptr) {
    return NotFound(StrCat("there is no device ", Quote(id.ToString()), " any more"));
  }
  JsonOut json(/*indented=*/false);
  json.BeginObject()
      .Field("driver", id.driver)
      .Field("pool", id.pool)
      .Field("device", id.device)
      .FieldIfAny("node", entry->node)
      .Field("state", entry->State())
      .Field("free", entry->IsFree())
      .Field("shareable", entry->IsShareable())
      .FieldIfAny("unusable", entry->unusable)
      .Field("listed", entry->device != nullptr);
  json.Key("health")
      .BeginObject()
      .Field("health", entry->health.health)
      .FieldIfAny("since", entry->health.since)
      .FieldIfAny("message", entry->health.message)
      .EndObject();
  json.Key("classes").BeginArray();
  for (const std::uint32_t each : entry->classes) json.Text(view.table->classes()[each]);
  json.EndArray().Key("taints").BeginArray();
  for (const device::Taint& taint : entry->taints) {
    json.BeginObject()
        .Field("taint",
               StrCat(taint.key, taint.value.empty() ? "" : "=", taint.value, ":", taint.effect))
        .FieldIfAny("since", taint.time_added)
        .EndObject();
  }
  json.EndArray().Key("attributes").BeginArray();
  if (entry->device != nullptr) {
    for (const device::Attribute& each : entry->device->attributes) {
      json.BeginArray().Text(each.name).Text(answers::AttributeText(each.value)).EndArray();
    }
  }
  json.EndArray().Key("capacity").BeginArray();
  if (entry->device != nullptr) {
    for (const device::Capacity& each : entry->device->capacity) {
      json.BeginObject().Field("name", each.name).Field("value", each.value.ToString());
      if (entry->IsShareable()) json.Field("used", entry->Consumed(each.name).ToString());
      json.EndObject();
    }
  }
  json.EndArray();
  if (entry->device != nullptr) {
    json.FieldIfAny("model", answers::ModelOf(id.driver, *entry->device));
  }
  HoldsToJson(json, *entry);
  json.Key("history").BeginArray();
  for (auto event = history.health().rbegin(); event != history.health().rend(); ++event) {
    if (event->device == id) HealthEventToJson(json, *event);
  }
  return json.EndArray().EndObject().Take();
}

Result<std::string> PendingReply(const View& view, const net::Query& query) {
  ASSIGN_OR_RETURN(const Range range, ReadRange(query));
  std::vector<const answers::PendingPod*> matching;
  for (const answers::PendingPod& pod : view.pending) {
    const std::string name = StrCat(pod.namespace_, "/", pod.name);
    if (range.Matches({name, pod.owner, pod.node, answers::StageName(pod.stage)})) {
      matching.push_back(&pod);
    }
  }
  JsonOut json(/*indented=*/false);
  json.BeginObject();
  ListToJson(json, matching, range, [&json](const answers::PendingPod& pod) {
    json.BeginObject()
        .Field("namespace", pod.namespace_)
        .Field("name", pod.name)
        .Field("stage", answers::StageName(pod.stage))
        .Field("since", pod.since)
        .Field("claims", pod.claims)
        .FieldIfAny("node", pod.node)
        .FieldIfAny("owner", pod.owner)
        .FieldIfAny("message", pod.message)
        .EndObject();
  });
  return json.EndObject().Take();
}

Result<std::string> ClaimsReply(const View& view, const net::Query& query) {
  ASSIGN_OR_RETURN(const Range range, ReadRange(query));
  const std::string_view state = query.Get("state");
  const std::vector<answers::ClaimSummary> claims = ListClaims(view.snapshot, *view.table);
  std::vector<const answers::ClaimSummary*> matching;
  for (const answers::ClaimSummary& claim : claims) {
    if (!state.empty() && state != answers::StateName(claim.state)) continue;
    const std::string pods = Join(claim.pods, " ");
    if (range.Matches({claim.claim->qualified_name(), pods})) matching.push_back(&claim);
  }
  JsonOut json(/*indented=*/false);
  json.BeginObject();
  ListToJson(json, matching, range, [&json](const answers::ClaimSummary& claim) {
    json.BeginObject()
        .Field("namespace", claim.claim->namespace_())
        .Field("name", claim.claim->name())
        .Field("state", answers::StateName(claim.state))
        .Field("since", claim.since)
        .Field("created", (*claim.claim)["metadata"]["creationTimestamp"].str())
        .Field("devices", claim.devices)
        .Texts("pods", claim.pods)
        .EndObject();
  });
  return json.EndObject().Take();
}

std::string ClaimReply(const View& view, const api::ObjectPtr& claim, answers::Objects events) {
  answers::Snapshot snapshot = view.snapshot;
  snapshot.events = std::move(events);
  JsonOut json(/*indented=*/false);
  json.BeginObject().Field("namespace", claim->namespace_()).Field("name", claim->name());
  json.Key("requests").BeginArray();
  for (api::Value request : (*claim)["spec"]["devices"]["requests"].elements()) {
    const api::Value exactly = request["exactly"];
    json.BeginObject()
        .Field("name", request["name"].str())
        .Field("class", exactly["deviceClassName"].str())
        .Field("mode", exactly["allocationMode"].str("ExactCount"))
        .Field("count", exactly["count"].integer(1))
        .Field("alternatives", request["firstAvailable"].size())
        .EndObject();
  }
  json.EndArray().Key("devices").BeginArray();
  for (api::Value result : (*claim)["status"]["allocation"]["devices"]["results"].elements()) {
    json.BeginObject()
        .Field("request", result["request"].str())
        .Field("driver", result["driver"].str())
        .Field("pool", result["pool"].str())
        .Field("device", result["device"].str())
        .EndObject();
  }
  json.EndArray().Key("timeline").BeginArray();
  for (const answers::TimelineEntry& entry : ClaimTimeline(snapshot, claim)) {
    json.BeginObject()
        .FieldIfAny("at", entry.at)
        .Field("kind", answers::KindName(entry.kind))
        .Field("what", entry.what)
        .FieldIfAny("detail", entry.detail)
        .EndObject();
  }
  return json.EndArray().EndObject().Take();
}

Result<std::string> HealthReply(const View& view, const History& history, const net::Query& query) {
  ASSIGN_OR_RETURN(const Range range, ReadRange(query));
  std::vector<const HealthEvent*> matching;
  for (auto event = history.health().rbegin(); event != history.health().rend(); ++event) {
    if (range.Matches({event->device.ToString(), event->node, event->what, event->message})) {
      matching.push_back(&*event);
    }
  }
  std::size_t healthy = 0, unhealthy = 0, unknown = 0;
  for (const answers::DeviceEntry& entry : view.table->devices()) {
    if (entry.IsUnhealthy()) {
      ++unhealthy;
    } else if (entry.health.health == "Healthy") {
      ++healthy;
    } else {
      ++unknown;
    }
  }
  JsonOut json(/*indented=*/false);
  json.BeginObject().Field("healthy", healthy).Field("unhealthy", unhealthy);
  json.Field("unknown", unknown);
  ListToJson(json, matching, range,
             [&json](const HealthEvent& event) { HealthEventToJson(json, event); });
  return json.EndObject().Take();
}

std::string SchedulerReply(const View& view, const History& history) {
  const std::int64_t now =
      std::chrono::floor<std::chrono::seconds>(view.snapshot.now.time_since_epoch()).count();
  JsonOut json(/*indented=*/false);
  json.BeginObject()
      .Field("now", now)
      .Field("slotSeconds", History::kSlotSeconds)
      .Field("maxSlots", History::kMaxSlots);
  std::vector<std::int64_t> recent;
  std::size_t scheduled = 0;
  json.Key("slots").BeginArray();
  for (const ThroughputSlot& slot : history.slots()) {
    json.BeginArray()
        .Number(slot.start)
        .Number(static_cast<std::int64_t>(slot.scheduled))
        .Number(Percentile(slot.wait_seconds, 50))
        .Number(Percentile(slot.wait_seconds, 99))
        .EndArray();
    if (slot.start < now - kRecentSeconds) continue;
    scheduled += slot.scheduled;
    recent.insert(recent.end(), slot.wait_seconds.begin(), slot.wait_seconds.end());
  }
  json.EndArray();
  json.Key("recent")
      .BeginObject()
      .Field("seconds", kRecentSeconds)
      .Field("scheduled", scheduled)
      .Field("p50", Percentile(recent, 50))
      .Field("p99", Percentile(recent, 99))
      .EndObject();
  std::size_t stages[5] = {};
  std::string oldest;
  for (const answers::PendingPod& pod : view.pending) {
    ++stages[static_cast<std::size_t>(pod.stage)];
    if (pod.stage <= answers::PendingPod::Stage::kQueued &&
        (oldest.empty() || pod.since < oldest)) {
      oldest = pod.since;
    }
  }
  json.Key("stages").BeginArray();
  for (std::size_t i = 0; i < std::size(stages); ++i) {
    json.BeginArray()
        .Text(answers::StageName(static_cast<answers::PendingPod::Stage>(i)))
        .Number(static_cast<std::int64_t>(stages[i]))
        .EndArray();
  }
  return json.EndArray().FieldIfAny("oldest", oldest).EndObject().Take();
}

Result<std::string> FreeReply(const View& view, const net::Query& query) {
  const std::string_view by = query.Has("by") ? query.Get("by") : "class";
  ASSIGN_OR_RETURN(const answers::Grouping grouping,
                   answers::ParseGrouping(by.substr(0, kMaxFilterBytes)));
  return answers::FreeToJson(answers::CountFree(*view.table, grouping, {}));
}

Result<answers::WhySubject> SubjectOf(const net::Query& query) {
  const std::string_view kind = query.Get("kind");
  if (kind != "pod" && kind != "claim") return InvalidArgument("kind must be pod or claim");
  answers::WhySubject subject{
      .kind = kind == "pod" ? answers::WhySubject::Kind::kPod : answers::WhySubject::Kind::kClaim,
      .namespace_ = std::string(query.Get("namespace")),
      .name = std::string(query.Get("name"))};
  if (subject.namespace_.empty() || subject.name.empty()) {
    return InvalidArgument("namespace and name are required");
  }
  return subject;
}

api::ObjectPtr FindClaim(const View& view, std::string_view ns, std::string_view name) {
  for (const api::ObjectPtr& claim : view.snapshot.claims) {
    if (claim->name() == name && claim->namespace_() == ns) return claim;
  }
  return nullptr;
}

}  // namespace drakkar::dashboard
