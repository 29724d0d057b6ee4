#include "apiserver/registry/strategy.h"

#include "api/scheme/scheme.h"
#include "apiserver/validation/metadata.h"

namespace drakkar::apiserver {

void Strategy::Default(api::Draft&, const StrategyContext&) const {}
void Strategy::PrepareForCreate(api::Draft&, const StrategyContext&) const {}
void Strategy::PrepareForUpdate(api::Draft&, api::Value, std::string_view,
                                const StrategyContext&) const {}

api::FieldErrors Strategy::Validate(api::Value, const StrategyContext&) const {
  return {};
}

api::FieldErrors Strategy::ValidateUpdate(api::Value, api::Value, std::string_view,
                                          const StrategyContext&) const {
  return {};
}

std::vector<std::string> Strategy::Warnings(api::Value, const StrategyContext&) const {
  return {};
}

api::Problems Strategy::CheckName(const api::KindSchema& kind, std::string_view name,
                                  bool prefix) const {
  switch (kind.name_format) {
    case api::FieldRules::Format::kDnsLabel:
      return LabelNameProblems(name, prefix);
    case api::FieldRules::Format::kDns1035Label:
      return Dns1035NameProblems(name, prefix);
    default:
      return SubdomainNameProblems(name, prefix);
  }
}

std::optional<std::int64_t> Strategy::GracePeriod(api::Value, std::optional<std::int64_t>) const {
  return std::nullopt;
}

}  // namespace drakkar::apiserver
