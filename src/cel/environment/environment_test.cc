#include "cel/environment/environment.h"

#include <gtest/gtest.h>

#include <map>

#include "base/text/text.h"
#include "cel/library/objects.h"

// End to end: checker, planner, evaluator and costs.
namespace drakkar::cel {
namespace {

// A map of maps that counts lookups.
class Nested final : public MapValue {
 public:
  bool Find(const Value& key, std::uint32_t, Value* out) const override {
    ++single_steps;
    if (key.kind != Kind::kString || key.text() != "inner") return false;
    *out = MakeMap(&leaf, 1);
    return true;
  }
  bool FindPath(const KeyPath& path, Value* out) const override {
    if (path.keys.size() != 2 || path.keys[0] != "inner" || path.keys[1] != "x") return false;
    EXPECT_EQ(path.hash, HashKeys(path.keys));
    ++whole_paths;
    *out = MakeInt(7);
    return true;
  }
  Value KeyAt(std::uint32_t) const override { return MakeString("inner"); }
  Value ValueAt(std::uint32_t) const override { return MakeMap(&leaf, 1); }

  struct Leaf final : public MapValue {
    bool Find(const Value& key, std::uint32_t, Value* out) const override {
      *out = MakeInt(7);
      return key.kind == Kind::kString && key.text() == "x";
    }
    Value KeyAt(std::uint32_t) const override { return MakeString("x"); }
    Value ValueAt(std::uint32_t) const override { return MakeInt(7); }
  };
  Leaf leaf;
  mutable int single_steps = 0;
  mutable int whole_paths = 0;
};

class Cel : public testing::Test {
 protected:
  Cel() {
    AddKubernetesBase(environment_, 37);
    environment_.AddVariable("n", types::Int());
    environment_.AddVariable(
        "m", types::Map(types::String(), types::Map(types::String(), types::Int())));
  }

  std::unique_ptr<Compiled> Compile(std::string_view source) {
    CompileResult result = environment_.Compile(source);
    EXPECT_TRUE(result.compiled) << result.error.message;
    return std::move(result.compiled);
  }
  std::string ErrorOf(std::string_view source) {
    return environment_.Compile(source).error.message;
  }
  Evaluation Evaluate(const Compiled& compiled, std::uint64_t limit = 1'000'000) {
    const Value variables[] = {MakeInt(5), MakeMap(&map_, 1)};
    return compiled.program->Evaluate(evaluator_, variables, limit);
  }
  std::string Answer(std::string_view source) {
    const auto compiled = Compile(source);
    if (!compiled) return "no program";
    const Evaluation result = Evaluate(*compiled);
    return result.value.IsError() ? StrCat("error: ", result.value.error->message)
                                  : DebugText(result.value);
  }
  std::uint64_t Cost(std::string_view source) { return Evaluate(*Compile(source)).cost; }

  Environment environment_;
  Evaluator evaluator_;
  Nested map_;
};

TEST_F(Cel, AnErrorPointsAtTheSpot) {
  EXPECT_EQ(ErrorOf("n + 'a'"),
            "ERROR: <input>:1:3: found no matching overload for '_+_' applied to '(int, string)'\n"
            " | n + 'a'\n"
            " | ..^");
  EXPECT_NE(ErrorOf("unknown > 1").find("undeclared reference to 'unknown' (in container '')"),
            std::string::npos);
}

TEST_F(Cel, EveryProblemIsReportedNotJustTheFirst) {
  const std::string error = ErrorOf("a + b");
  EXPECT_NE(error.find("'a'"), std::string::npos);
  EXPECT_NE(error.find("'b'"), std::string::npos);
}

TEST_F(Cel, FalseWinsOverAnErrorOnEitherSide) {
  EXPECT_EQ(Answer("1 / 0 > 1 && false"), "false");
  EXPECT_EQ(Answer("true || 1 / 0 > 1"), "true");
  EXPECT_EQ(Answer("1 / 0 > 1 && true"), "error: division by zero");
}

TEST_F(Cel, OverflowIsAnErrorAndNotAWrongNumber) {
  EXPECT_EQ(Answer("9223372036854775807 + n"), "error: integer overflow");
}

TEST_F(Cel, OnlyTheArgumentsOfFormatMayMixTypesInALiteral) {
  EXPECT_EQ(Answer("'%s %d'.format(['a', 1])"), "a 1");
  EXPECT_EQ(Answer("'%s'.format([[1, 'x']])"), R"([1, "x"])");
  EXPECT_NE(ErrorOf("[1, 'a'].size() == 2").find("expected type 'int' but found 'string'"),
            std::string::npos);
  EXPECT_NE(ErrorOf("'%d'.format([1]) == 'x' && {'a': 1, 'b': 'x'}.size() == 2")
                .find("expected type 'int' but found 'string'"),
            std::string::npos);
}

TEST_F(Cel, MillisecondsOfADurationAreAllOfThem) {
  EXPECT_EQ(Answer("duration('1h0m1s500ms').getMilliseconds()"), "3601500");
  EXPECT_EQ(Answer("duration('-1500ms').getMilliseconds()"), "-1500");
  EXPECT_EQ(Answer("timestamp('2026-01-31T10:20:30.456Z').getMilliseconds()"), "456");
}

// The costs Kubernetes 1.37 reports (interop_cel compares many more with a live peer).
TEST_F(Cel, FormatsCostByTheirPatternAndCompareInOneStep) {
  EXPECT_EQ(Cost("!format.date().validate('2026-01-31').hasValue()"), 39u);
  EXPECT_EQ(Cost("!format.datetime().validate('2026-01-31T00:00:00Z').hasValue()"), 57u);
  EXPECT_EQ(Cost("!format.dns1123Label().validate('gpu-0').hasValue()"), 11u);
  EXPECT_EQ(Cost("format.dns1123Label() != format.dns1035Label()"), 3u);
  EXPECT_EQ(Cost("{'a': 1, 'b': 2, 'c': 3}.all(k, k != 'z')"), 16u);
}

TEST_F(Cel, ABindingIsComputedOnceAndOnlyIfAsked) {
  environment_.parser_options().macros.bindings = true;
  EXPECT_EQ(Answer("cel.bind(x, 1 / 0, n == 5 || x == 1)"), "true");
}

TEST_F(Cel, AMissingKeyIsAnErrorUnlessOptional) {
  EXPECT_EQ(Answer("m['inner']['y']"), "error: no such key: y");
  EXPECT_EQ(Answer("m['inner'][?'y'].orValue(3)"), "3");
  EXPECT_EQ(Answer("has(m.inner.x)"), "true");
}

TEST_F(Cel, ConstantPathsTakeOneStepAndCostAsMuchAsTheSingleOnes) {
  const auto compiled = Compile("m.inner.x == 7");
  const Evaluation whole = Evaluate(*compiled);
  EXPECT_TRUE(whole.value.IsTrue());
  EXPECT_EQ(map_.whole_paths, 1);
  EXPECT_EQ(map_.single_steps, 0);
  EXPECT_EQ(whole.cost, Cost("m['in' + 'ner'].x == 7") - Cost("'in' + 'ner'"));
}

TEST_F(Cel, TheLimitCancelsInTheMiddleOfAPathAtTheSameCost) {
  const Evaluation result = Evaluate(*Compile("m.inner.x == 7"), 1);
  EXPECT_TRUE(result.cancelled);
  EXPECT_EQ(result.cost, 2u);
  EXPECT_EQ(result.value.error->message, "operation cancelled: actual cost limit exceeded");
}

TEST_F(Cel, AccessPathsNameWhatAnExpressionReads) {
  const auto compiled = Compile("m.inner.x == n");
  ASSERT_EQ(compiled->program->access_paths().size(), 2u);
  EXPECT_EQ(compiled->program->access_paths()[0].keys, (std::vector<std::string>{"inner", "x"}));
  EXPECT_TRUE(compiled->program->access_paths()[1].keys.empty());
}

TEST_F(Cel, ActualCostNeverExceedsTheEstimate) {
  for (const char* source :
       {"n + 1 > 2", "[1, 2, 3].exists(x, x == n)", "'abc'.contains('b')", "m.inner.x == 7",
        "[1, 2].map(x, x * 2).size() == 2", "'a,b'.split(',').join('-') == 'a-b'"}) {
    const auto compiled = Compile(source);
    const Estimate estimate = EstimateCost(compiled->checked, {});
    const std::uint64_t cost = Evaluate(*compiled).cost;
    EXPECT_LE(cost, estimate.max) << source;
  }
}

TEST_F(Cel, TheLibrariesAnswer) {
  const std::map<std::string, std::string> cases = {
      {"quantity('1Gi').isGreaterThan(quantity('1M'))", "true"},
      {"quantity('1.5').asInteger()", "error: cannot convert value to integer"},
      {"semver('1.2.3').compareTo(semver('1.10.0'))", "-1"},
      {"isSemver('1.2')", "false"},
      {"ip('10.0.0.1').family()", "4"},
      {"cidr('10.0.0.0/8').containsIP('10.2.3.4')", "true"},
      {"url('https://example.com:80/path').getHost()", "example.com:80"},
      {"url('https://a:b:80/').getPort()", "80"},
      {"url('https://[::1]:8443/').getPort()", "8443"},
      {"url('https://[::1]/').getPort()", ""},
      {"'abc 123'.find('[0-9]+')", "123"},
      {"[3, 1, 2].isSorted()", "false"},
      {"[1, 2, 3].sum()", "6"},
      {"sets.contains([1, 2, 3], [2])", "true"},
      {"'hello'.charAt(1)", "e"},
      {"'%d items'.format([2])", "2 items"},
      {"!format.dns1123Label().validate('Not A Label').hasValue()", "false"},
  };
  for (const auto& [source, answer] : cases) EXPECT_EQ(Answer(source), answer) << source;
}

TEST_F(Cel, ObjectsOfDifferentTypesAreNotCompared) {
  EXPECT_NE(ErrorOf("quantity('1') == semver('1.0.0')").find("found no matching overload"),
            std::string::npos);
  EXPECT_EQ(Answer("dyn(quantity('1')) == dyn(semver('1.0.0'))"), "error: no such overload");
}

}  // namespace
}  // namespace drakkar::cel
