#include "node/pods/pod_dns.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::node {
namespace {

using api::Value;

constexpr char kResolvConf[] = "/etc/resolv.conf";
constexpr char kResolvedConf[] = "/run/systemd/resolve/resolv.conf";
constexpr std::size_t kMaxResolvConfBytes = 1u << 20;

void AddUnique(std::vector<std::string>& list, std::string text) {
  if (std::ranges::find(list, text) == list.end()) list.push_back(std::move(text));
}

std::string_view OptionName(std::string_view option) {
  return option.substr(0, option.find(':'));
}

void SetOption(std::vector<std::string>& options, std::string option) {
  for (std::string& each : options) {
    if (OptionName(each) != OptionName(option)) continue;
    each = std::move(option);
    return;
  }
  options.push_back(std::move(option));
}

void Merge(Value dns_config, DnsConfig& config) {
  for (Value server : dns_config["nameservers"].elements()) {
    AddUnique(config.servers, std::string(server.str()));
  }
  for (Value search : dns_config["searches"].elements()) {
    AddUnique(config.searches, std::string(search.str()));
  }
  for (Value option : dns_config["options"].elements()) {
    const std::string_view value = option["value"].str();
    SetOption(config.options, value.empty() ? std::string(option["name"].str())
                                            : StrCat(option["name"].str(), ":", value));
  }
}

void CutOff(PodDns& dns) {
  std::vector<std::string>& servers = dns.config.servers;
  if (servers.size() > kMaxDnsServers) {
    servers.resize(kMaxDnsServers);
    dns.remarks.push_back(
        StrCat("Nameserver limits were exceeded, some nameservers have been omitted, the applied "
               "nameserver line is: ",
               Join(servers, " ")));
  }
  std::vector<std::string>& searches = dns.config.searches;
  const std::size_t before = searches.size();
  if (searches.size() > kMaxDnsSearches) searches.resize(kMaxDnsSearches);
  while (Join(searches, " ").size() > kMaxDnsSearchBytes) searches.pop_back();
  if (searches.size() < before) {
    dns.remarks.push_back(
        StrCat("Search Line limits were exceeded, some search paths have been omitted, the applied "
               "search line is: ",
               Join(searches, " ")));
  }
}

bool IsLoopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

}  // namespace

DnsConfig ParseResolvConf(std::string_view text) {
  DnsConfig config;
  for (std::string_view line : Split(text, '\n')) {
    line = Trim(line);
    if (line.empty() || line.starts_with('#') || line.starts_with(';')) continue;
    std::vector<std::string> words;
    std::string word;
    for (char c : StrCat(line, " ")) {
      if (c != ' ' && c != '\t') {
        word += c;
      } else if (!word.empty()) {
        words.push_back(std::exchange(word, ""));
      }
    }
    const std::vector<std::string> values(words.begin() + 1, words.end());
    if (words[0] == "nameserver" && !values.empty()) config.servers.push_back(values[0]);
    // The last line counts; "domain" is an older form of it.
    if (words[0] == "search" || words[0] == "domain") config.searches = values;
    if (words[0] == "options") {
      for (const std::string& value : values) SetOption(config.options, value);
    }
  }
  return config;
}

PodDns MakePodDns(Value pod, const DnsSettings& settings, const DnsConfig& host) {
  const Value spec = pod["spec"];
  const std::string_view policy = spec["dnsPolicy"].str("ClusterFirst");
  const bool is_cluster_first = policy == "ClusterFirstWithHostNet" ||
                                (policy == "ClusterFirst" && !spec["hostNetwork"].boolean());
  PodDns dns;
  if (policy == "None") {
    // Only what the pod gives.
  } else if (is_cluster_first && !settings.cluster_dns.empty()) {
    const std::string& domain = settings.cluster_domain;
    dns.config.servers = settings.cluster_dns;
    if (!domain.empty()) {
      dns.config.searches = {StrCat(pod["metadata"]["namespace"].str(), ".svc.", domain),
                             StrCat("svc.", domain), domain};
    }
    for (const std::string& search : host.searches) AddUnique(dns.config.searches, search);
    dns.config.options = {"ndots:5"};
  } else {
    dns.config = host;
  }
  Merge(spec["dnsConfig"], dns.config);
  CutOff(dns);
  return dns;
}

Result<DnsConfig> HostResolvConf(FileSystem& files, const DnsSettings& settings) {
  const bool is_given = !settings.resolv_conf.empty();
  auto text =
      files.ReadFileRange(is_given ? settings.resolv_conf : kResolvConf, 0, kMaxResolvConfBytes);
  if (!text.ok() && (is_given || text.error().code != ErrorCode::kNotFound)) {
    return std::move(text).error();
  }
  DnsConfig config = text.ok() ? ParseResolvConf(*text) : DnsConfig();
  if (is_given || !std::ranges::all_of(config.servers, IsLoopback)) return config;
  auto resolved = files.ReadFileRange(kResolvedConf, 0, kMaxResolvConfBytes);
  return resolved.ok() ? ParseResolvConf(*resolved) : config;
}

}  // namespace drakkar::node
