#include "api/apply/field_set.h"

#include <algorithm>

#include "api/apply/fields_writer.h"
#include "api/json/reader.h"
#include "api/json/writer.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::api {
namespace {

// Reads {"f:a":{},"k:{...}":{...}}. FieldsV1 contains only objects and names.
class Parser {
 public:
  // With `lasting`, names are copied, and schema names get their ids.
  Parser(std::string_view json, bool lasting, Arena& arena)
      : json_(json), lasting_(lasting), arena_(arena) {}

  Result<const FieldNode*> Run() {
    FieldNode root;
    if (!ReadObject(root, 0)) return Error{ErrorCode::kInvalidArgument, Problem()};
    Skip();
    if (at_ != json_.size()) return Error{ErrorCode::kInvalidArgument, Problem()};
    if (root.count == 0) return static_cast<const FieldNode*>(nullptr);
    root.marks = 0;
    FieldNode* kept = arena_.AllocateArray<FieldNode>(1);
    return static_cast<const FieldNode*>(new (kept) FieldNode(root));
  }

 private:
  std::string Problem() const { return StrCat("fieldsV1 is not a set of fields at byte ", at_); }
  void Skip() {
    while (at_ < json_.size() &&
           (json_[at_] == ' ' || json_[at_] == '\n' || json_[at_] == '\t' || json_[at_] == '\r')) {
      ++at_;
    }
  }
  bool Take(char c) {
    Skip();
    if (at_ >= json_.size() || json_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool ReadName(std::string_view& out) {
    if (!Take('"')) return false;
    const std::size_t start = at_;
    bool escaped = false;
    while (at_ < json_.size() && json_[at_] != '"') {
      if (json_[at_] == '\\') {
        escaped = true;
        ++at_;
      }
      ++at_;
    }
    if (at_ >= json_.size()) return false;
    ++at_;
    if (!escaped) {
      out = json_.substr(start, at_ - 1 - start);
      if (lasting_) out = arena_.CopyText(out);
      return true;
    }
    if (ReadSimple(json_.substr(start, at_ - 1 - start), out)) return true;
    Result<TreePtr> text = ParseJson(json_.substr(start - 1, at_ - start + 1));
    if (!text.ok()) return false;
    out = arena_.CopyText((*text)->root().str());
    return true;
  }

  // Inside names, only the quotes of keys are escaped: {\"name\":\"a\"}.
  bool ReadSimple(std::string_view text, std::string_view& out) {
    char* const copy = static_cast<char*>(arena_.Allocate(text.size()));
    std::size_t size = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      char c = text[i];
      if (static_cast<signed char>(c) < 0x20) return false;
      if (c == '\\') {
        c = ++i < text.size() ? text[i] : '\0';
        if (c != '"' && c != '\\') return false;
      }
      copy[size++] = c;
    }
    out = {copy, size};
    return true;
  }

  static bool IsKind(char c) { return c == 'f' || c == 'k' || c == 'v' || c == 'i' || c == '\0'; }

  bool ReadObject(FieldNode& node, int depth) {
    if (depth > kMaxFieldSetDepth || !Take('{')) return false;
    if (Take('}')) return true;
    const std::size_t first = scratch_.size();
    do {
      std::string_view name;
      if (!ReadName(name) || !Take(':')) return false;
      if (name == ".") {
        if (!Take('{') || !Take('}')) return false;
        node.marks |= kOwned;
        continue;
      }
      if (name.size() < 2 || name[1] != ':' || !IsKind(name[0])) return false;
      FieldNode child;
      child.kind = name[0];
      child.text = name.substr(2);
      if (lasting_ && child.kind == 'f') {
        if (const Key* known = FindKey(child.text))
          child.id = static_cast<std::uint16_t>(known->id);
      }
      if (!ReadObject(child, depth + 1)) return false;
      // A path that ends here belongs to the set implicitly.
      if (child.count == 0) child.marks |= kOwned;
      scratch_.push_back(child);
    } while (Take(','));
    if (!Take('}')) return false;
    SetChildren(node, scratch_, first, arena_);
    return true;
  }

  std::string_view json_;
  bool lasting_;
  Arena& arena_;
  std::size_t at_ = 0;
  FieldStack scratch_;
};

const FieldNode* Keep(const FieldNode& node, Arena& arena) {
  if (node.count == 0 && node.marks == 0) return nullptr;
  return new (arena.AllocateArray<FieldNode>(1)) FieldNode(node);
}

bool HasOtherMarks(const FieldNode& node, std::uint8_t mask) {
  if ((node.marks & ~mask) != 0) return true;
  for (std::uint32_t i = 0; i < node.count; ++i) {
    if (HasOtherMarks(node.children[i], mask)) return true;
  }
  return false;
}

// The paths of the set that carry a mark in `mask`, as a plain set. Subtrees that keep everything
// are shared.
FieldNode Filtered(const FieldNode& node, std::uint8_t mask, FieldStack& scratch, Arena& arena) {
  if (mask == kOwned && !HasOtherMarks(node, mask)) return node;
  FieldNode out = node;
  out.children = nullptr;
  out.marks = (node.marks & mask) != 0 ? kOwned : std::uint8_t{0};
  const std::size_t first = scratch.size();
  for (std::uint32_t i = 0; i < node.count; ++i) {
    const FieldNode child = Filtered(node.children[i], mask, scratch, arena);
    if (child.marks != 0 || child.count != 0) scratch.push_back(child);
  }
  SetChildren(out, scratch, first, arena);
  return out;
}

// What combining one field costs, in steps of the work budget.
constexpr std::size_t kStepsPerField = 16;

enum class SetOperation { kUnion, kSubtract, kIntersect };

// Both sets contain this path. Subtrees that only one of them has are shared, not copied.
FieldNode Combine(const FieldNode& a, const FieldNode& b, std::uint8_t mask, SetOperation what,
                  FieldStack& scratch, Arena& arena) {
  WorkBudget::Charge(kStepsPerField * (a.count + b.count));
  if (WorkBudget::IsExceeded()) return a;
  const bool in_b = (b.marks & mask) != 0;
  FieldNode out;
  out.kind = a.kind;
  out.text = a.text;
  switch (what) {
    case SetOperation::kUnion:
      out.marks = a.marks != 0 || in_b ? kOwned : std::uint8_t{0};
      break;
    case SetOperation::kSubtract:
      out.marks = in_b ? std::uint8_t{0} : a.marks;
      break;
    case SetOperation::kIntersect:
      out.marks = in_b ? a.marks : std::uint8_t{0};
      break;
  }
  const std::size_t first = scratch.size();
  auto keep = [&](const FieldNode& child) {
    if (child.marks != 0 || child.count != 0) scratch.push_back(child);
  };
  std::uint32_t i = 0, j = 0;
  while (i < a.count || j < b.count) {
    const int order = j >= b.count   ? -1
                      : i >= a.count ? 1
                                     : CompareElements(a.children[i], b.children[j]);
    if (order < 0) {
      if (what != SetOperation::kIntersect) keep(a.children[i]);
      ++i;
    } else if (order > 0) {
      if (what == SetOperation::kUnion) keep(Filtered(b.children[j], mask, scratch, arena));
      ++j;
    } else {
      keep(Combine(a.children[i++], b.children[j++], mask, what, scratch, arena));
    }
  }
  SetChildren(out, scratch, first, arena);
  return out;
}

const FieldNode* CombineSets(const FieldNode* a, const FieldNode* b, std::uint8_t mask,
                             SetOperation what, Arena& arena) {
  static const FieldNode kNothing;
  FieldStack scratch;
  return Keep(Combine(a == nullptr ? kNothing : *a, b == nullptr ? kNothing : *b, mask, what,
                      scratch, arena),
              arena);
}

void WriteNode(FieldsWriter& out, const FieldNode& node) {
  const bool itself = (node.marks & kOwned) != 0 && node.count > 0 && node.kind != 0;
  out.Open(itself);
  for (std::uint32_t i = 0; i < node.count; ++i) {
    const FieldNode& child = node.children[i];
    out.Name(child.kind, child.text, child.id != 0);
    if (child.count == 0) {
      out.Empty();
    } else {
      WriteNode(out, child);
    }
  }
  out.Close();
}

void Walk(const FieldNode& node, std::string& path,
          const std::function<void(const std::string&)>& each) {
  for (std::uint32_t i = 0; i < node.count; ++i) {
    const FieldNode& child = node.children[i];
    const std::size_t size = path.size();
    path += PathElementText(child.kind, child.text);
    if (child.marks != 0) each(path);
    Walk(child, path, each);
    path.resize(size);
  }
}

}  // namespace

Result<const FieldNode*> ParseFieldsV1(std::string_view json, Arena& arena) {
  return Parser(json, /*lasting=*/true, arena).Run();
}

Result<const FieldNode*> ParseBorrowedFieldsV1(std::string_view json, Arena& arena) {
  return Parser(json, /*lasting=*/false, arena).Run();
}

void WriteFieldsV1(FieldsWriter& out, const FieldNode* set) {
  if (set == nullptr) {
    out.Empty();
  } else {
    WriteNode(out, *set);
  }
}

void AppendFieldsV1(std::string& out, const FieldNode* set) {
  FieldsWriter writer;
  WriteFieldsV1(writer, set);
  out += writer.view();
}

void SetChildren(FieldNode& node, FieldStack& scratch, std::size_t first, Arena& arena) {
  const std::size_t count = scratch.size() - first;
  node.count = static_cast<std::uint32_t>(count);
  if (count == 0) return;
  FieldNode* const begin = scratch.begin() + first;
  if (!std::is_sorted(begin, scratch.end())) std::sort(begin, scratch.end());
  FieldNode* kept = arena.AllocateArray<FieldNode>(count);
  std::uninitialized_copy(begin, scratch.end(), kept);
  node.children = kept;
  scratch.resize(first);
}

const FieldNode* Union(const FieldNode* a, const FieldNode* b, std::uint8_t mask, Arena& arena) {
  if (b == nullptr) return a;
  if (a == nullptr && mask == kOwned && !HasOtherMarks(*b, mask)) return b;
  return CombineSets(a, b, mask, SetOperation::kUnion, arena);
}

const FieldNode* Subtract(const FieldNode* a, const FieldNode* b, std::uint8_t mask, Arena& arena) {
  if (!Intersects(a, b, mask)) return a;
  return CombineSets(a, b, mask, SetOperation::kSubtract, arena);
}

const FieldNode* Intersect(const FieldNode* a, const FieldNode* b, std::uint8_t mask,
                           Arena& arena) {
  if (!Intersects(a, b, mask)) return nullptr;
  return CombineSets(a, b, mask, SetOperation::kIntersect, arena);
}

bool Intersects(const FieldNode* a, const FieldNode* b, std::uint8_t mask) {
  if (a == nullptr || b == nullptr) return false;
  if (a->marks != 0 && (b->marks & mask) != 0) return true;
  std::uint32_t i = 0, j = 0;
  while (i < a->count && j < b->count) {
    const int order = CompareElements(a->children[i], b->children[j]);
    if (order < 0) {
      ++i;
    } else if (order > 0) {
      ++j;
    } else if (Intersects(&a->children[i++], &b->children[j++], mask)) {
      return true;
    }
  }
  return false;
}

const FieldNode* SubtractBelow(const FieldNode* a, const FieldNode* b, Arena& arena) {
  if (a == nullptr || b == nullptr) return a;
  FieldStack scratch;
  bool same = true;
  for (std::uint32_t i = 0; i < a->count; ++i) {
    const FieldNode& child = a->children[i];
    const FieldNode* other = FindChild(b, child);
    const FieldNode* rest = &child;
    if (other != nullptr) rest = other->marks != 0 ? nullptr : SubtractBelow(&child, other, arena);
    if (rest != nullptr) scratch.push_back(*rest);
    same = same && rest == &child;
  }
  if (same) return a;
  FieldNode out = *a;
  out.children = nullptr;
  SetChildren(out, scratch, 0, arena);
  return Keep(out, arena);
}

bool Includes(const FieldNode* a, const FieldNode* b) {
  if (b == nullptr) return true;
  if (a == nullptr || (a->marks == 0 && b->marks != 0)) return false;
  std::uint32_t i = 0, j = 0;
  while (j < b->count) {
    if (i == a->count) return false;
    const int order = CompareElements(a->children[i], b->children[j]);
    if (order > 0) return false;
    if (order == 0 && !Includes(&a->children[i], &b->children[j++])) return false;
    ++i;
  }
  return true;
}

bool SameSet(const FieldNode* a, const FieldNode* b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr) return false;
  if (a->marks != b->marks || a->count != b->count || !SameElement(*a, *b)) return false;
  for (std::uint32_t i = 0; i < a->count; ++i) {
    if (!SameSet(&a->children[i], &b->children[i])) return false;
  }
  return true;
}

const FieldNode* FindChild(const FieldNode* set, char kind, std::string_view text) {
  FieldNode wanted;
  wanted.kind = kind;
  wanted.text = text;
  return FindChild(set, wanted);
}

const FieldNode* FindChild(const FieldNode* set, const FieldNode& wanted) {
  if (set == nullptr) return nullptr;
  const FieldNode* end = set->children + set->count;
  const FieldNode* found = std::lower_bound(set->children, end, wanted);
  return found != end && SameElement(*found, wanted) ? found : nullptr;
}

std::string PathElementText(char kind, std::string_view text) {
  switch (kind) {
    case 'f':
      return StrCat(".", text);
    case 'i':
      return StrCat("[", text, "]");
    case 'v':
      return StrCat("[=", text, "]");
    default:
      break;
  }
  Result<TreePtr> keys = ParseJson(text);
  std::string out = "[";
  if (keys.ok()) {
    for (const auto& [key, name, value] : (*keys)->root().members()) {
      if (out.size() > 1) out += ',';
      out += StrCat(name, "=", WriteJson(value, {.escape_html = false}));
    }
  }
  return out + "]";
}

void ForEachPath(const FieldNode* set, const std::function<void(const std::string&)>& each) {
  if (set == nullptr) return;
  std::string path;
  Walk(*set, path, each);
}

}  // namespace drakkar::api
