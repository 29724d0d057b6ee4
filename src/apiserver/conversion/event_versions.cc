#include "apiserver/conversion/event_versions.h"

#include <utility>

#include "api/tree/draft.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;

constexpr std::string_view kCoreVersion = "v1";
constexpr std::string_view kNamedVersion = "events.k8s.io/v1";

// events.k8s.io, core
constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"regarding", "involvedObject"},
    {"note", "message"},
    {"reportingController", "reportingComponent"},
    {"deprecatedSource", "source"},
    {"deprecatedFirstTimestamp", "firstTimestamp"},
    {"deprecatedLastTimestamp", "lastTimestamp"},
    {"deprecatedCount", "count"},
};

api::TreePtr Rename(const api::TreePtr& event, std::string_view version,
                    std::string_view (*rename)(std::string_view name)) {
  Draft renamed = Draft::Object();
  renamed.KeepAlive(event);
  for (const auto& [key, name, value] : event->root().members()) {
    renamed.Entry(rename(name)) = Draft(value);
  }
  renamed["apiVersion"] = version;
  return renamed.Freeze();
}

}  // namespace

std::string_view CoreEventField(std::string_view name) {
  for (const auto& [named, core] : kNames) {
    if (named == name) return core;
  }
  return name;
}

std::string_view NamedEventField(std::string_view name) {
  for (const auto& [named, core] : kNames) {
    if (core == name) return named;
  }
  return name;
}

api::TreePtr EventToCore(const api::TreePtr& event) {
  if (event->root()["apiVersion"].str() == kCoreVersion) return event;
  return Rename(event, kCoreVersion, CoreEventField);
}

api::TreePtr EventFromCore(const api::TreePtr& event) {
  if (event->root()["apiVersion"].str() == kNamedVersion) return event;
  return Rename(event, kNamedVersion, NamedEventField);
}

}  // namespace drakkar::apiserver
