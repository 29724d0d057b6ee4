#pragma once

#include <string_view>
#include <vector>

#include "cel/eval/node.h"

namespace drakkar::cel {

struct Qualifier {
  Value key;                                 // if node is null
  const Node* node = nullptr;                // computes the key
  const AttributeNode* attribute = nullptr;  // the same, when it is an attribute
  bool optional = false;
  bool test_only = false;
};

// A variable, a branch of a conditional or the value of an expression, followed by selections and
// indexes. Each selection costs one, and the whole costs one more unless it only tests presence or
// stands for a branch of ?:.
class AttributeNode final : public Node {
 public:
  enum class Base { kVariable, kSlot, kAccumulator, kNode, kConditional };

  static std::unique_ptr<AttributeNode> Variable(std::size_t index);
  static std::unique_ptr<AttributeNode> Slot(std::size_t slot);
  static std::unique_ptr<AttributeNode> Accumulator(const FoldNode* fold);
  static std::unique_ptr<AttributeNode> Relative(const Node* operand);
  static std::unique_ptr<AttributeNode> Conditional(const Node* condition, AttributeNode* then,
                                                    AttributeNode* otherwise);

  AttributeNode* AsAttribute() override { return this; }
  void AddQualifier(const Qualifier& qualifier);
  void SetTestOnly() { test_only_ = true; }
  // Called when all qualifiers have been added: merges several constant keys after a variable into
  // one step.
  void PreparePath();

  Value Eval(Frame& frame) const override {
    // The steps of a path and the charge for the whole.
    if (Value found; path_.hash != 0 && ResolvePath(frame, path_.keys.size() + 1, &found))
      return found;
    const Value value = Resolve(frame);
    if (!test_only_ && base_ != Base::kConditional) frame.Charge(1);
    return value;
  }
  // Excluding the charge for the whole.
  Value Resolve(Frame& frame) const;

  Base base() const { return base_; }
  std::size_t index() const { return index_; }
  const std::vector<Qualifier>& qualifiers() const { return qualifiers_; }

 private:
  explicit AttributeNode(Base base) : Node(Leaf::kAttribute), base_(base) {}

  Value Qualify(Frame& frame, Value object) const;
  // Charges `cost` for it; near the limit the steps are taken one by one.
  bool ResolvePath(Frame& frame, std::uint64_t cost, Value* out) const {
    const Value& variable = frame.variables[index_];
    if (variable.kind != Kind::kMap || frame.cost + cost > frame.limit) return false;
    if (!variable.map->FindPath(path_, out)) return false;
    frame.cost += cost;
    return true;
  }

  Base base_;
  bool test_only_ = false;
  std::size_t index_ = 0;
  const FoldNode* fold_ = nullptr;
  const Node* operand_ = nullptr;
  AttributeNode* then_ = nullptr;
  AttributeNode* otherwise_ = nullptr;
  std::vector<Qualifier> qualifiers_;
  std::vector<std::string_view> path_keys_;
  std::string path_text_;
  KeyPath path_;  // into the two above; its hash is zero unless PreparePath found one
};

inline Value EvalNode(const Node& node, Frame& frame) {
  switch (node.leaf()) {
    case Node::Leaf::kConstant:
      return static_cast<const ConstantNode&>(node).value();
    case Node::Leaf::kFolded:
      return static_cast<const FoldedNode&>(node).Eval(frame);
    case Node::Leaf::kAttribute:
      return static_cast<const AttributeNode&>(node).Eval(frame);
    case Node::Leaf::kNone:
      break;
  }
  return node.Eval(frame);
}

}  // namespace drakkar::cel
