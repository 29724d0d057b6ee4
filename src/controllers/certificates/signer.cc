#include "controllers/certificates/signer.h"

#include "api/meta/time.h"
#include "api/tree/draft.h"
#include "base/hash/base64.h"
#include "controllers/certificates/planner.h"

namespace drakkar::controllers {

CertificateSigner::CertificateSigner(Options options)
    : options_(std::move(options)),
      ca_(net::ParseCertificate(options_.authority.ca.certificate_pem)),
      client_(options_.client),
      queue_(options_.loop, options_.random, {"csrsigning"},
             [this](const std::string& name, Done done) { Sync(name, std::move(done)); }) {
  options_.requests.AddHandlers(
      {.on_add = [this](const api::ObjectPtr& request) { queue_.Add(request->qualified_name()); },
       .on_update = [this](const api::ObjectPtr&,
                           const api::ObjectPtr& after) { queue_.Add(after->qualified_name()); }});
}

void CertificateSigner::Sync(const std::string& name, Done done) {
  const api::ObjectPtr request = options_.requests.Find(name);
  if (request == nullptr) return done(Ok());
  if (!ca_.ok()) return done(ca_.error().Prefixed("the signers' CA"));
  const WallTime now = options_.loop.clock().Now();
  const SigningPlan plan =
      PlanSigning(*request, {now, ca_->validity.not_after, options_.authority.max_lifetime});
  if (plan.step == SigningPlan::Step::kNothing) return done(Ok());
  api::Draft draft(request->tree());
  if (plan.step == SigningPlan::Step::kFail) {
    draft["status"]["conditions"].Append({{"type", "Failed"},
                                          {"status", "True"},
                                          {"reason", "SignerValidationFailure"},
                                          {"message", plan.message},
                                          {"lastUpdateTime", api::FormatTime(now)}});
  } else {
    const Result<std::string> certificate =
        net::SignRequest(options_.authority.ca, plan.request_pem, plan.usages, plan.validity);
    if (!certificate.ok()) return done(certificate.error());
    draft["status"]["certificate"] = Base64Encode(*certificate);
  }
  client_.Update({&options_.requests.kind(), "", std::string(request->name()), "status"},
                 draft.Freeze(), {}, [done = std::move(done)](client::Reply reply) {
                   const bool over = reply.ok() || reply.error->code == ErrorCode::kNotFound;
                   done(over ? Ok() : Result<void>(*reply.error));
                 });
}

}  // namespace drakkar::controllers
