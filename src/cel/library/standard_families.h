#pragma once

#include "cel/library/library.h"

// The parts of the standard library that have files of their own.
namespace drakkar::cel::library {

void AddConversions(Declarations& declarations);
void AddTimeAccessors(Declarations& declarations);

}  // namespace drakkar::cel::library
