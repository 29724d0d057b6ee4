#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apiserver/request/request.h"

namespace drakkar::apiserver {

// Parses request.text (JSON or YAML) into request.object and checks it against the kind's schema,
// as the request's field validation demands. A body that already is a tree is checked the same way.
std::optional<Failure> DecodeBody(const api::KindSchema& kind, Request& request,
                                  std::vector<std::string>& warnings);

// Trees of more bytes are rejected: every step of a write looks at each value.
inline constexpr std::size_t kMaxTreeBytes = std::size_t{8} << 20;

// Decodes the body of a create or update, or parses a patch, on the caller's thread, so that the
// core does not have to. The core reports errors in it, after it has authorized the request.
void DecodeEarly(Request& request);
// Whether DecodeEarly handles the body of this request.
bool IsDecodedEarly(const Request& request);

// The object that results from an update or a patch, in the version of `kind`. `before` is the
// current object as stored; a patch is applied to it in the client's version.
std::optional<Failure> BuildUpdate(const api::KindSchema& kind, Request& request,
                                   const api::ObjectPtr& before, api::TreePtr& asked,
                                   std::vector<std::string>& warnings);

}  // namespace drakkar::apiserver
