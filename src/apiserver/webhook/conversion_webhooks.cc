#include "apiserver/webhook/conversion_webhooks.h"

#include "api/scheme/scheme.h"
#include "apiserver/custom/definition.h"
#include "apiserver/webhook/conversion_review.h"
#include "base/exec/work_budget.h"
#include "base/ids/uuid.h"
#include "base/text/text.h"
#include "telemetry/log/log.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::apiserver {
namespace {

constexpr Logger kLog("webhooks");

api::Value ConversionOf(const api::KindSchema& kind) {
  const auto& definition = static_cast<const CustomDefinition&>(*kind.family);
  return definition.object()->root()["spec"]["conversion"]["webhook"];
}

std::string_view ReviewVersionOf(const api::KindSchema& kind) {
  for (api::Value each : ConversionOf(kind)["conversionReviewVersions"].elements()) {
    if (each.str() == "v1" || each.str() == "v1beta1") return each.str();
  }
  return {};
}

}  // namespace

struct ConversionWebhooks::Job {
  const api::KindSchema& to;
  std::vector<api::TreePtr> originals;
  std::size_t next = 0;  // of the originals
  std::string shown;     // "example.com/v1, Kind=Thing"
  Converted converted;
  std::function<void(Converted)> done;

  void Fail(std::string_view why) {
    converted.objects.clear();
    converted.failure = api::StatusInternalError("");
    converted.failure->message = StrCat("conversion webhook for ", shown, " ", why);
    done(std::move(converted));
  }
};

void ConversionWebhooks::Detach() {
  core_ = nullptr;
  clients_.clear();
}

const WebhookClient& ConversionWebhooks::ClientOf(const api::KindSchema& kind) {
  std::unique_ptr<const WebhookClient>& client = clients_[kind.family];
  if (client == nullptr) {
    client = std::make_unique<const WebhookClient>(ConversionOf(kind)["clientConfig"]);
  }
  return *client;
}

void ConversionWebhooks::Convert(const api::KindSchema& to, std::vector<api::TreePtr> objects,
                                 std::function<void(Converted)> done) {
  auto job = std::make_shared<Job>(Job{.to = to,
                                       .originals = std::move(objects),
                                       .next = 0,
                                       .shown = {},
                                       .converted = {},
                                       .done = std::move(done)});
  if (!job->originals.empty()) {
    const api::Value first = job->originals.front()->root();
    job->shown = StrCat(first["apiVersion"].str(), ", Kind=", first["kind"].str());
  }
  core_->loop().Post(lifetime_.Guard([this, job] { Continue(job); }));
}

void ConversionWebhooks::Continue(const std::shared_ptr<Job>& job) {
  if (core_ == nullptr) return;
  if (job->next == job->originals.size()) return job->done(std::move(job->converted));
  const std::string version(ReviewVersionOf(job->to));
  if (version.empty()) return job->Fail("failed: no supported conversion review versions");
  WebhookClient::Located located =
      ClientOf(job->to).Locate(*core_, options_.random, "?timeout=30s");
  if (!located.error.empty()) return job->Fail(StrCat("failed: ", located.error));
  auto part = std::make_shared<std::vector<api::TreePtr>>();
  for (std::size_t bytes = 0; job->next < job->originals.size() && part->size() < kMaxObjects &&
                              (part->empty() || bytes < kMaxSentBytes);
       ++job->next) {
    part->push_back(job->originals[job->next]);
    bytes += part->back()->size_bytes();
  }
  const std::string uid = NewUuid(options_.random);
  const MonotonicTime begun = core_->loop().clock().Monotonic();
  options_.transport.Post(
      {.target = std::move(located.target),
       .body = WriteConversionReview(version, uid, job->to, *part),
       .timeout = kTimeout,
       .max_answer_bytes = kMaxAnswerBytes},
      lifetime_.Guard([this, job, part, uid, version, begun](WebhookTransport::Answer answer) {
        if (core_ == nullptr) return;
        const WorkBudget unlimited(WorkBudget::kUnlimited);
        const Duration took = core_->loop().clock().Monotonic() - begun;
        if (answer.document == nullptr) {
          Observe(false, "conversion_webhook_call_failure", took);
          kLog.Warning("conversion webhook failed",
                       {{"kind", job->shown}, {"error", answer.failed.reason}});
          return job->Fail(StrCat("failed: ", answer.failed.reason));
        }
        Result<std::vector<api::TreePtr>> objects = [&]() -> Result<std::vector<api::TreePtr>> {
          const WorkBudget budget(kMaxSteps);
          auto read = ReadConversionAnswer(answer.document->root(), version, uid, job->to, *part);
          if (!WorkBudget::IsExceeded()) return read;
          return Error{ErrorCode::kResourceExhausted,
                       StrCat("conversion webhook for ", job->shown,
                              " returned objects that take too long to read")};
        }();
        if (!objects.ok()) {
          Observe(false, "conversion_webhook_malformed_response_failure", took);
          kLog.Warning("conversion webhook gave an invalid answer",
                       {{"kind", job->shown}, {"error", objects.error().message}});
          return job->Fail(objects.error().message);
        }
        Observe(true, "", took);
        for (api::TreePtr& each : *objects) job->converted.objects.push_back(std::move(each));
        Continue(job);
      }));
}

void ConversionWebhooks::Observe(bool succeeded, std::string_view failure, Duration took) const {
  if (options_.metrics == nullptr) return;
  const MetricLabels labels = {{"failure_type", std::string(failure)},
                               {"result", succeeded ? "success" : "failure"}};
  options_.metrics
      ->GetCounter("apiserver_conversion_webhook_request_total",
                   "Counter for conversion webhook requests with success/failure and failure error "
                   "type",
                   labels)
      .Add();
  options_.metrics
      ->GetHistogram("apiserver_conversion_webhook_duration_seconds",
                     "Conversion webhook request latency", labels,
                     {0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 45, 60})
      .Observe(std::chrono::duration<double>(took).count());
}

}  // namespace drakkar::apiserver
