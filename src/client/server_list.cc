#include "client/server_list.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/text/text.h"

namespace drakkar::client {

bool ServerList::OnNoAnswer(std::string_view server, MonotonicTime now) {
  if (servers_.size() < 2 || server != current()) return false;
  current_ = (current_ + 1) % servers_.size();
  since_ = now;
  return true;
}

bool ServerList::OnUnable(std::string_view server, MonotonicTime now) {
  if (since_ != MonotonicTime::min() && now < since_ + kMinStay) return false;
  return OnNoAnswer(server, now);
}

void ServerList::Replace(std::vector<std::string> servers) {
  if (servers.empty() || servers == servers_) return;
  const std::string in_use = current();
  servers_ = std::move(servers);
  const auto found = std::ranges::find(servers_, in_use);
  current_ = found == servers_.end() ? 0 : static_cast<std::size_t>(found - servers_.begin());
}

std::vector<std::string> MergeServers(const std::vector<std::string>& known, api::Value endpoints) {
  std::set<std::string> living;
  for (const api::Value subset : endpoints["subsets"].elements()) {
    for (const api::Value port : subset["ports"].elements()) {
      if (port["name"].str() != "https") continue;
      for (const api::Value address : subset["addresses"].elements()) {
        const std::string_view ip = address["ip"].str();
        const bool is_ipv6 = ip.find(':') != std::string_view::npos;
        living.insert(StrCat("https://", is_ipv6 ? "[" : "", ip, is_ipv6 ? "]:" : ":",
                             port["port"].integer()));
      }
    }
  }
  if (living.empty()) return known;
  std::vector<std::string> servers{known.front()};
  living.erase(known.front());
  for (const std::string& each : living) {
    if (servers.size() == kMaxServers) break;
    servers.push_back(each);
  }
  return servers;
}

}  // namespace drakkar::client
