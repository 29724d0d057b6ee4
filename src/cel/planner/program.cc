#include "cel/planner/program.h"

namespace drakkar::cel {
namespace {

Value LimitError() {
  static const ErrorValue kError{"operation cancelled: actual cost limit exceeded", true};
  Value value;
  value.kind = Kind::kError;
  value.error = &kError;
  return value;
}

}  // namespace

Evaluation Program::Evaluate(Evaluator& evaluator, std::span<const Value> variables,
                             std::uint64_t cost_limit) const {
  evaluator.arena_.Reset();
  if (evaluator.slots_.size() < slot_count_) evaluator.slots_.resize(slot_count_);
  if (evaluator.ready_size_ < slot_count_) {
    evaluator.ready_ = std::make_unique<bool[]>(slot_count_);
    evaluator.ready_size_ = slot_count_;
  }
  Frame frame{evaluator.arena_,       variables,  evaluator.slots_.data(),
              evaluator.ready_.get(), cost_limit, strict_presence_};
  Evaluation result;
  result.value = root_->Eval(frame);
  result.cost = frame.cost;
  if (frame.cancelled) [[unlikely]] {
    result.cancelled = true;
    result.cost = frame.cost_when_cancelled;
    result.value = LimitError();
  }
  return result;
}

}  // namespace drakkar::cel
