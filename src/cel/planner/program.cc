#include "cel/planner/program.h"

namespace drakkar::cel {

Evaluation Program::Evaluate(Evaluator& evaluator, std::span<const Value> variables, std::uint64_t cost_limit) const {
  static const ErrorValue kLimitError{"operation cancelled: actual cost limit exceeded", true};
  evaluator.arena_.Reset();
  if (evaluator.slots_.size() < slot_count_) evaluator.slots_.resize(slot_count_);
  if (evaluator.ready_size_ < slot_count_) {
    evaluator.ready_ = std::make_unique<bool[]>(slot_count_);
    evaluator.ready_size_ = slot_count_;
  }
  Frame frame{evaluator.arena_, variables, evaluator.slots_.data(), evaluator.ready_.get(), cost_limit,
              strict_presence_};
  Evaluation result;
  result.value = root_->Eval(frame);
  result.cost = frame.cost;
  if (frame.cancelled) [[unlikely]] {
    result.cancelled = true;
    result.cost = frame.cost_when_cancelled;
    result.value = Value();
    result.value.kind = Kind::kError;
    result.value.error = &kLimitError;
  }
  return result;
}

}  // namespace drakkar::cel
