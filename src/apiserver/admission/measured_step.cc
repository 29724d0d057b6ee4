#include "apiserver/admission/measured_step.h"

#include "api/scheme/scheme.h"
#include "telemetry/log/log.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::apiserver {
namespace {

constexpr Logger kLog("admission");

class MeasuredStep final : public AdmissionStep {
 public:
  MeasuredStep(std::unique_ptr<AdmissionStep> step, std::string_view type, Metrics& metrics)
      : step_(std::move(step)) {
    for (const char* operation : {"CREATE", "UPDATE", "DELETE", "CONNECT"}) {
      for (const char* rejected : {"false", "true"}) {
        seconds_.push_back(&metrics.GetHistogram(
            "apiserver_admission_controller_admission_duration_seconds",
            "Admission controller latency histogram in seconds, identified by name and broken out "
            "for each operation and API resource and type (validate or admit).",
            {{"name", std::string(step_->name())},
             {"operation", operation},
             {"rejected", rejected},
             {"type", std::string(type)}},
            {0.005, 0.025, 0.1, 0.5, 1.0, 2.5}));
      }
    }
  }

  std::string_view name() const override { return step_->name(); }
  bool Concerns(const Request& request) const override { return step_->Concerns(request); }
  std::optional<Awaited> Awaits(const Request& request, api::Draft& object,
                                const StrategyContext& context) const override {
    return step_->Awaits(request, object, context);
  }

  bool comes_after_validation() const override { return step_->comes_after_validation(); }
  bool comes_last() const override { return step_->comes_last(); }
  std::vector<std::string> DecidesAbout(const Request& request, api::Value object,
                                        api::Value before,
                                        const StrategyContext& context) const override {
    return step_->DecidesAbout(request, object, before, context);
  }
  void OnDecidedElsewhere(std::string_view what) override { step_->OnDecidedElsewhere(what); }

  bool SeesActions() const override { return step_->SeesActions(); }
  std::optional<Failure> CheckAction(const Request& request, const Action& action,
                                     const StrategyContext& context,
                                     std::vector<std::string>& warnings) override {
    const std::size_t operation = action.operation == "CONNECT" ? kConnect : kCreate;
    return Measure(request, operation, context,
                   [&] { return step_->CheckAction(request, action, context, warnings); });
  }

  std::optional<Failure> Admit(const Request& request, api::Draft* object, api::Value before,
                               const StrategyContext& context) override {
    return Measure(request, OperationOf(object != nullptr, before.has_value()), context,
                   [&] { return step_->Admit(request, object, before, context); });
  }

  std::optional<Failure> Check(const Request& request, api::Value object, api::Value before,
                               const StrategyContext& context,
                               std::vector<std::string>& warnings) override {
    return Measure(request, OperationOf(object.has_value(), before.has_value()), context,
                   [&] { return step_->Check(request, object, before, context, warnings); });
  }

 private:
  // In the order of the constructor.
  static constexpr std::size_t kCreate = 0;
  static constexpr std::size_t kConnect = 3;
  static std::size_t OperationOf(bool has_object, bool has_before) {
    return !has_object ? 2 : has_before ? 1 : kCreate;
  }

  std::optional<Failure> Measure(const Request& request, std::size_t operation,
                                 const StrategyContext& context,
                                 const std::function<std::optional<Failure>()>& ask) {
    const MonotonicTime start = context.clock.Monotonic();
    std::optional<Failure> failure = ask();
    const std::chrono::duration<double> took = context.clock.Monotonic() - start;
    seconds_[operation * 2 + (failure ? 1 : 0)]->Observe(took.count());
    if (failure) {
      kLog.Info("request rejected", {{"plugin", name()},
                                     {"user", request.user.name},
                                     {"resource", request.kind->plural},
                                     {"namespace", request.namespace_},
                                     {"name", request.name},
                                     {"reason", failure->message}});
    }
    return failure;
  }

  const std::unique_ptr<AdmissionStep> step_;
  std::vector<Histogram*> seconds_;  // by operation, then rejected
};

}  // namespace

std::unique_ptr<AdmissionStep> Measured(std::unique_ptr<AdmissionStep> step, std::string_view type,
                                        Metrics& metrics) {
  return std::make_unique<MeasuredStep>(std::move(step), type, metrics);
}

}  // namespace drakkar::apiserver
