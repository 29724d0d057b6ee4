#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "api/meta/field_error.h"
#include "api/meta/names.h"
#include "base/exec/work_budget.h"

// Kubernetes validates an object twice: by hand-written rules and by rules declared in its schema.
// If a declared rule reports the same error as a hand-written one, it replaces it. Findings are the
// errors of either pass, with what is needed to merge them.
namespace drakkar::apiserver {

enum class Covered : bool { kNo, kYes };

struct Finding {
  api::FieldError error;
  // The rule ("maxItems", "format=k8s-uuid"): a constant; empty if it does not matter.
  std::string_view origin;
  // Hand-written: a declared rule may report it instead.
  bool covered = false;
  // Declared: counts only while declared rules of the beta level are enabled.
  bool beta = false;
};

class Findings {
 public:
  // Further ones are only counted.
  static constexpr std::size_t kMaxKept = 2'000;

  void Add(api::FieldError error, std::string_view origin = {}, Covered covered = Covered::kNo) {
    Keep({std::move(error), origin, covered == Covered::kYes, false});
  }
  // One Invalid error per problem with the syntax of a name.
  void AddProblems(const api::FieldPath& path, std::string_view value,
                   const api::Problems& problems, std::string_view origin = {},
                   Covered covered = Covered::kNo) {
    for (const std::string& problem : problems) {
      Add(api::FieldError::Invalid(path, value, problem), origin, covered);
    }
  }
  void AddDeclared(api::FieldError error, std::string_view origin, bool beta) {
    Keep({std::move(error), origin, false, beta});
  }
  void Append(Findings other) {
    for (Finding& finding : other.list_) list_.push_back(std::move(finding));
    dropped_ += other.dropped_;
  }
  // Whether to stop looking for more: the budget for the request's work is exceeded.
  static bool IsFull() { return WorkBudget::IsExceeded(); }
  std::size_t dropped() const { return dropped_; }
  const std::vector<Finding>& list() const { return list_; }
  std::vector<Finding>& list() { return list_; }
  bool empty() const { return list_.empty() && dropped_ == 0; }

 private:
  void Keep(Finding finding);

  std::vector<Finding> list_;
  std::size_t dropped_ = 0;
};

// The errors of the hand-written pass only.
api::FieldErrors PlainErrors(const Findings& handwritten);

// Merges both passes. `version` is the client's: errors of declared rules have that version's paths
// (v1beta1 has no "exactly", and "basic" in devices).
api::FieldErrors MergeFindings(const Findings& handwritten, const Findings& declared,
                               bool declared_beta, std::string_view version = "v1");

// "spec.devices.requests[0].exactly.count" as v1beta1 spells it; other paths are unchanged.
std::string PathInV1beta1(std::string_view path);

}  // namespace drakkar::apiserver
