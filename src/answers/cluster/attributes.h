#pragma once

#include <string>
#include <string_view>

#include "device/slice.h"

namespace drakkar::answers {

// A value as people write it; lists with commas.
std::string AttributeText(const device::AttributeValue& value);

// The attribute `name` of a device: "domain/id", or a bare id in whichever domain. Empty: none.
std::string FindAttributeText(std::string_view driver, const device::Device& device,
                              std::string_view name);

// The attribute that names the model: model, productName, product or type, whichever the device
// has first. Empty: none.
std::string ModelOf(std::string_view driver, const device::Device& device);

}  // namespace drakkar::answers
