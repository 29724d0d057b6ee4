#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "cel/environment/environment.h"

// Compiles the expressions of admission policies and match conditions.
namespace drakkar::apiserver {

// Variables are bound in this order; those that an expression cannot use are left out.
enum class PolicyVariable {
  kObject,
  kOldObject,
  kNamespaceObject,
  kRequest,
  kVariables,        // only with variables
  kParams,           // only with params
  kAuthorizer,       // only with the authorizer
  kRequestResource,  // likewise: authorizer.requestResource
};

// Which of the optional variables an expression may use.
struct ExpressionScope {
  bool variables = false;
  bool params = false;
  bool authorizer = false;
};

enum class Returns { kBool, kText, kTextOrNull, kAny, kObject, kPatch };

struct PolicyExpression {
  std::string source;
  std::shared_ptr<const cel::Compiled> compiled;  // null if it did not compile
  std::string error;
  bool internal_error = false;
};

// Compiles the expressions of one policy. A variable can be used by whatever is compiled after it.
class PolicyCompiler {
 public:
  // `constructs`: for CompileMutation.
  PolicyCompiler(bool has_params, bool has_variables, bool constructs = false);
  // Declares the types of object, oldObject and params, which are dynamic otherwise. Its
  // expressions are only for finding errors: Compile always offers variables and the authorizer.
  struct Typed {
    std::function<cel::TypeRef(cel::Declarations& declarations)> object;
    std::function<cel::TypeRef(cel::Declarations& declarations)> params;
  };
  PolicyCompiler(bool has_params, const Typed& typed);
  ~PolicyCompiler();

  // A name that is already declared is replaced.
  PolicyExpression CompileVariable(std::string_view name, std::string_view source);
  PolicyExpression Compile(std::string_view source, Returns returns, bool authorizer = true) const;
  // May construct Object{} and JSONPatch{}.
  PolicyExpression CompileMutation(std::string_view source, Returns returns) const;
  // Match conditions cannot use variables.
  PolicyExpression CompileCondition(std::string_view source) const;

  ExpressionScope scope(bool authorizer) const { return {has_variables_, has_params_, authorizer}; }

 private:
  const bool has_params_;
  const bool has_variables_;
  const bool is_typed_ = false;
  cel::StructType variables_;
  // Only with variables; otherwise all policies share environments.
  std::unique_ptr<cel::Environment> with_authorizer_;
  std::unique_ptr<cel::Environment> without_authorizer_;
  std::unique_ptr<cel::Environment> with_construction_;
};

}  // namespace drakkar::apiserver
