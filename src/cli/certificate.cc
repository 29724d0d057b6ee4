// certificate approve and deny, as in kubectl.
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "cli/commands.h"
#include "cli/session.h"

namespace drakkar::cli {
namespace {

constexpr int kMostAttempts = 5;

// Adds the condition unless the request has it. The resourceVersion in the patch prevents
// overwriting a decision made meanwhile.
Result<void> Decide(Session& session, const std::string& name, std::string_view type,
                    std::string_view reason, std::string_view message) {
  client::ResourceRef ref = session.Ref(
      *api::FindResource("certificates.k8s.io", "v1", "certificatesigningrequests"), name);
  for (int attempt = 1;; ++attempt) {
    ref.subresource.clear();
    ASSIGN_OR_RETURN(const api::ObjectPtr request, session.Get(ref));
    api::Draft patch = api::Draft::Object();
    patch["metadata"]["resourceVersion"] = (*request)["metadata"]["resourceVersion"].str();
    api::Draft& conditions = patch["status"]["conditions"];
    conditions = api::Draft::Array();
    for (const api::Value each : (*request)["status"]["conditions"].elements()) {
      if (each["type"].str() == type) return Ok();
      conditions.Append(api::Draft(api::CopyTree(each)));
    }
    conditions.Append(
        {{"type", type}, {"status", "True"}, {"reason", reason}, {"message", message}});
    ref.subresource = "approval";
    Result<api::ObjectPtr> patched =
        session.Patch(ref, client::PatchType::kMerge, api::WriteJson(patch.Freeze()->root()), {});
    if (patched.ok()) return Ok();
    if (patched.error().code != ErrorCode::kConflict || attempt == kMostAttempts) {
      return patched.error();
    }
  }
}

int Run(const Arguments& arguments, Console& console, bool approve) {
  Result<std::unique_ptr<Session>> session = Session::Open(arguments, console);
  if (!session.ok()) {
    Report(console, session.error());
    return kExitFailure;
  }
  for (const std::string& name : arguments.positionals()) {
    const Result<void> decided =
        approve ? Decide(**session, name, "Approved", "DrakkarApprove",
                         "This CSR was approved by drakkar certificate approve.")
                : Decide(**session, name, "Denied", "DrakkarDeny",
                         "This CSR was denied by drakkar certificate deny.");
    if (!decided.ok()) {
      Report(console, decided.error());
      return kExitFailure;
    }
    console.Out(StrCat("certificatesigningrequest.certificates.k8s.io/", name,
                       approve ? " approved\n" : " denied\n"));
  }
  return kExitOk;
}

}  // namespace

std::vector<Command> CertificateCommands() {
  Command approve;
  approve.name = "certificate approve";
  approve.arguments = "NAME...";
  approve.summary = "Approve certificate requests";
  approve.help =
      "Approves CertificateSigningRequests. Look at the subject first: a certificate is an "
      "identity, and an approval cannot be undone. Requests that nodes make for themselves are "
      "approved automatically.";
  approve.examples = "  drakkar get csr\n  drakkar certificate approve csr-x7k2p\n";
  approve.min_arguments = 1;
  approve.group = FlagGroup::kCluster;
  approve.section = "Objects";
  approve.run = [](const Arguments& arguments, Console& console) {
    return Run(arguments, console, true);
  };
  Command deny = approve;
  deny.name = "certificate deny";
  deny.summary = "Deny certificate requests";
  deny.help = "Denies CertificateSigningRequests. A denial cannot be undone.";
  deny.examples = "  drakkar certificate deny csr-x7k2p\n";
  deny.run = [](const Arguments& arguments, Console& console) {
    return Run(arguments, console, false);
  };
  return {std::move(approve), std::move(deny)};
}

}  // namespace drakkar::cli
