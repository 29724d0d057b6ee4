#include "scheduler/args/fields.h"

#include "api/meta/time.h"
#include "base/text/text.h"

namespace drakkar::scheduler {

Fields::Fields(api::Value object, std::string path) : object_(object), path_(std::move(path)) {
  if (!object_.is_object()) {
    result_ = InvalidArgument(StrCat(path_.empty() ? "the file" : path_, " must be an object"));
  }
}

std::string Fields::PathOf(std::string_view name) const {
  return path_.empty() ? std::string(name) : StrCat(path_, ".", name);
}

void Fields::Refuse(api::FieldName name, std::string_view why) {
  if (result_.ok()) result_ = InvalidArgument(StrCat(PathOf(name), " ", why));
}

void Fields::Ignore(api::FieldName name, std::string_view why) {
  if (!Get(name).has_value()) return;
  remarks_.push_back(StrCat(PathOf(name), " has no effect: ", why));
}

void Fields::Take(const Result<void>& nested) {
  if (result_.ok() && !nested.ok()) result_ = nested.error();
}

api::Value Fields::Get(api::FieldName name) {
  asked_.insert(std::string(name));
  return object_[name];
}

void Fields::Text(api::FieldName name, std::string& out) {
  const api::Value value = Get(name);
  if (!value.has_value()) return;
  if (!value.is_string()) return Refuse(name, "must be a string");
  out = std::string(value.str());
}

void Fields::Bool(api::FieldName name, bool& out) {
  const api::Value value = Get(name);
  if (!value.has_value()) return;
  if (!value.optional_boolean()) return Refuse(name, "must be true or false");
  out = value.boolean();
}

void Fields::Int(api::FieldName name, std::int64_t& out, std::int64_t least, std::int64_t most) {
  const api::Value value = Get(name);
  if (!value.has_value()) return;
  if (!value.optional_integer() || value.integer() < least || value.integer() > most) {
    return Refuse(name, StrCat("must be a whole number from ", least, " to ", most));
  }
  out = value.integer();
}

void Fields::Time(api::FieldName name, Duration& out) {
  const api::Value value = Get(name);
  if (!value.has_value()) return;
  const auto time = value.is_string() ? api::ParseDuration(value.str())
                                      : Result<Duration>(InvalidArgument("no text"));
  if (!time.ok()) return Refuse(name, "must be a duration such as 10s or 5m");
  out = *time;
}

void Fields::Texts(api::FieldName name, std::vector<std::string>& out) {
  const api::Value value = Get(name);
  if (!value.has_value()) return;
  if (!value.is_array()) return Refuse(name, "must be a list of strings");
  out.clear();
  for (api::Value each : value.elements()) {
    if (!each.is_string()) return Refuse(name, "must be a list of strings");
    out.emplace_back(each.str());
  }
}

Result<void> Fields::Finish() {
  if (!result_.ok()) return result_;
  for (const auto& [k, name, value] : object_.members()) {
    if (!asked_.contains(name))
      return InvalidArgument(StrCat("unknown field ", Quote(PathOf(name))));
  }
  return Ok();
}

}  // namespace drakkar::scheduler
