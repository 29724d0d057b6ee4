#pragma once

#include "cel/checker/declarations.h"

// Function families. Each call adds declarations and implementations; an environment chooses.
namespace drakkar::cel::library {

void AddStandard(Declarations& declarations);              // operators, conversions, strings, time
void AddOptionals(Declarations& declarations);             // optional.of and friends
void AddTwoVariables(Declarations& declarations);          // what transformMap needs
void AddStrings(Declarations& declarations, int version);  // charAt, split, format, ...
void AddSets(Declarations& declarations);
void AddLists(Declarations& declarations);  // slice, flatten, sort, distinct, ...
void AddMath(Declarations& declarations);
void AddEncoders(Declarations& declarations);  // base64

// Kubernetes' own.
void AddRegex(Declarations& declarations);  // find, findAll
void AddUrls(Declarations& declarations);
void AddKubernetesLists(
    Declarations& declarations);  // isSorted, sum, min, max, indexOf, lastIndexOf
void AddIncludes(Declarations& declarations, std::string overload_id);
void AddQuantities(Declarations& declarations);
void AddSemvers(Declarations& declarations);
void AddIps(Declarations& declarations);
void AddCidrs(Declarations& declarations);
void AddFormats(Declarations& declarations);

// --- For implementations ---------------------------------------------------------------------

using Args = std::span<const Value>;

inline void Global(Declarations& d, std::string name, std::string id, std::vector<TypeRef> args,
                   TypeRef result, Implementation implementation = nullptr,
                   Prepare prepare = nullptr) {
  d.AddFunction(std::move(name), {std::move(id), std::move(args), std::move(result), false,
                                  implementation, prepare});
}
inline void Member(Declarations& d, std::string name, std::string id, std::vector<TypeRef> args,
                   TypeRef result, Implementation implementation = nullptr,
                   Prepare prepare = nullptr) {
  d.AddFunction(std::move(name),
                {std::move(id), std::move(args), std::move(result), true, implementation, prepare});
}
inline Value NoSuchOverload(CallContext& context) {
  return NewError(context.arena, "no such overload");
}

}  // namespace drakkar::cel::library
