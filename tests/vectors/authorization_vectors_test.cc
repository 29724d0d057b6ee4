#include <gtest/gtest.h>

#include <map>
#include <set>

#include "api/json/reader.h"
#include "apiserver/registry/resource_authorization.h"
#include "base/env/clock.h"
#include "base/env/random.h"
#include "base/text/text.h"
#include "tests/vectors/vector_case.h"

namespace drakkar::apiserver {
namespace {

using api::Value;

UserInfo UserOf(Value user) {
  UserInfo info;
  info.name = std::string(user["name"].str());
  for (const auto& [key, name, values] : user["extra"].members()) {
    for (const Value value : values.elements()) {
      info.extra[std::string(name)].emplace_back(value.str());
    }
  }
  return info;
}

// Answers with the rules of a case and counts what was asked: "verb/resource/subresource/name".
std::string RunPermissionCase(Value c, bool binding) {
  SeededRandom random(1);
  const FeatureGates gates;
  const UserInfo user = UserOf(c["user"]);
  std::map<std::string, std::int64_t> asked;
  const StrategyContext context{
      .clock = RealClock(),
      .random = random,
      .gates = gates,
      .user = user,
      .verb = c["verb"].str() == "patch" ? Verb::kPatch : Verb::kUpdate,
      .lookup = {},
      .authorize = [&](std::string_view verb, std::string_view, std::string_view resource,
                       std::string_view subresource, std::string_view,
                       std::string_view name) -> Decision {
        const std::string key = StrCat(verb, "/", resource, "/", subresource, "/", name);
        ++asked[key];
        if (c["rules"].Entry(key).str() == "allow") return Decision::Allow();
        return Decision::Deny("no rule matched");
      }};
  Findings found;
  if (binding) {
    CheckBindingPermission(found, api::FieldPath("status"), c["newStatus"], c["oldStatus"],
                           context);
  } else {
    CheckDriverPermission(found, api::FieldPath("status.devices"), c["newStatus"], c["oldStatus"],
                          "default", context);
  }
  std::string problem = vectors::CompareErrors(c["errors"], PlainErrors(found), false);
  std::map<std::string, std::int64_t> expected;
  for (const auto& [key, name, count] : c["queries"].members()) {
    expected[std::string(name)] = count.integer();
  }
  if (asked != expected) problem += "\n    different checks were made";
  return problem;
}

std::string RunDriversCase(Value c) {
  std::set<std::string> expected;
  for (const Value driver : c["drivers"].elements()) expected.emplace(driver.str());
  return ModifiedDrivers(c["newStatus"], c["oldStatus"]) == expected ? "" : "other drivers";
}

std::string RunNodeNameCase(Value c) {
  return NodeOfAllocation(c["status"]["allocation"]) == c["nodeName"].str() ? "" : "another node";
}

std::string RunServiceAccountCase(Value c) {
  return IsServiceAccountOnNode(UserOf(c["user"]), c["allocatedNodeName"].str()) ==
                 c["associated"].boolean()
             ? ""
             : "the other answer";
}

TEST(AuthorizationVectors, StatusPermissionsAreCheckedAsInKubernetes) {
  constexpr std::string_view kArea = "authorization";
  if (!vectors::Available(kArea)) {
    GTEST_SKIP() << "no vectors in " << vectors::Root() << "/" << kArea;
  }
  vectors::Tally tally(kArea);
  for (const std::string& file : vectors::FilesOf(kArea, ".json")) {
    const std::string stem = file.substr(0, file.size() - std::string_view(".json").size());
    const Result<api::TreePtr> cases = api::ParseJson(vectors::ReadText(kArea, file));
    ASSERT_TRUE(cases.ok()) << file;
    for (const Value c : (*cases)->root().elements()) {
      std::string problem = "no such file is known";
      if (stem == "binding") problem = RunPermissionCase(c, true);
      if (stem == "device_status") problem = RunPermissionCase(c, false);
      if (stem == "modified_drivers") problem = RunDriversCase(c);
      if (stem == "node_name_from_allocation") problem = RunNodeNameCase(c);
      if (stem == "service_account_on_node") problem = RunServiceAccountCase(c);
      tally.Count(stem, std::string(c["name"].str()), problem);
    }
  }
  tally.Finish();
}

}  // namespace
}  // namespace drakkar::apiserver
