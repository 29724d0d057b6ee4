#pragma once

#include "api/tree/draft.h"
#include "api/tree/freeze.h"

namespace drakkar::api {

// A view of a draft as it would be when frozen, without copying: borrowed parts stay where they
// are, so unchanged parts are the same nodes as in the original tree. Valid until the draft changes
// or is destroyed.
class DraftView {
 public:
  explicit DraftView(Draft& draft) : root_(ToNode(draft)) {}
  DraftView(const DraftView&) = delete;
  DraftView& operator=(const DraftView&) = delete;

  Value root() const { return Value(&root_); }
  TreePtr Freeze() const { return FreezeNode(root_); }

 private:
  Node ToNode(Draft& draft);

  Arena arena_;
  Node root_;
};

}  // namespace drakkar::api
