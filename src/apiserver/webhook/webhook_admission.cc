#include "apiserver/webhook/webhook_admission.h"

#include "api/patch/json_patch.h"
#include "api/scheme/scheme.h"
#include "apiserver/auth/request_authorizer.h"
#include "apiserver/conversion/versions.h"
#include "apiserver/policy/admission_request.h"
#include "base/exec/work_budget.h"
#include "base/ids/uuid.h"
#include "base/text/text.h"
#include "cel/object/tree_value.h"
#include "telemetry/log/log.h"

namespace drakkar::apiserver {
namespace {

constexpr Logger kLog("webhooks");
constexpr std::string_view kAdmit = "admit";
constexpr std::string_view kValidating = "validating";

AdmissionSubject SubjectOf(const RemoteQuestion& question, api::Value object, Core& core) {
  return {.request = *question.request,
          .operation = question.operation,
          .object = object,
          .before = question.before == nullptr ? api::Value() : question.before->root(),
          .find_namespace = [&core](const std::string& name) {
            return core.Find("", "namespaces", name);
          }};
}

api::Value RootOf(const api::TreePtr& tree) {
  return tree == nullptr ? api::Value() : tree->root();
}

// The object in the version that the webhook expects.
api::TreePtr InVersion(const RemoteQuestion& question, const api::TreePtr& object,
                       const api::KindSchema& shown) {
  if (object == nullptr || question.is_body || &shown == question.kind) return object;
  return ConvertTree(object, shown);
}

}  // namespace

// How a call ended.
struct WebhookAdmission::Outcome {
  AdmissionVerdict verdict;
  std::string error;  // the call failed; subject to failurePolicy
  int error_code = 0;
  std::optional<Failure> refusal;  // the call was not made; not subject to failurePolicy
  Duration took{0};
};

// A request as it passes through the mutating webhooks.
struct WebhookAdmission::Mutation {
  RemoteQuestion question;
  Reinvocation& reinvocation;
  std::vector<WebhookPtr> webhooks;
  std::size_t next = 0;
  RemoteAnswer answer;
  std::function<void(RemoteAnswer)> done;
};

// A request that is being checked by validating webhooks.
struct WebhookAdmission::Validation {
  RemoteQuestion question;
  std::size_t waiting = 0;
  std::vector<std::optional<Failure>> failures;  // in the order of the webhooks
  RemoteAnswer answer;
  std::function<void(RemoteAnswer)> done;
};

WebhookAdmission::WebhookAdmission(Options options)
    : options_(options), metrics_(options.metrics) {}
WebhookAdmission::~WebhookAdmission() = default;

void WebhookAdmission::Attach(Core& core) {
  core_ = &core;
  mutating_.Attach(core);
  validating_.Attach(core);
}

void WebhookAdmission::Detach() {
  core_ = nullptr;
  mutating_.Detach();
  validating_.Detach();
}

bool WebhookAdmission::Concerns(Phase phase, const api::KindSchema& kind) {
  return !SetOf(phase).For(kind).empty();
}

bool WebhookAdmission::Matches(Phase phase, const AdmissionSubject& subject) {
  for (const WebhookPtr& each : SetOf(phase).For(*subject.request.kind)) {
    if (each->match.Match(subject).kind != nullptr) return true;
  }
  return false;
}

void WebhookAdmission::Later(std::function<void()> task) {
  core_->loop().Post(lifetime_.Guard(std::move(task)));
}

bool WebhookAdmission::Holds(const Webhook& webhook, const RemoteQuestion& question,
                             const api::KindSchema& shown, api::Value object, std::string_view type,
                             std::optional<Failure>& failure) {
  const MatchConditions& conditions = webhook.conditions();
  if (conditions.empty()) return true;
  const Request& request = *question.request;
  const api::ObjectPtr home =
      request.kind->namespaced ? core_->Find("", "namespaces", request.namespace_) : nullptr;
  const api::ObjectPtr before = question.before == nullptr || question.is_body
                                    ? question.before
                                    : ConvertObjectTo(question.before, shown);
  const AdmissionRequestTree described(request, question.operation, shown,
                                       question.is_body ? question.kind : nullptr, question.name);
  RequestAuthorizer authorizer(core_, options_.rbac);
  cel::Arena arena;
  const std::vector<cel::Value> variables = {
      cel::TreeValue(arena, object),
      cel::TreeValue(arena, before == nullptr ? api::Value() : before->root()),
      cel::TreeValue(arena, home == nullptr ? api::Value() : home->root()),
      cel::TreeValue(arena, described.root()),
      NewAuthorizerValue(arena, authorizer, request.user),
      NewResourceCheckValue(arena, authorizer, request.user,
                            {.group = std::string(shown.group),
                             .resource = std::string(shown.plural),
                             .subresource = request.subresource,
                             .namespace_ = request.namespace_,
                             .name = request.name,
                             .field_selector = {}})};
  const MatchConditions::Outcome outcome = conditions.Evaluate(variables, &authorizer);
  if (!outcome.error.empty()) {
    metrics_.CountConditionError(webhook.name, type, question.operation);
    kLog.Warning("match conditions could not be evaluated",
                 {{"webhook", webhook.name}, {"error", outcome.error}});
    if (!webhook.ignores_failures) {
      failure = ForbiddenFailure(*request.kind, question.name, outcome.error);
    }
    return false;
  }
  if (!outcome.matches) metrics_.CountExclusion(webhook.name, type, question.operation);
  return outcome.matches;
}

const api::KindSchema* WebhookAdmission::Choose(const Webhook& webhook,
                                                const RemoteQuestion& question, api::Value object,
                                                std::string_view type,
                                                std::optional<Failure>& failure) {
  const AdmissionMatch::Outcome matched = webhook.match.Match(SubjectOf(question, object, *core_));
  if (matched.kind == nullptr) return nullptr;
  if (!matched.error.empty()) {
    failure = api::StatusInternalError(matched.error);
    return nullptr;
  }
  // The conditions see the object in the version that the webhook expects.
  api::TreePtr shown;
  if (object.has_value() && !question.is_body && matched.kind != question.kind &&
      !webhook.conditions().empty()) {
    shown = ConvertTree(api::CopyTree(object), *matched.kind);
    object = shown->root();
  }
  if (!Holds(webhook, question, *matched.kind, object, type, failure)) return nullptr;
  return matched.kind;
}

void WebhookAdmission::Call(const WebhookPtr& webhook, const RemoteQuestion& question,
                            const api::KindSchema& shown, const api::TreePtr& object,
                            bool may_mutate, std::function<void(Outcome)> done) {
  const auto fail = [&](int code, std::string error) {
    Outcome outcome;
    outcome.error = std::move(error);
    outcome.error_code = code;
    Later([done, outcome = std::move(outcome)] { done(outcome); });
  };
  if (question.request->dry_run && webhook->has_side_effects) {
    Outcome outcome;
    outcome.refusal = api::StatusBadRequest(
        StrCat("admission webhook ", Quote(webhook->name), " does not support dry run"));
    return Later([done, outcome = std::move(outcome)] { done(outcome); });
  }
  if (!webhook->version) {
    return fail(400,
                "could not create admission objects: webhook does not accept known "
                "AdmissionReview versions (v1, v1beta1)");
  }
  const auto busy = in_flight_.find(webhook->id);
  if (busy != in_flight_.end() && busy->second.calls >= kMaxCallsPerWebhook) {
    return fail(503, StrCat("failed to call webhook: ", busy->second.calls,
                            " calls are already waiting for its answer"));
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(webhook->timeout).count();
  WebhookClient::Located located =
      webhook->client.Locate(*core_, options_.random, StrCat("?timeout=", seconds, "s"));
  if (!located.error.empty()) {
    return fail(503, StrCat("failed to call webhook: ", located.error));
  }
  const std::string uid = NewUuid(options_.random);
  std::string body = WriteAdmissionReview(*webhook->version, uid, question, shown, RootOf(object));
  const std::size_t bytes = body.size();
  if ((busy != in_flight_.end() && busy->second.bytes + bytes > kMaxBytesPerWebhook) ||
      bytes_in_flight_ + bytes > kMaxBytes) {
    return fail(503, "failed to call webhook: too many large objects wait for webhooks");
  }
  InFlight& counting = in_flight_[webhook->id];
  ++counting.calls;
  counting.bytes += bytes;
  bytes_in_flight_ += bytes;
  const MonotonicTime begun = core_->loop().clock().Monotonic();
  options_.transport.Post(
      {.target = std::move(located.target),
       .body = std::move(body),
       .timeout = webhook->timeout,
       .max_answer_bytes = kMaxAnswerBytes},
      lifetime_.Guard([this, webhook, uid, may_mutate, begun, bytes,
                       done = std::move(done)](WebhookTransport::Answer answer) {
        const auto counted = in_flight_.find(webhook->id);
        counted->second.bytes -= bytes;
        bytes_in_flight_ -= bytes;
        if (--counted->second.calls == 0) in_flight_.erase(counted);
        if (core_ == nullptr) return;
        Outcome outcome;
        outcome.took = core_->loop().clock().Monotonic() - begun;
        if (answer.document == nullptr) {
          outcome.error = StrCat("failed to call webhook: ", answer.failed.reason);
          outcome.error_code = answer.failed.code;
          return done(std::move(outcome));
        }
        Result<AdmissionVerdict> verdict = ReadAdmissionAnswer(
            answer.document->root(), *webhook->version, webhook->name, uid, may_mutate);
        if (verdict.ok()) {
          outcome.verdict = *std::move(verdict);
        } else {
          outcome.error = StrCat("received invalid webhook response: ", verdict.error().message);
          outcome.error_code = 503;
        }
        done(std::move(outcome));
      }));
}

std::optional<Failure> WebhookAdmission::Judge(const Webhook& webhook,
                                               const RemoteQuestion& question,
                                               std::string_view type, const Outcome& outcome) {
  WebhookMetrics::Call call = {
      .name = webhook.name, .type = type, .operation = question.operation, .took = outcome.took};
  if (outcome.refusal) {
    call.is_rejected = true;
    call.code = 0;
    call.error_type = "apiserver_internal_error";
    metrics_.Observe(call);
    return outcome.refusal;
  }
  if (!outcome.error.empty()) {
    call.is_rejected = !webhook.ignores_failures;
    call.code = outcome.error_code;
    call.error_type = "calling_webhook_error";
    metrics_.Observe(call);
    kLog.Warning(webhook.ignores_failures ? "webhook failed and was ignored"
                                          : "webhook failed and the request was rejected",
                 {{"webhook", webhook.name},
                  {"configuration", webhook.configuration->name()},
                  {"error", outcome.error}});
    if (webhook.ignores_failures) {
      metrics_.CountFailOpen(webhook.name, type);
      return std::nullopt;
    }
    return api::StatusInternalError(
        StrCat("failed calling webhook ", Quote(webhook.name), ": ", outcome.error));
  }
  for (const auto& [key, value] : outcome.verdict.annotations) {
    kLog.Info("webhook annotated request", {{"webhook", webhook.name},
                                            {"key", key},
                                            {"value", value},
                                            {"user", question.request->user.name},
                                            {"name", question.name}});
  }
  if (outcome.verdict.denial) {
    call.is_rejected = true;
    call.code = outcome.verdict.denial->code;
    metrics_.Observe(call);
    kLog.Info("request rejected", {{"webhook", webhook.name},
                                   {"user", question.request->user.name},
                                   {"resource", question.request->kind->plural},
                                   {"namespace", question.request->namespace_},
                                   {"name", question.name},
                                   {"reason", outcome.verdict.denial->message}});
    return outcome.verdict.denial;
  }
  metrics_.Observe(call);
  return std::nullopt;
}

void WebhookAdmission::Mutate(RemoteQuestion question, Reinvocation& reinvocation,
                              std::function<void(RemoteAnswer)> done) {
  auto mutation = std::make_shared<Mutation>(Mutation{.question = std::move(question),
                                                      .reinvocation = reinvocation,
                                                      .webhooks = {},
                                                      .next = 0,
                                                      .answer = {},
                                                      .done = std::move(done)});
  mutation->webhooks = mutating_.For(*mutation->question.request->kind);
  mutation->answer.object = mutation->question.object;
  Later([this, mutation] { Continue(mutation); });
}

void WebhookAdmission::Continue(const std::shared_ptr<Mutation>& mutation) {
  const RemoteQuestion& question = mutation->question;
  const auto fail = [&](Failure failure) {
    mutation->answer.failure = std::move(failure);
    mutation->done(std::move(mutation->answer));
  };
  while (mutation->next < mutation->webhooks.size()) {
    const WorkBudget budget(Core::kMaxSteps);
    const WebhookPtr webhook = mutation->webhooks[mutation->next++];
    std::optional<Failure> failure;
    const api::KindSchema* shown =
        Choose(*webhook, question, RootOf(mutation->answer.object), kAdmit, failure);
    if (failure) return fail(std::move(*failure));
    if (shown == nullptr) continue;
    // The second round calls no webhook for the first time.
    if (mutation->reinvocation.round > 0 && !mutation->reinvocation.pending.contains(webhook->id)) {
      continue;
    }
    const api::TreePtr sent = InVersion(question, mutation->answer.object, *shown);
    if (WorkBudget::IsExceeded()) return fail(TooMuchWorkFailure());
    Call(webhook, question, *shown, sent, /*may_mutate=*/true,
         [this, mutation, webhook, shown, sent](Outcome outcome) {
           const WorkBudget work(Core::kMaxSteps);
           std::optional<Failure> refused = Judge(*webhook, mutation->question, kAdmit, outcome);
           RemoteAnswer& answer = mutation->answer;
           for (std::string& warning : outcome.verdict.warnings) {
             answer.warnings.push_back(std::move(warning));
           }
           if (!refused && outcome.error.empty() && outcome.verdict.patch != nullptr) {
             refused = Patch(*mutation, *webhook, *shown, sent, outcome.verdict.patch);
             if (!refused && WorkBudget::IsExceeded()) refused = TooMuchWorkFailure();
           }
           if (webhook->is_reinvocable) mutation->reinvocation.called.insert(webhook->id);
           if (refused) {
             answer.failure = std::move(refused);
             return mutation->done(std::move(answer));
           }
           Continue(mutation);
         });
    return;
  }
  mutation->done(std::move(mutation->answer));
}

std::optional<Failure> WebhookAdmission::Patch(Mutation& mutation, const Webhook& webhook,
                                               const api::KindSchema& shown,
                                               const api::TreePtr& sent,
                                               const api::TreePtr& patch) {
  if (sent == nullptr) {
    return api::StatusInternalError(
        StrCat("admission webhook ", Quote(webhook.name),
               " attempted to modify the object, which is not supported for this operation"));
  }
  const Result<api::TreePtr> patched = api::ApplyJsonPatch(sent->root(), patch->root());
  if (!patched.ok()) return api::StatusInternalError(patched.error().message);
  if (api::Equal((*patched)->root(), sent->root())) return std::nullopt;
  api::TreePtr accepted;
  if (std::optional<Failure> failure = mutation.question.accept(*patched, shown, accepted)) {
    return api::StatusInternalError(failure->message);
  }
  if (api::Equal(accepted->root(), mutation.answer.object->root())) return std::nullopt;
  mutation.answer.object = std::move(accepted);
  mutation.answer.is_changed = true;
  // Earlier webhooks that allow reinvocation are called again.
  mutation.reinvocation.Require();
  return std::nullopt;
}

void WebhookAdmission::Validate(RemoteQuestion question, std::function<void(RemoteAnswer)> done) {
  auto validation = std::make_shared<Validation>(Validation{.question = std::move(question),
                                                            .waiting = 1,
                                                            .failures = {},
                                                            .answer = {},
                                                            .done = std::move(done)});
  struct Chosen {
    WebhookPtr webhook;
    const api::KindSchema* shown;
    api::TreePtr object;
  };
  std::vector<Chosen> chosen;
  const WorkBudget budget(Core::kMaxSteps);
  for (const WebhookPtr& webhook : validating_.For(*validation->question.request->kind)) {
    std::optional<Failure> failure;
    const api::KindSchema* shown = Choose(
        *webhook, validation->question, RootOf(validation->question.object), kValidating, failure);
    if (!failure && WorkBudget::IsExceeded()) failure = TooMuchWorkFailure();
    if (failure) {
      validation->answer.failure = std::move(failure);
      return Later([validation] { validation->done(std::move(validation->answer)); });
    }
    if (shown != nullptr) chosen.push_back({webhook, shown, nullptr});
  }
  for (Chosen& each : chosen) {
    for (const Chosen& earlier : chosen) {
      if (earlier.shown == each.shown && earlier.object != nullptr) each.object = earlier.object;
    }
    if (each.object == nullptr) {
      each.object = InVersion(validation->question, validation->question.object, *each.shown);
    }
  }
  validation->failures.resize(chosen.size());
  const auto finish = [validation] {
    if (--validation->waiting > 0) return;
    for (std::optional<Failure>& failure : validation->failures) {
      if (!failure) continue;
      validation->answer.failure = std::move(failure);
      break;
    }
    validation->done(std::move(validation->answer));
  };
  validation->waiting += chosen.size();
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const WebhookPtr& webhook = chosen[i].webhook;
    Call(webhook, validation->question, *chosen[i].shown, chosen[i].object, /*may_mutate=*/false,
         [this, validation, webhook, i, finish](Outcome outcome) {
           validation->failures[i] = Judge(*webhook, validation->question, kValidating, outcome);
           for (std::string& warning : outcome.verdict.warnings) {
             validation->answer.warnings.push_back(std::move(warning));
           }
           finish();
         });
  }
  Later(finish);
}

}  // namespace drakkar::apiserver
