#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apiserver/request/request.h"

namespace drakkar::apiserver {

// Makes request.object of request.text (JSON or YAML), checked against the kind's schema as the
// request's field validation asks. A body that is already a tree is checked the same way.
std::optional<Failure> DecodeBody(const api::KindSchema& kind, Request& request,
                                  std::vector<std::string>& warnings);

// Does that beforehand, on the caller's thread, for the body of a create or update that is without
// fault; leaves any other as it is, for the core to answer.
void DecodeEarly(Request& request);

// The object that an update or a patch asks for, in the version of `kind`. `before` is the current
// one as it is stored; a patch is applied to it in the client's version.
std::optional<Failure> BuildUpdate(const api::KindSchema& kind, Request& request,
                                   const api::ObjectPtr& before, api::TreePtr& asked,
                                   std::vector<std::string>& warnings);

}  // namespace drakkar::apiserver
