#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/testing/test_server.h"

namespace drakkar::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class DoctorCommandTest : public testing::CommandTest {};

TEST_F(DoctorCommandTest, ExitsWithOneIfThereAreProblems) {
  // The certificates of tests are valid for a day.
  const Outcome before = Run("doctor");
  EXPECT_EQ(before.code, 1) << before.err;
  EXPECT_THAT(before.out, AllOf(HasSubstr("0 errors, 1 warning in 13 checks\n"),
                                HasSubstr("client certificate of the kubeconfig: expires in "),
                                HasSubstr("API server are not")));
  Run("create -f -",
      "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s1}\n"
      "spec:\n  driver: d.example.com\n  nodeName: gone\n"
      "  pool: {name: gone, generation: 1, resourceSliceCount: 1}\n"
      "  devices: [{name: a}]\n");
  const Outcome found = Run("doctor");
  EXPECT_EQ(found.code, 1);
  EXPECT_THAT(found.out, AllOf(HasSubstr("0 errors, 2 warnings in 13 checks\n"),
                               HasSubstr("- slice s1 of node gone\n"), HasSubstr("what to do: ")));
  EXPECT_THAT(Run("doctor -o json").out, HasSubstr("\"check\": \"slices\""));
  EXPECT_EQ(Run("doctor -o table").code, 2);
  EXPECT_EQ(Run("doctor --kubeconfig /nowhere").code, 2);
}

TEST_F(DoctorCommandTest, AsksTheNodesForTheirDrivers) {
  Run("create -f -",
      "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"
      "---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s1}\n"
      "spec:\n  driver: d.example.com\n  nodeName: n1\n"
      "  pool: {name: n1, generation: 1, resourceSliceCount: 1}\n"
      "  devices: [{name: a}]\n");
  EXPECT_THAT(Run("doctor").out, HasSubstr("drivers and CDI specs of 1 of 1 node are not checked"));
  node_drivers_ = R"({"drivers":[],"cdiErrors":[{"file":"/etc/cdi/x.json","error":"not JSON"}]})";
  const Outcome found = Run("doctor");
  EXPECT_EQ(found.code, 1);
  EXPECT_THAT(found.out, AllOf(HasSubstr("driver d.example.com on node n1: not registered\n"),
                               HasSubstr("node n1, /etc/cdi/x.json: not JSON\n")));
  EXPECT_THAT(Run("doctor --ask-nodes=false").out, Not(HasSubstr("not registered")));
}

}  // namespace
}  // namespace drakkar::cli
