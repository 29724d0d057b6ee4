#pragma once

#include <string>

#include "answers/doctor/doctor.h"
#include "answers/render/devices.h"

namespace drakkar::answers {

// A line of totals, then each finding with its objects and what to do. At most kShownObjects
// objects of each, all of them with options.wide.
std::string RenderDoctor(const DoctorAnswer& answer, const RenderOptions& options);
inline constexpr std::size_t kShownObjects = 5;

// The same as JSON: an object.
std::string DoctorToJson(const DoctorAnswer& answer);

}  // namespace drakkar::answers
