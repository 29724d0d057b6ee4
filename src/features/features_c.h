#ifndef DRAKKAR_FEATURES_C_H_
#define DRAKKAR_FEATURES_C_H_

/*
 * Node declared features (KEP-5328) for C and everything that calls C: what a node will declare,
 * what a pod needs, whether the two match. Objects go in and out as JSON.
 *
 * Every call that returns a string returns NULL on failure and then stores a sentence in *error
 * (unless `error` is NULL). Input that is not understood fails: keys that are not listed here, and
 * values of another type than Kubernetes has. Strings and errors are freed with
 * drakkar_features_free_string. No call keeps its arguments. A handle may be used from any number
 * of threads at once.
 */

#ifdef __cplusplus
extern "C" {
#endif

typedef struct drakkar_features drakkar_features;

enum {
  DRAKKAR_FEATURES_KEP = 0,       /* names and inference as the proposals have them */
  DRAKKAR_FEATURES_KUBERNETES = 1 /* as Kubernetes 1.37 */
};

/* NULL for a setting that is none of the above. */
drakkar_features* drakkar_features_new(int setting);
void drakkar_features_free(drakkar_features* features);
void drakkar_features_free_string(char* text);

/*
 * What a node declares.
 * in:  {"version": "1.37.0", "featureGates": "A=true,B=false", "runtimeFeatures": "MountOptions",
 *       "kubeletConfiguration": {...}, "agent": "kubelet"}, all optional; the agent "drakkar" is
 *      Drakkar's own, which declares only what it does
 * out: {"declaredFeatures": ["A", ...], "notes": ["...", ...]}
 */
char* drakkar_features_discover(const drakkar_features* features, const char* node_json,
                                char** error);

/*
 * What a pod needs so that it can be scheduled.
 * in:  {"pod": {...}, "claims": [{...}, ...], "version": "1.37.0"}; the version is the caller's,
 *      claims are the pod's allocated ResourceClaims
 * out: {"requiredFeatures": [{"name": "A", "field": "spec.hostUsers"}, ...]}
 */
char* drakkar_features_require(const drakkar_features* features, const char* pod_json,
                               char** error);

/*
 * What an update of a pod needs.
 * in:  {"oldPod": {...}, "pod": {...}, "version": "1.37.0"}
 * out: {"requiredFeatures": [{"name": "A"}, ...]}
 */
char* drakkar_features_require_update(const drakkar_features* features, const char* update_json,
                                      char** error);

/*
 * Whether a node has what is required.
 * in:  {"required": ["A", ...], "node": {"status": {"declaredFeatures": [...]}}}
 * out: {"match": false, "unsatisfied": ["A"]}
 * A required feature that is not registered is an error.
 */
char* drakkar_features_match(const drakkar_features* features, const char* match_json,
                             char** error);

/*
 * What a node must have so that it declares the feature.
 * out: {"name": "A", "aliases": [], "featureGates": ["A"], "staticConfiguration": {},
 *       "runtimeFeatures": [], "maxVersion": "1.40.0"}, empty ones left out
 */
char* drakkar_features_needs(const drakkar_features* features, const char* name, char** error);

#ifdef __cplusplus
}
#endif

#endif /* DRAKKAR_FEATURES_C_H_ */
