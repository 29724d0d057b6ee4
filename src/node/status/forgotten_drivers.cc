#include "node/status/forgotten_drivers.h"

#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "telemetry/log/log.h"

namespace drakkar::node {
namespace {

constexpr Logger kLog("node.dra");

std::set<std::string> ReadList(api::Value node) {
  std::set<std::string> drivers;
  for (std::string_view each :
       Split(node["metadata"]["annotations"][kForgottenDriversAnnotation].str(), ',')) {
    const std::string_view name = Trim(each);
    if (!name.empty() && drivers.size() < ForgottenDrivers::kMaxDrivers) drivers.emplace(name);
  }
  return drivers;
}

}  // namespace

ForgottenDrivers::ForgottenDrivers(
    EventLoop& loop, Random& random, client::Client& client, std::string node_name,
    std::function<void(const std::set<std::string>&, const api::ObjectPtr&)> on_change)
    : client_(client),
      node_name_(std::move(node_name)),
      on_change_(std::move(on_change)),
      informer_(loop, random, client,
                {.collection = {api::FindResource("", "v1", "nodes"), "", "", ""},
                 .field_selector = StrCat("metadata.name=", node_name_)}) {
  informer_.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& node) { Look(node); },
       .on_update = [this](const api::ObjectPtr&, const api::ObjectPtr& node) { Look(node); }});
}

ForgottenDrivers::~ForgottenDrivers() = default;

void ForgottenDrivers::Look(const api::ObjectPtr& node) {
  std::set<std::string> drivers = ReadList(node->root());
  if (drivers == drivers_) return;
  drivers_ = drivers;
  on_change_(drivers, node);
}

void ForgottenDrivers::Remove(const std::string& driver) {
  if (!drivers_.contains(driver)) return;
  std::set<std::string> left = drivers_;
  left.erase(driver);
  const std::vector<std::string> names(left.begin(), left.end());
  std::string value = "null";
  if (!names.empty()) {
    value.clear();
    api::AppendJsonString(value, Join(names, ","));
  }
  client_.Patch({api::FindResource("", "v1", "nodes"), "", node_name_, ""},
                client::PatchType::kMerge,
                StrCat(R"({"metadata":{"annotations":{")", kForgottenDriversAnnotation, "\":", value, "}}}"),
                {.field_manager = "drakkar-node"}, [driver](client::Reply reply) {
                  if (reply.ok()) return;
                  kLog.Warning("cannot take a driver that is back off the forgotten ones",
                               {{"driver", driver}, {"err", reply.error->message}});
                });
}

}  // namespace drakkar::node
