#include "api/tree/draft_view.h"

namespace drakkar::api {

Node DraftView::ToNode(Draft& draft) {
  if (const Value borrowed = draft.borrowed(); borrowed.exists()) return *borrowed.node();
  switch (draft.kind()) {
    case ValueKind::kAbsent:
      return Node{};
    case ValueKind::kNull:
      return NullNode();
    case ValueKind::kBool:
      return BoolNode(draft.boolean());
    case ValueKind::kInt:
      return IntNode(draft.integer());
    case ValueKind::kDouble:
      return DoubleNode(draft.number());
    case ValueKind::kString:
    case ValueKind::kRaw:
      return TextNode(draft.str(), draft.kind());
    case ValueKind::kArray: {
      // Expands nothing: what is not borrowed has been expanded already.
      Draft::Elements& elements = draft.MutableElements();
      Node* nodes = arena_.AllocateArray<Node>(elements.size());
      std::size_t count = 0;
      for (Draft& element : elements) {
        if (element.exists()) nodes[count++] = ToNode(element);
      }
      return ArrayNode(nodes, count);
    }
    case ValueKind::kObject: {
      Draft::Members& members = draft.MutableMembers();
      Member* nodes = arena_.AllocateArray<Member>(members.size());
      std::size_t count = 0;
      for (auto& [key, value] : members) {
        if (!value.exists()) continue;
        nodes[count].key = key.get();
        nodes[count++].value = ToNode(value);
      }
      return ObjectNode(nodes, count);
    }
  }
  return Node{};
}

}  // namespace drakkar::api
