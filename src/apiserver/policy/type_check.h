#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/meta/object.h"
#include "api/tree/draft.h"

namespace drakkar::api {
struct KindSchema;
}

namespace drakkar::apiserver {

// Compiles the validations of a ValidatingAdmissionPolicy against the schemas of the kinds that it
// matches, for status.typeChecking. A policy is evaluated without these types, so what is found
// here is only a warning: a misspelt field, a number compared with a text.
//
// One kind per call of Next, because each takes milliseconds. At most kMaxKinds kinds; rules with
// wildcards, and subresources, are not checked. Pure.
class PolicyTypeCheck {
 public:
  static constexpr std::size_t kMaxKinds = 10;

  // Kinds that are served, by what a policy says of them; null if there is none.
  struct Kinds {
    std::function<const api::KindSchema*(std::string_view group, std::string_view version,
                                         std::string_view plural)>
        find_resource;
    std::function<const api::KindSchema*(std::string_view api_version, std::string_view kind)>
        find_kind;
  };
  PolicyTypeCheck(api::ObjectPtr policy, const Kinds& kinds);

  // False if there is nothing left to check.
  bool Next();
  // The value of status.typeChecking.
  api::Draft Result() const;

 private:
  struct Checked {
    std::string field;  // "spec.validations[0].expression"
    std::string expression;
    std::string warning;  // of all kinds; empty: none
  };

  const api::ObjectPtr policy_;
  std::vector<const api::KindSchema*> kinds_;  // by group, version and kind
  const api::KindSchema* params_ = nullptr;    // null: unknown, or none
  std::size_t next_ = 0;                       // of `kinds_`
  std::vector<Checked> expressions_;
};

}  // namespace drakkar::apiserver
