#include "sanity/sanity.h"

#include "sanity/driver_under_test.h"

namespace drakkar::sanity {

Report RunSanity(const Options& options) {
  DriverUnderTest driver(options);
  CheckRegistration(driver);
  CheckSlices(driver);
  CheckPrepare(driver);
  CheckHealth(driver);
  CheckRestart(driver);
  CheckRollingUpdate(driver);
  return driver.report();
}

}  // namespace drakkar::sanity
