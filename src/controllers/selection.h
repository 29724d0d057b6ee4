#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"

namespace drakkar::controllers {

// A controller by the name kube-controller-manager gives it, its older name, and the service
// account in kube-system that it acts as. Those without an account are not ours.
struct ControllerName {
  std::string_view name;
  std::string_view older_name;
  std::string_view account;
};
std::span<const ControllerName> KnownControllers();

// Which controllers run: the value of --controllers. "*" is all of ours, "name" is this one,
// "-name" is not this one; what is named counts more than "*".
class Selection {
 public:
  Selection() = default;  // "*"
  // Refuses names nobody knows, and asking for a controller that is not ours. Not running one that
  // is not ours is fine.
  static Result<Selection> Parse(std::span<const std::string> words);

  bool Runs(std::string_view name) const;

 private:
  bool all_ = true;
  std::set<std::string, std::less<>> on_;
  std::set<std::string, std::less<>> off_;
};

}  // namespace drakkar::controllers
