#include "answers/cluster/class_membership.h"

#include <algorithm>

#include "base/text/text.h"
#include "device/attribute.h"
#include "device/from_api.h"

namespace drakkar::answers {
namespace {

void AppendText(std::string& key, std::string_view text) {
  key += std::to_string(text.size());
  key += ':';
  key += text;
}

void AppendOne(std::string& key, std::int64_t value) {
  key += std::to_string(value);
}
void AppendOne(std::string& key, bool value) {
  key += value ? 't' : 'f';
}
void AppendOne(std::string& key, const std::string& value) {
  AppendText(key, value);
}
void AppendOne(std::string& key, const device::VersionText& value) {
  AppendText(key, value.text);
}
void AppendOne(std::string&, std::monostate) {}
template <typename T>
void AppendOne(std::string& key, const std::vector<T>& values) {
  for (const auto& value : values) {
    AppendOne(key, static_cast<const T&>(value));
    key += ',';
  }
}

void AppendValue(std::string& key, const device::AttributeValue* value) {
  if (value == nullptr) {
    key += '-';
    return;
  }
  key += static_cast<char>('a' + value->index());
  std::visit([&](const auto& each) { AppendOne(key, each); }, *value);
  key += ';';
}

}  // namespace

ClassMembership::ClassMembership(const Objects& classes, device::ExpressionCompiler& compiler) {
  std::vector<const api::ObjectPtr*> sorted;
  for (const api::ObjectPtr& each : classes) sorted.push_back(&each);
  std::sort(sorted.begin(), sorted.end(), [](const api::ObjectPtr* a, const api::ObjectPtr* b) {
    return (*a)->name() < (*b)->name();
  });
  for (const api::ObjectPtr* object : sorted) {
    const Result<device::DeviceClass> read = device::DeviceClassFromApi((*object)->root());
    if (!read.ok()) {
      notes_.push_back(
          StrCat("DeviceClass ", (*object)->name(), " cannot be read: ", read.error().message));
      continue;
    }
    names_.push_back(read->name);
    Class& each = classes_.emplace_back();
    for (const device::Selector& selector : read->selectors) {
      if (!selector.cel) {
        each.matches_nothing = true;
        continue;
      }
      auto compiled = compiler.CompileSelector(*selector.cel);
      if (compiled->compile_error()) {
        each.matches_nothing = true;
        notes_.push_back(
            StrCat("DeviceClass ", read->name, " selects nothing: ", *compiled->compile_error()));
        continue;
      }
      each.reads_everything = each.reads_everything || compiled->reads().everything;
      each.reads.insert(each.reads.end(), compiled->reads().attributes.begin(),
                        compiled->reads().attributes.end());
      each.selectors.push_back(std::move(compiled));
    }
  }
}

std::vector<std::uint32_t> ClassMembership::Find(std::string_view driver,
                                                 const device::Device& device) {
  std::vector<std::uint32_t> found;
  std::string& key = key_;
  key.clear();
  AppendText(key, driver);
  key += device.allow_multiple_allocations ? 'm' : 's';
  for (const device::Capacity& capacity : device.capacity) {
    AppendText(key, capacity.name);
    AppendText(key, capacity.value.ToString());
  }
  const std::size_t common = key.size();
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    Class& each = classes_[i];
    if (each.matches_nothing) continue;
    key.resize(common);
    key += '|';
    if (each.reads_everything) {
      for (const device::Attribute& attribute : device.attributes) {
        AppendText(key, attribute.name);
        AppendValue(key, &attribute.value);
      }
    } else {
      for (const std::string& name : each.reads) {
        AppendValue(key, device::FindAttribute(device.attributes, driver, name));
      }
    }
    const auto [answer, is_new] = each.answers.try_emplace(key, false);
    if (is_new) {
      answer->second = std::all_of(each.selectors.begin(), each.selectors.end(),
                                   [&](const std::shared_ptr<const device::Expression>& selector) {
                                     const Result<bool> matches = selector->Matches(driver, device);
                                     return matches.ok() && *matches;
                                   });
    }
    if (answer->second) found.push_back(static_cast<std::uint32_t>(i));
  }
  return found;
}

}  // namespace drakkar::answers
