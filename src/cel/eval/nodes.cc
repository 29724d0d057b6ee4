#include "base/text/text.h"
#include "cel/cost/factors.h"
#include "cel/eval/attribute.h"
#include "cel/eval/runtime_type.h"
#include "cel/value/record.h"

namespace drakkar::cel {
namespace {

Value NotABool(Frame& frame, const Value& value) {
  return value.IsError() ? value : NewError(frame.arena, "no such overload");
}

}  // namespace

Value AndNode::Eval(Frame& frame) const {
  const Value left = EvalNode(*left_, frame);
  if (left.IsFalse() || frame.cancelled) return left;
  const Value right = EvalNode(*right_, frame);
  if (right.IsFalse()) return right;
  if (left.kind != Kind::kBool) return NotABool(frame, left);
  if (right.kind != Kind::kBool) return NotABool(frame, right);
  return right;
}

Value OrNode::Eval(Frame& frame) const {
  const Value left = EvalNode(*left_, frame);
  if (left.IsTrue() || frame.cancelled) return left;
  const Value right = EvalNode(*right_, frame);
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
  const Value args[2] = {EvalNode(*left_, frame), EvalNode(*right_, frame)};
  Value result;
  if (args[0].IsError()) {
    result = args[0];
  } else if (args[1].IsError()) {
    result = args[1];
  } else if (!negated_ && args[0].kind == Kind::kObject && args[1].kind != Kind::kNull &&
             (args[1].kind != Kind::kObject ||
              args[1].object->type_name() != args[0].object->type_name())) {
    // The library's types refuse comparison with others; inequality is simply true.
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

Value CallNode::NoSuchOverload(CallContext& context, std::span<const Value> args) const {
  std::vector<std::string_view> names;
  for (const Value& arg : args) names.push_back(TypeName(arg));
  return NewError(context.arena,
                  StrCat("no such overload: ", function_, "(", Join(names, ", "), ")"));
}

namespace {

template <std::size_t room>
class SizedCallNode final : public CallNode {
 public:
  SizedCallNode(std::string function, CallTarget target, std::vector<Node*> args, CallCost rule)
      : CallNode(std::move(function), std::move(target), std::move(args), rule) {}

  Value Eval(Frame& frame) const override {
    Value values[room];
    const std::size_t count = room == kMaxArguments ? args().size() : room;
    const Value* error = nullptr;
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = EvalNode(*args()[i], frame);
      if (values[i].IsError() && error == nullptr) {
        error = &values[i];
        // Calls with more than two arguments stop at the first error and then cost nothing.
        if (count > 2 && i + 1 < count) return *error;
      }
    }
    const std::span<const Value> span(values, count);
    if (error != nullptr) {
      Charge(frame, span, *error);
      return *error;
    }
    if (frame.cancelled) return values[0];
    CallContext context{frame.arena};
    const Value result =
        PassesSingle(values) ? single()->implementation(context, span) : Invoke(context, span);
    Charge(frame, span, result);
    return result;
  }

 private:
  // A separate loop pays off if the number of arguments is a compile-time constant.
  bool PassesSingle(const Value* values) const {
    if (room == kMaxArguments || single() == nullptr) return false;
    for (std::size_t i = 0; i < room; ++i) {
      if (!single()->guards[i].Passes(values[i])) return false;
    }
    return true;
  }
};

}  // namespace

std::unique_ptr<CallNode> CallNode::Create(std::string function, CallTarget target,
                                           std::vector<Node*> args, CallCost rule) {
  const auto make = [&]<std::size_t room>() -> std::unique_ptr<CallNode> {
    return std::make_unique<SizedCallNode<room>>(std::move(function), std::move(target),
                                                 std::move(args), rule);
  };
  switch (args.size()) {
    case 1:
      return make.operator()<1>();
    case 2:
      return make.operator()<2>();
    default:
      return make.operator()<kMaxArguments>();
  }
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
        return NewError(frame.arena,
                        StrCat("cannot initialize optional list element from non-optional value ",
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
    if (key.kind != Kind::kString && key.kind != Kind::kInt && key.kind != Kind::kUint &&
        key.kind != Kind::kBool) {
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
    // Duplicate keys: the last one wins, unless they are numbers of different types.
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

Value RecordNode::Eval(Frame& frame) const {
  Value map = NewMap(frame.arena, fields_.size());
  for (const Field& field : fields_) {
    Value value = field.value->Eval(frame);
    if (value.IsError()) return value;
    if (field.optional) {
      if (value.kind != Kind::kOptional) {
        return NewError(frame.arena, StrCat("cannot initialize optional entry '", field.name,
                                            "' from non-optional value ", DebugText(value)));
      }
      if (value.optional == nullptr) continue;
      value = *value.optional;
    }
    map = MapInsert(frame.arena, map, MakeString(field.name), value);
  }
  frame.Charge(cost::kStructCreate);
  return MakeMap(frame.arena.New<RecordValue>(type_name_, map), map.size);
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
