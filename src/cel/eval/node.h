#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cel/checker/declarations.h"
#include "cel/cost/actual.h"
#include "cel/eval/frame.h"
#include "cel/eval/runtime_type.h"

namespace drakkar::cel {

class ConstantNode;
class AttributeNode;

// A step of a planned program. Immutable; the plan owns all of them.
class Node {
 public:
  // Nodes that EvalNode dispatches without a virtual call, which would cost more than their work.
  enum class Leaf : std::uint8_t { kNone, kConstant, kFolded, kAttribute };

  explicit Node(Leaf leaf = Leaf::kNone) : leaf_(leaf) {}
  virtual ~Node() = default;
  Leaf leaf() const { return leaf_; }
  virtual Value Eval(Frame& frame) const = 0;
  virtual const ConstantNode* AsConstant() const { return nullptr; }
  virtual AttributeNode* AsAttribute() { return nullptr; }

 private:
  Leaf leaf_;
};

class ConstantNode final : public Node {
 public:
  explicit ConstantNode(Value value) : Node(Leaf::kConstant), value_(value) {}
  Value Eval(Frame&) const override { return value_; }
  const ConstantNode* AsConstant() const override { return this; }
  const Value& value() const { return value_; }

 private:
  Value value_;
};

// A call with constant arguments: the result is known, but the cost still counts.
class FoldedNode final : public Node {
 public:
  FoldedNode(Value value, std::vector<std::uint64_t> charges)
      : Node(Leaf::kFolded), value_(value), charges_(std::move(charges)) {
    for (const std::uint64_t charge : charges_) total_ += charge;
  }
  Value Eval(Frame& frame) const override {
    if (frame.cost + total_ <= frame.limit) {
      frame.cost += total_;
    } else {
      for (const std::uint64_t charge : charges_) frame.Charge(charge);
    }
    return value_;
  }
  const Value& value() const { return value_; }
  const std::vector<std::uint64_t>& charges() const { return charges_; }

 private:
  Value value_;
  std::vector<std::uint64_t> charges_;
  std::uint64_t total_ = 0;
};

class AndNode final : public Node {
 public:
  AndNode(const Node* left, const Node* right) : left_(left), right_(right) {}
  Value Eval(Frame& frame) const override;

 private:
  const Node* left_;
  const Node* right_;
};

class OrNode final : public Node {
 public:
  OrNode(const Node* left, const Node* right) : left_(left), right_(right) {}
  Value Eval(Frame& frame) const override;

 private:
  const Node* left_;
  const Node* right_;
};

class EqualNode final : public Node {
 public:
  EqualNode(const Node* left, const Node* right, bool negated);
  Value Eval(Frame& frame) const override;

 private:
  const Node* left_;
  const Node* right_;
  bool negated_;
  CallCost cost_;
};

// Returns false only for false: errors do not end a fold.
class NotStrictlyFalseNode final : public Node {
 public:
  explicit NotStrictlyFalseNode(const Node* operand) : operand_(operand) {}
  Value Eval(Frame& frame) const override;

 private:
  const Node* operand_;
};

inline constexpr std::size_t kMaxArguments = 8;

// An overload with as many arguments as the call has.
struct GuardedOverload {
  Implementation implementation = nullptr;
  ArgumentGuard guards[kMaxArguments];
};

// One of the candidate overloads, or a function that dispatches itself.
struct CallTarget {
  Implementation implementation = nullptr;
  std::vector<GuardedOverload> guarded;  // tried in order, by the kinds of the arguments
  const PreparedCall* prepared = nullptr;
};

class CallNode : public Node {
 public:
  // Has room for exactly the arguments it needs: filling unused slots costs more than most
  // functions.
  static std::unique_ptr<CallNode> Create(std::string function, CallTarget target,
                                          std::vector<Node*> args, CallCost rule);

  Value Invoke(CallContext& context, std::span<const Value> args) const {
    if (target_.prepared != nullptr) return target_.prepared->Call(context, args);
    for (const GuardedOverload& overload : target_.guarded) {
      bool passes = true;
      for (std::size_t i = 0; i < args.size() && passes; ++i)
        passes = overload.guards[i].Passes(args[i]);
      if (passes) return overload.implementation(context, args);
    }
    if (target_.implementation) return target_.implementation(context, args);
    return NoSuchOverload(context, args);
  }
  const std::vector<Node*>& args() const { return args_; }
  CallCost cost() const { return cost_; }
  // The only one there is, or null.
  const GuardedOverload* single() const { return single_; }

 protected:
  CallNode(std::string function, CallTarget target, std::vector<Node*> args, CallCost rule)
      : function_(std::move(function)),
        target_(std::move(target)),
        args_(std::move(args)),
        cost_(rule),
        flat_(rule == FlatCost) {
    if (target_.guarded.size() == 1 && target_.prepared == nullptr)
      single_ = target_.guarded.data();
  }

  void Charge(Frame& frame, std::span<const Value> args, const Value& result) const {
    frame.Charge(flat_ ? 1 : cost_(args, result));
  }

 private:
  Value NoSuchOverload(CallContext& context, std::span<const Value> args) const;

  std::string function_;
  CallTarget target_;
  std::vector<Node*> args_;
  CallCost cost_;
  bool flat_;
  const GuardedOverload* single_ = nullptr;
};

class ListNode final : public Node {
 public:
  ListNode(std::vector<Node*> elements, std::vector<bool> optional)
      : elements_(std::move(elements)), optional_(std::move(optional)) {}
  Value Eval(Frame& frame) const override;
  Value Build(Frame& frame) const;  // without its cost

 private:
  std::vector<Node*> elements_;
  std::vector<bool> optional_;
};

class MapNode final : public Node {
 public:
  struct Entry {
    Node* key;
    Node* value;
    bool optional;
  };
  explicit MapNode(std::vector<Entry> entries) : entries_(std::move(entries)) {}
  Value Eval(Frame& frame) const override;
  Value Build(Frame& frame) const;

 private:
  std::vector<Entry> entries_;
};

// x in [constants]: free of charge, as in CEL's optimiser.
class MembershipNode final : public Node {
 public:
  MembershipNode(const Node* operand, Value set) : operand_(operand), set_(set) {}
  Value Eval(Frame& frame) const override;

 private:
  const Node* operand_;
  Value set_;
};

// a.or(b) and a.orValue(b): b only if a is empty.
class OptionalOrNode final : public Node {
 public:
  OptionalOrNode(const Node* left, const Node* right, bool unwrap)
      : left_(left), right_(right), unwrap_(unwrap) {}
  Value Eval(Frame& frame) const override;

 private:
  const Node* left_;
  const Node* right_;
  bool unwrap_;
};

// google.protobuf.Int64Value{value: x} and its like.
class WrapperNode final : public Node {
 public:
  WrapperNode(const Node* value, Value default_value, bool single_precision)
      : value_(value), default_(default_value), single_precision_(single_precision) {}
  Value Eval(Frame& frame) const override;

 private:
  const Node* value_;  // null: the default
  Value default_;
  bool single_precision_;
};

// Object.spec{replicas: 3}. Texts belong to the program.
class RecordNode final : public Node {
 public:
  struct Field {
    std::string_view name;
    const Node* value;
    bool optional;
  };
  RecordNode(std::string_view type_name, std::vector<Field> fields)
      : type_name_(type_name), fields_(std::move(fields)) {}
  Value Eval(Frame& frame) const override;

 private:
  std::string_view type_name_;
  std::vector<Field> fields_;
};

// A comprehension. The accumulator is initialised when something first asks for it: that is what
// makes cel.bind lazy.
class FoldNode final : public Node {
 public:
  struct Parts {
    const Node* range = nullptr;
    const Node* init = nullptr;
    const Node* condition = nullptr;
    const Node* step = nullptr;
    const Node* result = nullptr;
    std::size_t accu_slot = 0;
    std::size_t iter_slot = 0;
    std::size_t iter2_slot = 0;
    bool two_variables = false;
  };
  Parts& parts() { return parts_; }
  Value Eval(Frame& frame) const override;
  Value Accumulator(Frame& frame) const {
    if (!frame.slot_ready[parts_.accu_slot]) {
      frame.slot_ready[parts_.accu_slot] = true;
      frame.slots[parts_.accu_slot] = parts_.init->Eval(frame);
    }
    return frame.slots[parts_.accu_slot];
  }

 private:
  bool Step(Frame& frame) const;

  Parts parts_;
};

}  // namespace drakkar::cel
