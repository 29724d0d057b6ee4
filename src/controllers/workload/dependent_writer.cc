#include "controllers/workload/dependent_writer.h"

#include <algorithm>

#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "controllers/workload/adoption.h"

namespace drakkar::controllers {

// Writes for one owner that finish together.
struct DependentWriter::Batch {
  api::ObjectPtr owner;
  std::vector<api::TreePtr> bodies;  // objects to create
  std::size_t next = 0;              // next index in `bodies`
  std::size_t size = 1;              // size of the next batch
  std::size_t waiting = 0;           // outstanding answers
  bool stop = false;
  Outcome outcome;
  Finished finished;

  void Fail(const Error& error) {
    stop = true;
    if (!outcome.error) outcome.error = error;
  }
};

DependentWriter::DependentWriter(Options options)
    : options_(std::move(options)), client_(options_.client) {}

client::ResourceRef DependentWriter::RefOf(const api::Object& object) const {
  return {&options_.dependents.kind(), std::string(object.namespace_()), std::string(object.name()),
          ""};
}

DependentWriter::Pending& DependentWriter::PendingOf(const api::ObjectPtr& owner) {
  Pending& pending = pending_[std::string(owner->uid())];
  pending.since = options_.loop.clock().Monotonic();
  return pending;
}

void DependentWriter::Expect(const api::ObjectPtr& owner, const api::Object& written) {
  Pending& pending = PendingOf(owner);
  pending.revision = std::max(pending.revision, written.resource_version());
}

bool DependentWriter::IsUpToDate(std::string_view owner_uid) {
  const auto found = pending_.find(std::string(owner_uid));
  if (found == pending_.end()) return true;
  Pending& pending = found->second;
  std::erase_if(pending.going, [this](const auto& each) {
    const api::ObjectPtr object = options_.dependents.Find(each.first);
    return object == nullptr || object->uid() != each.second || object->is_being_deleted();
  });
  const bool shown =
      pending.going.empty() && options_.dependents.resource_version() >= pending.revision;
  if (!shown && options_.loop.clock().Monotonic() - pending.since < kPatience) return false;
  pending_.erase(found);
  return true;
}

void DependentWriter::Forget(std::string_view owner_uid) {
  pending_.erase(std::string(owner_uid));
}

bool IsNamespaceTerminating(const client::Reply& reply) {
  if (reply.ok() || reply.object == nullptr) return false;
  for (api::Value cause : reply.object->root()["details"]["causes"].elements()) {
    if (cause["reason"].str() == "NamespaceTerminating") return true;
  }
  return false;
}

void DependentWriter::Create(const api::ObjectPtr& owner, std::vector<api::TreePtr> bodies,
                             Finished finished) {
  auto batch = std::make_shared<Batch>();
  batch->owner = owner;
  batch->bodies = std::move(bodies);
  batch->finished = std::move(finished);
  CreateNext(batch);
}

void DependentWriter::CreateNext(const std::shared_ptr<Batch>& batch) {
  const std::size_t count = std::min(batch->size, batch->bodies.size() - batch->next);
  if (count == 0 || batch->stop) return batch->finished(batch->outcome);
  batch->size *= 2;
  batch->waiting = count;
  for (std::size_t i = 0; i < count; ++i) {
    client_.Create({&options_.dependents.kind(), std::string(batch->owner->namespace_()), "", ""},
                   std::move(batch->bodies[batch->next++]), {}, [this, batch](client::Reply reply) {
                     if (reply.ok()) {
                       ++batch->outcome.done;
                       Expect(batch->owner, *reply.object);
                       if (options_.words.created)
                         options_.words.created(batch->owner, *reply.object);
                     } else if (IsNamespaceTerminating(reply)) {
                       batch->stop = true;
                     } else {
                       batch->Fail(*reply.error);
                       if (options_.words.create_failed) {
                         options_.words.create_failed(batch->owner, *reply.error);
                       }
                     }
                     if (--batch->waiting == 0) CreateNext(batch);
                   });
  }
}

void DependentWriter::Delete(const api::ObjectPtr& owner, std::vector<api::ObjectPtr> objects,
                             Finished finished) {
  if (objects.empty()) return finished({});
  auto batch = std::make_shared<Batch>();
  batch->owner = owner;
  batch->finished = std::move(finished);
  batch->waiting = objects.size();
  Pending& pending = PendingOf(owner);
  for (const api::ObjectPtr& object : objects) {
    pending.going.emplace(object->qualified_name(), object->uid());
  }
  for (const api::ObjectPtr& object : objects) {
    client_.Delete(
        RefOf(*object), {.precondition_uid = std::string(object->uid())},
        [this, batch, object](client::Reply reply) {
          if (reply.ok()) {
            ++batch->outcome.done;
            if (options_.words.deleted) options_.words.deleted(batch->owner, *object);
          } else {
            PendingOf(batch->owner).going.erase(object->qualified_name());
            if (reply.error->code != ErrorCode::kNotFound) {
              const bool pod = options_.dependents.kind().kind == "Pod";
              batch->Fail(pod ? reply.error->Prefixed("unable to delete pods") : *reply.error);
              if (options_.words.delete_failed) {
                options_.words.delete_failed(batch->owner, *reply.error);
              }
            }
          }
          if (--batch->waiting == 0) batch->finished(batch->outcome);
        });
  }
}

void DependentWriter::AdoptAndRelease(const api::ObjectPtr& owner,
                                      std::vector<api::ObjectPtr> adopt,
                                      std::vector<api::ObjectPtr> release, Finished finished) {
  auto batch = std::make_shared<Batch>();
  batch->owner = owner;
  batch->finished = std::move(finished);
  batch->waiting = adopt.size() + release.size();
  if (batch->waiting == 0) return batch->finished({});
  for (const api::ObjectPtr& object : release) {
    Patch(batch, object, ReleasePatch(*owner, *object));
  }
  if (adopt.empty()) return;
  // Our copy may be stale: an owner that was deleted in the meantime must not adopt.
  client::ResourceRef ref{&options_.owner_kind, std::string(owner->namespace_()),
                          std::string(owner->name()), ""};
  client_.Get(std::move(ref), [this, batch, adopt = std::move(adopt)](client::Reply reply) {
    const api::Object& asked = *batch->owner;
    if (!reply.ok() || reply.object->uid() != asked.uid() || reply.object->is_being_deleted()) {
      if (!reply.ok() && reply.error->code != ErrorCode::kNotFound) batch->Fail(*reply.error);
      batch->waiting -= adopt.size();
      if (batch->waiting == 0) batch->finished(batch->outcome);
      return;
    }
    for (const api::ObjectPtr& object : adopt) {
      Patch(batch, object, AdoptPatch(asked, options_.owner_kind, *object));
    }
  });
}

void DependentWriter::Patch(const std::shared_ptr<Batch>& batch, const api::ObjectPtr& object,
                            std::string patch) {
  client_.Patch(RefOf(*object), client::PatchType::kStrategicMerge, std::move(patch), {},
                [this, batch](client::Reply reply) {
                  if (reply.ok()) {
                    ++batch->outcome.done;
                    Expect(batch->owner, *reply.object);
                  } else if (reply.error->code != ErrorCode::kNotFound) {
                    batch->Fail(*reply.error);
                  }
                  if (--batch->waiting == 0) batch->finished(batch->outcome);
                });
}

void DependentWriter::Update(const api::ObjectPtr& owner, const api::Object& object,
                             api::TreePtr body, client::ReplyCallback done) {
  client_.Update(RefOf(object), std::move(body), {},
                 [this, owner, done = std::move(done)](client::Reply reply) {
                   if (reply.ok()) Expect(owner, *reply.object);
                   done(std::move(reply));
                 });
}

DependentWriter::Words PodWords(client::EventRecorder& events) {
  return {.created =
              [&events](const api::ObjectPtr& owner, const api::Object& made) {
                events.Normal(owner, "SuccessfulCreate", StrCat("Created pod: ", made.name()));
              },
          .create_failed =
              [&events](const api::ObjectPtr& owner, const Error& why) {
                events.Warning(owner, "FailedCreate", StrCat("Error creating: ", why.message));
              },
          .deleted =
              [&events](const api::ObjectPtr& owner, const api::Object& gone) {
                events.Normal(owner, "SuccessfulDelete", StrCat("Deleted pod: ", gone.name()));
              },
          .delete_failed =
              [&events](const api::ObjectPtr& owner, const Error& why) {
                events.Warning(owner, "FailedDelete", StrCat("Error deleting: ", why.message));
              }};
}

}  // namespace drakkar::controllers
