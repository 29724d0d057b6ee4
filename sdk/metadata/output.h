#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/metadata/device_metadata.h"
#include "base/env/clock.h"
#include "base/result/result.h"
#include "sdk/metadata/reader.h"

namespace drakkar::metadata {

// What `drakkar-metadata` and `drakkar metadata` are asked for.
struct Query {
  std::string claim;            // empty: all
  std::string request;          // empty: all of the claim
  std::string file;             // not empty: this file instead
  std::string output = "json";  // json, env, jsonpath=TEMPLATE
  Duration wait = Reader::kNoWait;
};

// The text to print.
//
// json: one document of version v1alpha1 whatever version the files have; without a claim, an
// object
//   whose `items` are such documents.
// env: lines for `eval` in a shell, values quoted. For device number N of a request:
//     DRA_<CLAIM>_<REQUEST>_COUNT='1'            DRA_<CLAIM>_GENERATION='1'
//     DRA_<CLAIM>_<REQUEST>_<N>_DEVICE='gpu-0'   _DRIVER, _POOL
//     DRA_<CLAIM>_<REQUEST>_<N>_ATTR_<NAME>='x'  items of lists separated by spaces
//     DRA_<CLAIM>_<REQUEST>_<N>_INTERFACE, _IPS, _HARDWARE_ADDRESS
//   with the claim's name in the pod if it has one; letters in upper case, all else than letters
//   and digits as _.
// jsonpath=...: as in kubectl, applied to the JSON.
//
// What is not there yet is left out and listed in `pending`, as Reader does; an error if nothing is
// there.
Result<std::string> RunQuery(const Query& query, Reader& reader, std::vector<std::string>& pending);
// The exit status of a query that had something to print: 3 if it was to wait for all and did not
// get it, else 0. `note` is for standard error, and empty if nothing is missing.
int PartialExit(const Query& query, const std::vector<std::string>& pending, std::string& note);

std::string ToEnvironment(const DeviceMetadata& metadata);

}  // namespace drakkar::metadata
