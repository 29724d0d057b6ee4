#pragma once

#include "api/tree/draft.h"
#include "api/tree/freeze.h"

namespace drakkar::api {

// A draft as it would read when frozen, without a block of its own: what the draft borrows stays
// where it is, so that unchanged parts are the very nodes of the tree they come from. Valid until
// the draft changes or goes.
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
