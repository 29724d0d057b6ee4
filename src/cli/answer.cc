#include "cli/answer.h"

#include <algorithm>

#include "api/codec/yaml_writer.h"
#include "api/json/reader.h"
#include "api/scheme/scheme.h"
#include "base/text/text.h"

namespace drakkar::cli {
namespace {

answers::GetPaths GetFrom(Session& session) {
  return [&session](const std::vector<std::string>& paths) { return session.GetPaths(paths); };
}

}  // namespace

Result<answers::Snapshot> ReadSnapshot(Session& session, std::uint32_t kinds) {
  return answers::ReadSnapshot(
      GetFrom(session),
      {.kinds = kinds, .namespace_ = session.namespace_(), .now = session.clock().Now()});
}

void AddNodeHealth(Session& session, Console& console, answers::Snapshot& snapshot) {
  const std::vector<std::string> nodes = answers::DeviceTable(snapshot).NodesToAsk();
  answers::NodeAnswers answers = answers::AskNodes(GetFrom(session), nodes);
  if (const std::string silent = answers::DescribeSilentNodes(answers, nodes.size());
      !silent.empty()) {
    console.Err(StrCat("warning: ", silent, "\n"));
  }
  snapshot.node_health = std::move(answers.health);
}

scheduler::Settings ReadSchedulerSettings(Session& session, std::string& note) {
  client::ResourceRef ref =
      session.Ref(*api::FindKind("", "v1", "ConfigMap"), scheduler::kSettingsName);
  ref.namespace_ = scheduler::kSettingsNamespace;
  const Result<api::ObjectPtr> map = session.Get(ref);
  if (map.ok()) {
    Result<scheduler::Settings> settings = scheduler::SettingsFromConfigMap(**map);
    if (settings.ok()) return std::move(*settings);
    note = StrCat("could not read the scheduler's settings (ConfigMap ", ref.namespace_, "/",
                  ref.name, "): ", settings.error().message);
  } else {
    note = StrCat("the scheduler has not published its settings (ConfigMap ", ref.namespace_, "/",
                  ref.name, ")");
  }
  note += "; assuming the defaults";
  return {};
}

Result<AnswerFormat> ParseAnswerFormat(std::string_view text) {
  if (text.empty() || text == "text") return AnswerFormat::kText;
  if (text == "wide") return AnswerFormat::kWide;
  if (text == "json") return AnswerFormat::kJson;
  if (text == "yaml") return AnswerFormat::kYaml;
  return InvalidArgument(
      StrCat("unknown output format ", Quote(text), ": must be text, wide, json or yaml"));
}

Flag AnswerFormatFlag() {
  return {.name = "output",
          .short_name = 'o',
          .help = "Output format: text, wide, json or yaml.",
          .default_value = "text",
          .placeholder = "FORMAT"};
}

answers::RenderOptions RenderOptionsFor(Session& session, const Console& console,
                                        const Arguments& arguments, AnswerFormat format) {
  answers::RenderOptions options = RenderOptionsFor(session, console, format);
  options.headers = !arguments.Bool("no-headers");
  return options;
}

answers::RenderOptions RenderOptionsFor(Session& session, const Console& console,
                                        AnswerFormat format) {
  constexpr std::size_t kLeast = 80;
  answers::RenderOptions options;
  options.wide = format == AnswerFormat::kWide;
  options.width = options.wide ? 0 : std::max(kLeast, console.size().columns);
  options.now = session.clock().Now();
  return options;
}

void PrintJson(Console& console, AnswerFormat format, const std::string& json) {
  if (format == AnswerFormat::kJson) return console.Out(json);
  console.Out(api::WriteYaml(api::ParseJson(json).value()->root()));
}

}  // namespace drakkar::cli
