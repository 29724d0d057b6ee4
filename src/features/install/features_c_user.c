/* An autoscaler in C: what will a node declare, what does a pod require, do the two match? */
#include <drakkar/features_c.h>
#include <stdio.h>
#include <string.h>

static int Check(const char* what, const char* answer, const char* expected) {
  if (answer != NULL && strstr(answer, expected) != NULL) return 0;
  fprintf(stderr, "%s: %s\n", what, answer != NULL ? answer : "(nothing)");
  return 1;
}

int main(void) {
  char* error = NULL;
  int failures = 0;
  drakkar_features* features = drakkar_features_new(DRAKKAR_FEATURES_KEP);
  char* declared = drakkar_features_discover(
      features,
      "{\"version\":\"1.36\",\"featureGates\":\"UserNamespacesHostNetworkSupport=true\","
      "\"runtimeFeatures\":\"UserNamespacesHostNetwork\"}",
      &error);
  char* required =
      drakkar_features_require(features,
                               "{\"pod\":{\"spec\":{\"hostNetwork\":true,\"hostUsers\":false,"
                               "\"containers\":[{\"name\":\"c\"}]}}}",
                               &error);
  char* match = drakkar_features_match(features,
                                       "{\"required\":[\"UserNamespacesHostNetworkSupport\"],"
                                       "\"node\":{\"status\":{\"declaredFeatures\":[]}}}",
                                       &error);
  failures += Check("discover", declared, "UserNamespacesHostNetworkSupport");
  failures += Check("require", required, "spec.hostUsers");
  failures += Check("match", match, "\"unsatisfied\"");
  drakkar_features_free_string(declared);
  drakkar_features_free_string(required);
  drakkar_features_free_string(match);
  drakkar_features_free_string(error);
  drakkar_features_free(features);
  return failures;
}
