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

// Does so ahead of the core, on the caller's thread, if the body of a create or update is without
// errors. Otherwise leaves it as it is, for the core to report the error.
void DecodeEarly(Request& request);

// The object that results from an update or a patch, in the version of `kind`. `before` is the
// current object as stored; a patch is applied to it in the client's version.
std::optional<Failure> BuildUpdate(const api::KindSchema& kind, Request& request,
                                   const api::ObjectPtr& before, api::TreePtr& asked,
                                   std::vector<std::string>& warnings);

}  // namespace drakkar::apiserver
