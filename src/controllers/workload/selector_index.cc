#include "controllers/workload/selector_index.h"

#include "api/tree/draft.h"
#include "base/text/text.h"

namespace drakkar::controllers {

namespace {

api::LabelSelector Parse(api::Value selector) {
  Result<api::LabelSelector> parsed = api::LabelSelector::FromObject(selector);
  if (!parsed.ok() || parsed->empty()) return api::LabelSelector::Nothing();
  return *std::move(parsed);
}

}  // namespace

api::LabelSelector SelectorIndex::ReadLabelSelector(const api::Object& object) {
  return Parse(object["spec"]["selector"]);
}

api::LabelSelector SelectorIndex::ReadMap(const api::Object& object) {
  api::Draft selector = api::Draft::Object();
  selector["matchLabels"] = api::Draft(object["spec"]["selector"]);
  return Parse(selector.Freeze()->root());
}

SelectorIndex::SelectorIndex(client::Informer& owners, Read read) : read_(read) {
  const auto put = [this](const api::ObjectPtr& owner) {
    selectors_.insert_or_assign(owner->qualified_name(), read_(*owner));
  };
  owners.AddHandlers(
      {.on_add = put,
       .on_update =
           [put](const api::ObjectPtr& before, const api::ObjectPtr& after) {
             if (api::Equal((*before)["spec"]["selector"], (*after)["spec"]["selector"])) {
               return;
             }
             put(after);
           },
       .on_delete =
           [this](const api::ObjectPtr& owner) { selectors_.erase(owner->qualified_name()); }});
}

const api::LabelSelector* SelectorIndex::Find(const std::string& qualified_name) const {
  const auto found = selectors_.find(qualified_name);
  return found == selectors_.end() ? nullptr : &found->second;
}

std::vector<std::string> SelectorIndex::Matching(std::string_view namespace_,
                                                 api::Value labels) const {
  std::vector<std::string> names;
  if (selectors_.empty()) return names;
  const std::string prefix = StrCat(namespace_, "/");
  for (auto each = selectors_.lower_bound(prefix);
       each != selectors_.end() && each->first.starts_with(prefix); ++each) {
    if (each->second.Matches(labels)) names.push_back(each->first);
  }
  return names;
}

}  // namespace drakkar::controllers
