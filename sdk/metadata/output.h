#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/metadata/device_metadata.h"
#include "base/env/clock.h"
#include "base/result/result.h"
#include "sdk/metadata/reader.h"

namespace drakkar::metadata {

// The arguments of `drakkar-metadata` and `drakkar metadata`.
struct Query {
  std::string claim;            // if empty, all
  std::string request;          // if empty, the whole claim
  std::string file;             // if set, only this file
  std::string output = "json";  // json, env, jsonpath=TEMPLATE
  Duration wait = Reader::kNoWait;
};

// The output.
//
// json: one v1alpha1 document, whichever version the files have; without a claim, an object
//   whose `items` are such documents.
// env: lines for `eval` in a shell, with quoted values. For device number N of a request:
//     DRA_<CLAIM>_<REQUEST>_COUNT='1'            DRA_<CLAIM>_GENERATION='1'
//     DRA_<CLAIM>_<REQUEST>_<N>_DEVICE='gpu-0'   _DRIVER, _POOL
//     DRA_<CLAIM>_<REQUEST>_<N>_ATTR_<NAME>='x'  list items are separated by spaces
//     DRA_<CLAIM>_<REQUEST>_<N>_INTERFACE, _IPS, _HARDWARE_ADDRESS
//   with the claim's name in the pod if it has one; letters in upper case, everything but letters
//   and digits replaced by _.
// jsonpath=...: as in kubectl, applied to the JSON.
//
// Missing metadata is left out and listed in `pending`, as in Reader; fails if nothing is
// available.
Result<std::string> RunQuery(const Query& query, Reader& reader, std::vector<std::string>& pending);
// The exit status of a query that printed something: 3 if it waited for all metadata and some is
// still missing, otherwise 0. `note` is for standard error; empty if nothing is missing.
int PartialExit(const Query& query, const std::vector<std::string>& pending, std::string& note);

std::string ToEnvironment(const DeviceMetadata& metadata);

}  // namespace drakkar::metadata
