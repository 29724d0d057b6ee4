#include "apiserver/rest/living_servers.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "api/tree/draft.h"
#include "apiserver/watch/stored_object.h"
#include "base/text/text.h"
#include "telemetry/log/log.h"

namespace drakkar::apiserver {
namespace {

constexpr Logger kLog("living-servers");
constexpr char kRecords[] = "masterleases/";

api::Draft Only(api::Draft element) {
  std::vector<api::Draft> elements;
  elements.push_back(std::move(element));
  return api::Draft::Array(std::move(elements));
}

api::Draft HttpsPort(std::uint16_t port) {
  return api::Draft{{"name", "https"}, {"port", static_cast<int>(port)}, {"protocol", "TCP"}};
}

bool IsIpv6(std::string_view ip) {
  return ip.find(':') != std::string_view::npos;
}

// kube-apiserver reads only the address; its own records have no port.
storage::Bytes EncodeRecord(const StoreLayout& layout, const ServerAddress& server) {
  return EncodeStored(
      layout, api::Object(api::Draft{{"apiVersion", "v1"},
                                     {"kind", "Endpoints"},
                                     {"subsets", Only({{"addresses", Only({{"ip", server.ip}})},
                                                       {"ports", Only(HttpsPort(server.port))}})}}
                              .Freeze()));
}

}  // namespace

LivingServers::LivingServers(Options options)
    : options_(std::move(options)),
      prefix_(RootPrefix(options_.layout) + kRecords),
      // kube-apiserver's key has no port. It lists by the prefix and looks at the values.
      key_(StrCat(prefix_, options_.self.ip, ":", options_.self.port)) {}

void LivingServers::Start() {
  options_.loop.AssertInLoop();
  Renew();
}

void LivingServers::Renew() {
  if (stopping_) return;
  if (watch_ == nullptr) Follow();
  renewal_ = options_.loop.RunAfter(kInterval, [this] { Renew(); });
  storage::Transaction transaction;
  transaction.operations.push_back({.key = key_,
                                    .value = EncodeRecord(options_.layout, options_.self),
                                    .time_to_live = kTimeToLive});
  options_.store.Commit(std::move(transaction),
                        lifetime_.Guard([this](const Result<storage::TransactionResult>& written) {
                          if (stopping_) return;
                          if (written.ok()) return Read();
                          kLog.Warning("could not record that this server is alive",
                                       {{"error", written.error().message}});
                          renewal_ = options_.loop.RunAfter(kRetryInterval, [this] { Renew(); });
                        }),
                        nullptr);
}

void LivingServers::Follow() {
  watch_ = options_.store.StartWatch(
      {.prefix = prefix_},
      {.on_events =
           [this](const std::vector<storage::WatchEvent>& events, storage::Revision) {
             const bool is_news = std::ranges::any_of(
                 events, [this](const storage::WatchEvent& event) { return event.key != key_; });
             if (is_news && !stopping_) Read();
           },
       // The next renewal starts another one.
       .on_closed =
           [this](const Error&) {
             options_.loop.Post(lifetime_.Guard([this] { watch_.reset(); }));
           }});
}

void LivingServers::Read() {
  if (reading_) {
    read_again_ = true;
    return;
  }
  reading_ = true;
  options_.store.Range({.prefix = prefix_, .count_remaining = false},
                       lifetime_.Guard([this](const Result<storage::RangeResult>& records) {
                         reading_ = false;
                         if (stopping_) return;
                         if (records.ok()) OnRead(*records);
                         if (std::exchange(read_again_, false)) Read();
                       }));
}

void LivingServers::OnRead(const storage::RangeResult& records) {
  std::set<ServerAddress> servers{options_.self};
  for (const storage::Entry& record : records.entries) {
    const Result<api::ObjectPtr> object =
        ReadStored(*record.value, record.mod_revision, Writer::kAnyServer);
    if (!object.ok()) {
      kLog.Warning("could not read the record of an API server",
                   {{"key", record.key}, {"error", object.error().message}});
      continue;
    }
    for (const api::Value subset : (**object)["subsets"].elements()) {
      const std::int64_t port = subset["ports"].at(0)["port"].integer();
      for (const api::Value address : subset["addresses"].elements()) {
        servers.insert({std::string(address["ip"].str()),
                        port == 0 ? options_.self.port : static_cast<std::uint16_t>(port)});
      }
    }
  }
  options_.on_servers({servers.begin(), servers.end()});
}

void LivingServers::Stop(std::function<void()> done) {
  options_.loop.AssertInLoop();
  on_stopped_ = std::move(done);
  stopping_ = true;
  renewal_.reset();
  watch_.reset();
  stop_timeout_ = options_.loop.RunAfter(kStopTimeout, [this] { FinishStop(); });
  storage::Transaction transaction;
  transaction.operations.push_back({.key = key_, .value = nullptr});
  options_.store.Commit(
      std::move(transaction),
      lifetime_.Guard([this](const Result<storage::TransactionResult>&) { FinishStop(); }),
      nullptr);
}

void LivingServers::FinishStop() {
  if (!on_stopped_) return;
  options_.loop.Post([done = std::exchange(on_stopped_, nullptr)] { done(); });
}

std::vector<api::TreePtr> EndpointsOf(const std::vector<ServerAddress>& servers) {
  std::map<std::uint16_t, std::vector<std::string>> by_port;
  for (const ServerAddress& each : servers) by_port[each.port].push_back(each.ip);
  const auto metadata = [](const std::string& name, std::string_view label,
                           std::string_view value) {
    return api::Draft{
        {"name", name}, {"namespace", "default"}, {"labels", api::Draft::Map({{label, value}})}};
  };
  std::vector<api::TreePtr> made;
  api::Draft subsets = api::Draft::Array();
  for (const auto& [port, addresses] : by_port) {
    api::Draft of_subset = api::Draft::Array();
    api::Draft of_slice = api::Draft::Array();
    const bool is_ipv6 = IsIpv6(addresses.front());
    for (const std::string& ip : addresses) {
      of_subset.Append(api::Draft{{"ip", ip}});
      if (IsIpv6(ip) != is_ipv6) continue;
      of_slice.Append(api::Draft{{"addresses", Only(ip)}, {"conditions", {{"ready", true}}}});
    }
    subsets.Append(
        api::Draft{{"addresses", std::move(of_subset)}, {"ports", Only(HttpsPort(port))}});
    const std::string name = made.empty() ? "kubernetes" : StrCat("kubernetes-", port);
    made.push_back(
        api::Draft{{"apiVersion", "discovery.k8s.io/v1"},
                   {"kind", "EndpointSlice"},
                   {"metadata", metadata(name, "kubernetes.io/service-name", "kubernetes")},
                   {"addressType", is_ipv6 ? "IPv6" : "IPv4"},
                   {"endpoints", std::move(of_slice)},
                   {"ports", Only(HttpsPort(port))}}
            .Freeze());
  }
  made.push_back(api::Draft{
      {"apiVersion", "v1"},
      {"kind", "Endpoints"},
      {"metadata", metadata("kubernetes", "endpointslice.kubernetes.io/skip-mirror", "true")},
      {"subsets", std::move(subsets)}}
                     .Freeze());
  return made;
}

std::optional<ServerAddress> SuccessorOf(const api::Value& service,
                                         const std::vector<ServerAddress>& before,
                                         const std::vector<ServerAddress>& now) {
  const api::Value spec = service["spec"];
  const ServerAddress named{std::string(spec["clusterIP"].str()),
                            static_cast<std::uint16_t>(spec["ports"].at(0)["port"].integer())};
  const bool was_alive = std::ranges::find(before, named) != before.end();
  if (!was_alive || std::ranges::find(now, named) != now.end()) return std::nullopt;
  for (const ServerAddress& each : now) {
    if (IsIpv6(each.ip) == IsIpv6(named.ip)) return each;
  }
  return std::nullopt;
}

std::vector<ServerAddress> ServersOf(const api::Value& endpoints) {
  std::set<ServerAddress> servers;
  for (const api::Value subset : endpoints["subsets"].elements()) {
    for (const api::Value port : subset["ports"].elements()) {
      for (const api::Value address : subset["addresses"].elements()) {
        servers.insert(
            {std::string(address["ip"].str()), static_cast<std::uint16_t>(port["port"].integer())});
      }
    }
  }
  return {servers.begin(), servers.end()};
}

}  // namespace drakkar::apiserver
