#include "controllers/service_account/controller.h"

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"

namespace drakkar::controllers {
namespace {

constexpr std::string_view kAccount = "default";
constexpr std::string_view kAuthority = "kube-root-ca.crt";

api::Draft Object(std::string_view kind, std::string_view name) {
  return {{"apiVersion", "v1"}, {"kind", kind}, {"metadata", {{"name", name}}}};
}

}  // namespace

ServiceAccountController::ServiceAccountController(
    EventLoop& loop, Random& random, client::Client& client, client::Informer& namespaces,
    client::Informer& accounts, client::Informer& authorities, std::string ca_pem)
    : client_(client),
      namespaces_(namespaces),
      accounts_(accounts),
      authorities_(authorities),
      ca_pem_(std::move(ca_pem)),
      queue_(loop, random, {"serviceaccount"},
             [this](const std::string& name, Done done) { Sync(name, std::move(done)); }) {
  namespaces.AddHandlers({.on_add = [this](const api::ObjectPtr& object) {
    queue_.Add(std::string(object->name()));
  }});
  accounts.AddHandlers({.on_delete = [this](const api::ObjectPtr& object) {
    if (object->name() == kAccount) queue_.Add(std::string(object->namespace_()));
  }});
  authorities.AddHandlers(
      {.on_add =
           [this](const api::ObjectPtr& object) { queue_.Add(std::string(object->namespace_())); },
       .on_update =
           [this](const api::ObjectPtr&, const api::ObjectPtr& after) {
             queue_.Add(std::string(after->namespace_()));
           },
       .on_delete =
           [this](const api::ObjectPtr& last) { queue_.Add(std::string(last->namespace_())); }});
}

std::string ServiceAccountController::AuthoritySelector() {
  return StrCat("metadata.name=", kAuthority);
}

void ServiceAccountController::Sync(const std::string& name, Done done) {
  const api::ObjectPtr object = namespaces_.Find(name);
  if (object == nullptr || object->is_being_deleted()) return done(Ok());
  if (accounts_.Find(StrCat(name, "/", kAccount)) != nullptr) {
    return PublishAuthority(name, std::move(done));
  }
  Create("ServiceAccount", name, Object("ServiceAccount", kAccount).Freeze(),
         lifetime_.Guard([this, name, done = std::move(done)](Result<void> made) {
           if (!made.ok()) return done(made);
           PublishAuthority(name, done);
         }));
}

void ServiceAccountController::PublishAuthority(const std::string& name, Done done) {
  if (ca_pem_.empty()) return done(Ok());
  api::Draft map = Object("ConfigMap", kAuthority);
  map["metadata"]["annotations"].Entry("kubernetes.io/description") =
      "Contains a CA bundle that can be used to verify the API server when using internal "
      "endpoints such as the internal service IP or kubernetes.default.svc.";
  map["data"].Entry("ca.crt") = ca_pem_;
  if (const api::ObjectPtr given = authorities_.Find(StrCat(name, "/", kAuthority))) {
    const api::Value data = (*given)["data"];
    if (data.Entry("ca.crt").str() == ca_pem_ && data.size() == 1) return done(Ok());
    map["metadata"]["resourceVersion"] = std::to_string(given->resource_version());
    return client_.Update({api::FindKind("", "v1", "ConfigMap"), name, std::string(kAuthority), ""},
                          map.Freeze(), {},
                          lifetime_.Guard([this, done = std::move(done)](client::Reply reply) {
                            Finish(reply, done);
                          }));
  }
  Create("ConfigMap", name, map.Freeze(), std::move(done));
}

// A terminating namespace rejects new objects and needs none. If the object already exists or was
// changed in between, the informers report it and it is checked again.
void ServiceAccountController::Finish(const client::Reply& reply, const Done& done) const {
  if (reply.ok() || reply.http_status == 409 || reply.http_status == 404 ||
      reply.http_status == 403) {
    return done(Ok());
  }
  done(*reply.error);
}

void ServiceAccountController::Create(std::string_view kind, const std::string& name,
                                      api::TreePtr body, Done done) {
  client_.Create({api::FindKind("", "v1", kind), name, "", ""}, std::move(body), {},
                 lifetime_.Guard(
                     [this, done = std::move(done)](client::Reply reply) { Finish(reply, done); }));
}

}  // namespace drakkar::controllers
