#pragma once

#include <string>
#include <vector>

#include "answers/cluster/device_table.h"
#include "answers/doctor/doctor.h"

namespace drakkar::answers {

// The checks, one function each. A check that finds nothing returns a finding without objects.

// Checks of devices and claims.
Finding CheckDrivers(const DoctorInput& input, const DeviceTable& table);
Finding CheckClasses(const DoctorInput& input, const DeviceTable& table);
Finding CheckPools(const DoctorInput& input, const DeviceTable& table);
Finding CheckLostNodes(const DoctorInput& input, const DeviceTable& table);
Finding CheckHeldButGone(const DoctorInput& input, const DeviceTable& table);
Finding CheckUnusedClaims(const DoctorInput& input, const DeviceTable& table);
Finding CheckTerminating(const DoctorInput& input, const DeviceTable& table);
Finding CheckCdi(const DoctorInput& input, const DeviceTable& table);

// Checks of the control plane.
Finding CheckClocks(const DoctorInput& input, const DeviceTable& table);
Finding CheckGates(const DoctorInput& input, const DeviceTable& table);
Finding CheckDeclaredFeatures(const DoctorInput& input, const DeviceTable& table);
Finding CheckCertificates(const DoctorInput& input, const DeviceTable& table);
Finding CheckUnattended(const DoctorInput& input, const DeviceTable& table);

// "1 pool", "3 pools".
std::string Count(std::size_t count, std::string_view one, std::string_view many = {});
void Add(Finding& finding, std::string object);

}  // namespace drakkar::answers
