#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "apiserver/request/decision.h"
#include "apiserver/request/request.h"
#include "cel/checker/declarations.h"
#include "cel/value/value.h"

// The variables `authorizer` and `authorizer.requestResource` of admission policies, and their
// functions: authorizer.group("apps").resource("deployments").namespace("a").check("create").
namespace drakkar::apiserver {

// Answers what the expressions of one request ask.
class PolicyAuthorizer {
 public:
  virtual ~PolicyAuthorizer() = default;
  struct ResourceQuestion {
    std::string group;
    std::string resource;
    std::string subresource;
    std::string namespace_;
    std::string name;
    std::string field_selector;
  };
  virtual Decision CheckResource(const UserInfo& user, const ResourceQuestion& question,
                                 std::string_view verb) = 0;
  virtual Decision CheckPath(const UserInfo& user, std::string_view path,
                             std::string_view verb) = 0;
  // Number of questions asked. Each has a nominal cost far above the real one.
  std::size_t asked() const { return asked_; }
  void CountQuestion() { ++asked_; }

 private:
  std::size_t asked_ = 0;
};

cel::TypeRef AuthorizerType();
cel::TypeRef ResourceCheckType();
void AddAuthorizerLibrary(cel::Declarations& declarations);

// Values for the variables; what they refer to must outlive the evaluation.
cel::Value NewAuthorizerValue(cel::Arena& arena, PolicyAuthorizer& authorizer,
                              const UserInfo& user);
cel::Value NewResourceCheckValue(cel::Arena& arena, PolicyAuthorizer& authorizer,
                                 const UserInfo& user, PolicyAuthorizer::ResourceQuestion question);

}  // namespace drakkar::apiserver
