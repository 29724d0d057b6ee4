// The worst bodies of every kind, made from its schema: the work they cause grows in proportion to
// their size, and is cut off at a limit. Work is counted, not timed: steps charged to the work
// budget, and allocations.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <new>
#include <set>
#include <string>

#include "api/json/writer.h"
#include "apiserver/rest/decode.h"
#include "apiserver/testing/core_fixture.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace {
std::size_t allocations = 0;
}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace drakkar::apiserver {
namespace {

using api::Draft;
using api::FieldKind;
using api::FieldSchema;
using api::StructSchema;
using api::TypeSchema;

// How the elements of a list or the keys of a map are chosen.
enum class Flavour { kDistinct, kSame, kInvalid };

std::string TextOf(Flavour flavour, std::size_t index) {
  switch (flavour) {
    case Flavour::kDistinct:
      return StrCat("k", index);
    case Flavour::kSame:
      return "same";
    case Flavour::kInvalid:
      return StrCat("-!", index);
  }
  return "";
}

Draft ValueOf(const TypeSchema& type, Flavour flavour, std::size_t index, int depth) {
  switch (type.kind) {
    case FieldKind::kBool:
      return Draft(true);
    case FieldKind::kInt32:
    case FieldKind::kInt64:
    case FieldKind::kDouble:
    case FieldKind::kIntOrString:
      return Draft(static_cast<std::int64_t>(index));
    case FieldKind::kQuantity:
      return Draft(std::to_string(index));
    case FieldKind::kTime:
      return Draft("2020-01-01T00:00:00Z");
    case FieldKind::kMicroTime:
      return Draft("2020-01-01T00:00:00.000000Z");
    case FieldKind::kDuration:
      return Draft("1s");
    case FieldKind::kBytes:
      return Draft("YWJj");
    case FieldKind::kRaw:
    case FieldKind::kJson:
      return Draft::Object();
    case FieldKind::kStruct: {
      Draft object = Draft::Object();
      if (depth == 0) return object;
      for (const FieldSchema& field : type.structure->fields) {
        const FieldKind kind = field.type.kind;
        const bool is_plain = kind == FieldKind::kString || kind == FieldKind::kInt32 ||
                              kind == FieldKind::kInt64 || kind == FieldKind::kBool;
        // Numbers that many fields allow, so that the share of errors does not grow with the list.
        constexpr std::size_t kMaxNumber = 100;
        const bool is_number = kind == FieldKind::kInt32 || kind == FieldKind::kInt64;
        const std::size_t value = is_number ? 1 + index % kMaxNumber : index;
        if (is_plain || (depth > 1 && kind == FieldKind::kStruct)) {
          object.Entry(field.key->view()) = ValueOf(field.type, flavour, value, depth - 1);
        }
      }
      return object;
    }
    case FieldKind::kList: {
      Draft list = Draft::Array();
      list.Append(ValueOf(*type.element, flavour, index, depth - 1));
      return list;
    }
    case FieldKind::kMap: {
      Draft map = Draft::Object();
      map.Entry(TextOf(flavour, index)) = ValueOf(*type.element, flavour, index, depth - 1);
      return map;
    }
    case FieldKind::kString:
    case FieldKind::kSkipNodeOperations:
      break;
  }
  return Draft(TextOf(flavour, index));
}

// A list or map with `count` entries.
Draft Many(const TypeSchema& type, Flavour flavour, std::size_t count) {
  if (type.kind == FieldKind::kList) {
    Draft list = Draft::Array();
    for (std::size_t i = 0; i < count; ++i) list.Append(ValueOf(*type.element, flavour, i, 2));
    return list;
  }
  Draft map = Draft::Object();
  for (std::size_t i = 0; i < count; ++i) {
    // The keys of a map are always distinct.
    const Flavour keys = flavour == Flavour::kSame ? Flavour::kDistinct : flavour;
    map.MutableMembers().emplace_back(api::KeyRef(TextOf(keys, i)),
                                      ValueOf(*type.element, flavour, i, 2));
  }
  return map;
}

// Every list and map of a kind, each once, by the way that leads to it. A step of the way is a
// field, or the single element of a list.
struct Place {
  std::vector<const FieldSchema*> way;
  std::string Text() const {
    std::string text;
    for (const FieldSchema* each : way) text += StrCat(".", each->key->view());
    return text;
  }
};

class HostileBodies : public CoreFixture {
 protected:
  HostileBodies() { StartCore(nullptr); }

  static void FindPlaces(const StructSchema& structure, std::vector<const FieldSchema*>& way,
                         std::set<const FieldSchema*>& seen, std::vector<Place>& places) {
    constexpr std::size_t kMaxDepth = 7;
    if (way.size() == kMaxDepth) return;
    for (const FieldSchema& field : structure.fields) {
      if (!seen.insert(&field).second) continue;
      way.push_back(&field);
      const TypeSchema* type = &field.type;
      if (type->kind == FieldKind::kList || type->kind == FieldKind::kMap) {
        places.push_back({way});
        type = type->element;
      }
      if (type->kind == FieldKind::kStruct) FindPlaces(*type->structure, way, seen, places);
      way.pop_back();
    }
  }

  // An object that has `count` entries at `place` and as little as possible elsewhere.
  static api::TreePtr Body(const api::KindSchema& kind, const Place& place, Flavour flavour,
                           std::size_t count) {
    Draft body = Draft::Object();
    body["apiVersion"] = kind.api_version();
    body["kind"] = kind.kind;
    Draft* at = &body;
    for (std::size_t i = 0; i < place.way.size(); ++i) {
      const FieldSchema& field = *place.way[i];
      at = &at->Entry(field.key->view());
      if (i + 1 == place.way.size()) {
        *at = Many(field.type, flavour, count);
      } else if (field.type.kind == FieldKind::kList) {
        at = &at->Append(Draft::Object());
      } else if (field.type.kind == FieldKind::kMap) {
        at = &at->Entry("a");
        *at = Draft::Object();
      } else if (!at->is_object()) {
        *at = Draft::Object();
      }
    }
    body["metadata"]["name"] = "hostile";
    if (kind.namespaced) body["metadata"]["namespace"] = "default";
    return body.Freeze();
  }

  struct Work {
    std::int64_t steps = 0;
    std::size_t allocations = 0;
  };

  Work Measure(Request request) {
    request.dry_run = true;
    allocations = 0;
    core_->Handle(std::move(request), [](Response) {});
    const Work work{WorkBudget::last_used(), allocations};
    loop_.RunUntilIdle();
    return work;
  }

  Work CreateWith(const api::KindSchema& kind, const Place& place, Flavour flavour,
                  std::size_t count) {
    Request request;
    request.user = AdminUser();
    request.verb = Verb::kCreate;
    request.kind = &kind;
    if (kind.namespaced) request.namespace_ = "default";
    request.object = Body(kind, place, flavour, count);
    return Measure(std::move(request));
  }

  // A ConfigMap whose keys are "<prefix>0" and so on.
  static std::string ConfigMap(std::string_view prefix, std::size_t count) {
    std::string data;
    for (std::size_t i = 0; i < count; ++i) {
      data += StrCat(i == 0 ? "" : ",", "\"", prefix, i, "\":\"\"");
    }
    return StrCat(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{)", data,
                  "}}");
  }

  Work PatchWith(PatchKind patch, std::string text, std::string_view kind = "ConfigMap") {
    Request request;
    request.user = AdminUser();
    request.verb = Verb::kPatch;
    request.patch = patch;
    request.kind = api::FindKindByApiVersion("v1", kind);
    request.namespace_ = "default";
    request.name = "c";
    request.field_manager = "me";
    request.text = std::move(text);
    DecodeEarly(request);
    return Measure(std::move(request));
  }
};

constexpr std::size_t kSmall = 200;
// Twice the size takes about twice the work; sorting adds a little.
constexpr double kMaxGrowth = 2.7;

TEST_F(HostileBodies, WorkGrowsInProportionToEveryListAndMap) {
  std::set<const FieldSchema*> seen;
  for (const api::KindSchema& kind : api::AllKinds()) {
    if (kind.schema == nullptr || !kind.storage_version) continue;
    std::vector<const FieldSchema*> way;
    std::vector<Place> places;
    FindPlaces(*kind.schema, way, seen, places);
    for (const Place& place : places) {
      for (const Flavour flavour : {Flavour::kDistinct, Flavour::kSame, Flavour::kInvalid}) {
        SCOPED_TRACE(StrCat(kind.kind, place.Text(), " flavour ", static_cast<int>(flavour)));
        CreateWith(kind, place, flavour, 10);  // what is made once
        const Work base = CreateWith(kind, place, flavour, 1);
        const Work small = CreateWith(kind, place, flavour, kSmall);
        const Work large = CreateWith(kind, place, flavour, 2 * kSmall);
        const auto growth = [](double small_work, double large_work, double base_work) {
          return (large_work - base_work) / std::max(small_work - base_work, 4'000.0);
        };
        EXPECT_LE(growth(static_cast<double>(small.steps), static_cast<double>(large.steps),
                         static_cast<double>(base.steps)),
                  kMaxGrowth)
            << small.steps << " " << large.steps;
        EXPECT_LE(
            growth(static_cast<double>(small.allocations), static_cast<double>(large.allocations),
                   static_cast<double>(base.allocations)),
            kMaxGrowth)
            << small.allocations << " " << large.allocations;
      }
    }
  }
}

TEST_F(HostileBodies, AHundredThousandInvalidLabelsAreRejectedWithAHundredErrors) {
  Draft body{{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", "c"}}}};
  Draft labels = Draft::Object();
  for (int i = 0; i < 100'000; ++i) {
    labels.MutableMembers().emplace_back(api::KeyRef(StrCat("-", i)), Draft("!"));
  }
  body["metadata"]["labels"] = std::move(labels);
  Request request =
      RequestFor(Verb::kCreate, R"({"apiVersion":"v1","kind":"ConfigMap"})", AdminUser());
  request.object = body.Freeze();
  const Response response = Handle(std::move(request));
  ASSERT_TRUE(response.failure);
  EXPECT_EQ(response.failure->code, 422);
  EXPECT_EQ(response.failure->causes.size(), 100u);
  EXPECT_NE(response.failure->message.find(" more errors]"), std::string::npos);
  EXPECT_LT(WorkBudget::last_used(), 2 * Core::kMaxSteps);
}

TEST_F(HostileBodies, PatchesOfLargeMapsAreCutOff) {
  constexpr std::size_t kCount = 20'000;
  Create(ConfigMap("a", kCount));
  // None of the keys exists, and every lookup would look at all others.
  for (const PatchKind patch : {PatchKind::kMerge, PatchKind::kStrategicMerge, PatchKind::kApply}) {
    const Work work = PatchWith(patch, ConfigMap("b", kCount));
    EXPECT_GT(work.steps, Core::kMaxSteps) << static_cast<int>(patch);
    EXPECT_LT(work.steps, 2 * Core::kMaxSteps) << static_cast<int>(patch);
  }
}

TEST_F(HostileBodies, APatchOfAMediumMapIsNot) {
  constexpr std::size_t kCount = 1'500;
  Create(ConfigMap("a", kCount));
  for (const PatchKind patch : {PatchKind::kMerge, PatchKind::kStrategicMerge, PatchKind::kApply}) {
    EXPECT_LT(PatchWith(patch, ConfigMap("b", kCount)).steps, Core::kMaxSteps / 2)
        << static_cast<int>(patch);
  }
}

TEST_F(HostileBodies, TenThousandOperationsOfAJsonPatchAreCutOff) {
  Create(ConfigMap("a", 20'000));
  for (const std::string_view operation :
       {R"({"op":"test","path":"","value":{}})", R"({"op":"add","path":"/data/new","value":"x"})",
        R"({"op":"copy","from":"/data","path":"/binaryData"})",
        R"({"op":"move","from":"/data","path":"/data"})",
        R"({"op":"replace","path":"/data/a19999","value":"y"})"}) {
    std::string patch = "[";
    for (int i = 0; i < 10'000; ++i) patch += StrCat(i == 0 ? "" : ",", operation);
    const Work work = PatchWith(PatchKind::kJson, patch + "]");
    EXPECT_LT(work.steps, 2 * Core::kMaxSteps) << operation;
  }
}

TEST_F(HostileBodies, InsertingIntoALongListIsCutOff) {
  std::string ports;
  for (int i = 0; i < 5'000; ++i) ports += StrCat(i == 0 ? "" : ",", R"({"key":"k)", i, R"("})");
  Create(
      StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"c"},"spec":{"tolerations":[)",
             ports, R"(],"containers":[{"name":"c","image":"i"}]}})"));
  std::string patch = "[";
  for (int i = 0; i < 10'000; ++i) {
    patch += StrCat(i == 0 ? "" : ",", R"({"op":"add","path":"/spec/tolerations/0","value":{}})");
  }
  const Work work = PatchWith(PatchKind::kJson, patch + "]", "Pod");
  EXPECT_GT(work.steps, Core::kMaxSteps);
  EXPECT_LT(work.steps, 2 * Core::kMaxSteps);
}

TEST_F(HostileBodies, ARejectedRequestChangesNothing) {
  const api::ObjectPtr before = Create(ConfigMap("a", 20'000));
  Request request;
  request.user = AdminUser();
  request.verb = Verb::kPatch;
  request.patch = PatchKind::kMerge;
  request.kind = api::FindKindByApiVersion("v1", "ConfigMap");
  request.namespace_ = "default";
  request.name = "c";
  request.text = ConfigMap("b", 20'000);
  const Response response = Handle(std::move(request));
  ASSERT_TRUE(response.failure);
  EXPECT_EQ(response.failure->code, 413);
  EXPECT_EQ(core_->Find("", "configmaps", "default/c")->resource_version(),
            before->resource_version());
}

TEST_F(HostileBodies, ALongKeyDoesNotMultiplyWithWhatIsBelowIt) {
  // Every error below the key would repeat it.
  const std::string key(200'000, 'k');
  std::string fields;
  for (int i = 0; i < 2'000; ++i) fields += StrCat(i == 0 ? "" : ",", "\"u", i, "\":1");
  const std::string body = StrCat(
      R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":"c"},)",
      R"("spec":{"driver":"d","devices":[{"name":"a","capacity":{")", key, R"(":{)", fields,
      "}}}]}}");
  Request request;
  request.user = AdminUser();
  request.verb = Verb::kPatch;
  request.patch = PatchKind::kApply;
  request.kind = api::FindKindByApiVersion("resource.k8s.io/v1", "ResourceSlice");
  request.name = "c";
  request.field_manager = "me";
  request.text = body;
  const Response response = Handle(std::move(request));
  ASSERT_TRUE(response.failure);
  EXPECT_LT(response.failure->message.size(), std::size_t{1} << 20);
}

TEST_F(HostileBodies, ALongManagerNameReportsFewErrors) {
  std::string escaped;
  for (int i = 0; i < 50'000; ++i) escaped += "\\u0001";
  const Response response = TryCreate(
      StrCat(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","managedFields":)",
             R"([{"manager":")", escaped, R"(","operation":"Update","apiVersion":"v1"}]}})"));
  if (response.failure) {
    EXPECT_LT(response.failure->message.size(), std::size_t{1} << 20);
  }
  EXPECT_LT(WorkBudget::last_used(), 2 * Core::kMaxSteps);
}

TEST_F(HostileBodies, ManyManagersAreCombinedInLinearTime) {
  const auto with = [](std::size_t count) {
    std::string entries;
    for (std::size_t i = 0; i < count; ++i) {
      entries += StrCat(i == 0 ? "" : ",", R"({"manager":"m)", i,
                        R"(","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1",)",
                        R"("fieldsV1":{"f:data":{"f:k)", i, R"(":{}}}})");
    }
    return StrCat(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c",)",
                  R"("managedFields":[)", entries, R"(]},"data":{"a":"b"}})");
  };
  const Work work = Measure(RequestFor(Verb::kCreate, with(10'000), AdminUser()));
  EXPECT_LT(work.steps, 2 * Core::kMaxSteps);
}

TEST_F(HostileBodies, ASelectorWithManyTermsIsRejected) {
  Request request;
  request.user = AdminUser();
  request.verb = Verb::kList;
  request.kind = api::FindKindByApiVersion("v1", "ConfigMap");
  for (int i = 0; i < 3'000; ++i) {
    request.field_selector += StrCat(i == 0 ? "" : ",", "metadata.name!=n", i);
  }
  const Response response = Handle(std::move(request));
  ASSERT_TRUE(response.failure);
  EXPECT_EQ(response.failure->code, 413);
}

TEST_F(HostileBodies, AnObjectWithTooManyValuesIsRejected) {
  std::string list;
  for (int i = 0; i < 600'000; ++i) list += i == 0 ? "\"\"" : ",\"\"";
  const Response response = TryCreate(
      StrCat(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","finalizers":[)", list,
             "]}}"));
  ASSERT_TRUE(response.failure);
  EXPECT_EQ(response.failure->code, 413) << response.failure->message;
}

}  // namespace
}  // namespace drakkar::apiserver
