#include "apiserver/validation/capacity_rules.h"

#include <limits>
#include <optional>
#include <set>
#include <string>

#include "api/meta/quantity.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::FieldError;
using api::FieldPath;
using api::Quantity;
using api::Value;

constexpr std::size_t kMaxValidValues = 10;

std::optional<Quantity> Read(Value value) {
  if (!value.has_value()) return std::nullopt;
  Result<Quantity> quantity = Quantity::Parse(value.str());
  // The parser has already rejected any other string.
  return quantity.ok() ? std::optional(std::move(*quantity)) : std::nullopt;
}

bool IsFraction(const Quantity& quantity) {
  Quantity rounded = quantity;
  return !rounded.RoundUp(0);
}

void CheckValidValues(Findings& out, const FieldPath& path, Value values, const Quantity& standard,
                      const Quantity& capacity, bool fractions) {
  std::vector<Quantity> options;
  for (const Value value : values.elements()) options.push_back(Read(value).value_or(Quantity()));
  for (std::size_t i = 1; i < options.size(); ++i) {
    if (options[i - 1] > options[i]) {
      out.Add(FieldError::Invalid(path.Index(i), options[i].ToString(),
                                  "values must be sorted in ascending order"));
    }
  }
  bool found = false;
  if (options.size() > kMaxValidValues) {
    out.Add(FieldError::TooMany(path, options.size(), kMaxValidValues), "maxItems");
  } else {
    std::size_t index = 0;
    for (const Quantity& option : options) {
      if (option > capacity) {
        out.Add(FieldError::Invalid(
            path.Index(index), option.ToString(),
            StrCat("option is larger than capacity value: ", capacity.ToString())));
      }
      found = found || option == standard;
      ++index;
    }
    std::set<std::string> seen;
    index = 0;
    for (const Quantity& option : options) {
      std::string key = fractions ? option.ToDecimalString() : std::to_string(option.Value());
      if (!seen.insert(key).second) out.Add(FieldError::Duplicate(path.Index(index), key));
      ++index;
    }
  }
  if (!found) {
    out.Add(FieldError::Invalid(path, standard.ToString(),
                                "default value is not valid according to the requestPolicy"));
  }
}

struct Range {
  Quantity standard;
  Quantity min;
  std::optional<Quantity> max;
  std::optional<Quantity> step;

  // Calls `visit` with each amount that is set, and its name.
  template <typename Visit>
  void Each(const Visit& visit) const {
    visit(standard, "default");
    visit(min, "min");
    if (max) visit(*max, "max");
    if (step) visit(*step, "step");
  }
};

void CheckBounds(Findings& out, const FieldPath& path, const Range& range,
                 const Quantity& capacity) {
  if (range.min > capacity) {
    out.Add(
        FieldError::Invalid(path.Child("min"), range.min.ToString(),
                            StrCat("min is larger than capacity value: ", capacity.ToString())));
  }
  if (range.standard < range.min) {
    out.Add(FieldError::Invalid(path.Child("default"), range.standard.ToString(),
                                StrCat("default is less than min: ", range.min.ToString())));
  }
  if (!range.max) return;
  if (range.min > *range.max) {
    out.Add(FieldError::Invalid(path.Child("max"), range.min.ToString(),
                                StrCat("min is larger than max: ", range.max->ToString())));
  }
  if (*range.max > capacity) {
    out.Add(
        FieldError::Invalid(path.Child("max"), range.max->ToString(),
                            StrCat("max is larger than capacity value: ", capacity.ToString())));
  }
  if (range.standard > *range.max) {
    out.Add(FieldError::Invalid(path.Child("default"), range.standard.ToString(),
                                StrCat("default is more than max: ", range.max->ToString())));
  }
}

// Whether every amount can be expressed in thousandths.
bool FitThousandths(Findings& out, const FieldPath& path, const Range& range) {
  bool fit = true;
  range.Each([&](const Quantity& amount, std::string_view name) {
    if (amount == Quantity::FromMilli(amount.MilliValue())) return;
    out.Add(FieldError::Invalid(path.Child(name), amount.ToString(),
                                "value cannot be represented as a milli value"));
    fit = false;
  });
  return fit;
}

// Whether every amount fits an int64.
bool FitInt64(Findings& out, const FieldPath& path, const Range& range) {
  bool fit = true;
  range.Each([&](const Quantity& amount, std::string_view name) {
    std::string_view problem;
    if (amount.Sign() < 0) {
      problem = "must be greater than or equal to 0";
    } else if (amount.CompareInt64(std::numeric_limits<std::int64_t>::max()) > 0) {
      problem = "must not be larger than 9223372036854775807";
    } else {
      return;
    }
    out.Add(FieldError::Invalid(path.Child(name), amount.ToString(), std::string(problem)));
    fit = false;
  });
  return fit;
}

void CheckSteps(Findings& out, const FieldPath& path, const Range& range, const Quantity& amount,
                bool thousandths) {
  auto count = [&](const Quantity& quantity) {
    return thousandths ? quantity.MilliValue() : quantity.Value();
  };
  // Unsigned, so that the difference of two int64 cannot overflow.
  const std::int64_t difference = static_cast<std::int64_t>(
      static_cast<std::uint64_t>(count(amount)) - static_cast<std::uint64_t>(count(range.min)));
  const std::int64_t step = count(*range.step);
  if (difference % step == 0) return;
  out.Add(
      FieldError::Invalid(path, amount.ToString(),
                          StrCat("value is not a multiple of a given step (",
                                 range.step->ToString(), ") from (", range.min.ToString(), ")")));
}

void CheckRange(Findings& out, const FieldPath& path, const Range& range, const Quantity& capacity,
                bool fractions) {
  CheckBounds(out, path, range, capacity);
  bool thousandths = false;
  if (fractions) {
    range.Each([&](const Quantity& amount, std::string_view) {
      thousandths = thousandths || IsFraction(amount);
    });
    if (thousandths && !FitThousandths(out, path, range)) return;
  }
  if (!range.step) return;
  const FieldPath at = path.Child("step");
  if (range.step->Sign() <= 0) {
    out.Add(FieldError::Invalid(at, range.step->ToString(), "must be greater than zero"));
    return;
  }
  Quantity one_step = range.min;
  one_step.Add(*range.step);
  if (one_step > capacity) {
    out.Add(FieldError::Invalid(at, range.step->ToString(),
                                StrCat("one step ", one_step.ToString(),
                                       " is larger than capacity value: ", capacity.ToString())));
  }
  if (!thousandths && !FitInt64(out, path, range)) return;
  CheckSteps(out, at, range, range.standard, thousandths);
  if (range.max) CheckSteps(out, at, range, *range.max, thousandths);
}

}  // namespace

void CheckRequestPolicy(Findings& out, const FieldPath& path, Value capacity, bool fractions) {
  const Value policy = capacity["requestPolicy"];
  const Value values = policy["validValues"];
  const Value range = policy["validRange"];
  if (!values.empty() && range.has_value()) {
    out.Add(FieldError::Forbidden(path,
                                  "exactly one policy can be specified, cannot specify "
                                  "\"validValues\" and \"validRange\" at the same time"));
    return;
  }
  const Quantity total = Read(capacity["value"]).value_or(Quantity());
  const std::optional<Quantity> standard = Read(policy["default"]);
  if (!values.empty()) {
    if (!standard) {
      out.Add(FieldError::Required(path.Child("default"), "required when validValues is defined"));
    } else {
      CheckValidValues(out, path.Child("validValues"), values, *standard, total, fractions);
    }
  } else if (range.has_value()) {
    if (!standard) {
      out.Add(FieldError::Required(path.Child("default"), "required when validRange is defined"));
      return;
    }
    const std::optional<Quantity> min = Read(range["min"]);
    const FieldPath at = path.Child("validRange");
    if (!min) {
      out.Add(FieldError::Required(at.Child("min"), "required when validRange is defined"));
      return;
    }
    CheckRange(out, at, {*standard, *min, Read(range["max"]), Read(range["step"])}, total,
               fractions);
  }
}

void CheckCapacity(Findings& out, const FieldPath& path, Value capacity, bool multiple_allocations,
                   bool fractions) {
  if (!capacity["requestPolicy"].has_value()) return;
  const FieldPath at = path.Child("requestPolicy");
  if (multiple_allocations) {
    CheckRequestPolicy(out, at, capacity, fractions);
  } else {
    out.Add(FieldError::Forbidden(at, "allowMultipleAllocations must be true"));
  }
}

}  // namespace drakkar::apiserver
