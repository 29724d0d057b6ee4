#include "cel/eval/attribute.h"

#include <cmath>
#include <memory>

#include "base/text/text.h"

namespace drakkar::cel {
namespace {

enum class Access { kFound, kMissing, kError };

// A list index from any number that is one.
bool IndexFrom(const Value& key, std::int64_t* index) {
  switch (key.kind) {
    case Kind::kInt:
      *index = key.integer;
      return true;
    case Kind::kUint:
      if (key.unsigned_integer > static_cast<std::uint64_t>(INT64_MAX)) return false;
      *index = static_cast<std::int64_t>(key.unsigned_integer);
      return true;
    case Kind::kDouble:
      if (std::trunc(key.number) != key.number || std::fabs(key.number) > 9.0e15) return false;
      *index = static_cast<std::int64_t>(key.number);
      return true;
    default:
      return false;
  }
}

// object[key]. With `lenient`, a value without keys contains none instead of failing.
Access Lookup(Frame& frame, const Value& object, const Value& key, bool lenient, Value* out) {
  switch (object.kind) {
    case Kind::kMap:
      if (object.map->Find(key, object.size, out)) return Access::kFound;
      if (lenient) return Access::kMissing;
      *out = NewError(frame.arena, StrCat("no such key: ", DebugText(key)));
      return Access::kError;
    case Kind::kList: {
      std::int64_t index = 0;
      if (!IndexFrom(key, &index)) {
        *out = NewError(frame.arena,
                        key.IsNumber()
                            ? StrCat("unsupported index value ", DebugText(key), " in list")
                            : StrCat("unsupported index type '", TypeName(key), "' in list"));
        return Access::kError;
      }
      if (index >= 0 && index < static_cast<std::int64_t>(object.size)) {
        *out = ListItems(object)[index];
        return Access::kFound;
      }
      if (lenient) return Access::kMissing;
      *out = NewError(frame.arena, StrCat("index out of bounds: ", DebugText(key)));
      return Access::kError;
    }
    case Kind::kError:
      *out = object;
      return Access::kError;
    default:
      if (lenient && !frame.strict_presence) return Access::kMissing;
      *out = NewError(frame.arena, StrCat("no such key: ", DebugText(key)));
      return Access::kError;
  }
}

}  // namespace

std::unique_ptr<AttributeNode> AttributeNode::Variable(std::size_t index) {
  std::unique_ptr<AttributeNode> node(new AttributeNode(Base::kVariable));
  node->index_ = index;
  return node;
}
std::unique_ptr<AttributeNode> AttributeNode::Slot(std::size_t slot) {
  std::unique_ptr<AttributeNode> node(new AttributeNode(Base::kSlot));
  node->index_ = slot;
  return node;
}
std::unique_ptr<AttributeNode> AttributeNode::Accumulator(const FoldNode* fold) {
  std::unique_ptr<AttributeNode> node(new AttributeNode(Base::kAccumulator));
  node->fold_ = fold;
  return node;
}
std::unique_ptr<AttributeNode> AttributeNode::Relative(const Node* operand) {
  std::unique_ptr<AttributeNode> node(new AttributeNode(Base::kNode));
  node->operand_ = operand;
  return node;
}
std::unique_ptr<AttributeNode> AttributeNode::Conditional(const Node* condition,
                                                          AttributeNode* then,
                                                          AttributeNode* otherwise) {
  std::unique_ptr<AttributeNode> node(new AttributeNode(Base::kConditional));
  node->operand_ = condition;
  node->then_ = then;
  node->otherwise_ = otherwise;
  return node;
}

void AttributeNode::AddQualifier(const Qualifier& qualifier) {
  if (base_ == Base::kConditional) {
    then_->AddQualifier(qualifier);
    otherwise_->AddQualifier(qualifier);
    return;
  }
  qualifiers_.push_back(qualifier);
}

void AttributeNode::PreparePath() {
  if (base_ != Base::kVariable || qualifiers_.size() < 2) return;
  std::vector<std::string_view> path;
  for (const Qualifier& qualifier : qualifiers_) {
    if (qualifier.node != nullptr || qualifier.optional || qualifier.test_only ||
        qualifier.key.kind != Kind::kString) {
      return;
    }
    path.push_back(qualifier.key.text());
  }
  path_keys_ = std::move(path);
  path_text_ = JoinKeys(path_keys_);
  path_ = {path_keys_, path_text_, HashJoined(path_text_)};
}

Value AttributeNode::Resolve(Frame& frame) const {
  switch (base_) {
    case Base::kVariable:
      if (Value found; path_.hash != 0 && ResolvePath(frame, path_.keys.size(), &found))
        return found;
      return Qualify(frame, frame.variables[index_]);
    case Base::kSlot:
      return Qualify(frame, frame.slots[index_]);
    case Base::kAccumulator:
      return Qualify(frame, fold_->Accumulator(frame));
    case Base::kNode:
      return Qualify(frame, operand_->Eval(frame));
    case Base::kConditional:
      break;
  }
  const Value condition = operand_->Eval(frame);
  if (condition.IsTrue()) return then_->Resolve(frame);
  if (condition.IsFalse()) return otherwise_->Resolve(frame);
  return condition.IsError() ? condition : NewError(frame.arena, "no such overload");
}

Value AttributeNode::Qualify(Frame& frame, Value object) const {
  if (qualifiers_.empty() || object.IsError()) return object;
  bool optional = false;
  if (object.kind == Kind::kOptional) {
    if (object.optional == nullptr) return object;
    object = *object.optional;
    optional = true;
  }
  for (const Qualifier& qualifier : qualifiers_) {
    optional = optional || qualifier.optional;
    Value key = qualifier.key;
    if (qualifier.node != nullptr) {
      key = qualifier.attribute ? qualifier.attribute->Resolve(frame) : qualifier.node->Eval(frame);
    }
    Value out;
    const bool lenient = optional || qualifier.test_only;
    Access access = Access::kError;
    if (key.IsError()) {
      out = key;
    } else {
      access = Lookup(frame, object, key, lenient, &out);
    }
    if (!optional || access == Access::kFound || qualifier.test_only) frame.Charge(1);
    if (access == Access::kError) return out;
    if (qualifier.test_only) return MakeBool(access == Access::kFound);
    if (access == Access::kMissing) return MakeOptional(nullptr);
    object = out;
  }
  return optional ? NewOptional(frame.arena, object) : object;
}

}  // namespace drakkar::cel
