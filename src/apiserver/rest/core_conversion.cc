// Custom resources whose versions a webhook converts. Reads convert the response, and writes are
// handled in the client's version and converted before they are stored.
#include "api/scheme/scheme.h"
#include "apiserver/conversion/versions.h"
#include "apiserver/rest/core_phases.h"
#include "apiserver/rest/remote_conversion.h"
#include "apiserver/rest/scale.h"
#include "base/exec/work_budget.h"

namespace drakkar::apiserver {
namespace {

// How often a write is rebuilt because the object changed while it was converted.
constexpr int kMaxConversions = 5;

}  // namespace

void Core::ConvertRemotely(const api::KindSchema& to, std::vector<api::ObjectPtr> objects,
                           std::function<void(std::optional<Failure>)> done) {
  if (options_.conversion == nullptr) {
    return done(api::StatusInternalError("this server calls no conversion webhooks"));
  }
  if (suspended_ >= kMaxSuspended) {
    return done(api::StatusTooManyRequests(
        "too many requests are waiting for webhooks, please try again later",
        /*retry_after_seconds=*/1));
  }
  std::vector<api::TreePtr> trees;
  trees.reserve(objects.size());
  for (const api::ObjectPtr& object : objects) trees.push_back(object->tree());
  ++suspended_;
  options_.conversion->Convert(
      to, std::move(trees),
      lifetime_.Guard([this, &to, objects = std::move(objects),
                       done = std::move(done)](RemoteConversion::Converted converted) {
        --suspended_;
        const WorkBudget budget(kMaxSteps);
        if (converted.failure) return done(std::move(converted.failure));
        for (std::size_t i = 0; i < objects.size(); ++i) {
          KeepConverted(objects[i], to,
                        std::make_shared<const api::Object>(std::move(converted.objects[i])));
        }
        done(std::nullopt);
      }));
}

void Core::ConvertForWatch(const api::ObjectPtr& object, const api::KindSchema& to,
                           std::function<void(std::optional<Failure>)> done) {
  options_.loop.AssertInLoop();
  ConvertRemotely(to, {object}, std::move(done));
}

std::function<void(Response)> Core::InWebhookVersion(const api::KindSchema* kind,
                                                     std::function<void(Response)> done) {
  return [this, kind, done = std::move(done)](Response response) {
    std::vector<api::ObjectPtr> missing;
    const auto look = [&](const api::ObjectPtr& object) {
      if (object != nullptr && ConvertObjectTo(object, *kind) == nullptr) {
        missing.push_back(object);
      }
    };
    look(response.object);
    for (const api::ObjectPtr& item : response.items) look(item);
    const auto finish = [kind, done](Response& shown) {
      if (shown.object != nullptr) shown.object = ConvertObjectTo(shown.object, *kind);
      for (api::ObjectPtr& item : shown.items) item = ConvertObjectTo(item, *kind);
      done(std::move(shown));
    };
    if (missing.empty()) return finish(response);
    ConvertRemotely(*kind, std::move(missing),
                    [finish, done, held = std::make_shared<Response>(std::move(response))](
                        std::optional<Failure> failure) {
                      if (failure) return done(Response::Failed(std::move(*failure)));
                      finish(*held);
                    });
  };
}

bool Core::NeedsConversion(Write& write) {
  write.current = write.before;
  if (write.schema == write.resource->kind && !IsConvertedByWebhook(*write.schema)) return false;
  write.current = ConvertObjectTo(write.before, *write.schema);
  if (write.current != nullptr) return false;
  if (write.attempt >= kMaxConversions) {
    write.Fail(ModifiedFailure(*write.schema, write.request.name));
    return true;
  }
  const api::KindSchema& to = *write.schema;
  const api::ObjectPtr before = write.before;
  auto held = std::make_shared<Write>(std::move(write));
  ConvertRemotely(to, {before}, [this, held](std::optional<Failure> failure) {
    if (failure) return held->Fail(std::move(*failure));
    if (held->kind == Write::Kind::kUpdate) {
      return Update(*held->resource, std::move(held->request), std::move(held->done),
                    held->attempt + 1);
    }
    Delete(*held->resource, std::move(held->request), std::move(held->done), held->attempt + 1);
  });
  return true;
}

void Core::CommitConverted(
    Write& write, const std::string& key, bool removes, const WriteTerms& terms,
    std::function<void(Result<storage::Revision>, api::ObjectPtr stored)> done) {
  Resource& resource = *write.resource;
  if (removes || write.schema == resource.kind) {
    return CommitObject(resource, key, removes ? nullptr : &write.object, write.before, terms,
                        std::move(done));
  }
  if (options_.conversion == nullptr || suspended_ >= kMaxSuspended) {
    return done(Unavailable("the object cannot be converted to the stored version now"), nullptr);
  }
  // The committed object must live until then.
  ++suspended_;
  options_.conversion->Convert(
      *resource.kind, {write.object.Freeze()},
      lifetime_.Guard([this, &resource, key, before = write.before, terms,
                       done = std::move(done)](RemoteConversion::Converted converted) mutable {
        --suspended_;
        const WorkBudget budget(kMaxSteps);
        if (converted.failure) {
          return done(Internal(converted.failure->message), nullptr);
        }
        auto object = std::make_shared<api::Draft>(converted.objects.front());
        CommitObject(resource, key, object.get(), before, terms,
                     [object, done = std::move(done)](Result<storage::Revision> revision,
                                                      api::ObjectPtr stored) {
                       done(std::move(revision), std::move(stored));
                     });
      }));
}

void Core::GetScale(const Request& request, Response response,
                    const std::function<void(Response)>& done) {
  if (response.object == nullptr) return done(std::move(response));
  const api::KindSchema* kind = request.kind;
  const auto finish = [kind, done](Response shown) {
    if (shown.object != nullptr) shown.object = ScaleOf(*kind, *shown.object);
    done(std::move(shown));
  };
  if (!IsConvertedByWebhook(*kind)) return finish(std::move(response));
  InWebhookVersion(kind, finish)(std::move(response));
}

}  // namespace drakkar::apiserver
