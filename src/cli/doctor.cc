// drakkar doctor: finds and ranks problems in a cluster, and says what to do. Read-only.
#include "answers/doctor/doctor.h"

#include "answers/render/doctor.h"
#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "cli/answer.h"
#include "cli/commands.h"
#include "cli/printable.h"
#include "client/kubeconfig.h"
#include "device/cel_expressions.h"
#include "net/tls/certificates.h"

namespace drakkar::cli {
namespace {

// 0: no problems; 1: some; 2: no answer.
constexpr int kExitFound = 1;
constexpr int kExitNoAnswer = 2;

void AddCertificate(std::vector<answers::CertificateFact>& facts, std::string what,
                    const std::string& pem, std::string renewal) {
  if (pem.empty()) return;
  const Result<net::CertificateInfo> info = net::ParseCertificate(pem);
  if (!info.ok()) return;
  facts.push_back({std::move(what), info->validity.not_after, std::move(renewal)});
}

// Asks the nodes for their drivers. Nodes that do not run Drakkar's agent do not know the path.
void AskNodes(Session& session, answers::DoctorInput& input) {
  std::vector<std::string> names, paths;
  for (const api::ObjectPtr& node : input.snapshot.nodes) {
    names.emplace_back(node->name());
    paths.push_back(StrCat("/api/v1/nodes/", node->name(), "/proxy/drivers"));
  }
  const std::vector<Result<api::TreePtr>> answers = session.GetPaths(paths);
  std::size_t silent = 0;
  std::string example;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].ok() && (*answers[i])->root()["drivers"].is_array()) {
      input.nodes[names[i]] = answers::ReadNodeDrivers((*answers[i])->root());
      continue;
    }
    ++silent;
    if (example.empty()) {
      example = answers[i].ok() ? "not a node of Drakkar" : answers[i].error().message;
    }
  }
  if (silent == 0) return;
  input.notes.push_back(StrCat("drivers and CDI specs of ", silent, " of ", names.size(),
                               names.size() == 1 ? " node" : " nodes",
                               " are not checked: ", example));
}

void AskServer(Session& session, answers::DoctorInput& input) {
  const Result<api::TreePtr> status = session.GetPath("/drakkar/status");
  if (status.ok()) input.server = answers::ReadServerFacts((*status)->root());
  if (!input.server) {
    input.notes.push_back(
        StrCat("gates, certificates and unattended objects of the API server are not checked: ",
               status.ok() ? "it is not Drakkar's" : status.error().message));
  }
}

void AskScheduler(Session& session, answers::DoctorInput& input) {
  std::string note;
  const scheduler::Settings settings = ReadSchedulerSettings(session, note);
  if (!note.empty()) return;
  for (std::size_t i = 0; i < static_cast<std::size_t>(Gate::kCount); ++i) {
    const Gate gate = static_cast<Gate>(i);
    if (!settings.gates.Known(gate)) continue;
    input.scheduler_gates[std::string(GateName(gate))] = settings.gates.Enabled(gate);
  }
}

void ReadCertificates(Session& session, answers::DoctorInput& input) {
  const client::ClusterAccess& access = session.access();
  AddCertificate(input.certificates, "client certificate of the kubeconfig",
                 access.client_certificate_pem, "issue a new kubeconfig");
  AddCertificate(input.certificates, "CA of the kubeconfig", access.ca_pem,
                 "distribute the new CA");
}

int Run(const Arguments& arguments, Console& console) {
  const Result<AnswerFormat> format = ParseAnswerFormat(arguments.Text("output"));
  if (!format.ok()) {
    console.Error(format.error().message);
    return kExitUsage;
  }
  Result<std::unique_ptr<Session>> session = Session::Open(arguments, console);
  if (!session.ok()) {
    Report(console, session.error());
    return kExitNoAnswer;
  }
  const Result<answers::Snapshot> snapshot = ReadSnapshot(**session, answers::kEveryKind);
  if (!snapshot.ok()) {
    Report(console, snapshot.error());
    return kExitNoAnswer;
  }
  device::CelExpressions compiler;
  answers::DoctorInput input{.snapshot = *snapshot, .compiler = compiler};
  if (arguments.Bool("ask-nodes")) AskNodes(**session, input);
  AskServer(**session, input);
  AskScheduler(**session, input);
  ReadCertificates(**session, input);
  const answers::DoctorAnswer answer = answers::Diagnose(input);
  if (*format == AnswerFormat::kJson || *format == AnswerFormat::kYaml) {
    PrintJson(console, *format, answers::DoctorToJson(answer));
  } else {
    console.Out(
        Printable(answers::RenderDoctor(answer, RenderOptionsFor(**session, console, *format))));
  }
  return answer.findings.empty() ? kExitOk : kExitFound;
}

}  // namespace

Command DoctorCommand() {
  return {.name = "doctor",
          .arguments = "",
          .summary = "Find problems in the cluster and say what to do about them",
          .help =
              "Looks for drivers that are not registered where they should be, device classes "
              "without devices, incomplete pools, slices of deleted nodes, allocated devices that "
              "are gone, claims without pods, objects stuck in deletion, CDI specs that cannot be "
              "read, wrong clocks, feature gates that do not match, certificates that expire, and "
              "objects that nothing acts on. Problems are sorted by urgency, each with what to do "
              "about it. Nothing is changed. Checks that need more permissions than you have are "
              "skipped with a note.\n"
              "\n"
              "The exit code is 0 if there are no problems, 1 if there are, 2 if the cluster "
              "cannot be read.",
          .examples =
              "  drakkar doctor\n"
              "  drakkar doctor -o json\n"
              "  drakkar doctor --ask-nodes=false\n",
          .flags = {{.name = "ask-nodes",
                     .type = FlagType::kBool,
                     .help = "Ask every node for its drivers and CDI specs.",
                     .default_value = "true"},
                    AnswerFormatFlag()},
          .min_arguments = 0,
          .max_arguments = 0,
          .group = FlagGroup::kCluster,
          .section = "Devices",
          .run = Run};
}

}  // namespace drakkar::cli
