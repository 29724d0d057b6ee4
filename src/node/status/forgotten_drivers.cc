#include "node/status/forgotten_drivers.h"

#include <algorithm>

#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("node.dra");

std::set<std::string> ReadList(api::Value node, const char* annotation) {
  std::set<std::string> drivers;
  for (std::string_view each :
       Split(node["metadata"]["annotations"].Entry(annotation).str(), ',')) {
    const std::string_view name = Trim(each);
    if (!name.empty() && drivers.size() < ForgottenDrivers::kMaxDrivers) drivers.emplace(name);
  }
  return drivers;
}

// `"annotation":"a,b"`, or null for an empty list, which removes the annotation.
std::string PatchMember(const char* annotation, const std::set<std::string>& drivers) {
  std::string member = StrCat("\"", annotation, "\":");
  if (drivers.empty()) return member + "null";
  api::AppendJsonString(member,
                        Join(std::vector<std::string>(drivers.begin(), drivers.end()), ","));
  return member;
}

}  // namespace

ForgottenDrivers::ForgottenDrivers(EventLoop& loop, Random& random, client::Client& client,
                                   std::string node_name,
                                   std::function<void(const Change&)> on_change)
    : loop_(loop),
      client_(client),
      node_name_(std::move(node_name)),
      on_change_(std::move(on_change)),
      informer_(loop, random, client,
                {.collection = {api::FindResource("", "v1", "nodes"), "", "", ""},
                 .field_selector = StrCat("metadata.name=", node_name_)}) {
  informer_.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& node) { Look(node); },
       .on_update = [this](const api::ObjectPtr&, const api::ObjectPtr& node) { Look(node); },
       .on_delete = [this](const api::ObjectPtr&) { node_ = nullptr; }});
}

ForgottenDrivers::~ForgottenDrivers() = default;

void ForgottenDrivers::Look(const api::ObjectPtr& node) {
  // Our own write is known before the watch delivers it.
  if (node_ != nullptr && node->resource_version() < node_->resource_version()) return;
  node_ = node;
  Tell();
  Write();
}

void ForgottenDrivers::Remove(const std::string& driver) {
  // Until the Node has been read, the driver may be on the list.
  if (node_ != nullptr && !drivers_.contains(driver)) return;
  returned_.insert(driver);
  if (node_ == nullptr) return;
  Tell();
  Write();
}

void ForgottenDrivers::Tell() {
  const std::set<std::string> listed = ReadList(node_->root(), kForgottenDriversAnnotation);
  const std::set<std::string> told_before = ReadList(node_->root(), kToldForgottenAnnotation);
  std::erase_if(returned_, [&](const std::string& driver) { return !listed.contains(driver); });
  std::erase_if(told_, [&](const std::string& driver) { return !listed.contains(driver); });
  Change change{.node = node_};
  for (const std::string& driver : listed) {
    if (returned_.contains(driver)) continue;
    change.drivers.insert(driver);
    if (told_.insert(driver).second && !told_before.contains(driver)) change.untold.insert(driver);
  }
  if (change.drivers == drivers_) return;
  drivers_ = change.drivers;
  on_change_(change);
}

void ForgottenDrivers::Write() {
  if (writing_ || retry_ != nullptr || node_ == nullptr) return;
  std::vector<std::string> members;
  if (!returned_.empty()) members.push_back(PatchMember(kForgottenDriversAnnotation, drivers_));
  if (ReadList(node_->root(), kToldForgottenAnnotation) != drivers_) {
    members.push_back(PatchMember(kToldForgottenAnnotation, drivers_));
  }
  if (members.empty()) return;
  writing_ = true;
  // Include the resource version, so that a concurrent edit of the list is not undone.
  client_.Patch({api::FindResource("", "v1", "nodes"), "", node_name_, ""},
                client::PatchType::kMerge,
                StrCat(R"({"metadata":{"resourceVersion":")", node_->resource_version(),
                       R"(","annotations":{)", Join(members, ","), "}}}"),
                {.field_manager = "drakkar-node"}, lifetime_.Guard([this](client::Reply reply) {
                  writing_ = false;
                  if (reply.ok()) {
                    backoff_.Reset();
                    return Look(reply.object);
                  }
                  if (reply.error->code != ErrorCode::kConflict) {
                    kLog.Warning("could not record forgotten drivers on Node",
                                 {{"node", node_name_}, {"err", reply.error->message}});
                  }
                  RetryLater();
                }));
}

void ForgottenDrivers::RetryLater() {
  retry_ = loop_.RunAfter(backoff_.Next(), [this] {
    const TimerHandle running = std::move(retry_);
    // The watch has delivered the conflicting version, or will, and this runs again.
    Write();
  });
}

}  // namespace drakkar::node
