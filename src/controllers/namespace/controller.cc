#include "controllers/namespace/controller.h"

#include <algorithm>

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"

namespace drakkar::controllers {
namespace {

bool Has(const api::KindSchema& kind, std::string_view verb) {
  return std::find(kind.verbs.begin(), kind.verbs.end(), verb) != kind.verbs.end();
}

bool CanBeInANamespace(const api::KindSchema& kind) {
  return kind.namespaced && Has(kind, "list") &&
         (Has(kind, "deletecollection") || Has(kind, "delete"));
}

const api::KindSchema* Namespaces() {
  static const api::KindSchema* kind = api::FindKind("", "v1", "Namespace");
  return kind;
}

// Pods with a grace period and objects with finalizers take a while to disappear.
// Objects of one kind that are counted for the conditions.
constexpr std::int64_t kMaxCounted = 500;
constexpr Duration kLookAgain = std::chrono::seconds(1);

}  // namespace

NamespaceController::NamespaceController(EventLoop& loop, Random& random, client::Client& client,
                                         client::Informer& namespaces)
    : loop_(loop),
      client_(client),
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

void NamespaceController::Sync(const std::string& name, Done done) {
  api::ObjectPtr object = namespaces_.Find(name);
  if (object == nullptr || !object->is_being_deleted() ||
      object->root()["spec"]["finalizers"].empty()) {
    return done(Ok());
  }
  client_.Discover(
      lifetime_.Guard([this, name, done = std::move(done)](Result<client::ServedKinds> served) {
        if (!served.ok()) return done(served.error());
        if (!served->unreachable.empty()) {
          return Report(name, {.discovery = served->unreachable},
                        Unavailable(StrCat("namespace ", name, " may have content of ",
                                           served->unreachable, ", which does not answer")),
                        done);
        }
        auto kinds = std::make_shared<std::vector<const api::KindSchema*>>();
        for (const api::KindSchema* kind : served->kinds) {
          if (CanBeInANamespace(*kind)) kinds->push_back(kind);
        }
        DeleteContent(name, kinds, 0, done);
      }));
}

void NamespaceController::DeleteContent(const std::string& name, const Kinds& kinds,
                                        std::size_t index, Done done) {
  if (index == kinds->size()) {
    return CheckEmpty(name, kinds, 0, std::make_shared<NamespaceObstacles>(), std::move(done));
  }
  const api::KindSchema& kind = *(*kinds)[index];
  auto next =
      lifetime_.Guard([this, name, kinds, index, done = std::move(done)](Result<void> deleted) {
        if (!deleted.ok()) {
          return Report(name, {.deletion = deleted.error().message}, deleted, done);
        }
        DeleteContent(name, kinds, index + 1, done);
      });
  if (!Has(kind, "deletecollection")) return DeleteOneByOne(name, kind, std::move(next));
  client_.DeleteCollection({&kind, name, "", ""}, {}, {.propagation_policy = "Background"},
                           [next = std::move(next)](client::Reply reply) {
                             next(reply.ok() ? Ok() : Result<void>(*reply.error));
                           });
}

// The next pass over the namespace shows which of them are gone.
void NamespaceController::DeleteOneByOne(const std::string& name, const api::KindSchema& kind,
                                         Done done) {
  client_.List(
      {&kind, name, "", ""}, {},
      lifetime_.Guard([this, name, &kind, done = std::move(done)](client::ListReply reply) {
        if (!reply.ok()) return done(*reply.error);
        for (const api::ObjectPtr& object : reply.items) {
          client_.Delete({&kind, name, std::string(object->name()), ""},
                         {.propagation_policy = "Background"}, [](client::Reply) {});
        }
        done(Ok());
      }));
}

void NamespaceController::CheckEmpty(const std::string& name, const Kinds& kinds, std::size_t index,
                                     const Obstacles& found, Done done) {
  if (index == kinds->size()) {
    if (found->content.empty()) return Finalize(name, std::move(done));
    return Report(name, *found, Ok(), [this, name, done = std::move(done)](Result<void> result) {
      done(std::move(result));
      queue_.AddAfter(name, kLookAgain);
    });
  }
  const api::KindSchema* kind = (*kinds)[index];
  client_.List({kind, name, "", ""}, {.limit = kMaxCounted},
               lifetime_.Guard([this, name, kinds, index, kind, found,
                                done = std::move(done)](client::ListReply reply) {
                 if (!reply.ok()) return done(*reply.error);
                 if (!reply.items.empty()) {
                   found->content[StrCat(kind->plural, ".", kind->group)] = reply.items.size();
                 }
                 for (const api::ObjectPtr& item : reply.items) {
                   for (api::Value each : (*item)["metadata"]["finalizers"].elements()) {
                     ++found->finalizers[std::string(each.str())];
                   }
                 }
                 CheckEmpty(name, kinds, index + 1, found, done);
               }));
}

void NamespaceController::Report(const std::string& name, const NamespaceObstacles& obstacles,
                                 Result<void> result, Done done) {
  const api::ObjectPtr object = namespaces_.Find(name);
  if (object == nullptr) return done(std::move(result));
  std::optional<api::Draft> status = PlanNamespaceStatus(*object, obstacles, loop_.clock().Now());
  if (!status) return done(std::move(result));
  api::Draft body(object->tree());
  body["status"] = std::move(*status);
  client_.Update({Namespaces(), "", name, "status"}, body.Freeze(), {},
                 lifetime_.Guard([result = std::move(result),
                                  done = std::move(done)](client::Reply) { done(result); }));
}

void NamespaceController::Finalize(const std::string& name, Done done) {
  api::ObjectPtr object = namespaces_.Find(name);
  if (object == nullptr) return done(Ok());
  api::Draft draft(object->tree());
  draft["spec"].Remove("finalizers");
  client_.Update({Namespaces(), "", name, "finalize"}, draft.Freeze(), {},
                 lifetime_.Guard([done = std::move(done)](client::Reply reply) {
                   if (reply.ok() || reply.error->code == ErrorCode::kNotFound) return done(Ok());
                   done(*reply.error);
                 }));
}

}  // namespace drakkar::controllers
