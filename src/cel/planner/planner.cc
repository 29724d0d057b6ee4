#include "cel/planner/planner.h"

#include <optional>

#include "base/text/text.h"
#include "cel/eval/attribute.h"
#include "cel/value/record.h"

namespace drakkar::cel {

class Planner {
 public:
  Planner(const CheckedAst& checked, const Declarations& declarations,
          const std::vector<std::string>& variables)
      : checked_(checked),
        declarations_(declarations),
        variables_(variables),
        program_(std::make_unique<Program>()) {}

  Result<std::unique_ptr<Program>> Run() {
    const Node* root = Visit(*checked_.ast.root);
    if (error_) return *error_;
    program_->root_ = root;
    program_->slot_count_ = slots_;
    program_->strict_presence_ = declarations_.strict_presence;
    CollectAccessPaths();
    return std::move(program_);
  }

 private:
  struct Local {
    std::string name;
    const FoldNode* fold = nullptr;  // an accumulator
    std::size_t slot = 0;            // otherwise
  };

  template <typename T>
  T* Own(std::unique_ptr<T> node) {
    T* borrowed = node.get();
    program_->nodes_.push_back(std::move(node));
    return borrowed;
  }
  template <typename T, typename... Args>
  T* New(Args&&... args) {
    return Own(std::make_unique<T>(std::forward<Args>(args)...));
  }
  Node* Constant(Value value) { return New<ConstantNode>(value); }
  Node* Fail(std::string message) {
    if (!error_) error_ = InvalidArgument(std::move(message));
    return Constant(MakeNull());
  }
  std::string_view Keep(std::string_view text) { return CopyText(program_->constants_, text); }

  Node* Visit(const Expr& expr) {
    switch (expr.kind) {
      case ExprKind::kLiteral:
        return Constant(LiteralValue(expr.literal));
      case ExprKind::kIdent:
        return VisitIdent(expr);
      case ExprKind::kSelect:
        return VisitSelect(expr);
      case ExprKind::kCall:
        return VisitCall(expr);
      case ExprKind::kList:
        return VisitList(expr);
      case ExprKind::kMap:
        return VisitMap(expr);
      case ExprKind::kStruct:
        return VisitStruct(expr);
      case ExprKind::kComprehension:
        return VisitFold(expr);
      case ExprKind::kUnspecified:
        break;
    }
    return Fail("unsupported expression");
  }

  Value LiteralValue(const Literal& literal) {
    switch (literal.index()) {
      case 0:
        return MakeNull();
      case 1:
        return MakeBool(std::get<bool>(literal));
      case 2:
        return MakeInt(std::get<std::int64_t>(literal));
      case 3:
        return MakeUint(std::get<std::uint64_t>(literal));
      case 4:
        return MakeDouble(std::get<double>(literal));
      case 5:
        return MakeString(Keep(std::get<std::string>(literal)));
      default:
        return MakeBytes(Keep(std::get<BytesLiteral>(literal).value));
    }
  }

  Node* VisitIdent(const Expr& expr) {
    const Reference* reference = checked_.ReferenceOf(expr);
    for (std::size_t i = reference ? 0 : locals_.size(); i > 0; --i) {
      const Local& local = locals_[i - 1];
      if (local.name != expr.name) continue;
      return Own(local.fold ? AttributeNode::Accumulator(local.fold)
                            : AttributeNode::Slot(local.slot));
    }
    if (reference) {
      if (reference->constant) return Constant(MakeInt(*reference->constant));
      if (reference->is_type) {
        const TypeRef* type = declarations_.FindTypeName(reference->name);
        return Constant(MakeType(Keep(type ? (*type)->name() : reference->name)));
      }
      for (std::size_t i = 0; i < variables_.size(); ++i) {
        if (variables_[i] == reference->name) return Own(AttributeNode::Variable(i));
      }
    }
    return Constant(NewError(program_->constants_, StrCat("no such attribute(s): ", expr.name)));
  }

  AttributeNode* AttributeOf(Node* node) {
    if (AttributeNode* attribute = node->AsAttribute()) return attribute;
    return Own(AttributeNode::Relative(node));
  }

  Node* VisitSelect(const Expr& expr) {
    AttributeNode* attribute = AttributeOf(Visit(*expr.operand));
    Qualifier qualifier;
    qualifier.key = MakeString(Keep(expr.name));
    qualifier.test_only = expr.test_only;
    attribute->AddQualifier(qualifier);
    if (expr.test_only) attribute->SetTestOnly();
    return attribute;
  }

  Node* VisitIndex(const Expr& expr, bool optional) {
    AttributeNode* attribute = AttributeOf(Visit(*expr.args[0]));
    Node* index = Visit(*expr.args[1]);
    Qualifier qualifier;
    qualifier.optional = optional;
    if (const ConstantNode* constant = index->AsConstant()) {
      qualifier.key = constant->value();
    } else {
      qualifier.node = index;
      qualifier.attribute = index->AsAttribute();
    }
    attribute->AddQualifier(qualifier);
    return attribute;
  }

  Node* VisitCall(const Expr& expr) {
    const std::string& name = expr.name;
    if (name == names::kIndex) return VisitIndex(expr, false);
    if (name == names::kOptIndex || name == names::kOptSelect) return VisitIndex(expr, true);
    std::vector<Node*> args;
    if (expr.operand) args.push_back(Visit(*expr.operand));
    for (const ExprPtr& arg : expr.args) args.push_back(Visit(*arg));
    if (args.size() > kMaxArguments) return Fail(StrCat("too many arguments for ", name));
    if (name == names::kAnd) return New<AndNode>(args[0], args[1]);
    if (name == names::kOr) return New<OrNode>(args[0], args[1]);
    if (name == names::kConditional) {
      return Own(AttributeNode::Conditional(args[0], AttributeOf(args[1]), AttributeOf(args[2])));
    }
    if (name == names::kEquals) return New<EqualNode>(args[0], args[1], false);
    if (name == names::kNotEquals) return New<EqualNode>(args[0], args[1], true);
    if (name == names::kNotStrictlyFalse) return New<NotStrictlyFalseNode>(args[0]);
    if ((name == "or" || name == "orValue") && expr.operand && args.size() == 2) {
      return New<OptionalOrNode>(args[0], args[1], name == "orValue");
    }
    return Call(expr, std::move(args));
  }

  Node* Call(const Expr& expr, std::vector<Node*> args) {
    const Function* function = declarations_.FindFunction(expr.name);
    const Reference* reference = checked_.ReferenceOf(expr);
    if (function == nullptr) {
      return Constant(NewError(program_->constants_, StrCat("no such overload: ", expr.name)));
    }
    std::vector<const Overload*> candidates;
    for (const Overload& overload : function->overloads) {
      if (overload.is_member != (expr.operand != nullptr)) continue;
      bool named = reference == nullptr || reference->overload_ids.empty();
      if (!named) {
        for (const std::string& id : reference->overload_ids) named = named || id == overload.id;
      }
      if (named) candidates.push_back(&overload);
    }
    const std::string overload_id = candidates.size() == 1 ? candidates[0]->id : "";
    if (overload_id == "in_list") {
      if (Node* membership = Membership(args)) return membership;
    }
    CallTarget target;
    target.implementation = function->implementation;
    for (const Overload* candidate : candidates) {
      if (!candidate->implementation || candidate->args.size() != args.size()) continue;
      GuardedOverload& guarded = target.guarded.emplace_back();
      guarded.implementation = candidate->implementation;
      for (std::size_t i = 0; i < args.size(); ++i)
        guarded.guards[i] = GuardFor(*candidate->args[i]);
    }
    target.prepared = Prepared(*function, candidates, args);
    auto call =
        CallNode::Create(expr.name, std::move(target), args, ActualCostOf(expr.name, overload_id));
    return Fold(expr.name, std::move(call));
  }

  const PreparedCall* Prepared(const Function& function,
                               const std::vector<const Overload*>& candidates,
                               const std::vector<Node*>& args) {
    Prepare prepare = candidates.size() == 1 ? candidates[0]->prepare : nullptr;
    if (prepare == nullptr && candidates.size() == 1) prepare = function.prepare;
    if (prepare == nullptr) return nullptr;
    std::vector<const Value*> constants;
    for (const Node* arg : args) {
      const ConstantNode* constant = arg->AsConstant();
      constants.push_back(constant ? &constant->value() : nullptr);
    }
    std::unique_ptr<PreparedCall> prepared = prepare(constants);
    if (prepared == nullptr) return nullptr;
    program_->prepared_.push_back(std::move(prepared));
    return program_->prepared_.back().get();
  }

  static bool IsConversion(std::string_view name) {
    for (const std::string_view conversion : {"bool", "bytes", "double", "duration", "dyn", "int",
                                              "string", "timestamp", "type", "uint"}) {
      if (name == conversion) return true;
    }
    return false;
  }

  // Whether a value created now may be shared by all evaluations: not if it can be appended to.
  static bool IsShareable(const Value& value) {
    return value.kind != Kind::kList && value.kind != Kind::kMap && value.kind != Kind::kOptional &&
           !value.IsError();
  }

  // Conversions of constants become constants; other calls keep their cost.
  Node* Fold(const std::string& name, std::unique_ptr<CallNode> call) {
    std::vector<Value> values;
    std::vector<std::uint64_t> charges;
    bool all_constant = true;
    for (Node* arg : call->args()) {
      if (const ConstantNode* constant = arg->AsConstant()) {
        values.push_back(constant->value());
      } else if (const auto* folded = dynamic_cast<const FoldedNode*>(arg)) {
        values.push_back(folded->value());
        charges.insert(charges.end(), folded->charges().begin(), folded->charges().end());
        all_constant = false;
      } else {
        return Own(std::move(call));
      }
      if (values.back().IsError()) return Own(std::move(call));
    }
    CallContext context{program_->constants_};
    const Value result = call->Invoke(context, values);
    if (IsConversion(name) && values.size() == 1 && all_constant) {
      if (result.IsError()) return Fail(result.error->message);
      return Constant(result);
    }
    if (!IsShareable(result)) return Own(std::move(call));
    charges.push_back(call->cost()(values, result));
    return New<FoldedNode>(result, std::move(charges));
  }

  // Null unless the list is a constant of hashable elements.
  Node* Membership(const std::vector<Node*>& args) {
    const ConstantNode* constant = args[1]->AsConstant();
    if (constant == nullptr || constant->value().kind != Kind::kList) return nullptr;
    const Value& list = constant->value();
    if (list.size == 0) return Constant(MakeBool(false));
    Value set = NewMap(program_->constants_, list.size);
    for (std::uint32_t i = 0; i < list.size; ++i) {
      const Value& item = ListItems(list)[i];
      if (!item.IsNumber() && item.kind != Kind::kBool && item.kind != Kind::kString)
        return nullptr;
      set = MapInsert(program_->constants_, set, item, MakeNull());
    }
    Freeze(set);
    return New<MembershipNode>(args[0], set);
  }

  Frame ConstantFrame() {
    return Frame{program_->constants_, {}, nullptr, nullptr, ~std::uint64_t{0}};
  }

  Node* VisitList(const Expr& expr) {
    std::vector<Node*> elements;
    std::vector<bool> optional(expr.args.size(), false);
    for (const std::size_t i : expr.optional_indices) optional[i] = true;
    bool constant = true;
    for (const ExprPtr& arg : expr.args) {
      elements.push_back(Visit(*arg));
      constant = constant && elements.back()->AsConstant() != nullptr;
    }
    auto list = std::make_unique<ListNode>(std::move(elements), std::move(optional));
    if (!constant) return Own(std::move(list));
    Frame frame = ConstantFrame();
    return Constant(list->Build(frame));
  }

  Node* VisitMap(const Expr& expr) {
    std::vector<MapNode::Entry> entries;
    bool constant = true;
    for (const MapEntry& entry : expr.entries) {
      Node* key = Visit(*entry.key);
      Node* value = Visit(*entry.value);
      entries.push_back({key, value, entry.optional});
      constant = constant && key->AsConstant() && value->AsConstant();
    }
    auto map = std::make_unique<MapNode>(std::move(entries));
    if (!constant) return Own(std::move(map));
    Frame frame = ConstantFrame();
    const Value value = map->Build(frame);
    if (!value.IsError()) Freeze(value);
    return Constant(value);
  }

  Node* VisitStruct(const Expr& expr) {
    const TypeRef& type = checked_.TypeOf(expr);
    if (type->kind() == TypeKind::kStruct && declarations_.FindStruct(kObjectTypeName)) {
      std::vector<RecordNode::Field> fields;
      for (const StructField& field : expr.fields) {
        fields.push_back({Keep(field.name), Visit(*field.value), field.optional});
      }
      return New<RecordNode>(Keep(expr.name), std::move(fields));
    }
    if (!type->nullable()) return Fail(StrCat("unknown type: ", expr.name));
    Value default_value;
    switch (type->kind()) {
      case TypeKind::kBool:
        default_value = MakeBool(false);
        break;
      case TypeKind::kInt:
        default_value = MakeInt(0);
        break;
      case TypeKind::kUint:
        default_value = MakeUint(0);
        break;
      case TypeKind::kDouble:
        default_value = MakeDouble(0);
        break;
      case TypeKind::kString:
        default_value = MakeString("");
        break;
      default:
        default_value = MakeBytes("");
        break;
    }
    const Node* value = expr.fields.empty() ? nullptr : Visit(*expr.fields[0].value);
    return New<WrapperNode>(value, default_value, expr.name == "google.protobuf.FloatValue");
  }

  Node* VisitFold(const Expr& expr) {
    const Comprehension& fold = *expr.comprehension;
    auto* node = New<FoldNode>();
    FoldNode::Parts& parts = node->parts();
    parts.init = Visit(*fold.accu_init);
    parts.range = Visit(*fold.iter_range);
    parts.accu_slot = slots_++;
    parts.iter_slot = slots_++;
    parts.two_variables = !fold.iter_var2.empty();
    if (parts.two_variables) parts.iter2_slot = slots_++;
    locals_.push_back({fold.accu_var, node});
    locals_.push_back({fold.iter_var, nullptr, parts.iter_slot});
    if (parts.two_variables) locals_.push_back({fold.iter_var2, nullptr, parts.iter2_slot});
    parts.condition = Visit(*fold.loop_condition);
    parts.step = Visit(*fold.loop_step);
    locals_.resize(locals_.size() - (parts.two_variables ? 2 : 1));
    parts.result = Visit(*fold.result);
    locals_.pop_back();
    return node;
  }

  void CollectAccessPaths() {
    for (const std::unique_ptr<Node>& node : program_->nodes_) {
      AttributeNode* attribute = node->AsAttribute();
      if (attribute != nullptr) attribute->PreparePath();
      if (attribute == nullptr || attribute->base() != AttributeNode::Base::kVariable) continue;
      AccessPath path{attribute->index(), {}};
      for (const Qualifier& qualifier : attribute->qualifiers()) {
        if (qualifier.node != nullptr || qualifier.key.kind != Kind::kString) break;
        path.keys.emplace_back(qualifier.key.text());
      }
      program_->access_paths_.push_back(std::move(path));
    }
  }

  const CheckedAst& checked_;
  const Declarations& declarations_;
  const std::vector<std::string>& variables_;
  std::unique_ptr<Program> program_;
  std::optional<Error> error_;
  std::vector<Local> locals_;
  std::size_t slots_ = 0;
};

Result<std::unique_ptr<Program>> Plan(const CheckedAst& checked, const Declarations& declarations,
                                      const std::vector<std::string>& variables) {
  return Planner(checked, declarations, variables).Run();
}

}  // namespace drakkar::cel
