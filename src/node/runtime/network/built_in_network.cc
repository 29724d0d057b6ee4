#include "node/runtime/network/built_in_network.h"

#include <linux/sockios.h>
#include <net/if.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "api/json/json_writer.h"
#include "base/env/descriptor.h"
#include "base/hash/sha256.h"
#include "base/text/text.h"
#include "node/runtime/json.h"

namespace drakkar::node {

const std::vector<std::string> kBuiltInPlugins = {"bridge", "host-local", "portmap"};

namespace {

constexpr char kPlanFile[] = "pod-network.conflist";
constexpr char kRoutes[] = "/proc/net/route";
// 10.64.0.0/11: private, and outside of the ranges that clusters usually use for services
// (10.96.0.0/12) and pods (10.42.0.0/16, 10.244.0.0/16).
constexpr std::uint32_t kFirstRange = (10u << 24) | (64u << 16);
constexpr std::uint32_t kRanges = 32 * 256;
constexpr int kPrefix = 24;
constexpr int kRtfUp = 1;
constexpr Duration kIptablesTimeout = std::chrono::seconds(30);

struct Route {
  std::string interface;
  std::uint32_t destination = 0;
  std::uint32_t mask = 0;
};

std::string AddressText(std::uint32_t address) {
  return StrCat(address >> 24, ".", (address >> 16) & 255, ".", (address >> 8) & 255, ".",
                address & 255);
}

// The kernel prints addresses as hexadecimal numbers in network byte order.
std::uint32_t FromHex(std::string_view text) {
  return __builtin_bswap32(
      static_cast<std::uint32_t>(std::strtoul(std::string(text).c_str(), nullptr, 16)));
}

std::vector<Route> ParseRoutes(std::string_view table) {
  std::vector<Route> routes;
  bool is_header = true;
  for (std::string_view line : Split(table, '\n')) {
    const auto fields = Split(line, '\t');
    if (std::exchange(is_header, false) || fields.size() < 8) continue;
    const std::uint32_t mask = FromHex(Trim(fields[7]));
    const auto flags = std::strtoul(std::string(Trim(fields[3])).c_str(), nullptr, 16);
    // The default route overlaps everything, so it is ignored.
    if (mask == 0 || (flags & kRtfUp) == 0) continue;
    routes.push_back({std::string(Trim(fields[0])), FromHex(Trim(fields[1])), mask});
  }
  return routes;
}

bool Overlaps(const std::vector<Route>& routes, std::uint32_t range, const std::string& bridge) {
  constexpr std::uint32_t kMask = ~std::uint32_t{0} << (32 - kPrefix);
  for (const Route& route : routes) {
    if (route.interface == bridge) continue;
    const std::uint32_t common = route.mask & kMask;
    if ((route.destination & common) == (range & common)) return true;
  }
  return false;
}

std::string MakeList(const std::string& directory, const std::string& name,
                     const std::string& bridge, const std::string& subnet) {
  api::JsonWriter json({.indent = 2});
  json.BeginObject();
  json.Member("cniVersion", "0.4.0");
  json.Member("name", name);
  // portmap 1.1, which Debian 12 has, takes an IPv4-only pod for incomplete.
  json.Key("disableCheck").Bool(true);
  json.Key("plugins").BeginArray();
  json.BeginObject();
  json.Member("type", "bridge");
  json.Member("bridge", bridge);
  json.Key("isGateway").Bool(true);
  json.Key("hairpinMode").Bool(true);
  json.Key("ipam").BeginObject();
  json.Member("type", "host-local");
  json.Member("dataDir", JoinPath(directory, "addresses"));
  json.Key("ranges").BeginArray().BeginArray().BeginObject();
  json.Member("subnet", subnet);
  json.EndObject().EndArray().EndArray();
  json.Key("routes").BeginArray().BeginObject();
  json.Member("dst", "0.0.0.0/0");
  json.EndObject().EndArray();
  json.EndObject();
  json.EndObject();
  json.BeginObject();
  json.Member("type", "portmap");
  json.Key("capabilities").BeginObject().Key("portMappings").Bool(true).EndObject();
  json.Key("onlyWithCapabilities").Bool(true);
  json.EndObject();
  json.EndArray();
  json.EndObject();
  return json.Take() + "\n";
}

// The range of a plan written by MakeList; nothing if it was edited beyond recognition.
std::optional<std::uint32_t> RangeOf(const CniList& list) {
  const api::Value ipam = list.plugins.front().json->root()["ipam"];
  for (api::Value set : ipam["ranges"].elements()) {
    for (api::Value range : set.elements()) {
      std::uint32_t address = 0;
      const std::string text(range["subnet"].str());
      if (!text.ends_with(StrCat("/", kPrefix))) return std::nullopt;
      const auto parts = Split(std::string_view(text).substr(0, text.find('/')), '.');
      if (parts.size() != 4) return std::nullopt;
      for (std::string_view part : parts) {
        const auto number = ParseInt64(part);
        if (!number || *number < 0 || *number > 255) return std::nullopt;
        address = (address << 8) | static_cast<std::uint32_t>(*number);
      }
      return address;
    }
  }
  return std::nullopt;
}

}  // namespace

Result<BuiltInPlan> PlanBuiltInNetwork(FileSystem& files, const std::string& directory) {
  const std::string digest = Sha256Hex(directory).substr(0, 8);
  BuiltInPlan plan;
  plan.bridge = "drk-" + digest;
  const std::string path = JoinPath(directory, kPlanFile);
  // Without the file there are no routes, so nothing can overlap.
  auto table = files.ReadFile(kRoutes);
  const std::vector<Route> routes = table.ok() ? ParseRoutes(*table) : std::vector<Route>();
  auto finish = [&](CniList list, std::uint32_t range) {
    plan.subnet = StrCat(AddressText(range), "/", kPrefix);
    plan.gateway = AddressText(range + 1);
    plan.list = std::move(list);
    return plan;
  };
  if (auto text = files.ReadFile(path); text.ok()) {
    auto list = ParseCniList(*text, /*is_list=*/true);
    const auto range = list.ok() ? RangeOf(*list) : std::nullopt;
    const auto users = files.ListDirectory(JoinPath(directory, "attachments"));
    const bool is_used = users.ok() && !users->empty();
    if (range && (is_used || !Overlaps(routes, *range, plan.bridge))) {
      return finish(*std::move(list), *range);
    }
  } else if (text.error().code != ErrorCode::kNotFound) {
    return std::move(text).error();
  }
  const auto first =
      static_cast<std::uint32_t>(std::strtoul(digest.c_str(), nullptr, 16)) % kRanges;
  for (std::uint32_t i = 0; i < kRanges; ++i) {
    const std::uint32_t range = kFirstRange + ((first + i) % kRanges << 8);
    if (Overlaps(routes, range, plan.bridge)) continue;
    const std::string text = MakeList(directory, "drakkar-" + digest, plan.bridge,
                                      StrCat(AddressText(range), "/", kPrefix));
    RETURN_IF_ERROR(files.MakeDirectories(directory, 0700));
    RETURN_IF_ERROR(files.WriteFileAtomically(path, text, 0600));
    ASSIGN_OR_RETURN(CniList list, ParseCniList(text, /*is_list=*/true));
    return finish(std::move(list), range);
  }
  return Error{ErrorCode::kResourceExhausted,
               "the host's routes leave no range for pods in 10.64.0.0/11"};
}

std::vector<BuiltInNetwork::Rule> BuiltInNetwork::Rules() const {
  const std::vector<std::string> comment = {"-m", "comment", "--comment", plan_.list.name};
  std::vector<Rule> rules = {
      {"nat", "POSTROUTING", {"-s", plan_.subnet, "!", "-d", plan_.subnet, "-j", "MASQUERADE"}},
      {"filter", "FORWARD", {"-i", plan_.bridge, "-j", "ACCEPT"}},
      {"filter",
       "FORWARD",
       {"-o", plan_.bridge, "-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED,DNAT", "-j",
        "ACCEPT"}},
  };
  for (Rule& rule : rules) rule.match.insert(rule.match.begin(), comment.begin(), comment.end());
  return rules;
}

void BuiltInNetwork::Prepare(RuntimeCallback<void> done) {
  waiters_.push_back(std::move(done));
  if (waiters_.size() > 1) return;
  Apply(Rules(), /*add=*/true, [this](Result<void> applied) {
    if (!applied.ok() && log_) {
      log_(StrCat("pods may not reach other machines because firewall rules are missing: ",
                  applied.error().message));
    }
    auto waiters = std::exchange(waiters_, {});
    for (auto& waiter : waiters) waiter(Ok());
  });
}

void BuiltInNetwork::Remove(RuntimeCallback<void> done) {
  Apply(Rules(), /*add=*/false, [this, done = std::move(done)](Result<void> applied) mutable {
    auto removed = RemoveBridge(plan_.bridge);
    done(removed.ok() ? std::move(applied) : std::move(removed));
  });
}

// One after the other: asks whether the rule exists, then adds or deletes it.
void BuiltInNetwork::Apply(std::vector<Rule> rules, bool add, RuntimeCallback<void> done) {
  if (rules.empty()) return done(Ok());
  const Rule rule = rules.front();
  rules.erase(rules.begin());
  RunIptables("-C", rule,
              [this, rule, rules = std::move(rules), add,
               done = std::move(done)](Result<void> exists) mutable {
                if (!exists.ok() && exists.error().code == ErrorCode::kNotFound) {
                  return add ? done(std::move(exists)) : done(Ok());  // no iptables
                }
                if (exists.ok() == add) return Apply(std::move(rules), add, std::move(done));
                RunIptables(add ? "-A" : "-D", rule,
                            [this, rules = std::move(rules), add,
                             done = std::move(done)](Result<void> changed) mutable {
                              if (!changed.ok()) return done(std::move(changed));
                              Apply(std::move(rules), add, std::move(done));
                            });
              });
}

void BuiltInNetwork::RunIptables(const char* verb, const Rule& rule, RuntimeCallback<void> done) {
  ProcessOptions process;
  process.arguments = {"iptables", "-w", "5", "-t", rule.table, verb, rule.chain};
  process.arguments.insert(process.arguments.end(), rule.match.begin(), rule.match.end());
  auto shared = std::make_shared<RuntimeCallback<void>>(std::move(done));
  auto started =
      spawner_.Spawn(std::move(process), lifetime_.Guard([this, shared, verb](ProcessExit exit) {
        iptables_timer_.reset();
        if (exit.exit_code == 0) return (*shared)(Ok());
        (*shared)(Internal(StrCat("iptables ", verb, ": ", Trim(exit.error_output))));
      }));
  if (!started.ok()) {
    loop_.Post(lifetime_.Guard([shared] { (*shared)(NotFound("iptables is not installed")); }));
    return;
  }
  iptables_ = std::move(*started);
  iptables_timer_ = loop_.RunAfter(kIptablesTimeout,
                                   [this] { static_cast<void>(iptables_->Signal(SIGKILL).ok()); });
}

Result<void> RemoveBridge(const std::string& name) {
  ifreq request{};
  if (name.empty() || name.size() >= sizeof(request.ifr_name)) {
    return InvalidArgument("bridge name " + Quote(name));
  }
  const Descriptor control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!control.ok()) return ErrnoError(errno, "open a control socket");
  std::memcpy(request.ifr_name, name.c_str(), name.size() + 1);
  if (::ioctl(control.get(), SIOCGIFFLAGS, &request) != 0) {
    if (errno == ENODEV) return Ok();
    return ErrnoError(errno, "look at bridge " + name);
  }
  request.ifr_flags = static_cast<short>(request.ifr_flags & ~IFF_UP);
  if (::ioctl(control.get(), SIOCSIFFLAGS, &request) != 0) {
    return ErrnoError(errno, "take down bridge " + name);
  }
  if (::ioctl(control.get(), SIOCBRDELBR, name.c_str()) != 0) {
    return ErrnoError(errno, "delete bridge " + name);
  }
  return Ok();
}

}  // namespace drakkar::node
