#include "device/device_cel.h"

#include <gtest/gtest.h>

#include "base/text/text.h"

namespace drakkar::device {
namespace {

DeviceInput Gpu() {
  DeviceInput device;
  device.driver = "gpu.example.com";
  device.attributes = {{"driverVersion", VersionText{"2.1.0"}},
                       {"model", std::string("A100")},
                       {"other.example.com/x", std::int64_t{3}}};
  device.capacity = {{"memory", *api::Quantity::Parse("40Gi")}};
  return device;
}

std::unique_ptr<const DeviceExpression> Selector(std::string_view source) {
  static const DeviceCompiler compiler({true, true, 36});
  DeviceCompiler::Outcome outcome = compiler.CompileSelector(source, ExpressionSet::kStored);
  EXPECT_TRUE(outcome.expression) << outcome.failure.message;
  return std::move(outcome.expression);
}

TEST(DeviceCel, SelectorReadsVersionsAndQuantities) {
  const auto selector =
      Selector(R"(device.attributes["gpu.example.com"].driverVersion.major() >= 1 &&)"
               R"( device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("1Mi")))");
  ASSERT_TRUE(selector);
  const auto device = CelDevice::Create(Gpu());
  ASSERT_TRUE(device.ok());
  cel::Evaluator evaluator;
  EXPECT_TRUE(selector->Matches(**device, evaluator).matches);
}

TEST(DeviceCel, ReadSetNamesExactlyWhatAnExpressionCanSee) {
  const auto selector = Selector(
      R"(device.driver == "x" || device.attributes["a"].b == 1 || device.capacity["c"]["d"] == quantity("1"))");
  ASSERT_TRUE(selector);
  const ReadSet& reads = selector->read_set();
  EXPECT_FALSE(reads.all);
  EXPECT_TRUE(reads.driver);
  EXPECT_FALSE(reads.allow_multiple_allocations);
  ASSERT_EQ(reads.attributes.size(), 1u);
  EXPECT_EQ(reads.attributes[0], (ReadSet::Key{"a", "b"}));
  ASSERT_EQ(reads.capacity.size(), 1u);
  EXPECT_EQ(reads.capacity[0], (ReadSet::Key{"c", "d"}));
}

TEST(DeviceCel, ReadSetIsEverythingWhereKeysAreComputed) {
  EXPECT_TRUE(Selector(R"(device.attributes.exists(d, d == "x"))")->read_set().all);
  EXPECT_TRUE(Selector(R"(device.attributes[device.driver].model == "x")")->read_set().all);
  const auto bound = Selector(R"(cel.bind(a, device.attributes["d"], a.x == 1 && a.y == 2))");
  EXPECT_FALSE(bound->read_set().all);
  EXPECT_EQ(bound->read_set().attribute_domains, std::vector<std::string>{"d"});
  const auto twice = Selector(R"(cel.bind(b, device.attributes["e"],
      cel.bind(a, device.attributes["d"], a.x == 1) && cel.bind(a, device.attributes["d"], a.y == b.x)
      && cel.bind(c, device.capacity["f"], c.y == c.x) && cel.bind(c, device.capacity["f"], c.x == c.x)))");
  EXPECT_EQ(twice->read_set().attribute_domains, (std::vector<std::string>{"d", "e"}))
      << "sorted, each once";
  EXPECT_EQ(twice->read_set().capacity_domains, std::vector<std::string>{"f"});
}

TEST(DeviceCel, ABadVersionFailsTheDeviceBeforeAnyExpression) {
  DeviceInput device = Gpu();
  device.attributes.emplace_back("broken", VersionText{"1"});
  const auto prepared = CelDevice::Create(device);
  ASSERT_FALSE(prepared.ok());
  EXPECT_EQ(prepared.error().message,
            "attribute broken: parse semantic version: No Major.Minor.Patch elements found");
}

TEST(DeviceCel, TheCostLimitStopsAnEvaluation) {
  const auto selector = Selector("[1,2,3].all(x, [1,2,3].all(y, x + y > 0))");
  const auto device = CelDevice::Create(Gpu());
  cel::Evaluator evaluator;
  const DeviceExpression::Answer answer = selector->Matches(**device, evaluator, 20);
  ASSERT_TRUE(answer.error);
  EXPECT_EQ(*answer.error, "operation cancelled: actual cost limit exceeded");
  EXPECT_EQ(answer.cost, 21u);
}

// One attribute of every kind.
DeviceInput Example() {
  DeviceInput device;
  device.driver = "dra.example.com";
  device.allow_multiple_allocations = true;
  device.attributes = {{"cores", std::int64_t{64}},
                       {"dra.example.com/fw", VersionText{"2.1.0"}},
                       {"empty", std::string()},
                       {"flags", std::vector<bool>{true, false}},
                       {"healthy", true},
                       {"model", std::string("A100")},
                       {"numas", std::vector<std::int64_t>{0, 1}},
                       {"other.example.com/zone", std::string("z1")},
                       {"tags", std::vector<std::string>{"fast", "big"}},
                       {"vers", std::vector<VersionText>{{"1.0.0"}, {"2.0.0"}}}};
  device.capacity = {{"memory", *api::Quantity::Parse("40Gi")},
                     {"other.example.com/slots", *api::Quantity::Parse("7")}};
  return device;
}

constexpr std::string_view kOwn = R"(device.attributes["dra.example.com"])";

// "yes", "no" or the error.
std::string Answer(std::string_view source, const DeviceInput& input = Example()) {
  const auto selector = Selector(source);
  const auto device = CelDevice::Create(input);
  if (!selector || !device.ok()) return "";
  cel::Evaluator evaluator;
  const DeviceExpression::Answer answer = selector->Matches(**device, evaluator);
  return answer.error.value_or(answer.matches ? "yes" : "no");
}

TEST(DeviceCel, SelectorsSeeEveryFieldOfADevice) {
  for (const std::string& source :
       {StrCat(kOwn, ".cores == 64"),
        StrCat(kOwn, ".fw.major() == 2"),
        StrCat(kOwn, ".empty == ''"),
        StrCat(kOwn, ".flags == [true, false]"),
        StrCat(kOwn, ".healthy"),
        StrCat(kOwn, ".model == 'A100'"),
        StrCat(kOwn, ".numas[1] == 1"),
        StrCat(kOwn, ".tags.exists(t, t == 'big')"),
        StrCat(kOwn, ".vers[0].isLessThan(semver('2.0.0'))"),
        StrCat(kOwn, ".size() == 9"),
        StrCat(kOwn,
               ".map(k, k) == ['cores', 'empty', 'flags', 'fw', 'healthy', 'model', "
               "'numas', 'tags', 'vers']"),
        std::string("device.attributes['other.example.com'].zone == 'z1'"),
        std::string("device.attributes.map(d, d) == ['dra.example.com', 'other.example.com']"),
        std::string("device.attributes.all(d, m, m.size() > 0)"),
        std::string("'other.example.com' in device.attributes"),
        std::string("!('absent' in device.attributes)"),
        std::string("device.attributes['absent'].size() == 0"),
        std::string("!has(device.attributes['absent'].x)"),
        std::string("device.capacity['dra.example.com'].memory == quantity('40Gi')"),
        std::string("device.capacity['other.example.com'].slots.asInteger() == 7"),
        std::string("device.capacity['other.example.com'].all(k, k == 'slots')"),
        std::string("device.driver == 'dra.example.com' && device.allowMultipleAllocations")}) {
    EXPECT_EQ(Answer(source), "yes") << source;
  }
  DeviceInput plain;
  plain.driver = "d";
  EXPECT_EQ(Answer("device.allowMultipleAllocations", plain), "no");
  EXPECT_EQ(Answer("device.attributes['d'].a == 1", plain), "no such key: a");
}

// A path is looked up in one step; whatever it does not find is looked up step by step.
TEST(DeviceCel, NamesOfAnyLengthAndNumberAreFound) {
  DeviceInput device;
  device.driver = "d";
  const int count = 40;
  for (int i = 0; i < count; ++i) {
    device.attributes.emplace_back(StrCat("name", std::string(static_cast<std::size_t>(i), 'x'), i),
                                   std::int64_t{i});
  }
  for (int i = 0; i < count; ++i) {
    const std::string name = StrCat("name", std::string(static_cast<std::size_t>(i), 'x'), i);
    EXPECT_EQ(Answer(StrCat("device.attributes['d'].", name, " == ", i), device), "yes") << name;
    const std::string other = StrCat("name", std::string(static_cast<std::size_t>(i), 'y'), i);
    if (i == 0) continue;
    EXPECT_EQ(Answer(StrCat("device.attributes['d'].", other, " == ", i), device),
              StrCat("no such key: ", other));
  }
}

// The lookup in one step must find what the lookup step by step finds, and nothing else.
TEST(DeviceCel, WholePathsAreFoundInOneStep) {
  DeviceInput device;
  device.driver = "d.example.com";
  for (int i = 0; i < 20; ++i) {
    const std::string name = StrCat("attribute", i);
    device.attributes.emplace_back(name, std::int64_t{i});
    device.attributes.emplace_back(StrCat("other.com/", name), std::int64_t{100 + i});
    device.capacity.emplace_back(StrCat("capacity", i), api::Quantity(i));
  }
  device.attributes.emplace_back("x", std::int64_t{7});
  const auto prepared = CelDevice::Create(device);
  ASSERT_TRUE(prepared.ok());
  const cel::Value& variable = (*prepared)->variables()[0];
  const auto find = [&](std::string_view field, std::string_view domain, std::string_view name,
                        cel::Value* out) {
    const std::string_view keys[] = {field, domain, name};
    const std::string text = cel::JoinKeys(keys);
    return variable.map->FindPath({keys, text, cel::HashKeys(keys)}, out);
  };
  cel::Value found;
  for (int i = 0; i < 20; ++i) {
    const std::string name = StrCat("attribute", i);
    ASSERT_TRUE(find("attributes", "d.example.com", name, &found)) << name;
    EXPECT_EQ(found.integer, i);
    ASSERT_TRUE(find("attributes", "other.com", name, &found)) << name;
    EXPECT_EQ(found.integer, 100 + i);
    EXPECT_TRUE(find("capacity", "d.example.com", StrCat("capacity", i), &found)) << i;
    EXPECT_FALSE(find("capacity", "d.example.com", name, &found));
  }
  ASSERT_TRUE(find("attributes", "d.example.com", "x", &found));
  EXPECT_EQ(found.integer, 7);
  for (const char* name : {"attribute20", "attributf1", "bttribute1", "y", "", "attribute"}) {
    EXPECT_FALSE(find("attributes", "d.example.com", name, &found)) << name;
  }
  // A text with the same hash is compared to its end, wherever it differs.
  const std::string_view keys[] = {"attributes", "d.example.com", "attribute1"};
  const std::string text = cel::JoinKeys(keys);
  const std::uint64_t hash = cel::HashKeys(keys);
  EXPECT_TRUE(variable.map->FindPath({keys, text, hash}, &found));
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string other = text;
    other[at] = static_cast<char>(other[at] + 1);
    EXPECT_FALSE(variable.map->FindPath({keys, other, hash}, &found)) << at;
  }
  EXPECT_FALSE(variable.map->FindPath({keys, text.substr(1), hash}, &found));
  DeviceInput bare;
  bare.driver = "d";
  const auto without = CelDevice::Create(bare);
  EXPECT_FALSE((*without)->variables()[0].map->FindPath({keys, text, hash}, &found));
}

TEST(DeviceCel, AnAnswerThatIsNotABoolIsAnError) {
  const auto error = [](std::string_view type, std::string_view why) {
    return StrCat("CEL result of type ", type, " could not be converted to bool: ", why);
  };
  EXPECT_EQ(Answer(StrCat(kOwn, ".model")),
            error("string", "unsupported native conversion from string to 'bool'"));
  EXPECT_EQ(Answer(StrCat(kOwn, ".cores")),
            error("int", "unsupported type conversion from 'int' to bool"));
  EXPECT_EQ(Answer(StrCat(kOwn, ".numas")),
            error("list", "type conversion error from list to 'bool'"));
  EXPECT_EQ(Answer("dyn(1.5)"), error("double", "type conversion error from 'double' to 'bool'"));
}

// What API validation compares with the limit, as Kubernetes computes it.
TEST(DeviceCel, CostsAreEstimatedFromTheLimitsOfTheApi) {
  struct Case {
    std::string source;
    std::uint64_t min;
    std::uint64_t max;
  };
  const std::string capacity = R"(device.capacity["dra.example.com"])";
  for (const Case& c : std::vector<Case>{
           {"device.allowMultipleAllocations", 2, 2},
           {"device.driver.matches(device.driver)", 4, 116},
           {"device.driver.contains('example')", 2, 9},
           {"device.attributes.exists_one(x, x == 'dra.example.com')", 4, 164},
           {"device.attributes.exists(d, d == 'other.example.com')", 3, 227},
           {"device.attributes.all(d, device.attributes[d].all(k, k != 'zzz'))", 3, 5'379},
           {"device.attributes.all(d, m, m.size() > 0)", 3, 195},
           {StrCat(kOwn, ".exists_one(x, x == 'services')"), 5, 133},
           {StrCat(kOwn, ".all(k, k.size() < 10)"), 4, 196},
           {StrCat(kOwn, ".map(k, k).sort()[0] == 'cores'"), 27, 2'594},
           {StrCat(kOwn, ".filter(k, k.startsWith('m')).size() == 1"), 16, 496},
           {StrCat(kOwn, ".names.exists(x, x > 0)"), 5, 389},
           {StrCat(kOwn, ".services.split('example').size() >= 2"), 6, 19},
           {StrCat(capacity, ".exists_one(x, x == 'memory')"), 5, 133},
           {StrCat(capacity, ".exists(k, ", capacity, "[k].isGreaterThan(quantity('1Ti')))"), 4,
            356},
           {"device.capacity.exists_one(x, x == 'dra.example.com')", 4, 164}}) {
    const cel::Estimate estimate = Selector(c.source)->EstimateCost();
    EXPECT_EQ(estimate.min, c.min) << c.source;
    EXPECT_EQ(estimate.max, c.max) << c.source;
  }
}

TEST(DeviceCel, ReadSetKeepsDomainsOfAttributesAndCapacityApart) {
  const auto reads = Selector(
      "cel.bind(a, device.capacity['c'], a.x == a.y) || device.attributes['a'].z == 1 ||"
      " device.attributes['a'].b == 1 || device.attributes['a'].b == 2 ||"
      " device.allowMultipleAllocations");
  ASSERT_TRUE(reads);
  EXPECT_TRUE(reads->read_set().attribute_domains.empty());
  EXPECT_EQ(reads->read_set().capacity_domains, std::vector<std::string>{"c"});
  EXPECT_EQ(reads->read_set().attributes, (std::vector<ReadSet::Key>{{"a", "b"}, {"a", "z"}}))
      << "sorted, and none twice";
  EXPECT_TRUE(reads->read_set().allow_multiple_allocations);
  EXPECT_FALSE(reads->read_set().driver);
  EXPECT_TRUE(Selector("device.capacity.exists(d, true)")->read_set().all);
  EXPECT_TRUE(Selector("[device].size() == 1")->read_set().all);
}

TEST(DeviceCel, StoredExpressionsMayUseWhatIsOffForNewOnes) {
  const DeviceCompiler old({});
  const auto compiles = [&](std::string_view source, ExpressionSet set) {
    return old.CompileSelector(source, set).expression != nullptr;
  };
  for (const std::string& source :
       {std::string("device.allowMultipleAllocations"), StrCat(kOwn, ".tags.exists(t, t == 'big')"),
        StrCat(kOwn, ".tags.includes('big')")}) {
    EXPECT_FALSE(compiles(source, ExpressionSet::kNew)) << source;
    EXPECT_TRUE(compiles(source, ExpressionSet::kStored)) << source;
  }
  EXPECT_EQ(old.CompileDerivedAttribute("[1]", ExpressionSet::kNew).expression, nullptr);
  EXPECT_NE(old.CompileDerivedAttribute("[1]", ExpressionSet::kStored).expression, nullptr);
  const DeviceCompiler lists({.consumable_capacity = false, .list_type_attributes = true});
  EXPECT_TRUE(
      lists.CompileSelector(StrCat(kOwn, ".tags.includes('big')"), ExpressionSet::kNew).expression);
  const DeviceCompiler sharing({.consumable_capacity = true, .list_type_attributes = false});
  EXPECT_TRUE(
      sharing.CompileSelector("device.allowMultipleAllocations", ExpressionSet::kNew).expression);
}

// Validation limits new expressions; what was stored before must still compile.
TEST(DeviceCel, StoredExpressionsMayBeLongerThanNewOnes) {
  const DeviceCompiler compiler({});
  const auto compiles = [&](std::size_t bytes) {
    const std::string source = StrCat("device.driver != '", std::string(bytes, 'x'), "'");
    return compiler.CompileSelector(source, ExpressionSet::kStored).expression != nullptr;
  };
  EXPECT_TRUE(compiles(5 * kMaxSelectorBytes));
  EXPECT_FALSE(compiles(10 * kMaxSelectorBytes));
}

TEST(DeviceCel, CompileErrorsSayWhatIsWrong) {
  const DeviceCompiler compiler({});
  const auto failure = [&](std::string_view source) {
    return compiler.CompileSelector(source, ExpressionSet::kNew).failure;
  };
  EXPECT_EQ(failure("device.driver").message,
            "must evaluate to bool or the unknown type, not string");
  EXPECT_TRUE(failure("1 +").message.starts_with("compilation failed: ERROR: ")) << "syntax";
  EXPECT_FALSE(failure("1 +").internal);
  EXPECT_EQ(failure("double('x') == 0.0").message,
            "program instantiation failed: type conversion error from 'string' to 'double'");
  EXPECT_TRUE(failure("double('x') == 0.0").internal);
}

struct Write {
  std::string operator()(std::monostate) const { return "none"; }
  std::string operator()(std::int64_t value) const { return StrCat(value); }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const std::string& value) const { return StrCat("'", value, "'"); }
  std::string operator()(const VersionText& value) const { return StrCat("v", value.text); }
  std::string operator()(const std::vector<bool>& values) const {
    std::string text = "bools";
    for (const bool value : values) text += StrCat(" ", (*this)(value));
    return text;
  }
  template <typename T>
  std::string operator()(const std::vector<T>& values) const {
    std::string text = "list";
    for (const T& value : values) text += StrCat(" ", (*this)(value));
    return text;
  }
};

// The value, as CEL would write it, or the error.
std::string Derived(std::string_view source, bool lists = true) {
  const DeviceCompiler compiler({.consumable_capacity = true, .list_type_attributes = lists});
  DeviceCompiler::Outcome outcome = compiler.CompileDerivedAttribute(source, ExpressionSet::kNew);
  if (!outcome.expression) return outcome.failure.message;
  const auto device = CelDevice::Create(Example());
  cel::Evaluator evaluator;
  const DeviceExpression::Derived derived = outcome.expression->Derive(**device, evaluator);
  if (derived.error) return *derived.error;
  return std::visit(Write{}, derived.value);
}

TEST(DeviceCel, DerivedAttributesAreScalarsOrListsOfOneKind) {
  EXPECT_EQ(Derived("true"), "true");
  EXPECT_EQ(Derived(StrCat(kOwn, ".cores * 2")), "128");
  EXPECT_EQ(Derived("device.driver"), "'dra.example.com'");
  EXPECT_EQ(Derived("semver('1.2.3')"), "v1.2.3");
  EXPECT_EQ(Derived(StrCat(kOwn, ".fw")), "v2.1.0");
  EXPECT_EQ(Derived("[1, 2]"), "list 1 2");
  EXPECT_EQ(Derived("[true, false]"), "bools true false");
  EXPECT_EQ(Derived(StrCat(kOwn, ".tags")), "list 'fast' 'big'");
  EXPECT_EQ(Derived("[semver('1.0.0'), semver('2.0.0')]"), "list v1.0.0 v2.0.0");
  EXPECT_EQ(Derived("[]"), "list");
}

TEST(DeviceCel, AnythingElseCannotBeDerived) {
  const std::string wanted =
      "must evaluate to a primitive scalar (string, integer, boolean, semver) or a list of these "
      "scalars, not ";
  EXPECT_EQ(Derived("1u"), wanted + "uint");
  EXPECT_EQ(Derived("null"), wanted + "null_type");
  EXPECT_EQ(Derived("b'x'"), wanted + "bytes");
  EXPECT_EQ(Derived("[1.5]"), wanted + "list(double)");
  EXPECT_EQ(Derived("[[1]]"), wanted + "list(list(int))");
  EXPECT_EQ(Derived("duration('1s')"), wanted + "google.protobuf.Duration");
  EXPECT_EQ(Derived("device.capacity['dra.example.com'].memory"), wanted + "kubernetes.Quantity");
  EXPECT_EQ(
      Derived("[1]", /*lists=*/false),
      "must evaluate to a primitive scalar (string, integer, boolean, semver), not list(int)");
  EXPECT_EQ(Derived("[dyn(1), dyn('a')]"),
            "expected list element at index 1 to be int, got string");
  EXPECT_EQ(Derived("[dyn(true), dyn(true), dyn(1)]"),
            "expected list element at index 2 to be bool, got int64");
  EXPECT_EQ(Derived("[dyn('a'), dyn(semver('1.0.0'))]"),
            "expected list element at index 1 to be string, got semver.Version");
  EXPECT_EQ(Derived("[dyn(semver('1.0.0')), dyn(quantity('1'))]"),
            "expected list element at index 1 to be semver, got kubernetes.Quantity");
  EXPECT_EQ(Derived("[dyn(null)]"), "unsupported list element type: structpb.NullValue");
  EXPECT_EQ(Derived("dyn({})"), "unsupported CEL return type: map[ref.Val]ref.Val");
  EXPECT_EQ(Derived("dyn(1.5)"), "unsupported CEL return type: float64");
  EXPECT_EQ(Derived("dyn(1u)"), "unsupported CEL return type: uint64");
  EXPECT_EQ(Derived(StrCat(kOwn, ".cores / 0")), "division by zero");
}

TEST(DeviceCel, MissingKeysGetAHint) {
  EXPECT_EQ(WithHint("division by zero"), "division by zero");
  EXPECT_EQ(WithHint("no such key: a"),
            "no such key: a. consider using CEL optional chaining (.? followed by orValue()) or "
            "guarding the check with "
            "has() for optional fields");
}

}  // namespace
}  // namespace drakkar::device
