#include "controllers/certificates/approver.h"

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "bootstrap/cluster_info.h"
#include "net/http/url.h"
#include "net/socket/address_kind.h"

namespace drakkar::controllers {
namespace {

// Whether the requester may create certificatesigningrequests/`subresource`.
api::TreePtr ReviewOf(const api::Object& request, std::string_view subresource) {
  api::Draft review{{"apiVersion", "authorization.k8s.io/v1"}, {"kind", "SubjectAccessReview"}};
  const api::Value from = request["spec"];
  api::Draft& spec = review["spec"];
  spec["user"] = from["username"].str();
  if (!from["uid"].str().empty()) spec["uid"] = from["uid"].str();
  if (!from["groups"].empty()) spec["groups"] = api::Draft(from["groups"]);
  if (!from["extra"].empty()) spec["extra"] = api::Draft(from["extra"]);
  spec["resourceAttributes"] = api::Draft{{"verb", "create"},
                                          {"group", "certificates.k8s.io"},
                                          {"version", "*"},
                                          {"resource", "certificatesigningrequests"},
                                          {"subresource", subresource}};
  return review.Freeze();
}

}  // namespace

CertificateApprover::CertificateApprover(Options options)
    : options_(options),
      client_(options.client),
      queue_(options.loop, options.random, {"csrapproving"},
             [this](const std::string& name, Done done) { Sync(name, std::move(done)); }) {
  const auto changed = [this](const api::ObjectPtr& request) {
    queue_.Add(request->qualified_name());
  };
  options_.requests.AddHandlers(
      {.on_add = changed,
       .on_update = [changed](const api::ObjectPtr&,
                              const api::ObjectPtr& after) { changed(after); },
       .on_delete =
           [this](const api::ObjectPtr& last) { waiting_.erase(last->qualified_name()); }});
  options_.nodes.AddHandlers(
      {.on_add = [this](const api::ObjectPtr&) { AddWaiting(); },
       .on_update = [this](const api::ObjectPtr&, const api::ObjectPtr&) { AddWaiting(); },
       .on_delete = [this](const api::ObjectPtr&) { AddWaiting(); }});
  for (client::Informer* informer : {&options_.nodes, &options_.services, &options_.info}) {
    informer->OnSynced([this] {
      for (const auto& [name, request] : options_.requests.objects()) queue_.Add(name);
    });
  }
}

ReservedNames CertificateApprover::Reserved() const {
  ReservedNames names;
  for (const auto& [name, service] : options_.services.objects()) {
    for (const api::Value address : (*service)["spec"]["clusterIPs"].elements()) {
      names.insert(net::CanonicalAddress(std::string(address.str())));
    }
  }
  for (const auto& [name, info] : options_.info.objects()) {
    const api::Value data = (*info)["data"];
    for (const std::string_view each : Split(data.Entry(bootstrap::kInfoServerNames).str(), ',')) {
      const std::string text(each);
      const std::string address = net::CanonicalAddress(text);
      names.insert(address.empty() ? text : address);
    }
    const Result<bootstrap::ClusterInfo> read =
        bootstrap::ReadClusterInfo(data.Entry(bootstrap::kInfoKubeconfig).str());
    const Result<net::Url> url = read.ok() ? net::ParseUrl(read->server) : read.error();
    if (!url.ok()) continue;
    const std::string address = net::CanonicalAddress(url->host);
    names.insert(address.empty() ? url->host : address);
  }
  names.erase("");
  return names;
}

void CertificateApprover::AddWaiting() {
  for (const std::string& name : waiting_) queue_.Add(name);
}

void CertificateApprover::Sync(const std::string& name, Done done) {
  const api::ObjectPtr request = options_.requests.Find(name);
  if (request == nullptr || !options_.nodes.has_synced()) return done(Ok());
  if (!options_.services.has_synced() || !options_.info.has_synced()) return done(Ok());
  const ApprovalPlan plan = PlanApproval(*request, options_.nodes.objects(), Reserved());
  if (plan.step != ApprovalPlan::Step::kWait) waiting_.erase(name);
  switch (plan.step) {
    case ApprovalPlan::Step::kNothing:
      return done(Ok());
    case ApprovalPlan::Step::kReview:
      return Review(request, plan, 0, std::move(done));
    case ApprovalPlan::Step::kApprove:
      return Approve(request, plan.message, std::move(done));
    case ApprovalPlan::Step::kWait:
      if (waiting_.insert(name).second) {
        options_.events.Warning(request, "CertificateNotApproved", plan.message);
      }
      return done(Ok());
  }
}

void CertificateApprover::Review(const api::ObjectPtr& request, const ApprovalPlan& plan,
                                 std::size_t next, Done done) {
  if (next == plan.reviews.size()) {
    done(Ok());
    // A role may be granted later.
    return queue_.AddAfter(request->qualified_name(), kReviewAgain);
  }
  const api::KindSchema* kind = api::FindKind("authorization.k8s.io", "v1", "SubjectAccessReview");
  client_.Create({kind, "", "", ""}, ReviewOf(*request, plan.reviews[next].subresource), {},
                 [this, request, plan, next, done = std::move(done)](client::Reply reply) {
                   if (!reply.ok()) return done(*reply.error);
                   if (reply.object->root()["status"]["allowed"].boolean()) {
                     return Approve(request, plan.reviews[next].message, done);
                   }
                   Review(request, plan, next + 1, done);
                 });
}

void CertificateApprover::Approve(const api::ObjectPtr& request, std::string_view message,
                                  Done done) {
  api::Draft draft(request->tree());
  draft["status"]["conditions"].Append(
      {{"type", "Approved"}, {"status", "True"}, {"reason", "AutoApproved"}, {"message", message}});
  // The resourceVersion in it prevents overwriting a decision made meanwhile.
  client_.Update({&options_.requests.kind(), "", std::string(request->name()), "approval"},
                 draft.Freeze(), {}, [done = std::move(done)](client::Reply reply) {
                   const bool over = reply.ok() || reply.error->code == ErrorCode::kNotFound;
                   done(over ? Ok() : Result<void>(*reply.error));
                 });
}

}  // namespace drakkar::controllers
