// Admission: the steps, and the requests that wait for webhooks.
#include <algorithm>

#include "api/codec/object_reader.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft_view.h"
#include "apiserver/rest/core_phases.h"
#include "apiserver/rest/decode.h"
#include "apiserver/rest/remote_admission.h"
#include "apiserver/rest/scale.h"
#include "base/exec/work_budget.h"

namespace drakkar::apiserver {
namespace {

using Phase = RemoteAdmission::Phase;

std::string_view OperationOf(bool has_object, bool has_before) {
  if (!has_object) return "DELETE";
  return has_before ? "UPDATE" : "CREATE";
}

// What a webhook made of a body of this kind.
std::optional<Failure> AcceptBody(const api::KindSchema& kind, const api::TreePtr& changed,
                                  api::TreePtr& accepted) {
  Request request;
  request.kind = &kind;
  request.object = changed;
  request.field_validation = FieldValidation::kIgnore;
  std::vector<std::string> warnings;
  if (std::optional<Failure> failure = DecodeBody(kind, request, warnings)) return failure;
  accepted = std::move(request.object);
  return std::nullopt;
}

void Append(std::vector<std::string>& warnings, std::vector<std::string>&& more) {
  for (std::string& each : more) warnings.push_back(std::move(each));
}

// `done` with more warnings in the response.
std::function<void(Response)> WithWarnings(std::vector<std::string> added,
                                           std::function<void(Response)> done) {
  if (added.empty()) return done;
  return [added = std::move(added), next = std::move(done)](Response response) {
    response.warnings.insert(response.warnings.begin(), added.begin(), added.end());
    next(std::move(response));
  };
}

}  // namespace

std::vector<std::string_view> Core::AdmissionNames() const {
  std::vector<std::string_view> names;
  for (const auto& step : options_.admission) names.push_back(step->name());
  return names;
}

std::optional<Failure> Core::RunAdmitSteps(const Request& request, api::Draft* object,
                                           api::Value before, const StrategyContext& context) {
  for (const auto& step : options_.admission) {
    if (step->comes_after_validation() || !step->Concerns(request)) continue;
    if (std::optional<Failure> failure = step->Admit(request, object, before, context))
      return failure;
  }
  return std::nullopt;
}

std::optional<Failure> Core::Admit(Write& write) {
  StrategyContext context = ContextFor(write.request);
  const AcceptChanged accept = [this, &write](const api::TreePtr& changed,
                                              const api::KindSchema& in, api::TreePtr& accepted) {
    return AcceptFrom(write, changed, in, accepted);
  };
  context.reinvocation = &write.policies;
  context.accept_changed = &accept;
  const bool deletes = write.kind == Write::Kind::kDelete;
  return RunAdmitSteps(write.request, deletes ? nullptr : &write.object, write.old(), context);
}

std::optional<Failure> Core::CheckAdmission(Steps steps, const Request& request, api::Value object,
                                            api::Value before, std::vector<std::string>& warnings) {
  std::optional<StrategyContext> context;  // created on demand: most requests concern no step
  for (const auto& step : options_.admission) {
    if (!step->comes_after_validation() || step->comes_last() != (steps == Steps::kLast)) continue;
    if (!step->Concerns(request)) continue;
    if (!context) context.emplace(ContextFor(request));
    if (std::optional<Failure> failure = step->Check(request, object, before, *context, warnings))
      return failure;
  }
  return std::nullopt;
}

std::optional<Failure> Core::AcceptFrom(const Write& write, const api::TreePtr& changed,
                                        const api::KindSchema& in, api::TreePtr& accepted) {
  Request request;
  request.user = write.request.user;
  request.verb = write.request.verb;
  request.kind = &in;
  request.subresource = write.request.subresource;
  request.object = changed;
  request.field_validation = FieldValidation::kIgnore;
  std::vector<std::string> warnings;
  if (std::optional<Failure> failure = DecodeBody(in, request, warnings)) return failure;
  accepted = ToStored(*write.resource, request, request.object, ContextFor(request)).Freeze();
  return std::nullopt;
}

std::optional<Failure> Core::Settle(Write& write) {
  const StrategyContext context = ContextFor(write.request);
  return write.kind == Write::Kind::kCreate ? PrepareCreated(write, context)
                                            : PrepareUpdated(write, context);
}

void Core::MutateWrite(Write& write) {
  if (std::optional<Failure> failure = Admit(write)) {
    if (write.kind == Write::Kind::kCreate && write.may_wait) {
      if (std::optional<std::string> awaited =
              AwaitedBy(write.request, write.object, ContextFor(write.request))) {
        write.request.name = write.asked_name;
        return CreateLater(*write.resource, std::move(write.request), std::move(*awaited),
                           std::move(write.done));
      }
    }
    return write.Fail(std::move(*failure));
  }
  if (write.policies.is_changed) {
    if (std::optional<Failure> failure = Settle(write)) return write.Fail(std::move(*failure));
  }
  if (SuspendForMutation(write)) return;
  if (write.policies.is_changed) {
    // A second time, because the object changed after the steps saw it.
    write.policies.round = 1;
    write.policies.is_changed = false;
    if (std::optional<Failure> failure = Admit(write)) return write.Fail(std::move(*failure));
    if (write.policies.is_changed) {
      if (std::optional<Failure> failure = Settle(write)) return write.Fail(std::move(*failure));
    }
  }
  CheckWrite(write);
}

bool Core::NeedsWebhooks(bool mutate, const Request& request, api::Value object,
                         api::Value before) {
  const Phase phase = mutate ? Phase::kMutate : Phase::kValidate;
  if (options_.webhooks == nullptr || request.skips_webhooks ||
      !options_.webhooks->Concerns(phase, *request.kind)) {
    return false;
  }
  return options_.webhooks->Matches(
      phase,
      {.request = request,
       .operation = OperationOf(object.has_value(), before.has_value()),
       .object = object,
       .before = before,
       .find_namespace = [this](const std::string& name) { return Find("", "namespaces", name); }});
}

bool Core::IsConcerned(const api::KindSchema& kind) const {
  return options_.webhooks != nullptr && (options_.webhooks->Concerns(Phase::kMutate, kind) ||
                                          options_.webhooks->Concerns(Phase::kValidate, kind));
}

bool Core::MaySuspend(const std::function<void(Response)>& done) {
  if (suspended_ < kMaxSuspended) return true;
  done(Response::Failed(api::StatusTooManyRequests(
      "too many requests are waiting for admission webhooks, please try again later",
      /*retry_after_seconds=*/1)));
  return false;
}

RemoteQuestion Core::QuestionFor(Write& write, bool mutate) {
  RemoteQuestion question;
  question.request = &write.request;
  question.name = write.kind != Write::Kind::kCreate ? write.request.name
                  : write.is_generated               ? ""
                                                     : write.name;
  question.kind = write.schema;
  question.before = write.current;
  const bool deletes = write.kind == Write::Kind::kDelete;
  question.operation = OperationOf(!deletes, write.before != nullptr);
  if (deletes) return question;
  if (write.request.subresource == "scale") {  // applied
    question.is_body = true;
    question.kind = api::FindKind("autoscaling", "v1", "Scale");
    question.object = ScaleOf(*write.schema, api::Object(write.object.Freeze()))->tree();
    question.before = ScaleOf(*write.schema, *write.current);
    question.accept = [](const api::TreePtr& changed, const api::KindSchema&,
                         api::TreePtr& accepted) {
      return AcceptBody(*api::FindKind("autoscaling", "v1", "Scale"), changed, accepted);
    };
    return question;
  }
  if (mutate && write.kind == Write::Kind::kCreate) {
    // The server has not decided on these yet, as far as clients can tell.
    api::Draft shown = write.object;
    for (const api::FieldName field : api::FieldNames{"uid", "creationTimestamp", "generation"}) {
      shown["metadata"].Remove(field);
    }
    if (write.is_generated) shown["metadata"].Remove("name");
    question.object = shown.Freeze();
  } else {
    question.object = write.object.Freeze();
  }
  if (mutate) {
    question.accept = [this, &write](const api::TreePtr& changed, const api::KindSchema& in,
                                     api::TreePtr& accepted) {
      return AcceptFrom(write, changed, in, accepted);
    };
  }
  return question;
}

bool Core::SuspendForMutation(Write& write) {
  if (options_.webhooks == nullptr) return false;
  if (!options_.webhooks->Concerns(Phase::kMutate, *write.request.kind)) return false;
  if (write.kind == Write::Kind::kDelete) {
    if (!NeedsWebhooks(/*mutate=*/true, write.request, api::Value(), write.old())) return false;
  } else {
    const api::DraftView view(write.object);
    if (!NeedsWebhooks(/*mutate=*/true, write.request, view.root(), write.old())) return false;
  }
  if (!MaySuspend(write.done)) return true;
  auto held = std::make_shared<Write>(std::move(write));
  held->was_suspended = true;
  AskToMutate(held);
  return true;
}

void Core::AskToMutate(const std::shared_ptr<Write>& write) {
  ++suspended_;
  RemoteQuestion question = QuestionFor(*write, /*mutate=*/true);
  write->mutated = question.object;
  options_.webhooks->Mutate(std::move(question), write->webhooks,
                            lifetime_.Guard([this, write](RemoteAnswer answer) {
                              --suspended_;
                              OnMutated(write, std::move(answer));
                            }));
}

void Core::OnMutated(const std::shared_ptr<Write>& held, RemoteAnswer answer) {
  const WorkBudget budget(kMaxSteps);
  Write& write = *held;
  Append(write.response.warnings, std::move(answer.warnings));
  if (answer.failure) return write.Fail(std::move(*answer.failure));
  if (answer.is_changed) {
    if (write.request.subresource == "scale") {
      SetReplicas(*write.schema, write.object, answer.object->root()["spec"]["replicas"].integer());
    } else {
      write.object = api::Draft(answer.object);
    }
    if (std::optional<Failure> failure = Settle(write)) return write.Fail(std::move(*failure));
    write.policies.Require();
  }
  if (write.webhooks.round == 0 && (answer.is_changed || write.policies.is_changed)) {
    write.webhooks.round = write.policies.round = 1;
    write.policies.is_changed = false;
    const api::TreePtr before = write.object.Freeze();
    if (std::optional<Failure> failure = Admit(write)) return write.Fail(std::move(*failure));
    if (write.policies.is_changed) {
      if (std::optional<Failure> failure = Settle(write)) return write.Fail(std::move(*failure));
    }
    bool is_changed = false;
    {
      const api::DraftView view(write.object);
      is_changed = !api::Equal(view.root(), before->root());
    }
    if (is_changed) write.webhooks.Require();
    if (!write.webhooks.pending.empty()) {
      if (!MaySuspend(write.done)) return;
      return AskToMutate(held);
    }
  }
  if (WorkBudget::IsExceeded()) return write.Fail(TooMuchWorkFailure());
  CheckWrite(write);
}

void Core::SuspendForValidation(Write& write) {
  if (!MaySuspend(write.done)) return;
  auto held = std::make_shared<Write>(std::move(write));
  held->was_suspended = true;
  ++suspended_;
  options_.webhooks->Validate(QuestionFor(*held, /*mutate=*/false),
                              lifetime_.Guard([this, held](RemoteAnswer answer) {
                                --suspended_;
                                const WorkBudget budget(kMaxSteps);
                                Append(held->response.warnings, std::move(answer.warnings));
                                if (answer.failure) return held->Fail(std::move(*answer.failure));
                                StoreWrite(*held);
                              }));
}

struct Core::Action {
  Request request;
  const api::KindSchema* kind = nullptr;
  api::ObjectPtr before;
  std::string_view operation;
  std::vector<std::string> warnings;
  Reinvocation reinvocation;
  std::function<void(Response)> done;
  std::function<void(Request&&, std::function<void(Response)>)> then;

  RemoteQuestion Question() const {
    RemoteQuestion question;
    question.request = &request;
    question.operation = operation;
    question.name = request.name;
    question.kind = kind;
    question.is_body = true;
    question.object = request.object;
    question.before = before;
    question.accept = [body = kind](const api::TreePtr& changed, const api::KindSchema&,
                                    api::TreePtr& accepted) {
      return AcceptBody(*body, changed, accepted);
    };
    return question;
  }
  void Finish() { then(std::move(request), WithWarnings(std::move(warnings), std::move(done))); }
};

bool Core::HasActionStep(const Request& request) const {
  return std::ranges::any_of(action_steps_,
                             [&](const AdmissionStep* step) { return step->Concerns(request); });
}

std::optional<Failure> Core::CheckAction(const Request& request,
                                         const AdmissionStep::Action& action,
                                         std::vector<std::string>& warnings) {
  if (action.operation == "UPDATE") return std::nullopt;
  for (AdmissionStep* step : action_steps_) {
    if (!step->Concerns(request)) continue;
    if (std::optional<Failure> failure =
            step->CheckAction(request, action, ContextFor(request), warnings)) {
      return failure;
    }
  }
  return std::nullopt;
}

void Core::AdmitAction(Request&& request, const api::KindSchema& body, std::string_view operation,
                       std::function<void(Response)> done,
                       std::function<void(Request&&, std::function<void(Response)>)> then,
                       api::ObjectPtr before) {
  const auto needs = [&](Phase phase) {
    if (options_.webhooks == nullptr || request.skips_webhooks ||
        !options_.webhooks->Concerns(phase, *request.kind)) {
      return false;
    }
    return options_.webhooks->Matches(phase,
                                      {.request = request,
                                       .operation = operation,
                                       .object = request.object->root(),
                                       .before = before == nullptr ? api::Value() : before->root(),
                                       .find_namespace = [this](const std::string& name) {
                                         return Find("", "namespaces", name);
                                       }});
  };
  const bool mutates = needs(Phase::kMutate);
  if (!mutates && !needs(Phase::kValidate)) {
    std::vector<std::string> warnings;
    if (std::optional<Failure> failure = CheckAction(request, {body, operation}, warnings)) {
      return done(Response::Failed(std::move(*failure)));
    }
    return then(std::move(request), WithWarnings(std::move(warnings), std::move(done)));
  }
  if (!MaySuspend(done)) return;
  auto action = std::make_shared<Action>();
  action->request = std::move(request);
  action->request.is_decoded = true;
  action->request.skips_webhooks = true;
  action->kind = &body;
  action->before = std::move(before);
  action->operation = operation;
  action->done = std::move(done);
  action->then = std::move(then);
  const auto validate = [this, action] {
    if (std::optional<Failure> failure =
            CheckAction(action->request, {*action->kind, action->operation}, action->warnings)) {
      --suspended_;
      return action->done(Response::Failed(std::move(*failure)));
    }
    options_.webhooks->Validate(
        action->Question(), lifetime_.Guard([this, action](RemoteAnswer answer) {
          --suspended_;
          const WorkBudget budget(kMaxSteps);
          Append(action->warnings, std::move(answer.warnings));
          if (answer.failure) {
            return action->done(Response::Failed(std::move(*answer.failure)));
          }
          action->Finish();
        }));
  };
  ++suspended_;
  if (!mutates) return validate();
  options_.webhooks->Mutate(action->Question(), action->reinvocation,
                            lifetime_.Guard([this, action, validate](RemoteAnswer answer) {
                              Append(action->warnings, std::move(answer.warnings));
                              if (answer.failure) {
                                --suspended_;
                                return action->done(Response::Failed(std::move(*answer.failure)));
                              }
                              action->request.object = std::move(answer.object);
                              validate();
                            }));
}

void Core::IssueToken(Request&& request, std::function<void(Response)> done) {
  const api::KindSchema& body = *api::FindKind("authentication.k8s.io", "v1", "TokenRequest");
  std::vector<std::string> warnings;
  if (std::optional<Failure> failure = DecodeBody(body, request, warnings)) {
    return done(Response::Failed(std::move(*failure)));
  }
  AdmitAction(std::move(request), body, "CREATE", std::move(done),
              [this](Request&& admitted, const std::function<void(Response)>& answer) {
                Response response;
                if (!options_.answerer->Answer(admitted, response)) {
                  response = Response::Failed(api::StatusNoSuchPath());
                }
                answer(std::move(response));
              });
}

void Core::AdmitConnection(Request request, const api::KindSchema& kind, api::TreePtr options,
                           std::function<void(std::optional<Failure>)> done) {
  request.object = std::move(options);
  AdmitAction(
      std::move(request), kind, "CONNECT",
      [done](Response response) { done(std::move(response.failure)); },
      [done](Request&&, const std::function<void(Response)>&) { done(std::nullopt); });
}

}  // namespace drakkar::apiserver
