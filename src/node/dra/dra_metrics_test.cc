// Every metric under both of its names, and without a registry.
#include "node/dra/dra_metrics.h"

#include <gtest/gtest.h>

#include "base/text/text.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::node {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class DraMetricsTest : public ::testing::Test {
 protected:
  std::string Value(const std::string& series) {
    const std::string text = "\n" + registry_.Text();
    const std::size_t at = text.find(StrCat("\n", series, " "));
    if (at == std::string::npos) return "absent";
    const std::size_t value = at + series.size() + 2;
    return text.substr(value, text.find('\n', value) - value);
  }
  // The value under both names, which must be the same.
  std::string Both(const std::string& series) {
    const std::string value = Value(series);
    EXPECT_EQ(Value("kubelet_" + series), value) << series;
    return value;
  }
  static ClaimInfo Claim(const std::string& name, const std::vector<std::string>& drivers,
                         bool prepared = true) {
    ClaimInfo info;
    info.name = name;
    info.namespace_name = "n";
    for (const std::string& driver : drivers) info.drivers[driver];
    if (prepared) info.phase.Apply(ClaimEvent::kPrepared);
    return info;
  }

  Metrics registry_;
  DraMetrics metrics_{&registry_};
};

TEST_F(DraMetricsTest, OperationsAreTimedByNameAndOutcome) {
  metrics_.Operation("PrepareResources", false, seconds(2));
  metrics_.Operation("PrepareResources", false, seconds(3));
  metrics_.Operation("PrepareResources", true, seconds(7));
  const std::string ok = R"({is_error="false",operation_name="PrepareResources"})";
  const std::string failed = R"({is_error="true",operation_name="PrepareResources"})";
  EXPECT_EQ(Both("dra_operations_duration_seconds_count" + ok), "2");
  EXPECT_EQ(Both("dra_operations_duration_seconds_sum" + ok), "5");
  EXPECT_EQ(Both("dra_operations_duration_seconds_sum" + failed), "7");
  EXPECT_EQ(Value("drakkar_node_dra_operations_duration_seconds_sum" + ok), "5");
  EXPECT_EQ(Value("drakkar_node_dra_operations_duration_seconds_sum" + failed), "7");
  metrics_.PrepareStage("claims", seconds(4));
  EXPECT_EQ(Value(R"(drakkar_node_dra_prepare_stage_duration_seconds_sum{stage="claims"})"), "4");
}

TEST_F(DraMetricsTest, CallsAreTimedByDriverMethodVersionAndCode) {
  PluginInstance plugin;
  plugin.driver = "d";
  const auto sum = [&](const char* version, const char* code) {
    return Both(StrCat("dra_grpc_operations_duration_seconds_sum{driver_name=\"d\",",
                       "grpc_status_code=\"", code, "\",method_name=\"/k8s.io.kubelet.pkg.apis.",
                       "dra.", version, ".DRAPlugin/NodePrepareResources\"}"));
  };
  plugin.version = rpc::DraVersion::kV1;
  metrics_.Call(plugin, "NodePrepareResources", DraMetrics::CodeOf(nullptr), seconds(1));
  const Error error = Unavailable("x");
  metrics_.Call(plugin, "NodePrepareResources", DraMetrics::CodeOf(&error), seconds(2));
  plugin.version = rpc::DraVersion::kV1beta1;
  metrics_.Call(plugin, "NodePrepareResources", "OK", seconds(4));
  EXPECT_EQ(sum("v1", "OK"), "1");
  EXPECT_EQ(sum("v1", "Unavailable"), "2");
  EXPECT_EQ(sum("v1beta1", "OK"), "4");
}

TEST_F(DraMetricsTest, SkippedCallsAreCountedByDriver) {
  metrics_.PrepareSkipped("d");
  metrics_.PrepareSkipped("d");
  metrics_.PrepareSkipped("e");
  metrics_.UnprepareSkipped("d");
  EXPECT_EQ(Both(R"(dra_node_prepare_skips_total{driver_name="d"})"), "2");
  EXPECT_EQ(Both(R"(dra_node_prepare_skips_total{driver_name="e"})"), "1");
  EXPECT_EQ(Both(R"(dra_node_unprepare_skips_total{driver_name="d"})"), "1");
}

TEST_F(DraMetricsTest, ClaimsInUseAreThoseThatAreNotOnlyAttached) {
  const auto in_use = [&](const char* driver) {
    return Both(StrCat("dra_resource_claims_in_use{driver_name=\"", driver, "\"}"));
  };
  ClaimCache cache;
  metrics_.ClaimsInUse(cache);
  EXPECT_EQ(in_use("<any>"), "0");
  cache.Add(Claim("a", {"d", "e"}));
  cache.Add(Claim("b", {"d"}));
  cache.Add(Claim("attached", {"d", "f"}, false));
  metrics_.ClaimsInUse(cache);
  EXPECT_EQ(in_use("<any>"), "2");
  EXPECT_EQ(in_use("d"), "2");
  EXPECT_EQ(in_use("e"), "1");
  EXPECT_EQ(in_use("f"), "absent");
  cache.Erase("n/a");
  cache.Erase("n/b");
  metrics_.ClaimsInUse(cache);
  EXPECT_EQ(in_use("<any>"), "0");
  EXPECT_EQ(in_use("d"), "absent");
  EXPECT_EQ(in_use("e"), "absent");
  cache.Add(Claim("a", {"e"}));
  metrics_.ClaimsInUse(cache);
  EXPECT_EQ(in_use("e"), "1");
  EXPECT_EQ(in_use("d"), "absent");
}

TEST_F(DraMetricsTest, WithoutARegistryNothingIsCounted) {
  DraMetrics none(nullptr);
  none.Operation("PrepareResources", false, seconds(1));
  none.PrepareStage("claims", milliseconds(1));
  none.Call(PluginInstance(), "NodePrepareResources", "OK", seconds(1));
  none.PrepareSkipped("d");
  none.UnprepareSkipped("d");
  none.ClaimsInUse(ClaimCache());
  EXPECT_EQ(registry_.Text().find("dra_"), std::string::npos);
}

}  // namespace
}  // namespace drakkar::node
