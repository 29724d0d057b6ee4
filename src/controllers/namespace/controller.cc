#include "controllers/namespace/controller.h"

#include <algorithm>

#include "api/meta/time.h"
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

bool IsPods(const api::KindSchema& kind) {
  return kind.group.empty() && kind.kind == "Pod";
}

// Whether the pod may take until the end of its grace period, so that it is no surprise that it is
// still there.
bool IsInItsGracePeriod(const api::Object& pod, WallTime now) {
  const std::string_view phase = pod["status"]["phase"].str();
  if (phase == "Succeeded" || phase == "Failed") return false;
  const Result<WallTime> deadline = api::ParseTime(pod["metadata"]["deletionTimestamp"].str());
  return deadline.ok() && *deadline > now;
}

// Objects of one kind that are counted for the conditions.
constexpr std::int64_t kMaxCounted = 500;
// Pods with a grace period and objects with finalizers take a while to disappear.
constexpr Duration kLookAgain = std::chrono::seconds(1);

}  // namespace

struct NamespaceController::Pass {
  std::string name;
  std::vector<const api::KindSchema*> kinds;
  std::size_t next = 0;
  NamespaceObstacles obstacles;
  Done done;
};

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
        auto pass = std::make_shared<Pass>();
        pass->name = name;
        // The namespace stays while some kinds are not known, but the others are deleted.
        pass->obstacles.unreachable = std::move(served->unreachable);
        for (const api::KindSchema* kind : served->kinds) {
          if (CanBeInANamespace(*kind)) pass->kinds.push_back(kind);
        }
        std::ranges::stable_partition(pass->kinds,
                                      [](const api::KindSchema* kind) { return IsPods(*kind); });
        pass->done = done;
        Continue(pass);
      }));
}

void NamespaceController::Continue(const PassPtr& pass) {
  const bool has_pods_left =
      pass->next > 0 && IsPods(*pass->kinds[pass->next - 1]) &&
      (!pass->obstacles.content.empty() || !pass->obstacles.undeletable.empty());
  if (pass->next == pass->kinds.size() || has_pods_left) return Finish(pass);
  const api::KindSchema& kind = *pass->kinds[pass->next++];
  DeleteAll(pass, kind, lifetime_.Guard([this, pass, &kind](Result<void> deleted) {
    // What cannot be deleted does not keep the rest.
    if (!deleted.ok()) pass->obstacles.undeletable.insert(deleted.error().message);
    Count(pass, kind);
  }));
}

void NamespaceController::DeleteAll(const PassPtr& pass, const api::KindSchema& kind, Done done) {
  if (!Has(kind, "deletecollection")) return DeleteOneByOne(pass->name, kind, std::move(done));
  client_.DeleteCollection({&kind, pass->name, "", ""}, {}, {.propagation_policy = "Background"},
                           [done = std::move(done)](client::Reply reply) {
                             done(reply.ok() ? Ok() : Result<void>(*reply.error));
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

void NamespaceController::Count(const PassPtr& pass, const api::KindSchema& kind) {
  client_.List({&kind, pass->name, "", ""}, {.limit = kMaxCounted},
               lifetime_.Guard([this, pass, &kind](client::ListReply reply) {
                 NamespaceObstacles& found = pass->obstacles;
                 if (!reply.ok()) found.undeletable.insert(reply.error->message);
                 if (reply.ok() && !reply.items.empty()) {
                   found.content[StrCat(kind.plural, ".", kind.group)] = reply.items.size();
                   bool is_expected = false;
                   for (const api::ObjectPtr& item : reply.items) {
                     for (api::Value each : (*item)["metadata"]["finalizers"].elements()) {
                       ++found.finalizers[std::string(each.str())];
                       is_expected = true;
                     }
                     is_expected = is_expected ||
                                   (IsPods(kind) && IsInItsGracePeriod(*item, loop_.clock().Now()));
                   }
                   if (!is_expected) {
                     found.undeletable.insert(StrCat(
                         "unexpected items still remain in namespace: ", pass->name,
                         " for gvr: ", kind.group, "/", kind.version, ", Resource=", kind.plural));
                   }
                 }
                 Continue(pass);
               }));
}

void NamespaceController::Finish(const PassPtr& pass) {
  const NamespaceObstacles& found = pass->obstacles;
  const bool is_empty = found.content.empty() && found.undeletable.empty();
  if (is_empty && found.unreachable.empty()) return Finalize(pass->name, pass->done);
  // An error is retried with back-off.
  const Result<void> result =
      !found.undeletable.empty()
          ? Result<void>(Unavailable(*found.undeletable.begin()))
          : (is_empty ? Result<void>(
                            Unavailable(StrCat("namespace ", pass->name, " may have content of ",
                                               found.unreachable, ", which does not answer")))
                      : Ok());
  Report(pass->name, found, result, [this, pass](Result<void> reported) {
    const bool look_again = reported.ok();
    pass->done(std::move(reported));
    if (look_again) queue_.AddAfter(pass->name, kLookAgain);
  });
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
