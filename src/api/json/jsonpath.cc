#include "api/json/jsonpath.h"

#include <optional>
#include <variant>

#include "api/json/writer.h"
#include "base/text/text.h"

namespace drakkar::api {
namespace {

struct Step;
using Steps = std::vector<Step>;

struct Operand {
  enum class Kind { kPath, kText, kNumber, kBool, kNull };
  Kind kind = Kind::kNull;
  bool from_root = false;
  Steps path;
  std::string text;
  double number = 0;
  bool boolean = false;
};

struct Slice {
  std::optional<std::int64_t> first, last;
  std::int64_t stride = 1;
  bool is_index = false;  // only `first`
};

struct Step {
  enum class Kind { kField, kWildcard, kDescend, kSlices, kFields, kFilter };
  Kind kind = Kind::kField;
  std::vector<std::string> names;  // kField has one
  std::vector<Slice> slices;
  // kFilter: `left op right`. If op is empty: whether `left` exists.
  Operand left, right;
  std::string op;
};

}  // namespace

struct JsonPath::Node {
  enum class Kind { kText, kPath, kRange };
  Kind kind = Kind::kText;
  std::string text;
  bool from_root = false;
  Steps path;
  std::vector<Node> body;  // of a range
};

namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<std::vector<JsonPath::Node>> Template() {
    std::vector<JsonPath::Node> nodes;
    bool ended = false;
    if (auto error = Body(nodes, 0, ended)) return *error;
    if (ended) return Wrong("{end} without {range}");
    return nodes;
  }

 private:
  using Failure = std::optional<Error>;

  Error Wrong(std::string_view what) const {
    return InvalidArgument(
        StrCat("jsonpath ", Quote(text_), ": ", what, " at character ", at_ + 1));
  }
  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek() const { return AtEnd() ? '\0' : text_[at_]; }
  bool Take(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void SkipSpace() {
    while (Peek() == ' ' || Peek() == '\t') ++at_;
  }

  // Reads up to {end} (sets `ended`) or the end of the text.
  Failure Body(std::vector<JsonPath::Node>& nodes, int depth, bool& ended) {
    if (depth > kMaxJsonPathDepth) return Wrong("too many levels");
    while (!AtEnd()) {
      if (!Take("{")) {
        const std::size_t brace = std::min(text_.find('{', at_), text_.size());
        JsonPath::Node node;
        node.text = text_.substr(at_, brace - at_);
        nodes.push_back(std::move(node));
        at_ = brace;
        continue;
      }
      SkipSpace();
      if (Take("end")) {
        SkipSpace();
        if (!Take("}")) return Wrong("expected }");
        ended = true;
        return std::nullopt;
      }
      if (auto error = Action(nodes, depth)) return error;
    }
    return std::nullopt;
  }

  // The content of braces: one or more paths, texts or ranges.
  Failure Action(std::vector<JsonPath::Node>& nodes, int depth) {
    const std::size_t word = at_;
    if (Take("range") && (Peek() == ' ' || Peek() == '\t')) {
      SkipSpace();
      JsonPath::Node range;
      range.kind = JsonPath::Node::Kind::kRange;
      if (auto error = Path(range.path, range.from_root, depth)) return error;
      SkipSpace();
      if (!Take("}")) return Wrong("expected }");
      bool ended = false;
      if (auto error = Body(range.body, depth + 1, ended)) return error;
      if (!ended) return Wrong("{range} without {end}");
      nodes.push_back(std::move(range));
      return std::nullopt;
    }
    at_ = word;
    while (true) {
      SkipSpace();
      if (Take("}")) return std::nullopt;
      if (AtEnd()) return Wrong("expected }");
      JsonPath::Node node;
      if (Peek() == '"' || Peek() == '\'') {
        if (auto error = QuotedText(node.text)) return error;
      } else {
        node.kind = JsonPath::Node::Kind::kPath;
        if (auto error = Path(node.path, node.from_root, depth)) return error;
      }
      nodes.push_back(std::move(node));
    }
  }

  Failure QuotedText(std::string& out) {
    const char quote = text_[at_++];
    while (!AtEnd() && Peek() != quote) {
      char c = text_[at_++];
      if (c == '\\' && !AtEnd()) {
        c = text_[at_++];
        if (c == 'n') c = '\n';
        if (c == 't') c = '\t';
        if (c == 'r') c = '\r';
      }
      out += c;
    }
    if (AtEnd()) return Wrong("a quote is not closed");
    ++at_;
    return std::nullopt;
  }

  static bool EndsName(char c) {
    return c == '\0' || c == '.' || c == '[' || c == ']' || c == '}' || c == '{' || c == ' ' ||
           c == '\t' || c == ')' || c == '(' || c == ',' || c == '=' || c == '!' || c == '<' ||
           c == '>' || c == '|' || c == '"' || c == '\'' || c == '@' || c == '$' || c == '?';
  }

  Failure Name(std::string& out) {
    while (!AtEnd() && !EndsName(Peek())) {
      if (Peek() == '\\' && at_ + 1 < text_.size()) ++at_;
      out += text_[at_++];
    }
    if (out.empty()) return Wrong("expected a field name");
    return std::nullopt;
  }

  Failure Path(Steps& steps, bool& from_root, int depth) {
    bool any = Take("$");  // a part of this path has been read, so it is not empty
    if (any) {
      from_root = true;
    } else {
      any = Take("@");
    }
    while (true) {
      if (Take("..")) {
        Step step;
        step.kind = Step::Kind::kDescend;
        steps.push_back(std::move(step));
        if (Peek() == '[') {
          any = true;
          continue;
        }
      } else if (Peek() == '[') {
        if (auto error = Brackets(steps, depth)) return error;
        any = true;
        continue;
      } else if (!Take(".")) {
        if (any) return std::nullopt;
        return Wrong("expected a path that starts with . or [");
      }
      any = true;
      if (Peek() == '[') continue;
      // "{.}" and "{@}" are the object itself.
      if (EndsName(Peek()) && (steps.empty() || steps.back().kind != Step::Kind::kDescend)) {
        return std::nullopt;
      }
      Step step;
      if (Take("*")) {
        step.kind = Step::Kind::kWildcard;
      } else {
        step.names.emplace_back();
        if (auto error = Name(step.names.back())) return error;
      }
      steps.push_back(std::move(step));
    }
  }

  Failure Integer(std::optional<std::int64_t>& out) {
    const std::size_t begin = at_;
    Take("-");
    while (Peek() >= '0' && Peek() <= '9') ++at_;
    if (at_ == begin) return std::nullopt;
    out = ParseInt64(text_.substr(begin, at_ - begin));
    if (!out) return Wrong("expected a whole number");
    return std::nullopt;
  }

  Failure Brackets(Steps& steps, int depth) {
    Take("[");
    SkipSpace();
    Step step;
    if (Take("?(")) {
      if (depth > kMaxJsonPathDepth) return Wrong("too many levels");
      step.kind = Step::Kind::kFilter;
      if (auto error = Filter(step, depth + 1)) return error;
      SkipSpace();
      if (!Take(")")) return Wrong("expected )");
    } else if (Take("*")) {
      step.kind = Step::Kind::kWildcard;
    } else if (Peek() == '\'' || Peek() == '"') {
      step.kind = Step::Kind::kFields;
      do {
        SkipSpace();
        if (Peek() != '\'' && Peek() != '"') return Wrong("expected a name in quotes");
        step.names.emplace_back();
        if (auto error = QuotedText(step.names.back())) return error;
        SkipSpace();
      } while (Take(","));
    } else {
      step.kind = Step::Kind::kSlices;
      do {
        SkipSpace();
        Slice slice;
        if (auto error = Integer(slice.first)) return error;
        slice.is_index = true;
        if (Take(":")) {
          slice.is_index = false;
          if (auto error = Integer(slice.last)) return error;
          if (Take(":")) {
            std::optional<std::int64_t> stride;
            if (auto error = Integer(stride)) return error;
            slice.stride = stride.value_or(1);
            if (slice.stride <= 0) return Wrong("the step must be above 0");
          }
        } else if (!slice.first) {
          return Wrong("expected an index, a name in quotes, * or ?()");
        }
        step.slices.push_back(slice);
        SkipSpace();
      } while (Take(","));
    }
    SkipSpace();
    if (!Take("]")) return Wrong("expected ]");
    steps.push_back(std::move(step));
    return std::nullopt;
  }

  Failure Filter(Step& step, int depth) {
    if (auto error = ReadOperand(step.left, depth)) return error;
    SkipSpace();
    for (std::string_view op : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (!Take(op)) continue;
      step.op = op;
      return ReadOperand(step.right, depth);
    }
    return std::nullopt;
  }

  Failure ReadOperand(Operand& operand, int depth) {
    SkipSpace();
    const char c = Peek();
    if (c == '@' || c == '$' || c == '.') {
      operand.kind = Operand::Kind::kPath;
      return Path(operand.path, operand.from_root, depth);
    }
    if (c == '"' || c == '\'') {
      operand.kind = Operand::Kind::kText;
      return QuotedText(operand.text);
    }
    std::string word;
    while (!AtEnd() && (!EndsName(Peek()) || Peek() == '.')) word += text_[at_++];
    if (word == "true" || word == "false") {
      operand.kind = Operand::Kind::kBool;
      operand.boolean = word == "true";
    } else if (word == "null" || word == "nil") {
      operand.kind = Operand::Kind::kNull;
    } else {
      char* end = nullptr;
      operand.kind = Operand::Kind::kNumber;
      operand.number = std::strtod(word.c_str(), &end);
      if (word.empty() || *end != '\0') {
        return Wrong("expected @, a text in quotes, a number, true or false");
      }
    }
    return std::nullopt;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

class Evaluator {
 public:
  explicit Evaluator(Value root) : root_(root) {}

  std::vector<Value> Walk(const Steps& steps, bool from_root, Value current) const {
    std::vector<Value> values = {from_root ? root_ : current};
    for (const Step& step : steps) {
      std::vector<Value> next;
      for (Value value : values) Apply(step, value, next);
      values = std::move(next);
    }
    return values;
  }

  template <typename OnText, typename OnValues>
  void Run(const std::vector<JsonPath::Node>& nodes, Value current, OnText on_text,
           OnValues on_values) const {
    for (const JsonPath::Node& node : nodes) {
      switch (node.kind) {
        case JsonPath::Node::Kind::kText:
          on_text(node.text);
          break;
        case JsonPath::Node::Kind::kPath:
          on_values(Walk(node.path, node.from_root, current));
          break;
        case JsonPath::Node::Kind::kRange:
          for (Value item : Walk(node.path, node.from_root, current)) {
            Run(node.body, item, on_text, on_values);
          }
          break;
      }
    }
  }

 private:
  static void Children(Value value, std::vector<Value>& out) {
    for (Value element : value.elements()) out.push_back(element);
    for (const auto& member : value.members()) out.push_back(member.value);
  }
  // The value and all below it.
  static void Descend(Value value, std::vector<Value>& out) {
    out.push_back(value);
    std::vector<Value> children;
    Children(value, children);
    for (Value child : children) {
      if (child.is_array() || child.is_object()) Descend(child, out);
    }
  }

  void Apply(const Step& step, Value value, std::vector<Value>& out) const {
    switch (step.kind) {
      case Step::Kind::kField:
      case Step::Kind::kFields:
        for (const std::string& name : step.names) {
          if (Value member = value.Entry(name); member.exists()) out.push_back(member);
        }
        break;
      case Step::Kind::kWildcard:
        Children(value, out);
        break;
      case Step::Kind::kDescend:
        Descend(value, out);
        break;
      case Step::Kind::kSlices:
        if (!value.is_array()) break;
        for (const Slice& slice : step.slices) AddSlice(slice, value, out);
        break;
      case Step::Kind::kFilter: {
        std::vector<Value> children;
        Children(value, children);
        for (Value child : children) {
          if (Matches(step, child)) out.push_back(child);
        }
        break;
      }
    }
  }

  static void AddSlice(const Slice& slice, Value array, std::vector<Value>& out) {
    const auto size = static_cast<std::int64_t>(array.size());
    auto place = [size](std::int64_t index) { return index < 0 ? index + size : index; };
    if (slice.is_index) {
      const std::int64_t index = place(*slice.first);
      if (index >= 0 && index < size) out.push_back(array.at(static_cast<std::size_t>(index)));
      return;
    }
    const std::int64_t first = std::max<std::int64_t>(0, place(slice.first.value_or(0)));
    const std::int64_t last = std::min(size, slice.last ? place(*slice.last) : size);
    for (std::int64_t i = first; i < last; i += slice.stride) {
      out.push_back(array.at(static_cast<std::size_t>(i)));
      if (slice.stride >= last - i) break;
    }
  }

  bool Matches(const Step& step, Value item) const {
    if (step.op.empty()) {
      return step.left.kind == Operand::Kind::kPath &&
             !Walk(step.left.path, step.left.from_root, item).empty();
    }
    const std::optional<Operand> left = Resolve(step.left, item);
    const std::optional<Operand> right = Resolve(step.right, item);
    if (!left || !right) return false;
    std::optional<int> order;  // no value: not comparable
    if (left->kind == right->kind) {
      switch (left->kind) {
        case Operand::Kind::kText:
          order = left->text.compare(right->text);
          break;
        case Operand::Kind::kNumber:
          order = left->number < right->number ? -1 : left->number > right->number ? 1 : 0;
          break;
        case Operand::Kind::kBool:
          order = int{left->boolean} - int{right->boolean};
          break;
        case Operand::Kind::kNull:
          order = 0;
          break;
        case Operand::Kind::kPath:
          break;
      }
    }
    if (!order) return step.op == "!=";
    if (step.op == "==") return *order == 0;
    if (step.op == "!=") return *order != 0;
    if (step.op == "<") return *order < 0;
    if (step.op == ">") return *order > 0;
    return step.op == "<=" ? *order <= 0 : *order >= 0;
  }

  // The operand as a plain value; nothing if its path does not exist.
  std::optional<Operand> Resolve(const Operand& operand, Value item) const {
    if (operand.kind != Operand::Kind::kPath) return operand;
    const std::vector<Value> values = Walk(operand.path, operand.from_root, item);
    if (values.size() != 1) return std::nullopt;
    Operand plain;
    const Value value = values.front();
    switch (value.kind()) {
      case ValueKind::kString:
        plain.kind = Operand::Kind::kText;
        plain.text = value.str();
        break;
      case ValueKind::kInt:
      case ValueKind::kDouble:
        plain.kind = Operand::Kind::kNumber;
        plain.number = value.number();
        break;
      case ValueKind::kBool:
        plain.kind = Operand::Kind::kBool;
        plain.boolean = value.boolean();
        break;
      case ValueKind::kNull:
        break;
      default:
        return std::nullopt;
    }
    return plain;
  }

  Value root_;
};

}  // namespace

std::string PlainText(Value value) {
  if (value.is_string()) return std::string(value.str());
  api::WriteOptions options;
  options.sort_members = true;
  options.escape_html = false;
  return api::WriteJson(value, options);
}

Result<JsonPath> JsonPath::Parse(std::string_view text) {
  ASSIGN_OR_RETURN(std::vector<Node> nodes, Parser(text).Template());
  JsonPath path;
  path.nodes_ = std::make_shared<const std::vector<Node>>(std::move(nodes));
  return path;
}

Result<JsonPath> JsonPath::ParsePath(std::string_view text) {
  std::string path(Trim(text));
  if (path.empty()) return InvalidArgument("a jsonpath may not be empty");
  if (!path.starts_with('{')) {
    if (!path.starts_with('.') && !path.starts_with('[') && !path.starts_with('$')) {
      path.insert(0, ".");
    }
    path = StrCat("{", path, "}");
  }
  ASSIGN_OR_RETURN(JsonPath parsed, Parse(path));
  if (parsed.nodes_->size() != 1 || parsed.nodes_->front().kind != Node::Kind::kPath) {
    return InvalidArgument(StrCat("jsonpath ", Quote(text), ": it must be a single path"));
  }
  return parsed;
}

std::string JsonPath::Print(Value root) const {
  std::string out;
  Evaluator(root).Run(
      *nodes_, root, [&](const std::string& text) { out += text; },
      [&](const std::vector<Value>& values) {
        for (std::size_t i = 0; i < values.size(); ++i) {
          if (i > 0) out += ' ';
          out += PlainText(values[i]);
        }
      });
  return out;
}

std::vector<Value> JsonPath::Find(Value root) const {
  std::vector<Value> found;
  Evaluator(root).Run(
      *nodes_, root, [](const std::string&) {},
      [&](const std::vector<Value>& values) {
        found.insert(found.end(), values.begin(), values.end());
      });
  return found;
}

}  // namespace drakkar::api
