#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/policy/match.h"
#include "apiserver/request/reinvocation.h"
#include "apiserver/request/request.h"

namespace drakkar::apiserver {

// What admission webhooks are asked about a request.
struct RemoteQuestion {
  const Request* request = nullptr;  // must outlive the answer
  std::string_view operation;        // "CREATE", "UPDATE", "DELETE", "CONNECT"
  std::string name;                  // as the client knows it: "" if the server generates it
  // The kind of `object` and `before`: the kind as stored, or that of a body which is not of the
  // request's kind (Binding, Eviction, Scale, PodExecOptions).
  const api::KindSchema* kind = nullptr;
  bool is_body = false;   // `kind` is that of a body
  api::TreePtr object;    // null for a deletion
  api::ObjectPtr before;  // null for a creation
  AcceptChanged accept;   // for mutations
};

struct RemoteAnswer {
  std::optional<Failure> failure;
  std::vector<std::string> warnings;
  // After a mutation: the object as it is now, and whether a webhook has changed it.
  api::TreePtr object;
  bool is_changed = false;
};

// Admission by webhooks. They may take long to answer, so the core suspends the request meanwhile.
// Bound to the core's loop.
class RemoteAdmission {
 public:
  enum class Phase { kMutate, kValidate };
  virtual ~RemoteAdmission() = default;

  // Whether the rules of any webhook apply to the kind. One lookup.
  virtual bool Concerns(Phase phase, const api::KindSchema& kind) = 0;
  // Whether a webhook's rules and selectors match. Conditions are evaluated later.
  virtual bool Matches(Phase phase, const AdmissionSubject& subject) = 0;

  // `done` runs on the core's loop, never from within the call.
  virtual void Mutate(RemoteQuestion question, Reinvocation& reinvocation,
                      std::function<void(RemoteAnswer)> done) = 0;
  virtual void Validate(RemoteQuestion question, std::function<void(RemoteAnswer)> done) = 0;
};

}  // namespace drakkar::apiserver
