#pragma once

#include "api/tree/draft.h"
#include "apiserver/custom/definition.h"
#include "apiserver/request/reinvocation.h"
#include "apiserver/rest/core_resource.h"

// Shared by core_admission.cc and core_write.cc only.
namespace drakkar::apiserver {

// A write as it passes through its phases: mutate, check, store. It lives on the stack, and moves
// to the heap while it waits for webhooks.
struct Core::Write {
  enum class Kind { kCreate, kUpdate, kDelete };

  Write(Kind what, Resource& of, Request&& asked, std::function<void(Response)> answer, int retries)
      : kind(what),
        resource(&of),
        request(std::move(asked)),
        done(std::move(answer)),
        attempt(retries),
        schema(IsConvertedByWebhook(*request.kind) ? request.kind : of.kind) {}

  Kind kind;
  Resource* resource;
  Request request;
  std::function<void(Response)> done;
  int attempt;  // how often it was rebuilt
  Response response;
  // The version that it is handled in: the storage version, or for kinds that a webhook converts,
  // the client's. Those are converted at the end.
  const api::KindSchema* schema = nullptr;
  api::Draft object;       // in that version; absent for a deletion
  api::ObjectPtr before;   // as stored; null for a creation
  api::ObjectPtr current;  // the same in that version

  // Creations only.
  std::string name;
  std::string asked_name;  // in the request
  bool is_generated = false;
  bool may_wait = true;  // for what an admission step awaits
  std::string uid;
  std::string created;

  Reinvocation policies;
  Reinvocation webhooks;
  api::TreePtr mutated;  // what the webhooks returned
  bool was_suspended = false;
  // See WriteTerms.
  std::vector<std::pair<std::string, storage::Revision>> decisions;

  bool applies() const {
    return request.verb == Verb::kPatch && request.patch == PatchKind::kApply;
  }
  api::Value old() const { return current == nullptr ? api::Value() : current->root(); }
  void Fail(Failure failure) {
    Response failed = Response::Failed(std::move(failure));
    if (was_suspended) failed.warnings = std::move(response.warnings);
    done(std::move(failed));
  }
};

}  // namespace drakkar::apiserver
