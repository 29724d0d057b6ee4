#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/tree/value.h"
#include "cli/description.h"

namespace drakkar::cli {

// Fetches an object or list related to the described one; absent if it does not exist or may not be
// read.
struct RelatedObjects {
  std::function<api::Value(std::string_view type, std::string_view namespace_,
                           std::string_view name)>
      get;
  std::function<api::Value(std::string_view type, std::string_view namespace_,
                           std::string_view field_selector)>
      list;
  WallTime now;
};

// Descriptions for kinds with a special format. Each adds what follows the metadata.
void DescribePod(Description& out, api::Value pod, const RelatedObjects& related);
void DescribeNode(Description& out, api::Value node, const RelatedObjects& related);
void DescribeResourceClaim(Description& out, api::Value claim, const RelatedObjects& related);
void DescribeResourceSlice(Description& out, api::Value slice, const RelatedObjects& related);

// "gpu.example.com/pool-a/gpu-0" for each device of a claim's allocation.
std::vector<std::string> AllocatedDevices(api::Value claim);

}  // namespace drakkar::cli
