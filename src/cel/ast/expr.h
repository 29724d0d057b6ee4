#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace drakkar::cel {

enum class ExprKind {
  kUnspecified,
  kLiteral,
  kIdent,
  kSelect,
  kCall,
  kList,
  kMap,
  kStruct,
  kComprehension
};

struct BytesLiteral {
  std::string value;
  bool operator==(const BytesLiteral&) const = default;
};

// null, bool, int, uint, double, string or bytes.
using Literal = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string,
                             BytesLiteral>;

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct MapEntry {
  ExprPtr key;
  ExprPtr value;
  bool optional = false;
};

struct StructField {
  std::int64_t id = 0;
  std::string name;
  ExprPtr value;
  bool optional = false;
};

struct Comprehension {
  ExprPtr iter_range;
  std::string iter_var;
  std::string iter_var2;  // empty if there is one variable only
  std::string accu_var;
  ExprPtr accu_init;
  ExprPtr loop_condition;
  ExprPtr loop_step;
  ExprPtr result;
};

// A node of the syntax tree after macros are expanded. Ids are unique and index Ast::offsets.
struct Expr {
  std::int64_t id = 0;
  ExprKind kind = ExprKind::kUnspecified;
  Literal literal;
  std::string name;                           // identifier, field, function or message type
  ExprPtr operand;                            // of a select, or the target of a member call
  bool test_only = false;                     // has(operand.name)
  std::vector<ExprPtr> args;                  // call arguments or list elements
  std::vector<std::size_t> optional_indices;  // list elements written with '?'
  std::vector<MapEntry> entries;
  std::vector<StructField> fields;
  std::unique_ptr<Comprehension> comprehension;
};

struct Ast {
  ExprPtr root;
  std::vector<std::int32_t> offsets;  // byte offset in the source, by expression id
};

// Names the parser gives operators and hidden variables.
namespace names {
inline constexpr char kConditional[] = "_?_:_";
inline constexpr char kAnd[] = "_&&_";
inline constexpr char kOr[] = "_||_";
inline constexpr char kNot[] = "!_";
inline constexpr char kNegate[] = "-_";
inline constexpr char kEquals[] = "_==_";
inline constexpr char kNotEquals[] = "_!=_";
inline constexpr char kIn[] = "@in";
inline constexpr char kIndex[] = "_[_]";
inline constexpr char kOptIndex[] = "_[?_]";
inline constexpr char kOptSelect[] = "_?._";
inline constexpr char kNotStrictlyFalse[] = "@not_strictly_false";
inline constexpr char kAccumulator[] = "@result";
inline constexpr char kUnusedVar[] = "#unused";
}  // namespace names

}  // namespace drakkar::cel
