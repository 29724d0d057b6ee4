#include "node/dra/pod_claims.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/text/text.h"

namespace drakkar::node {
namespace {

TEST(PodClaims, AContainerUsesTheExtendedResourcesItAsksFor) {
  const auto pod = api::ParseJson(R"({"metadata":{"name":"p","namespace":"n"},
    "spec":{"containers":[
      {"name":"a","resources":{"requests":{"example.com/gpu":"1","example.com/nic":"0"}}},
      {"name":"b","resources":{"requests":{"example.com/gpu":"2"}}},
      {"name":"none"}]},
    "status":{"extendedResourceClaimStatus":{"resourceClaimName":"x","requestMappings":[
      {"containerName":"a","resourceName":"example.com/gpu","requestName":"r0"},
      {"containerName":"a","resourceName":"example.com/nic","requestName":"r1"},
      {"containerName":"a","resourceName":"example.com/dpu","requestName":"r3"},
      {"containerName":"b","resourceName":"example.com/gpu","requestName":"r2"}]}}})");
  ASSERT_TRUE(pod.ok());
  auto uses = [&](std::size_t container) {
    std::string text;
    const api::Value root = (*pod)->root();
    for (const auto& use : ListContainerClaims(root, root["spec"]["containers"].at(container))) {
      text += StrCat(use.pod_claim_name, "|", use.claim_name, "|", use.request, " ");
    }
    return text;
  };
  EXPECT_EQ(uses(0), "|x|r0 ") << "neither zero devices nor those it does not ask for";
  EXPECT_EQ(uses(1), "|x|r2 ");
  EXPECT_EQ(uses(2), "");
  const auto claims = ListPodClaims((*pod)->root());
  ASSERT_TRUE(claims.ok());
  ASSERT_EQ(claims->size(), 1u);
  EXPECT_EQ(claims->front().claim_name, "x");
}

}  // namespace
}  // namespace drakkar::node
