#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "base/env/clock.h"
#include "base/result/result.h"

namespace drakkar::scheduler {

// Reads the fields of one object of a configuration file. Keeps the first error and, in Finish,
// rejects fields that were never read.
class Fields {
 public:
  Fields(api::Value object, std::string path);

  // Each leaves `out` unchanged if the field is absent or null.
  void Text(api::FieldName name, std::string& out);
  void Bool(api::FieldName name, bool& out);
  void Int(api::FieldName name, std::int64_t& out, std::int64_t least, std::int64_t most);
  void Time(api::FieldName name, Duration& out);
  void Texts(api::FieldName name, std::vector<std::string>& out);
  // Accepts a field that has no effect, and adds a remark if it is set.
  void Ignore(api::FieldName name, std::string_view why);
  // The field itself, for nested objects and lists; an absent value if it is missing.
  api::Value Get(api::FieldName name);
  std::string PathOf(std::string_view name) const;

  void Refuse(api::FieldName name, std::string_view why);
  // Keeps the error of a nested object.
  void Take(const Result<void>& nested);
  // Rejects fields that were never read.
  Result<void> Finish();
  // One sentence for each field that is set and has no effect.
  const std::vector<std::string>& remarks() const { return remarks_; }

 private:
  const api::Value object_;
  const std::string path_;
  std::set<std::string, std::less<>> asked_;
  Result<void> result_ = Ok();
  std::vector<std::string> remarks_;
};

}  // namespace drakkar::scheduler
