#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "cli/description.h"

namespace drakkar::cli {

// Gets an object or a list that belongs to the one described; absent if there is none or it may not
// be read: a description says what it can.
struct RelatedObjects {
  std::function<api::Value(std::string_view type, std::string_view namespace_,
                           std::string_view name)>
      get;
  std::function<api::Value(std::string_view type, std::string_view namespace_,
                           std::string_view field_selector)>
      list;
  WallTime now;
};

// The descriptions of kinds that have one of their own. Each adds what comes after the metadata.
void DescribePod(Description& out, api::Value pod, const RelatedObjects& related);
void DescribeNode(Description& out, api::Value node, const RelatedObjects& related);
void DescribeResourceClaim(Description& out, api::Value claim, const RelatedObjects& related);
void DescribeResourceSlice(Description& out, api::Value slice, const RelatedObjects& related);

// "gpu.example.com/pool-a/gpu-0" for each device of a claim's allocation.
std::vector<std::string> AllocatedDevices(api::Value claim);

}  // namespace drakkar::cli
