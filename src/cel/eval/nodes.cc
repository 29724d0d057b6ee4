#include "base/text/text.h"
#include "cel/cost/factors.h"
#include "cel/eval/node.h"
#include "cel/eval/runtime_type.h"

namespace drakkar::cel {
namespace {

Value NotABool(Frame& frame, const Value& value) {
  return value.IsError() ? value : NewError(frame.arena, "no such overload");
}

}  // namespace

Value AndNode::Eval(Frame& frame) const {
  const Value left = left_->Eval(frame);
  if (left.IsFalse() || frame.cancelled) return left;
  const Value right = right_->Eval(frame);
  if (right.IsFalse()) return right;
  if (left.kind != Kind::kBool) return NotABool(frame, left);
  if (right.kind != Kind::kBool) return NotABool(frame, right);
  return right;
}

Value OrNode::Eval(Frame& frame) const {
  const Value left = left_->Eval(frame);
  if (left.IsTrue() || frame.cancelled) return left;
  const Value right = right_->Eval(frame);
  if (right.IsTrue()) return right;
  if (left.kind != Kind::kBool) return NotABool(frame, left);
  if (right.kind != Kind::kBool) return NotABool(frame, right);
  return right;
}

EqualNode::EqualNode(const Node* left, const Node* right, bool negated)
    : left_(left),
      right_(right),
      negated_(negated),
      cost_(negated ? ActualCostOf("_!=_", "not_equals") : ActualCostOf("_==_", "equals")) {}

Value EqualNode::Eval(Frame& frame) const {
  const Value args[2] = {left_->Eval(frame), right_->Eval(frame)};
  Value result;
  if (args[0].IsError()) {
    result = args[0];
  } else if (args[1].IsError()) {
    result = args[1];
  } else if (!negated_ && args[0].kind == Kind::kObject && args[1].kind != Kind::kNull &&
             (args[1].kind != Kind::kObject || args[1].object->type_name() != args[0].object->type_name())) {
    // The library's types refuse to be compared with others; inequality just holds.
    result = NewError(frame.arena, "no such overload");
  } else {
    result = MakeBool(Equal(args[0], args[1]) != negated_);
  }
  frame.Charge(cost_(std::span<const Value>(args, 2), result));
  return result;
}

Value NotStrictlyFalseNode::Eval(Frame& frame) const {
  const Value value = operand_->Eval(frame);
  frame.Charge(1);
  return MakeBool(!value.IsFalse());
}

Value CallNode::Invoke(CallContext& context, std::span<const Value> args) const {
  if (target_.prepared != nullptr) return target_.prepared->Call(context, args);
  for (const Overload* overload : target_.guarded) {
    if (Accepts(*overload, args)) {
      return overload->implementation ? overload->implementation(context, args)
                                      : target_.implementation(context, args);
    }
  }
  if (target_.implementation) return target_.implementation(context, args);
  std::vector<std::string_view> names;
  for (const Value& arg : args) names.push_back(TypeName(arg));
  return NewError(context.arena, StrCat("no such overload: ", function_, "(", Join(names, ", "), ")"));
}

Value CallNode::Eval(Frame& frame) const {
  switch (args_.size()) {
    case 1: return EvalWith<1>(frame);
    case 2: return EvalWith<2>(frame);
    default: return EvalWith<kMaxArguments>(frame);
  }
}

template <std::size_t room>
Value CallNode::EvalWith(Frame& frame) const {
  Value args[room];
  const std::size_t count = room == kMaxArguments ? args_.size() : room;
  const Value* error = nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    args[i] = args_[i]->Eval(frame);
    if (args[i].IsError() && error == nullptr) {
      error = &args[i];
      // Calls of more than two arguments stop at the first error, and then cost nothing.
      if (count > 2 && i + 1 < count) return *error;
    }
  }
  const std::span<const Value> values(args, count);
  if (error != nullptr) {
    frame.Charge(cost_(values, *error));
    return *error;
  }
  if (frame.cancelled) return args[0];
  CallContext context{frame.arena};
  const Value result = Invoke(context, values);
  frame.Charge(cost_(values, result));
  return result;
}

Value ListNode::Eval(Frame& frame) const {
  const Value list = Build(frame);
  frame.Charge(cost::kListCreate);
  return list;
}

Value ListNode::Build(Frame& frame) const {
  Value* items = frame.arena.AllocateArray<Value>(elements_.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < elements_.size(); ++i) {
    Value item = elements_[i]->Eval(frame);
    if (item.IsError()) return item;
    if (optional_[i]) {
      if (item.kind != Kind::kOptional) {
        return NewError(frame.arena, StrCat("cannot initialize optional list element from non-optional value ",
                                            DebugText(item)));
      }
      if (item.optional == nullptr) continue;
      item = *item.optional;
    }
    items[count++] = item;
  }
  return NewListView(frame.arena, items, count);
}

Value MapNode::Eval(Frame& frame) const {
  const Value map = Build(frame);
  frame.Charge(cost::kMapCreate);
  return map;
}

Value MapNode::Build(Frame& frame) const {
  Value map = NewMap(frame.arena, entries_.size());
  for (const Entry& entry : entries_) {
    const Value key = entry.key->Eval(frame);
    if (key.IsError()) return key;
    Value value = entry.value->Eval(frame);
    if (value.IsError()) return value;
    if (key.kind != Kind::kString && key.kind != Kind::kInt && key.kind != Kind::kUint && key.kind != Kind::kBool) {
      return NewError(frame.arena, StrCat("unsupported key type: ", TypeName(key)));
    }
    if (entry.optional) {
      if (value.kind != Kind::kOptional) {
        return NewError(frame.arena, StrCat("cannot initialize optional entry '", DebugText(key),
                                            "' from non-optional value ", DebugText(value)));
      }
      if (value.optional == nullptr) {
        map = MapRemove(frame.arena, map, key);
        continue;
      }
      value = *value.optional;
    }
    // The same key twice: the last one wins, unless it is written as different types of number.
    for (std::uint32_t i = 0; key.IsNumber() && i < map.size; ++i) {
      const Value other = map.map->KeyAt(i);
      if (other.kind != key.kind && Equal(other, key)) {
        return NewError(frame.arena, StrCat("Failed with repeated key: ", DebugText(key)));
      }
    }
    map = MapInsert(frame.arena, map, key, value);
  }
  return map;
}

Value MembershipNode::Eval(Frame& frame) const {
  const Value value = operand_->Eval(frame);
  if (value.IsError()) return value;
  return MakeBool(set_.map->Contains(value, set_.size));
}

Value OptionalOrNode::Eval(Frame& frame) const {
  const Value left = left_->Eval(frame);
  if (left.kind != Kind::kOptional || frame.cancelled) return left;
  if (left.optional != nullptr) return unwrap_ ? *left.optional : left;
  return right_->Eval(frame);
}

Value WrapperNode::Eval(Frame& frame) const {
  Value value = value_ ? value_->Eval(frame) : default_;
  if (single_precision_ && value.kind == Kind::kDouble) {
    value.number = static_cast<double>(static_cast<float>(value.number));
  }
  frame.Charge(cost::kStructCreate);
  return value;
}

bool FoldNode::Step(Frame& frame) const {
  const Value condition = parts_.condition->Eval(frame);
  if (condition.IsFalse() || frame.cancelled) return false;
  const Value accu = parts_.step->Eval(frame);
  frame.slots[parts_.accu_slot] = accu;
  frame.slot_ready[parts_.accu_slot] = true;
  return !frame.cancelled;
}

Value FoldNode::Eval(Frame& frame) const {
  frame.slot_ready[parts_.accu_slot] = false;
  const Value range = parts_.range->Eval(frame);
  if (range.IsError()) return range;
  if (range.kind != Kind::kList && range.kind != Kind::kMap) {
    return NewError(frame.arena, StrCat("got '", GoTypeName(range), "', expected iterable type"));
  }
  for (std::uint32_t i = 0; i < range.size; ++i) {
    Value& first = frame.slots[parts_.iter_slot];
    if (range.kind == Kind::kMap) {
      first = range.map->KeyAt(i);
      if (parts_.two_variables) frame.slots[parts_.iter2_slot] = range.map->ValueAt(i);
    } else if (parts_.two_variables) {
      first = MakeInt(i);
      frame.slots[parts_.iter2_slot] = ListItems(range)[i];
    } else {
      first = ListItems(range)[i];
    }
    if (!Step(frame)) break;
  }
  return parts_.result->Eval(frame);
}

}  // namespace drakkar::cel
