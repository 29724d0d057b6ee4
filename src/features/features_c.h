#ifndef DRAKKAR_FEATURES_C_H_
#define DRAKKAR_FEATURES_C_H_

/*
 * Node declared features (KEP-5328) for C and every language that can call C: what a node will
 * declare, what a pod requires, whether the two match. Objects are passed as JSON.
 *
 * Functions that return a string return NULL on failure and store a message in *error (unless
 * `error` is NULL). They reject keys that are not listed here and values with another type than in
 * Kubernetes. Free strings and errors with drakkar_features_free_string. No function keeps its
 * arguments. Any number of threads may use a handle at the same time.
 */

#ifdef __cplusplus
extern "C" {
#endif

typedef struct drakkar_features drakkar_features;

enum {
  DRAKKAR_FEATURES_KEP = 0,       /* names and inference as the proposals have them */
  DRAKKAR_FEATURES_KUBERNETES = 1 /* as Kubernetes 1.37 */
};

/* Returns NULL for an unknown setting. */
drakkar_features* drakkar_features_new(int setting);
void drakkar_features_free(drakkar_features* features);
void drakkar_features_free_string(char* text);

/*
 * What a node declares.
 * in:  {"version": "1.37.0", "featureGates": "A=true,B=false", "runtimeFeatures": "MountOptions",
 *       "kubeletConfiguration": {...}, "agent": "kubelet"}, all optional; the agent "drakkar" is
 *      Drakkar's own, which declares only what it implements
 * out: {"declaredFeatures": ["A", ...], "notes": ["...", ...]}
 */
char* drakkar_features_discover(const drakkar_features* features, const char* node_json,
                                char** error);

/*
 * What a pod requires of its node.
 * in:  {"pod": {...}, "claims": [{...}, ...], "version": "1.37.0"}; the version is the caller's,
 *      claims are the pod's allocated ResourceClaims
 * out: {"requiredFeatures": [{"name": "A", "field": "spec.hostUsers"}, ...]}
 */
char* drakkar_features_require(const drakkar_features* features, const char* pod_json,
                               char** error);

/*
 * What an update of a pod requires.
 * in:  {"oldPod": {...}, "pod": {...}, "version": "1.37.0"}
 * out: {"requiredFeatures": [{"name": "A"}, ...]}
 */
char* drakkar_features_require_update(const drakkar_features* features, const char* update_json,
                                      char** error);

/*
 * Whether a node satisfies the requirements.
 * in:  {"required": ["A", ...], "node": {"status": {"declaredFeatures": [...]}}}
 * out: {"match": false, "unsatisfied": ["A"]}
 * A required feature that is not registered is an error.
 */
char* drakkar_features_match(const drakkar_features* features, const char* match_json,
                             char** error);

/*
 * What a node needs to declare the feature.
 * out: {"name": "A", "aliases": [], "featureGates": ["A"], "staticConfiguration": {},
 *       "runtimeFeatures": [], "maxVersion": "1.40.0"}, empty members are omitted
 */
char* drakkar_features_needs(const drakkar_features* features, const char* name, char** error);

#ifdef __cplusplus
}
#endif

#endif /* DRAKKAR_FEATURES_C_H_ */
