#include "controllers/namespace/controller.h"

#include <algorithm>

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"

namespace drakkar::controllers {
namespace {

// Everything that lives in a namespace and can be listed and deleted.
const std::vector<const api::KindSchema*>& NamespacedKinds() {
  static const std::vector<const api::KindSchema*> kinds = [] {
    std::vector<const api::KindSchema*> found;
    for (const api::KindSchema& kind : api::AllKinds()) {
      auto has = [&](std::string_view verb) {
        return std::find(kind.verbs.begin(), kind.verbs.end(), verb) != kind.verbs.end();
      };
      if (kind.namespaced && kind.storage_version && has("list") && has("deletecollection")) {
        found.push_back(&kind);
      }
    }
    return found;
  }();
  return kinds;
}

const api::KindSchema* Namespaces() {
  static const api::KindSchema* kind = api::FindKind("", "v1", "Namespace");
  return kind;
}

// Pods with a grace period and objects with finalizers take their time.
constexpr Duration kLookAgain = std::chrono::seconds(1);

}  // namespace

NamespaceController::NamespaceController(EventLoop& loop, Random& random, client::Client& client,
                                         client::Informer& namespaces)
    : client_(client),
      namespaces_(namespaces),
      queue_(loop, random, {"namespace"},
             [this](const std::string& name, Done done) { Sync(name, std::move(done)); }) {
  auto look = [this](const api::ObjectPtr& object) {
    if (object->is_being_deleted()) queue_.Add(std::string(object->name()));
  };
  namespaces.AddHandlers(
      {.on_add = look,
       .on_update = [look](const api::ObjectPtr&, const api::ObjectPtr& after) { look(after); }});
}

NamespaceController::~NamespaceController() {
  *alive_ = false;
}

void NamespaceController::Sync(const std::string& name, Done done) {
  api::ObjectPtr object = namespaces_.Find(name);
  if (object == nullptr || !object->is_being_deleted() ||
      object->root()["spec"]["finalizers"].empty()) {
    return done(Ok());
  }
  DeleteContent(name, 0, std::move(done));
}

void NamespaceController::DeleteContent(const std::string& name, std::size_t index, Done done) {
  if (index == NamespacedKinds().size()) return CheckEmpty(name, 0, std::move(done));
  client_.DeleteCollection(
      {NamespacedKinds()[index], name, "", ""}, {}, {.propagation_policy = "Background"},
      [this, alive = alive_, name, index, done = std::move(done)](client::Reply reply) {
        if (!*alive) return;
        if (!reply.ok()) return done(*reply.error);
        DeleteContent(name, index + 1, done);
      });
}

void NamespaceController::CheckEmpty(const std::string& name, std::size_t index, Done done) {
  if (index == NamespacedKinds().size()) return Finalize(name, std::move(done));
  client_.List({NamespacedKinds()[index], name, "", ""}, {.limit = 1},
               [this, alive = alive_, name, index, done = std::move(done)](client::ListReply reply) {
                 if (!*alive) return;
                 if (!reply.ok()) return done(*reply.error);
                 if (reply.items.empty()) return CheckEmpty(name, index + 1, done);
                 done(Ok());
                 queue_.AddAfter(name, kLookAgain);
               });
}

void NamespaceController::Finalize(const std::string& name, Done done) {
  api::ObjectPtr object = namespaces_.Find(name);
  if (object == nullptr) return done(Ok());
  api::Draft draft(object->tree());
  draft["spec"].Remove("finalizers");
  client_.Update({Namespaces(), "", name, "finalize"}, draft.Freeze(), {},
                 [alive = alive_, done = std::move(done)](client::Reply reply) {
                   if (!*alive) return;
                   if (reply.ok() || reply.error->code == ErrorCode::kNotFound) return done(Ok());
                   done(*reply.error);
                 });
}

}  // namespace drakkar::controllers
