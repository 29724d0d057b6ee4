#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {

using Texts = std::vector<std::string>;

// A field within an object, with "%" for its value. The errors about a refused value have `path`.
struct Rule {
  std::string_view path;
  std::string_view object;
  Texts valid = {};
  Texts refused = {};
};

class ValueRuleFixture : public CoreFixture {
 protected:
  void SetUp() override { StartCore(nullptr); }

  Texts FieldsWithErrors(std::string_view json) {
    Request request = RequestFor(Verb::kCreate, json, AdminUser());
    request.dry_run = true;
    const Response response = Handle(std::move(request));
    Texts fields;
    if (!response.failure) return fields;
    for (const auto& cause : response.failure->causes) fields.push_back(cause.field);
    if (fields.empty()) fields.push_back(response.failure->message);
    return fields;
  }
  void Expect(std::string_view before, const std::vector<Rule>& rules, std::string_view after) {
    for (const Rule& rule : rules) {
      const auto errors = [&](const std::string& value) {
        std::string object = StrCat(before, rule.object, after);
        object.replace(object.find('%'), 1, value);
        return FieldsWithErrors(object);
      };
      const auto shown = [&](const std::string& value) {
        return StrCat(rule.object, " with ", value.substr(0, 60), " of ", value.size());
      };
      for (const std::string& value : rule.valid) {
        const Texts found = errors(value);
        EXPECT_TRUE(found.empty()) << shown(value) << ": " << Join(found, ", ");
      }
      for (const std::string& value : rule.refused) {
        const Texts found = errors(value);
        EXPECT_TRUE(std::ranges::find(found, rule.path) != found.end())
            << shown(value) << ": " << Join(found, ", ");
      }
    }
  }
  void ExpectOfContainer(const std::vector<Rule>& rules) {
    Expect(
        R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"os":{"name":"linux"},
            "volumes":[{"name":"v","emptyDir":{}}],"containers":[{"name":"a","image":"i",)",
        rules, "}]}}");
  }
  void ExpectOfSpec(const std::vector<Rule>& rules) {
    Expect(
        R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":
            [{"name":"a","image":"i"}],)",
        rules, "}}");
  }
  void ExpectOfVolume(const std::vector<Rule>& rules) {
    Expect(
        R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"serviceAccountName":
            "s","containers":[{"name":"a","image":"i"}],"volumes":[{"name":"v",)",
        rules, "}]}}");
  }
  void ExpectOfPersistentVolume(const std::vector<Rule>& rules) {
    Expect(
        R"({"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"v"},"spec":
            {"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"},)",
        rules, "}}");
  }
  void ExpectOfObject(const std::vector<Rule>& rules) {
    Expect(R"({"metadata":{"name":"o"},)", rules, "}");
  }
};

}  // namespace drakkar::apiserver
