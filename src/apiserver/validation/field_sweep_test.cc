// Every field of the objects in testdata, changed in every small way, against what the server says
// about it, and what else it changes if it accepts that. The expectations are in
// testdata/*.expected. After an intended change of the rules, run this test with
// DRAKKAR_UPDATE_EXPECTED=1, read the difference, and check it against Kubernetes.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "api/codec/yaml_reader.h"
#include "api/json/reader.h"
#include "api/json/writer.h"
#include "apiserver/testing/core_fixture.h"
#include "apiserver/testing/field_sweep.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

constexpr char kFolder[] = "src/apiserver/validation/testdata/";
constexpr std::size_t kShownErrors = 2;
constexpr std::size_t kShownBytes = 90;
constexpr std::size_t kShownEffects = 6;

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

// Without long runs of one character, and not longer than a line.
std::string Shortened(std::string_view text) {
  std::string out;
  std::size_t run = 0;
  for (const char c : text) {
    run = !out.empty() && c == out.back() ? run + 1 : 0;
    if (run < 8) out += c == '\n' ? ' ' : c;
  }
  if (out.size() > kShownBytes) out = out.substr(0, kShownBytes) + "...";
  return out;
}

std::string Judgement(const Response& response) {
  if (!response.failure) return "";
  const auto& causes = response.failure->causes;
  if (causes.empty()) return Shortened(response.failure->message);
  std::string text;
  for (std::size_t i = 0; i < std::min(kShownErrors, causes.size()); ++i) {
    text += StrCat(i > 0 ? "; " : "", causes[i].field, ": ", Shortened(causes[i].message));
  }
  if (causes.size() > kShownErrors) text += StrCat("; and ", causes.size() - kShownErrors, " more");
  return text;
}

void AddLeaves(api::Value value, const std::string& path, std::set<std::string>& leaves) {
  if (path == "metadata.managedFields" || path == "metadata.uid" ||
      path == "metadata.creationTimestamp" || path == "metadata.resourceVersion") {
    return;
  }
  if (value.is_object()) {
    if (value.members().empty()) leaves.insert(path + "={}");
    for (const auto& [key, name, member] : value.members()) {
      AddLeaves(member, path.empty() ? std::string(name) : StrCat(path, ".", name), leaves);
    }
  } else if (value.is_array()) {
    if (value.empty()) leaves.insert(path + "=[]");
    std::size_t index = 0;
    for (const api::Value item : value.elements()) {
      AddLeaves(item, StrCat(path, "[", index++, "]"), leaves);
    }
  } else {
    leaves.insert(StrCat(path, "=", Shortened(api::WriteJson(value))));
  }
}

std::set<std::string> Leaves(api::Value value) {
  std::set<std::string> leaves;
  AddLeaves(value, "", leaves);
  return leaves;
}

// Replaces values that differ for each object.
std::string WithoutRandomValues(std::string leaf, const std::string& uid) {
  for (const char* name : {"clusterIP=", "clusterIPs[0]=", "odePort="}) {
    if (const std::size_t at = leaf.find(name); at != leaf.npos) {
      return leaf.substr(0, at + std::string_view(name).size()) + "*";
    }
  }
  for (std::size_t at = uid.empty() ? leaf.npos : leaf.find(uid); at != leaf.npos;
       at = leaf.find(uid)) {
    leaf.replace(at, uid.size(), "UID");
  }
  return leaf;
}

// The leaves of a stored object, the same whenever it is created.
std::set<std::string> SteadyLeaves(api::Value stored) {
  const std::string uid(stored["metadata"]["uid"].str());
  std::set<std::string> leaves;
  for (const std::string& leaf : Leaves(stored)) leaves.insert(WithoutRandomValues(leaf, uid));
  return leaves;
}

// What the server added to and removed from what it was sent.
std::set<std::string> Changes(api::Value sent, api::Value stored) {
  const std::string uid(stored["metadata"]["uid"].str());
  const std::set<std::string> before = Leaves(sent);
  const std::set<std::string> after = Leaves(stored);
  std::set<std::string> changes;
  for (const std::string& leaf : before) {
    if (!after.contains(leaf)) changes.insert("-" + WithoutRandomValues(leaf, uid));
  }
  for (const std::string& leaf : after) {
    if (leaf.starts_with("metadata.generation=")) continue;
    if (!before.contains(leaf)) changes.insert("+" + WithoutRandomValues(leaf, uid));
  }
  return changes;
}

// "-PATH=VALUE" for what is missing and "+PATH=VALUE" for what is new.
std::string Difference(const std::set<std::string>& before, const std::set<std::string>& after) {
  std::string text;
  for (const std::string& leaf : before) {
    if (!after.contains(leaf)) text += StrCat(text.empty() ? "" : " ", "-", leaf);
  }
  for (const std::string& leaf : after) {
    if (!before.contains(leaf)) text += StrCat(text.empty() ? "" : " ", "+", leaf);
  }
  return text;
}

// One document of a file. Each has a case of its own, so that a failure names it.
struct Case {
  std::string file;
  std::size_t index = 0;
  std::string name;
};

void PrintTo(const Case& each, std::ostream* out) {
  *out << each.file << " " << each.index;
}

// The documents of a file, told by their first lines.
std::vector<Case> CasesOf(const std::vector<std::string>& files) {
  std::vector<Case> cases;
  for (const std::string& file : files) {
    const std::string text = ReadText(StrCat(kFolder, file, ".yaml"));
    std::size_t index = 0;
    for (const std::string_view line : Split(text, '\n')) {
      constexpr std::string_view kKind = "kind: ";
      if (!line.starts_with(kKind)) continue;
      cases.push_back({file, index, StrCat(file, index, line.substr(kKind.size()))});
      ++index;
    }
  }
  return cases;
}

// The part of the expectations that is about one document.
std::string SectionOf(const std::string& expected, std::size_t index) {
  std::size_t from = 0;
  for (std::size_t i = 0; from != expected.npos; ++i) {
    const std::size_t next = expected.find("\n== ", from);
    const std::size_t to = next == expected.npos ? next : next + 1;
    if (i == index) return expected.substr(from, to == expected.npos ? to : to - from);
    from = to;
  }
  return "";
}

class FieldSweepTest : public CoreFixture, public ::testing::WithParamInterface<Case> {
 protected:
  FieldSweepTest() {
    gates_ = EveryGate();
    StartCore(nullptr);
  }
  static FeatureGates EveryGate() {
    FeatureGates gates;
    for (int i = 0; i < static_cast<int>(Gate::kCount); ++i) {
      gates = gates.With(static_cast<Gate>(i), true);
    }
    return gates;
  }
  Response Send(const JsonNode& document, Verb verb, const std::string& subresource, bool dry_run) {
    Request request = RequestFor(verb, document.Json(), AdminUser());
    request.subresource = subresource;
    request.dry_run = dry_run;
    Response response = Handle(std::move(request));
    Record(document, verb, subresource, dry_run, response);
    return response;
  }
  // Appends the request and the answer to the file that DRAKKAR_SWEEP_LOG names, one JSON document
  // per line, so that another server can be asked the same.
  static void Record(const JsonNode& document, Verb verb, const std::string& subresource,
                     bool dry_run, const Response& response) {
    static const char* const path = std::getenv("DRAKKAR_SWEEP_LOG");
    if (path == nullptr) return;
    std::string line =
        StrCat(R"({"verb":")", VerbName(verb), R"(","subresource":")", subresource,
               R"(","dryRun":)", dry_run ? "true" : "false", R"(,"sent":)", document.Json());
    if (response.object != nullptr) {
      line += StrCat(R"(,"stored":)", api::WriteJson(response.object->root()));
    }
    if (response.failure) {
      line += R"(,"message":)";
      api::AppendJsonString(line, response.failure->message);
      line += R"(,"causes":[)";
      for (const auto& cause : response.failure->causes) {
        if (line.back() != '[') line += ',';
        api::AppendJsonString(line, StrCat(cause.field, ": ", cause.message));
      }
      line += ']';
    }
    std::ofstream(path, std::ios::app) << line << "}\n";
  }
  std::string Sweep(JsonNode& document, Verb verb, const std::string& subresource,
                    const std::vector<std::string>& roots) {
    const Effects usual = EffectsOf(document, Send(document, verb, subresource, true));
    FieldSweep sweep(
        document, [&] { return Judgement(Send(document, verb, subresource, true)); },
        [&] {
          const Response response = Send(document, verb, subresource, true);
          return response.failure ? Judgement(response)
                                  : NewEffects(EffectsOf(document, response), usual);
        });
    return sweep.Run(roots);
  }
  // What comes of a request that is accepted.
  struct Effects {
    std::set<std::string> changes;
    std::set<std::string> warnings;
  };
  static Effects EffectsOf(const JsonNode& document, const Response& response) {
    const Result<api::TreePtr> sent = api::ParseJson(document.Json());
    if (!sent.ok() || response.object == nullptr) return {};
    return {Changes((*sent)->root(), Object(response)),
            {response.warnings.begin(), response.warnings.end()}};
  }
  // The effects that are not usual.
  static std::string NewEffects(const Effects& effects, const Effects& usual) {
    std::string text;
    std::size_t count = 0;
    for (const std::string& change : effects.changes) {
      if (usual.changes.contains(change)) continue;
      if (++count <= kShownEffects) text += StrCat(" ", Shortened(change));
    }
    if (count > kShownEffects) text += StrCat(" and ", count - kShownEffects, " more");
    for (const std::string& warning : effects.warnings) {
      if (!usual.warnings.contains(warning)) text += StrCat(" warning ", Shortened(warning));
    }
    return text.empty() ? "" : "accepted" + text;
  }
  // What turning off each gate changes.
  std::string Gates(const JsonNode& document, Verb verb, const std::string& subresource) {
    std::string text;
    const std::set<std::string> with =
        SteadyLeaves(Object(Send(document, verb, subresource, true)));
    for (int i = 0; i < static_cast<int>(Gate::kCount); ++i) {
      gates_ = EveryGate().With(static_cast<Gate>(i), false);
      const Response response = Send(document, verb, subresource, true);
      const std::string change =
          response.failure ? Judgement(response) : Difference(with, SteadyLeaves(Object(response)));
      if (!change.empty()) {
        text += StrCat("without ", GateName(static_cast<Gate>(i)), ": ", change, "\n");
      }
    }
    gates_ = EveryGate();
    return text;
  }
  // Some kinds are updated only by clients that say which version they have seen.
  static void SetVersion(JsonNode& document, const Response& response) {
    for (auto& [name, member] : document.members) {
      if (name != "metadata") continue;
      std::erase_if(member.members,
                    [](const auto& field) { return field.first == "resourceVersion"; });
      member.members.emplace_back(
          "resourceVersion",
          JsonNode::String(std::string(Object(response)["metadata"]["resourceVersion"].str())));
    }
  }
  static api::Value Object(const Response& response) {
    return response.object == nullptr ? api::Value() : response.object->root();
  }
  static JsonNode WithoutStatus(JsonNode document) {
    std::erase_if(document.members, [](const auto& member) { return member.first == "status"; });
    return document;
  }
  // Creates it as Describe does.
  void Store(api::Value given) {
    JsonNode document = JsonNode::From(given);
    const Response created = Send(WithoutStatus(document), Verb::kCreate, "", false);
    EXPECT_FALSE(created.failure.has_value()) << Judgement(created);
    if (!given["status"].exists()) return;
    SetVersion(document, created);
    const Response updated = Send(document, Verb::kUpdate, "status", false);
    EXPECT_FALSE(updated.failure.has_value()) << Judgement(updated);
  }
  std::string Describe(api::Value given) {
    JsonNode document = JsonNode::From(given);
    JsonNode plain = WithoutStatus(document);
    const std::string on_create =
        Sweep(plain, Verb::kCreate, "", {"metadata", "spec"}) + RestOf(plain, Verb::kCreate);
    std::string text = StrCat("== ", given["kind"].str(), " ", given["metadata"]["name"].str(),
                              "\n-- create\n", on_create);
    text += StrCat("-- gates\n", Gates(plain, Verb::kCreate, ""));
    const Response created = Send(plain, Verb::kCreate, "", false);
    EXPECT_FALSE(created.failure.has_value()) << Judgement(created);
    text += StrCat("-- defaults\n", Difference(Leaves(given), SteadyLeaves(Object(created))), "\n");
    SetVersion(plain, created);
    SetVersion(document, created);
    const std::string on_update =
        Sweep(plain, Verb::kUpdate, "",
              {"metadata.labels", "metadata.annotations", "metadata.finalizers",
               "metadata.ownerReferences", "spec"}) +
        RestOf(plain, Verb::kUpdate);
    text += StrCat("-- update\n", NewLines(on_update, on_create), "-- update gates\n",
                   Gates(plain, Verb::kUpdate, ""));
    const bool has_status = plain.members.size() != document.members.size();
    if (!has_status) return text;
    const std::string first = Sweep(document, Verb::kUpdate, "status", {"status"});
    text += StrCat("-- first status\n", first, "-- status gates\n",
                   Gates(document, Verb::kUpdate, "status"));
    const Response updated = Send(document, Verb::kUpdate, "status", false);
    EXPECT_FALSE(updated.failure.has_value()) << Judgement(updated);
    SetVersion(document, updated);
    text +=
        StrCat("-- status\n", NewLines(Sweep(document, Verb::kUpdate, "status", {"status"}), first),
               "-- later status gates\n", Gates(document, Verb::kUpdate, "status"));
    return text;
  }
  // Kinds without a spec have their fields at the top.
  std::string RestOf(JsonNode& plain, Verb verb) {
    std::vector<std::string> roots;
    for (const auto& [name, member] : plain.members) {
      if (name != "apiVersion" && name != "kind" && name != "metadata" && name != "spec") {
        roots.push_back(name);
      }
    }
    return roots.empty() ? "" : Sweep(plain, verb, "", roots);
  }
};

TEST_P(FieldSweepTest, EveryChangeIsJudgedAsExpected) {
  const std::string path = StrCat(kFolder, GetParam().file);
  const auto documents = api::ParseYaml(ReadText(path + ".yaml"));
  ASSERT_TRUE(documents.ok()) << documents.error().message;
  ASSERT_LT(GetParam().index, documents->size()) << path;
  // Those before it may define its kind.
  for (std::size_t i = 0; i < GetParam().index; ++i) Store((*documents)[i]->root());
  const std::string found = Describe((*documents)[GetParam().index]->root());
  if (std::getenv("DRAKKAR_UPDATE_EXPECTED") != nullptr) {
    std::ofstream(path + ".expected", GetParam().index == 0 ? std::ios::trunc : std::ios::app)
        << found;
    return;
  }
  const std::string expected = SectionOf(ReadText(path + ".expected"), GetParam().index);
  if (found == expected) return;
  const std::vector<std::string_view> before = Split(expected, '\n');
  const std::vector<std::string_view> after = Split(found, '\n');
  const std::set<std::string_view> known(before.begin(), before.end());
  const std::set<std::string_view> now(after.begin(), after.end());
  std::string difference;
  for (const std::string_view line : before) {
    if (!now.contains(line) && difference.size() < 4'000) difference += StrCat("-", line, "\n");
  }
  for (const std::string_view line : after) {
    if (!known.contains(line) && difference.size() < 8'000) difference += StrCat("+", line, "\n");
  }
  ADD_FAILURE() << path << ".expected differs:\n" << difference;
}

INSTANTIATE_TEST_SUITE_P(Kinds, FieldSweepTest,
                         ::testing::ValuesIn(CasesOf({"claims", "slices", "classes", "pods", "jobs",
                                                      "workloads", "cluster", "policies",
                                                      "admission", "extensions", "networks",
                                                      "volumes", "sources"})),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace drakkar::apiserver
