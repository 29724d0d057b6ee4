// What is wrong with a claim, in Kubernetes' words.
#include <gtest/gtest.h>

#include <functional>

#include "allocator/testing/cluster.h"

namespace drakkar::allocator {
namespace {

using Change = std::function<void(device::Claim&)>;

constexpr char kRequest[] = "claim default/claim, request r";

std::string ErrorOf(const Change& change, Features features = {}) {
  Cluster cluster(1, features);
  auto claim = MakeClaim({ExactRequest("r", 1)});
  change(*claim);
  return cluster.WhyNot(claim);
}

device::RequestSpec& Spec(device::Claim& claim) {
  return *claim.requests[0].exactly;
}

void MakePrioritized(device::Claim& claim) {
  claim.requests[0].first_available = {Spec(claim), Spec(claim)};
  claim.requests[0].first_available[0].name = "s";
  claim.requests[0].first_available[1].name = "t";
  claim.requests[0].exactly.reset();
}

TEST(ClaimErrors, OfGatesThatAreOff) {
  EXPECT_EQ(ErrorOf([](device::Claim& claim) { Spec(claim).capacity.emplace(); }),
            StrCat(kRequest,
                   ": has capacity requests, but the DRAConsumableCapacity feature is disabled"));
  EXPECT_EQ(ErrorOf([](device::Claim& claim) { Spec(claim).admin_access = true; }),
            StrCat(kRequest, ": admin access is requested, but the feature is disabled"));
  Features prioritized;
  prioritized.prioritized_list = true;
  EXPECT_EQ(ErrorOf(
                [](device::Claim& claim) {
                  MakePrioritized(claim);
                  claim.requests[0].first_available[1].capacity.emplace();
                },
                prioritized),
            "claim default/claim, subrequest t: has capacity requests, but the "
            "DRAConsumableCapacity feature is disabled");
}

TEST(ClaimErrors, AreNoneIfTheGatesAreOn) {
  Features features;
  features.prioritized_list = features.consumable_capacity = features.admin_access = true;
  features.derived_attributes = true;
  EXPECT_EQ(ErrorOf(
                [](device::Claim& claim) {
                  Spec(claim).capacity.emplace();
                  Spec(claim).admin_access = true;
                  Spec(claim).derived_attributes = {{"a/b", "\"1\""}};
                  MakePrioritized(claim);
                },
                features),
            "no error");
}

TEST(ClaimErrors, OfRequestsOfAnUnknownKind) {
  const std::string unknown = ": missing device class name (unsupported request type?)";
  EXPECT_EQ(ErrorOf([](device::Claim& claim) { claim.requests[0].exactly.reset(); }),
            kRequest + unknown);
  EXPECT_EQ(ErrorOf([](device::Claim& claim) { Spec(claim).device_class.clear(); }),
            kRequest + unknown);
  EXPECT_EQ(ErrorOf([](device::Claim& claim) {
              Spec(claim).selectors = {{"device.driver == \"x\""}, {}};
            }),
            StrCat(kRequest, ", selector #1: CEL expression empty (unsupported selector type?)"));
  EXPECT_EQ(ErrorOf([](device::Claim& claim) {
              claim.constraints = {{{}, "a/b", {}}, {{}, {}, "a/b"}, {}};
            }),
            "claim default/claim, constraint #2: empty constraint (unsupported constraint type?)");
}

TEST(ClaimErrors, OfTheClass) {
  Cluster cluster(1);
  auto broken = std::make_shared<device::DeviceClass>(*PerfClass());
  broken->selectors.push_back({});
  cluster.device_class = broken;
  EXPECT_EQ(cluster.WhyNot(MakeClaim({ExactRequest("r", 1)})),
            "class test-class: selector #1: CEL expression empty (unsupported selector type?)");
  broken->selectors[1].cel = "nonsense";
  EXPECT_TRUE(cluster.WhyNot(MakeClaim({ExactRequest("r", 1)}))
                  .starts_with("class test-class: selector #1: CEL compile error: "));
}

TEST(ClaimErrors, OfASelectorThatDoesNotCompile) {
  EXPECT_TRUE(
      ErrorOf([](device::Claim& claim) {
        Spec(claim).selectors = {{StrCat("device.driver == \"", kTestDriver, "\"")}, {"nonsense"}};
      }).starts_with("claim default/claim: selector #1: CEL compile error: "));
  EXPECT_EQ(ErrorOf([](device::Claim& claim) {
              Spec(claim).selectors = {{"device.driver == \"nobody\""}, {"nonsense"}};
            }),
            "cannot allocate all claims")
      << "the first says no, so the second is not asked";
}

TEST(ClaimErrors, OfMoreDevicesThanAClaimMayHave) {
  EXPECT_EQ(ErrorOf([](device::Claim& claim) { Spec(claim).count = 33; }),
            "claim default/claim: number of requested devices 33 exceeds the claim limit of 32");
  EXPECT_EQ(ErrorOf([](device::Claim& claim) { Spec(claim).count = 32; }),
            "cannot allocate all claims");
  EXPECT_EQ(ErrorOf([](device::Claim& claim) {
              Spec(claim).count = 16;
              claim.requests.push_back(ExactRequest("s", 17));
            }),
            "claim default/claim: number of requested devices 33 exceeds the claim limit of 32");
}

TEST(ClaimErrors, OfALaterClaimDoNotComeBeforeItsOwnLimit) {
  Cluster cluster(1);
  const ClaimPtr claims[] = {MakeClaim({ExactRequest("a", 1)}), [] {
                               auto second = MakeClaim({ExactRequest("b", 33)});
                               second->name = "second";
                               second->constraints.push_back({{}, std::nullopt, std::nullopt});
                               return second;
                             }()};
  const Problem problem = cluster.allocator.Prepare(claims, OneClass(cluster.device_class));
  const auto outcome = cluster.allocator.Allocate(problem, NodeName(0), {});
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().message,
            "claim default/second: number of requested devices 33 exceeds the claim limit of 32");
}

TEST(ClaimErrors, TheSmallestAlternativeCountsForTheLimit) {
  Features features;
  features.prioritized_list = true;
  EXPECT_EQ(ErrorOf(
                [](device::Claim& claim) {
                  MakePrioritized(claim);
                  claim.requests[0].first_available[0].count = 40;
                },
                features),
            "no error");
  EXPECT_EQ(ErrorOf(
                [](device::Claim& claim) {
                  MakePrioritized(claim);
                  claim.requests[0].first_available[0].count = 40;
                  claim.requests[0].first_available[1].count = 33;
                },
                features),
            "claim default/claim: number of requested devices 33 exceeds the claim limit of 32");
}

// Kubernetes checks requests in order, and those for all devices against the node.
TEST(ClaimErrors, AreReportedInTheOrderOfTheRequests) {
  Cluster cluster(0);
  auto slice = PerfSlice(0);
  slice->slice_count = 2;
  cluster.inventory.SetSlice(slice);
  cluster.allocator.SetNode({NodeName(0), {}, {}});
  const std::string updating = StrCat(": asks for all devices, but resource pool ", kTestDriver,
                                      "/", NodeName(0), " is currently being updated");
  auto claim = MakeClaim({ExactRequest("r", 1), ExactRequest("s", 1)});
  claim->requests[0].exactly->allocation_mode = "All";
  claim->requests[1].exactly->device_class.clear();
  EXPECT_EQ(cluster.WhyNot(claim), kRequest + updating);
  std::swap(claim->requests[0], claim->requests[1]);
  EXPECT_EQ(cluster.WhyNot(claim),
            "claim default/claim, request s: missing device class name (unsupported request "
            "type?)");
  slice = PerfSlice(0, 2);
  slice->devices[1].name = slice->devices[0].name;
  cluster.inventory.SetSlice(slice);
  std::swap(claim->requests[0], claim->requests[1]);
  EXPECT_EQ(cluster.WhyNot(claim), StrCat(kRequest, ": asks for all devices, but resource pool ",
                                          kTestDriver, "/", NodeName(0), " is currently invalid"));
}

TEST(ClaimErrors, OfANodeSelectorThatCannotBeEvaluated) {
  Features features;
  features.partitionable_devices = true;
  Cluster cluster(0, features);
  auto slice = PerfSlice(0, 1);
  const device::NodeSelector bad{{{{{"zone", "Like", {"a"}}}, {}}}};
  slice->target = {"", false, bad};
  cluster.inventory.SetSlice(slice);
  cluster.allocator.SetNode({NodeName(0), {}, {}});
  const ClaimPtr claim = MakeClaim({ExactRequest("r", 1)});
  const std::string why =
      "node selector requirement \"zone\": \"Like\" is not a valid label selector operator";
  EXPECT_EQ(cluster.WhyNot(claim),
            StrCat("gather pool information: failed to perform node selection for slice "
                   "resourceslice-0: ",
                   why));
  slice = PerfSlice(0, 1);
  slice->target = {};
  slice->per_device_node_selection = true;
  slice->devices[0].target = {"", false, bad};
  cluster.inventory.SetSlice(slice);
  EXPECT_EQ(cluster.WhyNot(claim),
            StrCat("gather pool information: failed to perform node selection for device "
                   "basic-device-0 in slice resourceslice-0: ",
                   why));
}

TEST(ClaimErrors, OfDerivedAttributes) {
  Features features;
  features.derived_attributes = true;
  const auto error = [&](std::string expression) {
    return ErrorOf(
        [&](device::Claim& claim) {
          Spec(claim).derived_attributes = {{"a/other", "\"1\""}, {"a/b", expression}};
          claim.constraints = {{{}, "a/b", {}}};
        },
        features);
  };
  EXPECT_EQ(error("\"same\""), "no error");
  EXPECT_TRUE(error("nonsense").starts_with("compile derived attribute a/b failed: "));
  EXPECT_TRUE(error(StrCat("device.attributes[\"", kTestDriver, "\"][\"absent\"]"))
                  .starts_with(StrCat("evaluate derived attribute a/b on device ", kTestDriver, "/",
                                      NodeName(0), "/basic-device-0 failed: ")));
}

TEST(ClaimErrors, OfAConstraintThatKeepsAllDevicesFromBeingTaken) {
  EXPECT_EQ(ErrorOf([](device::Claim& claim) {
              Spec(claim).allocation_mode = "All";
              claim.constraints = {{{}, "resource.kubernetes.io/pciBusID", {}}};
            }),
            StrCat(kRequest, ": cannot add device ", kTestDriver, "/", NodeName(0),
                   "/basic-device-1 because a claim constraint would not be satisfied"));
}

TEST(ClaimErrors, OfAnAmountThatCannotBeComputed) {
  Features features;
  features.consumable_capacity = true;
  for (const bool all : {false, true}) {
    const std::string error = ErrorOf(
        [&](device::Claim& claim) {
          if (all) Spec(claim).allocation_mode = "All";
          Spec(claim).capacity = {{"memory", Amount("-1")}};
        },
        features);
    EXPECT_EQ(error, StrCat(kRequest, ": checking capacity for device ",
                            all ? std::string() : StrCat(kTestDriver, "/", NodeName(0), "/"),
                            "basic-device-0: capacity \"memory\": capacity value is negative"));
  }
}

// A constraint applies to the requests it names, with or without the alternative.
TEST(Constraints, ApplyToTheRequestsTheyName) {
  Features features;
  features.prioritized_list = true;
  // No two devices have the same bus id.
  const auto fits = [&](std::vector<std::string> requests) {
    Cluster cluster(1, features);
    auto claim = MakeClaim({ExactRequest("a", 1), ExactRequest("b", 2)});
    claim->requests[1].first_available = {*claim->requests[1].exactly};
    claim->requests[1].first_available[0].name = "x";
    claim->requests[1].exactly.reset();
    claim->constraints = {{std::move(requests), "resource.kubernetes.io/pciBusID", {}}};
    return AsYes(cluster.Allocate(claim)) != nullptr;
  };
  EXPECT_FALSE(fits({})) << "all requests";
  EXPECT_TRUE(fits({"a"})) << "one device";
  EXPECT_FALSE(fits({"b"}));
  EXPECT_FALSE(fits({"b/x"}));
  EXPECT_FALSE(fits({"a", "b"}));
  EXPECT_TRUE(fits({"x"})) << "an alternative is named with its request";
  EXPECT_TRUE(fits({"a/x"}));
}

}  // namespace
}  // namespace drakkar::allocator
