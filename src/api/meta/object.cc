#include "api/meta/object.h"

#include "api/json/writer.h"
#include "base/text/text.h"

namespace drakkar::api {

struct Object::FormNode {
  const void* tag;
  std::shared_ptr<const void> form;
  FormNode* next;
};

Object::Object(TreePtr tree) : tree_(std::move(tree)) {
  const Value metadata = root()["metadata"];
  name_ = metadata["name"].str();
  namespace__ = metadata["namespace"].str();
  uid_ = metadata["uid"].str();
  qualified_name_ = namespace__.empty() ? std::string(name_) : StrCat(namespace__, "/", name_);
  const auto version = ParseInt64(metadata["resourceVersion"].str());
  resource_version_ = version && *version > 0 ? *version : 0;
  is_being_deleted_ = metadata["deletionTimestamp"].has_value();
}

Object::~Object() {
  for (FormNode* node = forms_.load(std::memory_order_acquire); node != nullptr;) {
    std::unique_ptr<FormNode> gone(node);
    node = node->next;
  }
}

std::shared_ptr<const void> Object::Form(
    const void* tag, const std::function<std::shared_ptr<const void>()>& make) const {
  FormNode* head = forms_.load(std::memory_order_acquire);
  for (const FormNode* node = head; node != nullptr; node = node->next) {
    if (node->tag == tag) return node->form;
  }
  auto made = std::make_unique<FormNode>(FormNode{tag, make(), head});
  while (!forms_.compare_exchange_weak(made->next, made.get(), std::memory_order_acq_rel)) {
    // Another thread was first, perhaps with the same form.
    for (const FormNode* node = made->next; node != nullptr; node = node->next) {
      if (node->tag == tag) return node->form;
    }
  }
  return made.release()->form;
}

std::string_view Object::api_version() const {
  return root()["apiVersion"].str();
}
std::string_view Object::kind() const {
  return root()["kind"].str();
}

std::shared_ptr<const std::string> Object::json() const {
  Encoding now = encoding_.load(std::memory_order_acquire);
  if (now == Encoding::kNone &&
      encoding_.compare_exchange_strong(now, Encoding::kUnderWay, std::memory_order_acquire)) {
    json_ = std::make_shared<const std::string>(WriteJson(root()));
    encoding_.store(Encoding::kDone, std::memory_order_release);
    encoding_.notify_all();
    return json_;
  }
  while (now != Encoding::kDone) {
    encoding_.wait(now);
    now = encoding_.load(std::memory_order_acquire);
  }
  return json_;
}

}  // namespace drakkar::api
