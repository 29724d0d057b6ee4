#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"

namespace drakkar::controllers {

// A controller: its name in kube-controller-manager, its older name, and the service account in
// kube-system that it uses. Controllers without an account are not implemented here.
struct ControllerName {
  std::string_view name;
  std::string_view older_name;
  std::string_view account;
};
std::span<const ControllerName> KnownControllers();

// Which controllers run: the value of --controllers. "*" selects all of ours, "name" enables one,
// "-name" disables one. Names take precedence over "*".
class Selection {
 public:
  Selection() = default;  // "*"
  // Rejects unknown names, and enabling a controller that is not implemented here. Disabling such a
  // controller is allowed.
  static Result<Selection> Parse(std::span<const std::string> words);

  bool Runs(std::string_view name) const;

 private:
  bool all_ = true;
  std::set<std::string, std::less<>> on_;
  std::set<std::string, std::less<>> off_;
};

}  // namespace drakkar::controllers
