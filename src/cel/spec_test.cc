// Runs the cases of the CEL specification. What needs protocol buffer messages is listed by name,
// with the reason, in spec_listed.txt; the list must be exact.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "api/testing/vectors.h"
#include "base/text/text.h"
#include "cel/environment/environment.h"
#include "cel/library/library.h"
#include "cel/library/time.h"

namespace drakkar::cel {
namespace {

using Json = api::Value;

struct NeedsMessages {};

// Fields are lists, as in a repeated text field; most have one element.
Json One(Json json, std::string_view key) {
  return json.Entry(key).at(0);
}
bool Has(Json json, std::string_view key) {
  return json.Entry(key).exists();
}
std::string Text(Json json) {
  if (const Json literal = json.Entry("$literal"); literal.exists()) {
    return std::string(literal.str());
  }
  if (const Json hex = json.Entry("$bytesHex"); hex.exists()) {
    std::string bytes;
    for (std::size_t i = 0; i + 1 < hex.str().size(); i += 2) {
      const std::string digits(hex.str().substr(i, 2));
      bytes += static_cast<char>(std::strtol(digits.c_str(), nullptr, 16));
    }
    return bytes;
  }
  return std::string(json.str());
}
// The only member, as a name and the first element of its list.
std::pair<std::string, Json> Member(Json json) {
  if (json.members().empty()) throw NeedsMessages();
  const api::MemberView member = *json.members().begin();
  return {std::string(member.name), member.value.at(0)};
}

double ReadDouble(const std::string& text) {
  return std::strtod(text.c_str(), nullptr);
}

Value ReadValue(Arena& arena, Json json) {
  const auto [kind, content] = Member(json);
  if (kind == "null_value") return MakeNull();
  if (kind == "bool_value") return MakeBool(Text(content) == "true");
  if (kind == "int64_value")
    return MakeInt(static_cast<std::int64_t>(std::strtoll(Text(content).c_str(), nullptr, 0)));
  if (kind == "uint64_value") return MakeUint(std::strtoull(Text(content).c_str(), nullptr, 0));
  if (kind == "double_value") return MakeDouble(ReadDouble(Text(content)));
  if (kind == "string_value") return NewString(arena, Text(content));
  if (kind == "bytes_value") return MakeBytes(CopyText(arena, Text(content)));
  if (kind == "type_value") return MakeType(CopyText(arena, Text(content)));
  if (kind == "list_value") {
    std::vector<Value> items;
    for (const Json item : content.Entry("values").elements())
      items.push_back(ReadValue(arena, item));
    return NewList(arena, items.data(), items.size());
  }
  if (kind == "map_value") {
    Value map = NewMap(arena, 4);
    for (const Json entry : content.Entry("entries").elements()) {
      map = MapInsert(arena, map, ReadValue(arena, One(entry, "key")),
                      ReadValue(arena, One(entry, "value")));
    }
    return map;
  }
  if (kind == "object_value" && !content.empty()) {
    const auto [url, message] = Member(content);
    const std::string seconds = Text(One(message, "seconds"));
    const std::string nanos = Text(One(message, "nanos"));
    const std::int64_t s = std::strtoll(seconds.c_str(), nullptr, 10);
    const std::int64_t n = std::strtoll(nanos.c_str(), nullptr, 10);
    if (url.find("google.protobuf.Duration") != std::string::npos)
      return MakeDuration(s * 1'000'000'000 + n);
    if (url.find("google.protobuf.Timestamp") != std::string::npos)
      return MakeTimestamp(s, static_cast<std::uint32_t>(n));
  }
  throw NeedsMessages();
}

bool SameValue(const Value& a, const Value& b) {
  if (a.kind == Kind::kDouble && b.kind == Kind::kDouble && std::isnan(a.number) &&
      std::isnan(b.number))
    return true;
  return a.kind == b.kind && Equal(a, b);
}

TypeRef ReadType(Json json) {
  const auto [kind, content] = Member(json);
  const std::string text = Text(content);
  const auto primitive = [](const std::string& name) -> TypeRef {
    static const std::map<std::string, TypeRef> kTypes = {
        {"BOOL", types::Bool()},     {"INT64", types::Int()},     {"UINT64", types::Uint()},
        {"DOUBLE", types::Double()}, {"STRING", types::String()}, {"BYTES", types::Bytes()}};
    const auto found = kTypes.find(name);
    if (found == kTypes.end()) throw NeedsMessages();
    return found->second;
  };
  if (kind == "primitive") return primitive(text);
  if (kind == "wrapper") return types::Wrapper(primitive(text));
  if (kind == "dyn") return types::Dyn();
  if (kind == "null") return types::Null();
  if (kind == "well_known")
    return text == "DURATION"    ? types::Duration()
           : text == "TIMESTAMP" ? types::Timestamp()
                                 : types::Any();
  if (kind == "list_type")
    return types::List(Has(content, "elem_type") ? ReadType(One(content, "elem_type"))
                                                 : types::Dyn());
  if (kind == "map_type") {
    return types::Map(
        Has(content, "key_type") ? ReadType(One(content, "key_type")) : types::Dyn(),
        Has(content, "value_type") ? ReadType(One(content, "value_type")) : types::Dyn());
  }
  if (kind == "type") return types::TypeOf(content.empty() ? types::Dyn() : ReadType(content));
  if (kind == "type_param") return types::Param(text);
  if (kind == "abstract_type") {
    std::vector<TypeRef> parameters;
    for (const Json parameter : content.Entry("parameter_types").elements())
      parameters.push_back(ReadType(parameter));
    return types::Opaque(Text(One(content, "name")), std::move(parameters));
  }
  if (kind == "message_type" && text == "google.protobuf.Duration") return types::Duration();
  if (kind == "message_type" && text == "google.protobuf.Timestamp") return types::Timestamp();
  throw NeedsMessages();
}

void DeclareFunction(Declarations& d, const std::string& name, Json function) {
  for (const Json entry : function["overloads"].elements()) {
    Overload overload;
    overload.id = Text(One(entry, "overload_id"));
    for (const Json parameter : entry["params"].elements())
      overload.args.push_back(ReadType(parameter));
    overload.result = ReadType(One(entry, "result_type"));
    overload.is_member = Text(One(entry, "is_instance_function")) == "true";
    d.AddFunction(name, std::move(overload));
  }
}

void DeclareAll(Environment& environment, Json c) {
  Declarations& d = environment.declarations();
  AddLanguage(environment);
  library::AddStrings(d, 4);
  ParserOptions& parser = environment.parser_options();
  parser.max_source_bytes = 1 << 20;
  parser.escaped_identifiers = true;
  parser.optional_syntax = true;
  parser.macros = MacroOptions{true, true, true, true, true, true, true};
  d.homogeneous_literals = false;
  d.strict_presence = true;
  d.container = Text(One(c, "container"));
  library::AddOptionals(d);
  library::AddTwoVariables(d);
  library::AddSets(d);
  library::AddLists(d);
  library::AddMath(d);
  library::AddEncoders(d);
  library::AddIps(d);
  library::AddCidrs(d);
}

class SpecRunner {
 public:
  // Empty if the case passes, otherwise the difference.
  std::string Run(Json c) {
    try {
      return RunCase(c);
    } catch (const NeedsMessages&) {
      return "needs messages";
    }
  }

 private:
  std::string RunCase(Json c) {
    Environment environment;
    environment.declarations().cross_type_comparisons = true;
    DeclareAll(environment, c);
    Arena arena;
    std::map<std::string, Value> bindings;
    for (const Json binding : c.Entry("bindings").elements()) {
      bindings[Text(One(binding, "key"))] = ReadValue(arena, One(One(binding, "value"), "value"));
    }
    std::set<std::string> declared;
    for (const Json entry : c.Entry("type_env").elements()) {
      if (Has(entry, "function")) {
        DeclareFunction(environment.declarations(), Text(One(entry, "name")),
                        One(entry, "function"));
        continue;
      }
      if (!Has(entry, "ident")) throw NeedsMessages();
      declared.insert(Text(One(entry, "name")));
      environment.AddVariable(Text(One(entry, "name")), ReadType(One(One(entry, "ident"), "type")));
    }
    for (const auto& [name, value] : bindings) {
      if (!declared.contains(name)) environment.AddVariable(name, types::Dyn());
    }
    const bool check = Text(One(c, "disable_check")) != "true";
    const CompileResult compiled = environment.Compile(Text(One(c, "expr")), check);
    const bool wants_error = Has(c, "eval_error");
    if (!compiled.compiled) return wants_error ? "" : compiled.error.message;
    const Json typed = One(c, "typed_result");
    if (Has(typed, "deduced_type")) {
      const TypeRef want = ReadType(One(typed, "deduced_type"));
      if (!Type::Same(*want, *compiled.compiled->output_type)) {
        return StrCat("type ", compiled.compiled->output_type->ToString(), ", want ",
                      want->ToString());
      }
    }
    if (Text(One(c, "check_only")) == "true") return "";
    std::vector<Value> variables;
    for (const std::string& name : environment.variables()) {
      const auto found = bindings.find(name);
      variables.push_back(found != bindings.end()
                              ? found->second
                              : NewError(arena, "no such attribute(s): " + name));
    }
    Evaluator evaluator;
    const Evaluation result =
        compiled.compiled->program->Evaluate(evaluator, variables, 100'000'000);
    if (wants_error)
      return result.value.IsError() ? "" : "no error, got " + DebugText(result.value);
    if (result.value.IsError()) return "error: " + result.value.error->message;
    const Json want_json = Has(typed, "result") ? One(typed, "result") : One(c, "value");
    const Value want = !want_json.has_value() ? MakeBool(true) : ReadValue(arena, want_json);
    if (!SameValue(result.value, want))
      return "got " + DebugText(result.value) + ", want " + DebugText(want);
    return "";
  }
};

TEST(CelSpec, EveryCaseThatNeedsNoMessagesPasses) {
  std::set<std::string> listed;
  const std::string list = *RealFileSystem().ReadFile("src/cel/spec_listed.txt");
  for (const std::string_view line : Split(list, '\n')) {
    if (line.empty() || line.starts_with('#')) continue;
    listed.insert(std::string(line.substr(0, line.find('\t'))));
  }
  const bool print = std::getenv("DRAKKAR_PRINT_FAILURES") != nullptr;
  SpecRunner runner;
  std::size_t passed = 0;
  std::size_t failed = 0;
  std::size_t exempt = 0;
  for (const char* file :
       {"basic",        "bindings_ext", "block_ext",      "comparisons", "conversions",
        "dynamic",      "encoders_ext", "enums",          "fields",      "fp_math",
        "integer_math", "lists",        "logic",          "macros",      "macros2",
        "math_ext",     "namespace",    "network_ext",    "optionals",   "parse",
        "plumbing",     "proto2",       "proto2_ext",     "proto3",      "string",
        "string_ext",   "timestamps",   "type_deduction", "unknowns",    "wrappers"}) {
    const api::TreePtr tree = api::LoadVectors(StrCat("cel-spec/", file, ".json"));
    if (tree == nullptr) GTEST_SKIP() << api::kNoVectors;
    for (const Json c : tree->root().elements()) {
      const std::string name =
          StrCat(file, "/", Text(One(c, "section")), "/", Text(One(c, "name")));
      const std::string problem = runner.Run(c);
      if (problem.empty()) {
        ++passed;
        if (listed.contains(name)) {
          ++failed;
          ADD_FAILURE() << name << " is listed but passes";
        }
      } else if (listed.contains(name)) {
        ++exempt;
      } else {
        ++failed;
        if (print)
          std::printf("FAIL\t%s\t%s\t%s\n", name.c_str(), Text(One(c, "expr")).c_str(),
                      problem.c_str());
        else
          ADD_FAILURE() << name << ": " << Text(One(c, "expr")) << "\n  " << problem;
      }
    }
  }
  std::printf("cel-spec: %zu passed, %zu failed, %zu listed deviations\n", passed, failed, exempt);
}

}  // namespace
}  // namespace drakkar::cel
