#include "node/runtime/network/built_in_network.h"

#include <gtest/gtest.h>

#include "base/testing/memory_file_system.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"

namespace drakkar::node {
namespace {

constexpr char kHeader[] =
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";

std::string Hex(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  char text[9];
  std::snprintf(text, sizeof(text), "%02X%02X%02X%02X", d, c, b, a);
  return text;
}

struct Host {
  Host() {
    EXPECT_TRUE(files.MakeDirectories("/proc/net", 0755).ok());
    EXPECT_TRUE(files.MakeDirectories("/data", 0755).ok());
  }
  void Route(const std::string& interface, const std::string& destination,
             const std::string& mask) {
    table +=
        StrCat(interface, "\t", destination, "\t00000000\t0001\t0\t0\t0\t", mask, "\t0\t0\t0\n");
    EXPECT_TRUE(files.WriteFile("/proc/net/route", table, 0444).ok());
  }
  BuiltInPlan Plan(const std::string& directory = "/data/network") {
    auto plan = PlanBuiltInNetwork(files, directory);
    EXPECT_TRUE(plan.ok()) << plan.error().message;
    return plan.ok() ? *plan : BuiltInPlan();
  }
  MemoryFileSystem files;
  std::string table = kHeader;
};

TEST(BuiltInNetwork, HasNamesAndARangeOfItsOwn) {
  Host host;
  host.Route("eth0", Hex(0, 0, 0, 0), Hex(0, 0, 0, 0));  // the default route
  const BuiltInPlan plan = host.Plan();
  EXPECT_LT(plan.bridge.size(), 16u) << "the kernel's limit";
  EXPECT_TRUE(plan.subnet.starts_with("10.") && plan.subnet.ends_with(".0/24")) << plan.subnet;
  EXPECT_TRUE(plan.gateway.ends_with(".1")) << plan.gateway;
  ASSERT_EQ(plan.list.plugins.size(), 2u);
  EXPECT_EQ(plan.list.plugins[0].type, "bridge");
  EXPECT_TRUE(plan.list.plugins[1].only_with_capabilities);
  const BuiltInPlan other = host.Plan("/elsewhere/network");
  EXPECT_NE(other.bridge, plan.bridge);
  EXPECT_NE(other.subnet, plan.subnet);
  EXPECT_NE(other.list.name, plan.list.name);
}

TEST(BuiltInNetwork, KeepsItsRangeAndAvoidsTheHostsRoutes) {
  Host host;
  const BuiltInPlan plan = host.Plan();
  EXPECT_EQ(host.Plan().subnet, plan.subnet);
  // Its own bridge is no collision.
  const auto parts = Split(plan.gateway, '.');
  const auto at = [&](std::size_t i) { return static_cast<std::uint32_t>(*ParseInt64(parts[i])); };
  host.Route(plan.bridge, Hex(10, at(1), at(2), 0), Hex(255, 255, 255, 0));
  EXPECT_EQ(host.Plan().subnet, plan.subnet);
  // A route of somebody else is, unless pods use the range already.
  host.Route("tun0", Hex(10, at(1), 0, 0), Hex(255, 255, 0, 0));
  ASSERT_TRUE(host.files.MakeDirectories("/data/network/attachments", 0700).ok());
  ASSERT_TRUE(host.files.WriteFile("/data/network/attachments/s.json", "{}", 0600).ok());
  EXPECT_EQ(host.Plan().subnet, plan.subnet);
  ASSERT_TRUE(host.files.Remove("/data/network/attachments/s.json").ok());
  const BuiltInPlan moved = host.Plan();
  EXPECT_NE(moved.subnet, plan.subnet);
  EXPECT_FALSE(moved.subnet.starts_with(StrCat("10.", at(1), "."))) << moved.subnet;
}

TEST(BuiltInNetwork, SaysSoIfNoRangeIsFree) {
  Host host;
  host.Route("tun0", Hex(10, 0, 0, 0), Hex(255, 0, 0, 0));
  const auto plan = PlanBuiltInNetwork(host.files, "/data/network");
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().message, "the host's routes leave no range for pods in 10.64.0.0/11");
}

TEST(BuiltInNetwork, AnUnreadablePlanIsReplaced) {
  Host host;
  ASSERT_TRUE(host.files.MakeDirectories("/data/network", 0700).ok());
  for (const char* text : {"", "{", R"({"name":"n","plugins":[{"type":"bridge"}]})",
                           R"({"name":"n","plugins":[{"type":"bridge","ipam":{"ranges":
                              [[{"subnet":"10.300.0.0/24"}]]}}]})"}) {
    ASSERT_TRUE(host.files.WriteFile("/data/network/pod-network.conflist", text, 0600).ok());
    EXPECT_EQ(host.Plan().list.plugins.size(), 2u) << text;
  }
}

// Runs iptables as the test says: `rules` is what exists.
class FakeIptables final : public Spawner {
 public:
  explicit FakeIptables(EventLoop& loop) : loop_(loop) {}
  Result<std::unique_ptr<Process>> Spawn(ProcessOptions options,
                                         std::function<void(ProcessExit)> on_exit) override {
    if (!installed) return NotFound("no such file");
    ++running;
    most_running = std::max(most_running, running);
    EXPECT_EQ(options.arguments[0], "iptables");
    const std::string verb = options.arguments[5];
    options.arguments.erase(options.arguments.begin() + 5);
    const std::string rule = Join(options.arguments, " ");
    ProcessExit exit;
    if (verb == "-C") exit.exit_code = rules.contains(rule) ? 0 : 1;
    if (verb == "-A") rules.insert(rule);
    if (verb == "-D") rules.erase(rule);
    if (refuses) exit.exit_code = 4;
    loop_.Post([this, exit, on_exit = std::move(on_exit)] {
      --running;
      on_exit(exit);
    });
    return std::unique_ptr<Process>(std::make_unique<FakeProcess>());
  }
  bool installed = true;
  bool refuses = false;
  std::multiset<std::string> rules;
  int running = 0;
  int most_running = 0;

 private:
  class FakeProcess final : public Process {
    int pid() const override { return 1; }
    Result<void> Signal(int) override { return Ok(); }
  };
  EventLoop& loop_;
};

struct Rules {
  Rules()
      : network(loop, iptables, host.Plan(), [this](const std::string& l) { log.push_back(l); }) {}
  SeededLoop loop;
  FakeIptables iptables{loop};
  Host host;
  std::vector<std::string> log;
  BuiltInNetwork network;
};

TEST(BuiltInNetwork, AddsItsRulesOnceAndRemovesThem) {
  Rules rules;
  int answers = 0;
  for (int i = 0; i < 3; ++i) {
    rules.network.Prepare([&](Result<void> done) {
      EXPECT_TRUE(done.ok());
      ++answers;
    });
  }
  rules.loop.RunUntilIdle();
  EXPECT_EQ(answers, 3);
  EXPECT_EQ(rules.iptables.rules.size(), 3u);
  EXPECT_EQ(rules.iptables.most_running, 1);
  rules.network.Prepare([&](Result<void>) { ++answers; });
  rules.loop.RunUntilIdle();
  EXPECT_EQ(rules.iptables.rules.size(), 3u) << "they existed";
  std::optional<Result<void>> removed;
  rules.network.Remove([&](Result<void> done) { removed = std::move(done); });
  rules.loop.RunUntilIdle();
  ASSERT_TRUE(removed.has_value());
  EXPECT_TRUE(removed->ok()) << removed->error().message;
  EXPECT_TRUE(rules.iptables.rules.empty());
}

TEST(BuiltInNetwork, PodsStartWithoutIptablesAndTheLogSaysWhatIsMissing) {
  for (const bool installed : {true, false}) {
    Rules rules;
    rules.iptables.installed = installed;
    rules.iptables.refuses = true;
    bool answered = false;
    rules.network.Prepare([&](Result<void> done) { answered = done.ok(); });
    rules.loop.RunUntilIdle();
    EXPECT_TRUE(answered);
    ASSERT_EQ(rules.log.size(), 1u);
    EXPECT_TRUE(rules.log[0].starts_with("pods may not reach other machines")) << rules.log[0];
  }
}

}  // namespace
}  // namespace drakkar::node
