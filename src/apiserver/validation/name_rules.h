#pragma once

#include <string_view>

#include "apiserver/validation/findings.h"

// Validates names in resource.k8s.io. Some rules have two wordings: that of hand-written and that
// of declared rules ("characters" and "bytes").
namespace drakkar::apiserver {

inline constexpr std::size_t kMaxDriverBytes = 63;
inline constexpr std::size_t kMaxPoolBytes = 253;
inline constexpr std::size_t kMaxIdentifierBytes = 32;

// Hand-written rules.
api::Problems DnsLabelProblems(std::string_view text);
api::Problems DnsSubdomainProblems(std::string_view text);
// Devices, requests, counters.
void CheckLabelName(Findings& out, const api::FieldPath& path, std::string_view name,
                    Covered covered = Covered::kNo);
// Classes.
void CheckSubdomainName(Findings& out, const api::FieldPath& path, std::string_view name,
                        Covered covered = Covered::kNo);
void CheckDriverName(Findings& out, const api::FieldPath& path, std::string_view name,
                     Covered covered = Covered::kNo);
void CheckPoolName(Findings& out, const api::FieldPath& path, std::string_view name,
                   Covered covered = Covered::kNo);
void CheckNodeName(Findings& out, const api::FieldPath& path, std::string_view name);
// "name" or "domain/name".
void CheckQualifiedName(Findings& out, const api::FieldPath& path, std::string_view name,
                        std::string_view origin = {}, Covered covered = Covered::kNo);
// "domain/name".
void CheckFullyQualifiedName(Findings& out, const api::FieldPath& path, std::string_view name,
                             Covered covered = Covered::kNo);
void CheckLabelKeyName(Findings& out, const api::FieldPath& path, std::string_view name,
                       Covered covered = Covered::kNo);
void CheckShareId(Findings& out, const api::FieldPath& path, std::string_view id,
                  Covered covered = Covered::kNo);
// "10.9.8.7/24": an address with its prefix length, in canonical form.
void CheckInterfaceAddress(Findings& out, const api::FieldPath& path, std::string_view address);
bool IsExtendedResourceName(std::string_view name);

// Declared rules.
void DeclareShortName(Findings& out, const api::FieldPath& path, std::string_view name, bool beta);
void DeclareLongName(Findings& out, const api::FieldPath& path, std::string_view name, bool beta);
void DeclareCaselessName(Findings& out, const api::FieldPath& path, std::string_view name,
                         bool beta);
void DeclarePoolName(Findings& out, const api::FieldPath& path, std::string_view name, bool beta);
void DeclareFullyQualifiedName(Findings& out, const api::FieldPath& path, std::string_view name,
                               bool beta);
void DeclareLabelKey(Findings& out, const api::FieldPath& path, std::string_view name, bool beta);
void DeclareUuid(Findings& out, const api::FieldPath& path, std::string_view id, bool beta);
void DeclareExtendedResourceName(Findings& out, const api::FieldPath& path, std::string_view name,
                                 bool beta);

}  // namespace drakkar::apiserver
