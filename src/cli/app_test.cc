#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command.h"
#include "cli/testing/fake_console.h"

namespace drakkar::cli {
namespace {

using testing::FakeConsole;
using ::testing::HasSubstr;

class AppTest : public ::testing::Test {
 protected:
  AppTest() {
    Command get;
    get.name = "get";
    get.arguments = "TYPE [NAME...]";
    get.summary = "Show things";
    get.help = "They are shown.";
    get.examples = "  program get pods\n";
    get.group = FlagGroup::kCluster;
    get.min_arguments = 1;
    get.max_arguments = 3;
    get.flags = {
        {"output", 'o', FlagType::kString, "How.", "", "FORMAT"},
        {"wait", 0, FlagType::kBool, "Wait.", "true"},
        {"recursive", 'R', FlagType::kBool, "Deeper.", "false"},
        {"file", 'f', FlagType::kRepeated, "Files.", "", "FILE"},
        {"tail", 0, FlagType::kInt, "Lines.", "-1", "N"},
        {"timeout", 0, FlagType::kDuration, "Time.", "30s", "TIME"},
        {"cascade", 0, FlagType::kString, "How deep.", "background", "MODE", "foreground"}};
    get.run = [this](const Arguments& arguments, Console&) {
      arguments_ = arguments;
      return 7;
    };
    app_.Add(get);
    Command import;
    import.name = "image import";
    import.run = [](const Arguments&, Console&) { return 8; };
    app_.Add(import);
    Command node;
    node.name = "node";
    node.run = [](const Arguments&, Console&) { return 9; };
    app_.Add(node);
  }

  int Run(const std::vector<std::string>& words) {
    console_.out.clear();
    console_.err.clear();
    return app_.Run(words, console_);
  }

  App app_{"program", "It does things."};
  FakeConsole console_;
  Arguments arguments_;
};

TEST_F(AppTest, FlagsMayBeWrittenInAllTheUsualForms) {
  EXPECT_EQ(Run({"get", "pods", "-o", "wide", "a"}), 7);
  EXPECT_EQ(arguments_.Text("output"), "wide");
  EXPECT_EQ(arguments_.positionals(), (std::vector<std::string>{"pods", "a"}));
  Run({"get", "pods", "-owide"});
  EXPECT_EQ(arguments_.Text("output"), "wide");
  Run({"get", "pods", "-o=wide"});
  EXPECT_EQ(arguments_.Text("output"), "wide");
  Run({"get", "--output=wide", "pods"});
  EXPECT_EQ(arguments_.Text("output"), "wide");
  Run({"get", "pods", "-Rf", "x", "-f", "-", "--file=y"});
  EXPECT_TRUE(arguments_.Bool("recursive"));
  EXPECT_EQ(arguments_.List("file"), (std::vector<std::string>{"x", "-", "y"}));
}

TEST_F(AppTest, ValuesAreNotModified) {
  for (const std::string value :
       {"jsonpath={.items[*]}", "{}", "[a,b]", "", "a b", "-", "\"q\"", "a=b"}) {
    EXPECT_EQ(Run({"get", "pods", "-o", value}), 7) << value << console_.err;
    EXPECT_EQ(arguments_.Text("output"), value);
    EXPECT_EQ(Run({"get", "pods", "--output=" + value}), 7) << value << console_.err;
    EXPECT_EQ(arguments_.Text("output"), value);
  }
}

TEST_F(AppTest, SwitchesNumbersAndTimesHaveDefaults) {
  Run({"get", "pods"});
  EXPECT_TRUE(arguments_.Bool("wait"));
  EXPECT_FALSE(arguments_.Has("wait"));
  EXPECT_EQ(arguments_.Int("tail"), -1);
  EXPECT_EQ(arguments_.Time("timeout"), std::chrono::seconds(30));
  EXPECT_EQ(arguments_.Text("cascade"), "background");
  Run({"get", "pods", "--wait=false", "--tail", "-1", "--timeout", "2", "--cascade"});
  EXPECT_FALSE(arguments_.Bool("wait"));
  EXPECT_TRUE(arguments_.Has("tail"));
  EXPECT_EQ(arguments_.Time("timeout"), std::chrono::seconds(2));
  EXPECT_EQ(arguments_.Text("cascade"), "foreground");
  Run({"get", "pods", "--cascade=orphan", "--timeout=1h30m"});
  EXPECT_EQ(arguments_.Text("cascade"), "orphan");
  EXPECT_EQ(arguments_.Time("timeout"), std::chrono::minutes(90));
}

TEST_F(AppTest, EverythingAfterTwoDashesIsAnArgument) {
  Run({"get", "pods", "--", "--output", "-x"});
  EXPECT_EQ(arguments_.positionals(), (std::vector<std::string>{"pods", "--output", "-x"}));
}

TEST_F(AppTest, ClusterFlagsMayComeFirst) {
  EXPECT_EQ(Run({"-n", "x", "--kubeconfig=/k", "get", "pods"}), 7);
  EXPECT_EQ(arguments_.Text("namespace"), "x");
  EXPECT_EQ(arguments_.Text("kubeconfig"), "/k");
}

TEST_F(AppTest, ArgumentsMayBeNamesOfCommands) {
  EXPECT_EQ(Run({"get", "node", "get"}), 7);
  EXPECT_EQ(arguments_.positionals(), (std::vector<std::string>{"node", "get"}));
  EXPECT_EQ(Run({"image", "import"}), 8);
}

TEST_F(AppTest, MistakesGetOneErrorWithTheClosestWord) {
  EXPECT_EQ(Run({"gte", "pods"}), kExitUsage);
  EXPECT_EQ(console_.err, "error: unknown command \"gte\", did you mean \"get\"?\n");
  EXPECT_EQ(Run({"frobnicate"}), kExitUsage);
  EXPECT_EQ(console_.err,
            "error: unknown command \"frobnicate\": `program --help` lists the commands\n");
  EXPECT_EQ(Run({"image"}), kExitUsage);
  EXPECT_EQ(console_.err, "error: \"image\" needs a subcommand: image import\n");
  EXPECT_EQ(Run({"image", "improt"}), kExitUsage);
  EXPECT_EQ(console_.err,
            "error: unknown command \"image improt\", did you mean \"image import\"?\n");
  EXPECT_EQ(Run({"get", "pods", "--ouptut", "x"}), kExitUsage);
  EXPECT_EQ(console_.err, "error: unknown flag --ouptut for \"get\", did you mean --output?\n");
  EXPECT_EQ(Run({"get", "pods", "-x"}), kExitUsage);
  EXPECT_EQ(console_.err,
            "error: unknown flag -x for \"get\": `program get --help` lists the flags\n");
  EXPECT_EQ(Run({"get", "pods", "-o"}), kExitUsage);
  EXPECT_EQ(console_.err, "error: flag --output needs a value\n");
  EXPECT_EQ(Run({"get", "pods", "--tail", "many"}), kExitUsage);
  EXPECT_EQ(console_.err, "error: invalid value \"many\" for --tail: must be an integer\n");
  EXPECT_EQ(Run({"get", "pods", "--wait=maybe"}), kExitUsage);
  EXPECT_EQ(Run({"get", "pods", "--timeout=soon"}), kExitUsage);
  EXPECT_EQ(Run({"get"}), kExitUsage);
  EXPECT_EQ(console_.err,
            "error: \"get\" needs more arguments; usage: `program get TYPE [NAME...]`\n");
  EXPECT_EQ(Run({"get", "a", "b", "c", "d"}), kExitUsage);
  EXPECT_EQ(console_.out, "");
}

TEST_F(AppTest, HelpExistsForTheProgramAndForEachCommand) {
  EXPECT_EQ(Run({}), 0);
  EXPECT_THAT(console_.out, HasSubstr("  get           Show things\n"));
  EXPECT_EQ(Run({"--help"}), 0);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"get", "--help"}, {"help", "get"}, {"get", "-h", "--tail=x"}}) {
    EXPECT_EQ(Run(words), 0) << console_.err;
    EXPECT_THAT(console_.out, HasSubstr("program get TYPE [NAME...] [FLAGS]"));
    EXPECT_THAT(console_.out, HasSubstr("-o, --output FORMAT"));
    EXPECT_THAT(console_.out, HasSubstr("--cascade[=MODE]"));
    EXPECT_THAT(console_.out, HasSubstr("(default: 30s)"));
    EXPECT_THAT(console_.out, HasSubstr("--kubeconfig FILE"));
  }
}

}  // namespace
}  // namespace drakkar::cli
