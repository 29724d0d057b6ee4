// Rules for metadata and for names that no object of the field sweep reaches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "apiserver/validation/claim_template.h"
#include "apiserver/validation/metadata.h"
#include "apiserver/validation/name_rules.h"
#include "apiserver/validation/resource_claim.h"
#include "apiserver/validation/resource_rules.h"
#include "apiserver/validation/semantic_equal.h"
#include "base/text/text.h"
#include "features/gates/feature_gates.h"

namespace drakkar::apiserver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Texts(const Findings& findings) {
  std::vector<std::string> texts;
  for (const Finding& each : findings.list()) texts.push_back(each.error.ToString());
  return texts;
}

class MetadataRulesTest : public ::testing::Test {
 protected:
  static api::TreePtr Parse(std::string_view json) {
    Result<api::TreePtr> tree = api::ParseJson(json);
    EXPECT_TRUE(tree.ok()) << json;
    return tree.ok() ? *tree : nullptr;
  }
  std::vector<std::string> OnCreate(std::string_view metadata) {
    const api::TreePtr object = Parse(StrCat(R"({"metadata":)", metadata, "}"));
    return Texts(CheckMetadata(object->root(), rules_));
  }
  static std::vector<std::string> OnUpdate(std::string_view metadata, std::string_view before,
                                           bool known_finalizers = true) {
    const api::TreePtr now = Parse(StrCat(R"({"metadata":)", metadata, "}"));
    const api::TreePtr then = Parse(StrCat(R"({"metadata":)", before, "}"));
    return Texts(CheckMetadataUpdate(now->root(), then->root(), known_finalizers));
  }

  MetadataRules rules_{.namespaced = false,
                       .check_name = SubdomainNameProblems,
                       .name_is_declared = false,
                       .known_finalizers = true};
};

TEST_F(MetadataRulesTest, TheVersionOfAnOwnerHasAtMostOneSlash) {
  const auto owned_by = [&](std::string_view version) {
    return OnCreate(StrCat(R"({"name":"x","ownerReferences":[{"kind":"K","name":"n","uid":"u",)",
                           R"("apiVersion":")", version, R"("}]})"));
  };
  EXPECT_THAT(owned_by("v1"), IsEmpty());
  EXPECT_THAT(owned_by("apps/v1"), IsEmpty());
  EXPECT_THAT(owned_by(""),
              ElementsAre("metadata.ownerReferences[0].apiVersion: Required value: must not be "
                          "empty"));
  EXPECT_THAT(owned_by("a/b/v1"),
              ElementsAre("metadata.ownerReferences[0].apiVersion: Invalid value: \"a/b/v1\": must "
                          "be <group>/<version> or <version>"));
  EXPECT_THAT(owned_by("apps/"), ElementsAre(HasSubstr("must be <group>/<version> or <version>")));
}

TEST_F(MetadataRulesTest, AnEventOwnsNothing) {
  const auto owned_by = [&](std::string_view version, std::string_view kind) {
    return OnCreate(StrCat(R"({"name":"x","ownerReferences":[{"kind":")", kind,
                           R"(","name":"n","uid":"u","apiVersion":")", version, R"("}]})"));
  };
  EXPECT_THAT(owned_by("v1", "Event"), ElementsAre(HasSubstr("disallowed from being an owner")));
  EXPECT_THAT(owned_by("events.k8s.io/v1", "Event"), IsEmpty());
  EXPECT_THAT(owned_by("v1", "Pod"), IsEmpty());
}

TEST_F(MetadataRulesTest, OneOwnerIsTheController) {
  std::string owners;
  for (const char* name : {"a", "b", "c"}) {
    owners += StrCat(owners.empty() ? "" : ",", R"({"apiVersion":"v1","kind":"Pod","name":")", name,
                     R"(","uid":"u","controller":true})");
  }
  const std::vector<std::string> errors =
      OnCreate(StrCat(R"({"name":"x","ownerReferences":[)", owners, "]}"));
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_TRUE(errors[0].ends_with("references for Pod/a and Pod/b")) << errors[0];
  EXPECT_TRUE(errors[1].ends_with("references for Pod/a and Pod/c")) << errors[1];
}

TEST_F(MetadataRulesTest, FinalizersAreStandardOrQualified) {
  EXPECT_THAT(OnCreate(R"({"name":"x","finalizers":["kubernetes","orphan","a.com/b"]})"),
              IsEmpty());
  EXPECT_THAT(OnCreate(R"({"name":"x","finalizers":["foregroundDeletion"]})"), IsEmpty());
  constexpr std::string_view kOdd =
      "metadata.finalizers[1]: Invalid value: \"odd\": name is neither a standard finalizer name "
      "nor is it fully qualified";
  EXPECT_THAT(OnCreate(R"({"name":"x","finalizers":["a.com/b","odd"]})"), ElementsAre(kOdd));
  EXPECT_THAT(OnUpdate(R"({"name":"x","resourceVersion":"1","finalizers":["orphan","odd"]})", "{}"),
              ElementsAre(HasSubstr("name"), kOdd));
  EXPECT_THAT(OnUpdate(R"({"name":"x","resourceVersion":"1","finalizers":["odd"]})",
                       R"({"name":"x"})", false),
              IsEmpty());
  rules_.known_finalizers = false;
  EXPECT_THAT(OnCreate(R"({"name":"x","finalizers":["odd"]})"), IsEmpty());
  EXPECT_THAT(OnCreate(R"({"name":"x","finalizers":["orphan","foregroundDeletion"]})"),
              ElementsAre(HasSubstr("cannot be both set")));
}

TEST_F(MetadataRulesTest, AnObjectThatIsDeletedGetsNoFinalizers) {
  constexpr char kBefore[] =
      R"({"name":"x","deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["a.com/a","a.com/b"]})";
  const auto with = [&](std::string_view finalizers) {
    return OnUpdate(StrCat(R"({"name":"x","resourceVersion":"1","deletionTimestamp":)",
                           R"("2026-01-01T00:00:00Z","finalizers":)", finalizers, "}"),
                    kBefore);
  };
  EXPECT_THAT(with(R"(["a.com/a","a.com/b"])"), IsEmpty());
  EXPECT_THAT(with(R"(["a.com/b"])"), IsEmpty());
  EXPECT_THAT(with(R"(["a.com/b","a.com/d","a.com/c"])"),
              ElementsAre("metadata.finalizers: Forbidden: no new finalizers can be added if the "
                          "object is being deleted, found new finalizers []string{\"a.com/c\", "
                          "\"a.com/d\"}"));
}

TEST_F(MetadataRulesTest, ManagedFieldsAreWellFormed) {
  const auto managed = [&](std::string_view entry) {
    return OnCreate(StrCat(R"({"name":"x","managedFields":[)", entry, "]}"));
  };
  constexpr std::string_view kAt = "metadata.managedFields[0]";
  EXPECT_THAT(managed(R"({"operation":"Apply","fieldsType":"FieldsV1","manager":"m"})"), IsEmpty());
  EXPECT_THAT(managed(R"({"operation":"Update"})"), IsEmpty());
  EXPECT_THAT(managed("{}"), ElementsAre(StrCat(kAt,
                                                ".operation: Required value: must not be "
                                                "empty")));
  EXPECT_THAT(managed(R"({"operation":"Patch"})"),
              ElementsAre(StrCat(kAt,
                                 ".operation: Unsupported value: \"Patch\": supported "
                                 "values: \"Apply\", \"Update\"")));
  EXPECT_THAT(managed(R"({"operation":"Apply","fieldsType":"FieldsV2"})"),
              ElementsAre(StrCat(kAt,
                                 ".fieldsType: Invalid value: \"FieldsV2\": must be "
                                 "`FieldsV1`")));
  EXPECT_THAT(
      managed(StrCat(R"({"operation":"Apply","manager":")", std::string(128, 'm'), R"("})")),
      IsEmpty());
  EXPECT_THAT(
      managed(StrCat(R"({"operation":"Apply","manager":")", std::string(129, 'm'), R"("})")),
      ElementsAre(HasSubstr(".manager: Too long")));
  EXPECT_THAT(managed(R"({"operation":"Apply","manager":"a\u001f\u007f"})"),
              ElementsAre(HasSubstr("invalid character U+001F (at position 1)"),
                          HasSubstr("invalid character U+007F (at position 2)")));
  EXPECT_THAT(
      managed(StrCat(R"({"operation":"Apply","subresource":")", std::string(256, 's'), R"("})")),
      IsEmpty());
  EXPECT_THAT(
      managed(StrCat(R"({"operation":"Apply","subresource":")", std::string(257, 's'), R"("})")),
      ElementsAre(HasSubstr(".subresource: Too long")));
  EXPECT_THAT(OnUpdate(R"({"name":"x","resourceVersion":"1","managedFields":[{"operation":"Update"},
                           {"operation":"Odd"}]})",
                       R"({"name":"x"})"),
              ElementsAre(HasSubstr("managedFields[1].operation: Unsupported value")));
}

TEST_F(MetadataRulesTest, ANamespacedObjectNeedsItsNamespace) {
  EXPECT_THAT(OnCreate(R"({"name":"x","namespace":"n"})"),
              ElementsAre("metadata.namespace: Forbidden: not allowed on this type"));
  rules_.namespaced = true;
  EXPECT_THAT(OnCreate(R"({"name":"x"})"), ElementsAre("metadata.namespace: Required value"));
  EXPECT_THAT(OnCreate(R"({"name":"x","namespace":"a.b"})"),
              ElementsAre(HasSubstr("metadata.namespace: Invalid value: \"a.b\": must not contain "
                                    "dots")));
  EXPECT_THAT(OnCreate(R"({"name":"x","namespace":"n"})"), IsEmpty());
}

TEST_F(MetadataRulesTest, NamesAreCheckedWithTheirPrefix) {
  EXPECT_THAT(OnCreate("{}"),
              ElementsAre("metadata.name: Required value: name or generateName is required"));
  EXPECT_THAT(OnCreate(R"({"generateName":"a-","name":"a-1"})"), IsEmpty());
  EXPECT_THAT(OnCreate(R"({"generateName":"-","name":"a"})"),
              ElementsAre(HasSubstr("metadata.generateName: Invalid value: \"-\"")));
  EXPECT_THAT(OnCreate(R"({"generateName":"a.-","name":"a"})"), IsEmpty())
      << "the character before the dash is not looked at, as in Kubernetes";
  EXPECT_THAT(OnCreate(R"({"name":"a-"})"), ElementsAre(HasSubstr("metadata.name: Invalid value")));
  rules_.name_is_declared = true;
  EXPECT_THAT(OnCreate(R"({"generateName":"Not valid-","name":"a"})"), IsEmpty())
      << "only what came of it counts";
  EXPECT_THAT(OnCreate(R"({"generateName":"a-"})"),
              ElementsAre("metadata.name: Internal error: generateName was specified (\"a-\"), but "
                          "no name was generated",
                          "metadata.name: Required value: name or generateName is required"));
}

TEST_F(MetadataRulesTest, NamesInPathsMayNotLeaveThem) {
  EXPECT_THAT(PathSegmentProblems("a:b", false), IsEmpty());
  EXPECT_THAT(PathSegmentProblems(".", false), ElementsAre("may not be '.'"));
  EXPECT_THAT(PathSegmentProblems("..", false), ElementsAre("may not be '..'"));
  EXPECT_THAT(PathSegmentProblems("..", true), IsEmpty()) << "more follows";
  EXPECT_THAT(PathSegmentProblems("a/b%c", true),
              ElementsAre("may not contain '/'", "may not contain '%'"));
}

TEST_F(MetadataRulesTest, WhatAnUpdateMayNotTouch) {
  constexpr char kBefore[] = R"({"name":"x","namespace":"n","uid":"u","generation":3,
      "creationTimestamp":"2026-01-01T00:00:00Z"})";
  const auto with = [&](std::string_view rest) {
    return OnUpdate(StrCat(R"({"name":"x","namespace":"n",)", rest, "}"), kBefore);
  };
  constexpr std::string_view kSame =
      R"("uid":"u","generation":3,"creationTimestamp":"2026-01-01T00:00:00Z")";
  EXPECT_THAT(with(StrCat(R"("resourceVersion":"1",)", kSame)), IsEmpty());
  EXPECT_THAT(with(kSame), ElementsAre("metadata.resourceVersion: Invalid value: \"\": must be "
                                       "specified for an update"));
  EXPECT_THAT(with(R"("resourceVersion":"1","generation":2)"),
              ElementsAre("metadata.generation: Invalid value: 2: must not be decremented",
                          "metadata.uid: Invalid value: \"\": field is immutable",
                          "metadata.creationTimestamp: Invalid value: null: field is immutable"));
  EXPECT_THAT(with(StrCat(R"("resourceVersion":"1","deletionTimestamp":"2026-01-01T00:00:09Z",)",
                          R"("deletionGracePeriodSeconds":30,)", kSame)),
              ElementsAre("metadata.deletionTimestamp: Invalid value: \"2026-01-01T00:00:09Z\": "
                          "field is immutable",
                          "metadata.deletionGracePeriodSeconds: Invalid value: 30: field is "
                          "immutable"));
  EXPECT_THAT(OnUpdate(R"({"name":"y","namespace":"m","resourceVersion":"1","generation":-1})",
                       R"({"name":"x","namespace":"n"})"),
              ElementsAre("metadata.generation: Invalid value: -1: must be greater than or equal "
                          "to 0",
                          "metadata.generation: Invalid value: -1: must not be decremented",
                          "metadata.name: Invalid value: \"y\": field is immutable",
                          "metadata.namespace: Invalid value: \"m\": field is immutable"));
}

TEST_F(MetadataRulesTest, AllAnnotationsTogetherHaveALimit) {
  const auto of = [&](std::size_t bytes) {
    return OnCreate(StrCat(R"({"name":"x","annotations":{"a":")", std::string(1'000, 'v'),
                           R"(","b":")", std::string(bytes, 'v'), R"("}})"));
  };
  EXPECT_THAT(of(256 * 1'024 - 1'002), IsEmpty());
  EXPECT_THAT(of(256 * 1'024 - 1'001), ElementsAre(HasSubstr("metadata.annotations: Too long")));
}

TEST(NameRules, ShareIdsAreUuidsInTheirNormalForm) {
  const auto problem = [](std::string_view id) {
    Findings found;
    CheckShareId(found, api::FieldPath("id"), id, Covered::kNo);
    if (found.empty()) return std::string("ok");
    const std::string text = found.list().front().error.ToString();
    return found.list().size() > 1 ? "several" : text.substr(text.rfind("\": ") + 3);
  };
  constexpr std::string_view kNormal = "0123abcd-0000-4000-8000-00000000cdef";
  const auto normalized = ::testing::StartsWith("uid must be in RFC 4122 normalized form");
  EXPECT_EQ(problem(kNormal), "ok");
  EXPECT_THAT(problem("0123ABCD-0000-4000-8000-00000000cdef"), normalized);
  EXPECT_THAT(problem("0123abcd00004000800000000000CDEF"), normalized) << "without dashes";
  EXPECT_THAT(problem(StrCat("urn:uuid:", kNormal)), normalized);
  EXPECT_THAT(problem(StrCat("URN:UUID:", kNormal)), normalized);
  EXPECT_THAT(problem(StrCat("{", kNormal, "}")), normalized);
  EXPECT_EQ(problem(StrCat("urn:guid:", kNormal)),
            "error validating uid: invalid urn prefix: \"urn:guid:\"");
  EXPECT_EQ(problem(StrCat("urn:uuid:x", kNormal.substr(1))),
            "error validating uid: invalid UUID format");
  EXPECT_EQ(problem(StrCat("(", kNormal, "}")),
            "error validating uid: invalid bracketed UUID format");
  EXPECT_EQ(problem(StrCat("{", kNormal, ")")),
            "error validating uid: invalid bracketed UUID format");
  EXPECT_EQ(problem(StrCat("{g", kNormal.substr(1), "}")),
            "error validating uid: invalid UUID format");
  EXPECT_EQ(problem("0123abcd00004000800000000000cdeg"),
            "error validating uid: invalid UUID format");
  EXPECT_EQ(problem("0123abcd00004000800000000000cdeG"),
            "error validating uid: invalid UUID format");
  EXPECT_EQ(problem("0123abcd00004000800000000000cd-f"),
            "error validating uid: invalid UUID format");
  EXPECT_EQ(problem("0123abcd-0000-4000-8000-00000000cdeg"),
            "error validating uid: invalid UUID format");
  EXPECT_EQ(problem("0123abcd-0000-4000-8000_00000000cdef"),
            "error validating uid: invalid UUID format");
  for (const std::size_t dash : {8, 13, 18, 23}) {
    std::string moved(kNormal);
    moved[dash] = '0';
    EXPECT_EQ(problem(moved), "error validating uid: invalid UUID format") << dash;
    EXPECT_EQ(moved.size(), 36u);
  }
  EXPECT_EQ(problem("0123"), "error validating uid: invalid UUID length: 4");
  EXPECT_EQ(problem(""), "error validating uid: invalid UUID length: 0");
}

TEST(NameRules, ADeclaredUuidIsLowercase) {
  const auto declared = [](std::string_view id) {
    Findings found;
    DeclareUuid(found, api::FieldPath("id"), id, true);
    return found.list().size();
  };
  EXPECT_EQ(declared("0123abcd-0000-4000-8000-00000000cdef"), 0u);
  for (const char* bad :
       {"0123ABCD-0000-4000-8000-00000000cdef", "0123abcd-0000-4000-8000-00000000cdeg",
        "0123abcd-0000-4000-8000-00000000cde`", "0123abcd-0000-4000-8000-00000000cde",
        "0123abcd00000-4000-8000-00000000cdef", "0123abcd-0000-4000-8000000000000cdef", ""}) {
    EXPECT_EQ(declared(bad), 1u) << bad;
  }
}

TEST(NameRules, QualifiedNames) {
  const auto problems = [](std::string_view name) {
    Findings found;
    CheckFullyQualifiedName(found, api::FieldPath("n"), name, Covered::kNo);
    return Texts(found);
  };
  EXPECT_THAT(problems("d.example.com/model_1"), IsEmpty());
  EXPECT_THAT(problems("D.example.com/model"), IsEmpty()) << "domains have no case";
  EXPECT_THAT(problems("model"),
              ElementsAre(HasSubstr("a fully qualified name must be a domain and a name")));
  EXPECT_THAT(problems("/model"), ElementsAre(HasSubstr("the domain must not be empty")));
  EXPECT_THAT(problems("d.example.com/"), ElementsAre(HasSubstr("the name must not be empty")));
  EXPECT_THAT(problems("d.example.com/1a"), ElementsAre(HasSubstr("a valid C identifier")));
  EXPECT_THAT(problems("d.example.com/a~"), ElementsAre(HasSubstr("a valid C identifier")));
  EXPECT_THAT(problems("d.example.com/a["), ElementsAre(HasSubstr("a valid C identifier")));
  EXPECT_THAT(problems("d.example.com/a@"), ElementsAre(HasSubstr("a valid C identifier")));
  EXPECT_THAT(problems("-/a"), ElementsAre(HasSubstr("a lowercase RFC 1123 subdomain")));
  EXPECT_THAT(problems("a/b/c"), IsEmpty()) << "stored objects have them";
  EXPECT_THAT(problems(StrCat("d/", std::string(32, 'a'))), IsEmpty());
  EXPECT_THAT(problems(StrCat("d/", std::string(33, 'a'))), ElementsAre(HasSubstr("Too long")));
}

TEST(NameRules, ExtendedResourceNamesAreNotOfKubernetes) {
  for (const char* good : {"example.com/gpu", "a/b"}) {
    EXPECT_TRUE(IsExtendedResourceName(good)) << good;
  }
  for (const char* bad : {"gpu", "kubernetes.io/gpu", "node.kubernetes.io/gpu",
                          "requests.example.com/gpu", "example.com/-", "example.com/a/b"}) {
    EXPECT_FALSE(IsExtendedResourceName(bad)) << bad;
  }
  const auto declared = [](std::string_view name) {
    Findings found;
    DeclareExtendedResourceName(found, api::FieldPath("n"), name, true);
    return Texts(found);
  };
  EXPECT_THAT(declared("example.com/gpu"), IsEmpty());
  EXPECT_THAT(declared("gpu"), ElementsAre(HasSubstr("a name must be a domain-prefixed path")));
  EXPECT_THAT(declared("kubernetes.io/gpu"), ElementsAre(HasSubstr("must not have "
                                                                   "\"kubernetes.io/\" domain")));
  EXPECT_THAT(declared("requests.example.com/gpu"),
              ElementsAre(HasSubstr("must not have \"requests.\" prefix")));
  EXPECT_FALSE(declared("example.com/-").empty());
}

std::vector<std::string> SelectorProblems(std::string_view selector) {
  Findings found;
  const auto tree = api::ParseJson(selector);
  CheckNodeSelector(found, api::FieldPath("s"), (*tree)->root());
  return Texts(found);
}

TEST(ResourceRules, EveryTermOfANodeSelectorIsChecked) {
  EXPECT_THAT(SelectorProblems(R"({"nodeSelectorTerms":[]})"),
              ElementsAre(HasSubstr("must have at least one node selector term")));
  const auto with = [](std::string_view key, std::string_view operation, std::string_view values) {
    return StrCat(R"({"nodeSelectorTerms":[{},{"matchExpressions":[{"key":")", key,
                  R"(","operator":")", operation, R"(","values":)", values, "}]}]}");
  };
  constexpr std::string_view kAt = "s.nodeSelectorTerms[1].matchExpressions[0]";
  for (const char* operation : {"In", "NotIn"}) {
    EXPECT_THAT(SelectorProblems(with("k", operation, R"(["a","b"])")), IsEmpty());
    EXPECT_THAT(SelectorProblems(with("k", operation, "[]")),
                ElementsAre(StrCat(kAt,
                                   ".values: Required value: must be specified when "
                                   "`operator` is 'In' or 'NotIn'")));
  }
  for (const char* operation : {"Exists", "DoesNotExist"}) {
    EXPECT_THAT(SelectorProblems(with("k", operation, "[]")), IsEmpty());
    EXPECT_THAT(SelectorProblems(with("k", operation, R"(["a"])")),
                ElementsAre(StrCat(kAt,
                                   ".values: Forbidden: may not be specified when "
                                   "`operator` is 'Exists' or 'DoesNotExist'")));
  }
  for (const char* operation : {"Gt", "Lt"}) {
    EXPECT_THAT(SelectorProblems(with("k", operation, R"(["1"])")), IsEmpty());
    EXPECT_THAT(SelectorProblems(with("k", operation, R"(["1","2"])")),
                ElementsAre(StrCat(kAt,
                                   ".values: Required value: must be specified single value "
                                   "when `operator` is 'Lt' or 'Gt'")));
  }
  EXPECT_THAT(SelectorProblems(with("k", "Like", "[]")),
              ElementsAre(StrCat(kAt,
                                 ".operator: Invalid value: \"Like\": not a valid selector "
                                 "operator")));
  EXPECT_THAT(SelectorProblems(with("k", "In", R"(["a","no/b"])")),
              ElementsAre(HasSubstr(StrCat(kAt, ".values[1]: Invalid value: \"no/b\""))));
}

TEST(ResourceRules, FieldsOfANodeSelectorAreNames) {
  const auto field = [](std::string_view key, std::string_view operation, std::string_view values) {
    return SelectorProblems(StrCat(R"({"nodeSelectorTerms":[{"matchFields":[{"key":")", key,
                                   R"(","operator":")", operation, R"(","values":)", values,
                                   "}]}]}"));
  };
  constexpr std::string_view kAt = "s.nodeSelectorTerms[0].matchFields[0]";
  for (const char* operation : {"In", "NotIn"}) {
    EXPECT_THAT(field("metadata.name", operation, R"(["n"])"), IsEmpty());
    EXPECT_THAT(field("metadata.name", operation, R"(["n","m"])"),
                ElementsAre(HasSubstr("must be only one value")));
  }
  EXPECT_THAT(field("metadata.name", "Exists", "[]"),
              ElementsAre(StrCat(kAt,
                                 ".operator: Invalid value: \"Exists\": not a valid selector "
                                 "operator")));
  EXPECT_THAT(field("metadata.uid", "In", R"(["-"])"),
              ElementsAre(StrCat(kAt,
                                 ".key: Invalid value: \"metadata.uid\": not a valid field "
                                 "selector key")));
  EXPECT_THAT(field("metadata.name", "In", R"(["-"])"),
              ElementsAre(HasSubstr(StrCat(kAt, ".values[0]: Invalid value: \"-\""))));
}

TEST(ResourceRules, TheReasonOfAConditionIsAWord) {
  const auto problems = [](std::string_view reason) {
    Findings found;
    const auto tree = api::ParseJson(StrCat(
        R"([{"type":"T","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","reason":")",
        reason, R"("}])"));
    CheckConditions(found, api::FieldPath("c"), (*tree)->root());
    return found.list().size();
  };
  for (const char* good : {"a", "Z", "A1", "A_", "a,b", "a:b,c", "zZ9_"}) {
    EXPECT_EQ(problems(good), 0u) << good;
  }
  for (const char* bad : {"1a", "_a", ",a", ":a", "a,", "a:", "a-b", "a b", "a;", "a@", "a[b",
                          "a`b", "a{b", "{a", "a/"}) {
    EXPECT_EQ(problems(bad), 1u) << bad;
  }
  EXPECT_EQ(problems(""), 1u);
  EXPECT_EQ(problems(std::string(1'024, 'a')), 0u);
  EXPECT_EQ(problems(std::string(1'025, 'a')), 1u);
}

TEST(ResourceRules, OpaqueParametersAreAnObject) {
  const auto problems = [](std::string_view parameters, Stored stored) {
    api::Draft config;
    config["opaque"]["driver"] = "d.example.com";
    config["opaque"]["parameters"] = api::Draft::Raw(std::string(parameters));
    Findings found;
    CheckConfiguration(found, api::FieldPath("c"), config.Freeze()->root(), stored);
    return Texts(found);
  };
  constexpr std::string_view kAt = "c.opaque.parameters";
  EXPECT_THAT(problems(R"({"a":1,"a":2})", Stored::kNo), IsEmpty());
  EXPECT_THAT(problems("", Stored::kNo), ElementsAre(StrCat(kAt, ": Required value")));
  EXPECT_THAT(problems("null", Stored::kNo), ElementsAre(StrCat(kAt, ": Required value")));
  EXPECT_THAT(problems("{", Stored::kNo), ElementsAre(HasSubstr("error parsing data as JSON: ")));
  EXPECT_THAT(problems("[]", Stored::kNo), ElementsAre(HasSubstr("must be a valid JSON object")));
  const std::string large = StrCat(R"({"a":")", std::string(10'240, 'x'), R"("})");
  EXPECT_THAT(problems(large, Stored::kNo), ElementsAre(HasSubstr(": Too long")));
  EXPECT_THAT(problems(large, Stored::kYes), IsEmpty());
}

TEST(ResourceRules, TheMetadataOfATemplateHasOnlyLabelsAndAnnotations) {
  const auto tree = api::ParseJson(
      R"({"spec":{"metadata":{"labels":{"a":"b"},"annotations":{"a":"b"},"uid":"u","name":"n",
          "generateName":null},"spec":{}}})");
  EXPECT_THAT(Texts(CheckClaimTemplate((*tree)->root(), FeatureGates())),
              ElementsAre("spec.metadata.uID: Forbidden: cannot be set",
                          "spec.metadata.name: Forbidden: cannot be set"));
}

TEST(ResourceRules, AClaimThatIsDeletedGetsNoConsumers) {
  const auto problems = [](std::string_view reserved, bool deleted) {
    constexpr std::string_view kAllocation =
        R"("allocation":{"devices":{"results":[{"request":"r","driver":"d.example.com",)"
        R"("pool":"p","device":"a"}]}})";
    constexpr std::string_view kSpec =
        R"("spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c",)"
        R"("allocationMode":"ExactCount","count":1}}]}})";
    const auto claim = [&](std::string_view list) {
      return *api::ParseJson(StrCat(R"({"metadata":{"name":"x")",
                                    deleted ? R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")" : "",
                                    "},", kSpec, R"(,"status":{)", kAllocation,
                                    R"(,"reservedFor":)", list, "}}"));
    };
    const api::TreePtr before = claim(R"([{"resource":"pods","name":"p","uid":"1"},
                                          {"resource":"pods","name":"q","uid":"2"}])");
    return Texts(CheckResourceClaimStatus(claim(reserved)->root(), before->root(), FeatureGates()));
  };
  EXPECT_THAT(problems(R"([{"resource":"pods","name":"q","uid":"2"}])", true), IsEmpty());
  constexpr char kNew[] = R"([{"resource":"pods","name":"p","uid":"1"},
                              {"resource":"pods","name":"n","uid":"3"}])";
  EXPECT_THAT(problems(kNew, false), IsEmpty());
  EXPECT_THAT(problems(kNew, true),
              ElementsAre("status.reservedFor: Forbidden: new entries may not be added while "
                          "`deallocationRequested` or `deletionTimestamp` are set"));
}

TEST(SemanticEquality, AnAbsentScalarIsItsZero) {
  const auto same = [](std::string_view a, std::string_view b) {
    const auto left = api::ParseJson(a);
    const auto right = api::ParseJson(b);
    return SemanticEqual((*left)->root(), (*right)->root(), "ResourceSliceSpec");
  };
  EXPECT_TRUE(same(R"({"driver":""})", "{}"));
  EXPECT_TRUE(same("{}", R"({"driver":""})"));
  EXPECT_FALSE(same("{}", R"({"driver":"d"})"));
  EXPECT_TRUE(same(R"({"pool":{"generation":0}})", R"({"pool":{}})"));
  EXPECT_FALSE(same(R"({"pool":{"generation":1}})", R"({"pool":{}})"));
  EXPECT_FALSE(same(R"({"allNodes":false})", "{}")) << "a pointer";
  EXPECT_FALSE(same(R"({"allNodes":true})", "{}"));
  const auto absent = [](std::string_view json, api::FieldKind kind) {
    const auto value = api::ParseJson(json);
    const api::TypeSchema type{.kind = kind};
    const bool left = SemanticEqual((*value)->root(), api::Value(), type);
    EXPECT_EQ(left, SemanticEqual(api::Value(), (*value)->root(), type)) << json;
    return left;
  };
  EXPECT_TRUE(absent("false", api::FieldKind::kBool));
  EXPECT_FALSE(absent("true", api::FieldKind::kBool));
  EXPECT_TRUE(absent("0.0", api::FieldKind::kDouble));
  EXPECT_FALSE(absent("0.5", api::FieldKind::kDouble));
}

}  // namespace
}  // namespace drakkar::apiserver
