#include "apiserver/registry/unattended.h"

#include <fstream>
#include <map>

#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

class UnattendedTest : public CoreFixture {
 protected:
  void SetUp() override { StartCore(nullptr); }

  std::vector<std::string> WarningsOf(std::string_view json) {
    const Response response = TryCreate(json);
    EXPECT_FALSE(response.failure.has_value()) << response.failure->message;
    return response.warnings;
  }
};

TEST_F(UnattendedTest, CreatingWhatNothingActsOnWarns) {
  EXPECT_EQ(WarningsOf(R"({"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy",
                           "metadata":{"name":"n"},"spec":{"podSelector":{}}})"),
            std::vector<std::string>{"the NetworkPolicy is stored, but nothing enforces it"});
}

TEST_F(UnattendedTest, CreatingAnAttendedKindDoesNotWarn) {
  EXPECT_TRUE(
      WarningsOf(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}})").empty());
  EXPECT_TRUE(WarningsOf(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},
      "spec":{"containers":[{"name":"c","image":"i"}]}})")
                  .empty());
}

TEST_F(UnattendedTest, APodWithAUserNamespaceWarns) {
  const std::vector<std::string> warnings =
      WarningsOf(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},
      "spec":{"hostUsers":false,"containers":[{"name":"c","image":"i"}]}})");
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(warnings[0].starts_with("spec.hostUsers: ")) << warnings[0];
}

TEST_F(UnattendedTest, AnUpdateWarnsOnlyAboutWhatItAdds) {
  const auto pod = [](std::string_view label) {
    return StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"l":")",
                  label,
                  R"("}},"spec":{"hostUsers":false,"containers":[{"name":"c","image":"i"}]}})");
  };
  Create(pod("a"));
  const auto update = [&](std::string_view label) {
    return Handle(RequestFor(Verb::kUpdate, pod(label), AdminUser())).warnings.size();
  };
  EXPECT_EQ(update("b"), 0u) << "said already";
}

TEST_F(UnattendedTest, EveryLineOfTheTableNamesAStoredKind) {
  for (const Unattended& line : UnattendedKinds()) {
    EXPECT_NE(core_->FindCache(line.group,
                               [&] {
                                 for (const api::KindSchema& kind : api::AllKinds()) {
                                   if (kind.group == line.group && kind.kind == line.kind)
                                     return kind.plural;
                                 }
                                 return std::string_view();
                               }()),
              nullptr)
        << line.group << "/" << line.kind;
  }
}

// docs/compatibility.md has a table of all kinds: `| Deployment | apps | who acts | warning |`.
TEST_F(UnattendedTest, TheCompatibilityPageListsEveryKindAndItsWarnings) {
  std::ifstream page("docs/compatibility.md");
  ASSERT_TRUE(page.good()) << "run from the top of the tree";
  std::map<std::string, std::string> listed;  // group/kind: the warnings
  bool is_here = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) is_here = line == "## Kinds, and who acts on them";
    if (!is_here || !line.starts_with("| ") || line.starts_with("| kind")) continue;
    const std::vector<std::string_view> cells = Split(line, '|');
    ASSERT_EQ(cells.size(), 6u) << line;
    const std::string name = StrCat(Trim(cells[2]), "/", Trim(cells[1]));
    EXPECT_TRUE(listed.emplace(name, Trim(cells[4])).second) << name << " is listed twice";
  }
  std::map<std::string, std::string> served;
  core_->ForEachCache([&](const api::KindSchema& kind, const WatchCache&) {
    std::vector<std::string> warnings;
    for (const Unattended* line : UnattendedOf(kind)) warnings.emplace_back(line->warning);
    served.emplace(StrCat(kind.group.empty() ? "core" : kind.group, "/", kind.kind),
                   warnings.empty() ? "–" : Join(warnings, "; "));
  });
  for (const auto& [name, warning] : served) {
    ASSERT_TRUE(listed.contains(name)) << name << " is served but not listed";
    EXPECT_EQ(listed[name], warning) << name;
  }
  for (const auto& [name, warning] : listed) {
    EXPECT_TRUE(served.contains(name)) << name << " is listed but not served";
  }
}

TEST_F(UnattendedTest, WarningsAreAboutWhatIsNew) {
  const Unattended line{"", "Pod", [](api::Value pod) { return pod.Entry("odd").boolean(); },
                        "odd"};
  const Unattended always{"", "Pod", nullptr, "always"};
  const Unattended* const lines[] = {&line, &always};
  const auto said = [&](std::string_view object, std::string_view before) {
    const auto now = api::ParseJson(object);
    const auto then = api::ParseJson(before.empty() ? "{}" : before);
    return Join(
        UnattendedWarnings(lines, (*now)->root(), before.empty() ? api::Value() : (*then)->root()),
        " ");
  };
  EXPECT_EQ(said(R"({"odd":true})", ""), "odd always");
  EXPECT_EQ(said(R"({"odd":false})", ""), "always");
  EXPECT_EQ(said(R"({"odd":true})", R"({"odd":true})"), "");
  EXPECT_EQ(said(R"({"odd":true})", R"({"odd":false})"), "odd") << "an update added it";
}

}  // namespace
}  // namespace drakkar::apiserver
