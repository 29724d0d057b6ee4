// drakkar why (also: explain): why a pod or a claim has its devices, waits for them or cannot get
// them. The scheduler answers through the API server. Where it does not (another scheduler), the
// command reads the cluster and runs the scheduler's code itself. Nothing is written.
#include "answers/why/why.h"

#include "answers/render/why.h"
#include "answers/why/summary.h"
#include "api/json/reader.h"
#include "api/json/writer.h"
#include "base/env/random.h"
#include "base/exec/uv_loop.h"
#include "base/text/text.h"
#include "cli/answer.h"
#include "cli/commands.h"
#include "cli/printable.h"
#include "device/cel_expressions.h"
#include "net/http/url.h"

namespace drakkar::cli {
namespace {

using answers::WhyAnswer;
using answers::WhySubject;

// 0: it fits; 1: it does not; 2: no answer.
constexpr int kExitDoesNotFit = 1;
constexpr int kExitNoAnswer = 2;

std::optional<WhySubject::Kind> FindKind(std::string_view type) {
  for (const char* each : {"pod", "pods", "po"}) {
    if (type == each) return WhySubject::Kind::kPod;
  }
  for (const char* each : {"claim", "claims", "resourceclaim", "resourceclaims"}) {
    if (type == each) return WhySubject::Kind::kClaim;
  }
  return std::nullopt;
}

// `pod NAME`, `pod/NAME`, or a NAME alone: a pod.
Result<WhySubject> ParseSubject(const std::vector<std::string>& words) {
  std::string type = "pod";
  std::string name = words[0];
  if (words.size() == 2) {
    type = words[0];
    name = words[1];
  } else if (const std::size_t slash = name.find('/'); slash != std::string::npos) {
    type = name.substr(0, slash);
    name = name.substr(slash + 1);
  }
  const std::optional<WhySubject::Kind> kind = FindKind(ToLower(type));
  if (!kind || name.empty() || name.find('/') != std::string::npos) {
    return InvalidArgument(
        StrCat("why takes a pod or a claim (pod NAME, claim NAME), not ", Quote(Join(words, " "))));
  }
  return WhySubject{*kind, {}, std::move(name)};
}

// Events about the subject. If they cannot be read, only the driver's last error is missing.
answers::Objects ReadEvents(Session& session, const WhySubject& subject) {
  const std::string selector =
      StrCat("involvedObject.name=", subject.name, ",involvedObject.kind=Pod");
  const Result<api::TreePtr> list =
      session.GetPath(StrCat("/api/v1/namespaces/", net::PercentEncode(subject.namespace_),
                             "/events", QueryText({{"fieldSelector", selector}})));
  return list.ok() ? answers::ItemsOf(*list) : answers::Objects();
}

// Whether this cluster's scheduler is Drakkar's, which should have answered then.
bool HasOurScheduler(Session& session) {
  std::string note;
  static_cast<void>(ReadSchedulerSettings(session, note));
  return note.empty();
}

// The scheduler's own answer, as JSON. With `render`, it includes the text. The scheduler knows
// what is not in the API yet, and tells users only what they may see.
Result<api::TreePtr> AskScheduler(Session& session, const WhySubject& subject,
                                  const std::string& node, bool verbose,
                                  const answers::RenderOptions* render) {
  const bool is_pod = subject.kind == WhySubject::Kind::kPod;
  std::vector<std::pair<std::string, std::string>> query;
  if (render != nullptr) {
    query.emplace_back("width", std::to_string(render->width));
    query.emplace_back("headers", render->headers ? "true" : "false");
  }
  if (!node.empty()) query.emplace_back("node", node);
  if (verbose) query.emplace_back("verbose", "true");
  ASSIGN_OR_RETURN(
      api::TreePtr answer,
      session.GetPath(StrCat(is_pod ? "/api/v1" : "/apis/resource.k8s.io/v1", "/namespaces/",
                             net::PercentEncode(subject.namespace_),
                             is_pod ? "/pods/" : "/resourceclaims/",
                             net::PercentEncode(subject.name), "/why", QueryText(query))));
  // Another server may serve something else there.
  if (!answer->root()["sentence"].is_string() || !answer->root()["fits"].optional_boolean()) {
    return Unavailable("the server's answer is not one of a scheduler");
  }
  return answer;
}

int PrintTheirs(Console& console, AnswerFormat format, const api::TreePtr& answer) {
  if (format == AnswerFormat::kJson || format == AnswerFormat::kYaml) {
    PrintJson(
        console, format,
        api::WriteJson(
            answer->root(),
            {.indent = 2, .escape_html = false, .sort_members = false, .final_newline = true}));
  } else {
    console.Out(Printable(answer->root()["text"].str()));
  }
  return answer->root()["fits"].boolean() ? kExitOk : kExitDoesNotFit;
}

Result<WhyAnswer> AskHere(Session& session, const WhySubject& subject, const std::string& node,
                          bool verbose) {
  ASSIGN_OR_RETURN(answers::Snapshot snapshot, ReadSnapshot(session, answers::kEveryKind));
  if (subject.kind == WhySubject::Kind::kPod) snapshot.events = ReadEvents(session, subject);
  std::string note;
  const scheduler::Settings settings = ReadSchedulerSettings(session, note);
  if (!note.empty()) snapshot.notes.push_back(note);
  UvLoop loop;  // for its clock
  device::CelExpressions compiler;
  ASSIGN_OR_RETURN(WhyAnswer answer, answers::ExplainWhy(snapshot, subject,
                                                         {.loop = loop,
                                                          .random = RealRandom(),
                                                          .compiler = compiler,
                                                          .settings = settings,
                                                          .with_nodes = verbose,
                                                          .node = node}));
  answers::Summarize(answer, snapshot.now);
  return answer;
}

int Run(const Arguments& arguments, Console& console) {
  const Result<AnswerFormat> format = ParseAnswerFormat(arguments.Text("output"));
  Result<WhySubject> subject = ParseSubject(arguments.positionals());
  if (!format.ok() || !subject.ok()) {
    console.Error(!format.ok() ? format.error().message : subject.error().message);
    return kExitUsage;
  }
  Result<std::unique_ptr<Session>> session = Session::Open(arguments, console);
  if (!session.ok()) {
    Report(console, session.error());
    return kExitNoAnswer;
  }
  subject->namespace_ = (*session)->namespace_();
  const std::string node = arguments.Text("node");
  const bool verbose = arguments.Bool("verbose");
  const answers::RenderOptions render = RenderOptionsFor(**session, console, arguments, *format);
  const bool as_text = *format == AnswerFormat::kText || *format == AnswerFormat::kWide;
  const Result<api::TreePtr> theirs =
      AskScheduler(**session, *subject, node, verbose, as_text ? &render : nullptr);
  if (theirs.ok()) return PrintTheirs(console, *format, *theirs);
  Result<WhyAnswer> answer = AskHere(**session, *subject, node, verbose);
  const bool is_ours = (theirs.error().code == ErrorCode::kUnavailable ||
                        theirs.error().code == ErrorCode::kResourceExhausted) &&
                       HasOurScheduler(**session);
  if (!answer.ok()) {
    Report(console, answer.error());
    if (is_ours || theirs.error().code == ErrorCode::kForbidden) {
      console.Err(StrCat("the scheduler did not answer: ", theirs.error().message, "\n"));
    }
    return kExitNoAnswer;
  }
  if (is_ours) {
    answer->notes.push_back(StrCat("the scheduler did not answer (", theirs.error().message,
                                   "), so this is computed from the API"));
  }
  if (*format == AnswerFormat::kJson || *format == AnswerFormat::kYaml) {
    PrintJson(console, *format, answers::WhyToJson(*answer));
  } else {
    console.Out(answers::RenderWhy(*answer, render));
  }
  return answer->fits ? kExitOk : kExitDoesNotFit;
}

Command MakeCommand(std::string name, std::string summary) {
  return {
      .name = std::move(name),
      .arguments = "pod|claim NAME",
      .summary = std::move(summary),
      .help =
          "Explains in one sentence why a pod or a claim fits, waits or does not fit. Below are "
          "the nodes, grouped by reason, the pods that hold the missing devices, and what would "
          "help; each suggestion has been checked with the scheduler's own code. For a waiting "
          "pod, it shows the conditions with age and deadline; for a deletion, the finalizer and "
          "who removes it; for a claim that is not prepared, the driver and its last error. A "
          "claim is explained like a pod that requests nothing else. Nothing is changed.\n"
          "\n"
          "Drakkar's scheduler answers from its own state. This needs get on pods/why or "
          "resourceclaims/why, which the role view includes; names that you may not see are left "
          "out. With another scheduler, the command reads the cluster and runs the same code "
          "itself.\n"
          "\n"
          "The exit code is 0 if it fits, 1 if it does not, 2 if there is no answer.",
      .examples =
          "  drakkar why pod train-0\n"
          "  drakkar why claim gpu -n team --node worker-3\n"
          "  drakkar why pod/train-0 --verbose -o json\n",
      .flags = {{.name = "node", .help = "Show only this node, in detail.", .placeholder = "NAME"},
                {.name = "verbose",
                 .type = FlagType::kBool,
                 .help = "Show every node in detail, by plugin and rule.",
                 .default_value = "false"},
                {.name = "no-headers",
                 .type = FlagType::kBool,
                 .help = "Omit the column headers.",
                 .default_value = "false"},
                AnswerFormatFlag()},
      .min_arguments = 1,
      .max_arguments = 2,
      .group = FlagGroup::kCluster,
      .section = "Devices",
      .run = Run};
}

}  // namespace

Command WhyCommand() {
  return MakeCommand("why", "Explain why a pod or a claim fits, waits or does not fit");
}

Command ExplainCommand() {
  return MakeCommand("explain", "Alias of why");
}

}  // namespace drakkar::cli
