/* Reads the device metadata of a container (KEP-5304), for C.
 *
 *   drakkar_metadata* metadata;
 *   char* error;
 *   if (drakkar_metadata_read("my-claim", "gpu", 5000, &metadata, &error) != 0) {
 *     fprintf(stderr, "%s\n", error);
 *     drakkar_metadata_free_text(error);
 *     return 1;
 *   }
 *   puts(drakkar_metadata_attribute_text(metadata, 0, 0, "model"));
 *   drakkar_metadata_free(metadata);
 *
 * Reads every version of the file format. Strings are UTF-8, belong to the metadata they were
 * taken from, and live until it is freed. Claims and devices are counted from 0; an index out of
 * range gives NULL, 0 or DRAKKAR_METADATA_INVALID. Uses no threads and no network. Several
 * threads may read one metadata object at the same time.
 */
#ifndef DRAKKAR_METADATA_H_
#define DRAKKAR_METADATA_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum drakkar_metadata_status {
  DRAKKAR_METADATA_OK = 0,
  DRAKKAR_METADATA_NOT_YET = 1, /* empty or missing, and no timeout was given */
  DRAKKAR_METADATA_TIMEOUT = 2, /* still empty or missing after the timeout */
  DRAKKAR_METADATA_INVALID = 3, /* malformed file or bad argument */
  DRAKKAR_METADATA_FAILED = 4   /* unreadable file */
} drakkar_metadata_status;

typedef enum drakkar_metadata_type {
  DRAKKAR_METADATA_INT = 1,
  DRAKKAR_METADATA_BOOL,
  DRAKKAR_METADATA_STRING,
  DRAKKAR_METADATA_VERSION,
  DRAKKAR_METADATA_INTS,
  DRAKKAR_METADATA_BOOLS,
  DRAKKAR_METADATA_STRINGS,
  DRAKKAR_METADATA_VERSIONS
} drakkar_metadata_type;

typedef struct drakkar_metadata drakkar_metadata;

typedef struct drakkar_metadata_claim {
  const char* name;
  const char* namespace_name;
  const char* uid;
  const char* pod_claim_name; /* NULL unless the claim was made from a template */
  int64_t generation;
  size_t device_count; /* of all requests */
} drakkar_metadata_claim;

typedef struct drakkar_metadata_device {
  const char* request; /* "request" or "request/subrequest" */
  const char* driver;
  const char* pool;
  const char* name;
  size_t attribute_count;
  int has_network_data;
  const char* interface_name;
  const char* hardware_address;
  size_t ip_count;
} drakkar_metadata_device;

typedef struct drakkar_metadata_attribute {
  const char* name;
  drakkar_metadata_type type;
  size_t count;     /* number of items of a list, otherwise 1 */
  const char* text; /* the value as a string; list items are separated by spaces */
} drakkar_metadata_attribute;

/* Functions that read metadata. If `timeout_ms` is above 0, they wait that long for missing
 * metadata. If the result is not DRAKKAR_METADATA_OK, `*error` is set and must be freed with
 * drakkar_metadata_free_text; `error` may be NULL. */
drakkar_metadata_status drakkar_metadata_read_file(const char* path, int64_t timeout_ms,
                                                   drakkar_metadata** metadata, char** error);
/* `claim` is the claim's name, or its name in the pod. If `request` is NULL or "", reads the
 * whole claim. */
drakkar_metadata_status drakkar_metadata_read(const char* claim, const char* request,
                                              int64_t timeout_ms, drakkar_metadata** metadata,
                                              char** error);
/* Everything that this container has. */
drakkar_metadata_status drakkar_metadata_read_all(int64_t timeout_ms, drakkar_metadata** metadata,
                                                  char** error);
/* What is available after waiting: DRAKKAR_METADATA_OK if there is at least one file; missing
 * files are pending. If `claim` is NULL, covers everything that this container has. */
drakkar_metadata_status drakkar_metadata_read_available(const char* claim, const char* request,
                                                        int64_t timeout_ms,
                                                        drakkar_metadata** metadata, char** error);
size_t drakkar_metadata_pending_count(const drakkar_metadata* metadata);
/* The path of a pending file; NULL if the index is out of range. */
const char* drakkar_metadata_get_pending(const drakkar_metadata* metadata, size_t index);
void drakkar_metadata_free(drakkar_metadata* metadata);
void drakkar_metadata_free_text(char* text);

size_t drakkar_metadata_claim_count(const drakkar_metadata* metadata);
drakkar_metadata_status drakkar_metadata_get_claim(const drakkar_metadata* metadata, size_t claim,
                                                   drakkar_metadata_claim* out);
drakkar_metadata_status drakkar_metadata_get_device(const drakkar_metadata* metadata, size_t claim,
                                                    size_t device, drakkar_metadata_device* out);
const char* drakkar_metadata_get_ip(const drakkar_metadata* metadata, size_t claim, size_t device,
                                    size_t ip);
/* Attributes by index, in the order of their names. */
drakkar_metadata_status drakkar_metadata_get_attribute(const drakkar_metadata* metadata,
                                                       size_t claim, size_t device,
                                                       size_t attribute,
                                                       drakkar_metadata_attribute* out);
/* Item `item` of an attribute as a string; 0 for one that is not a list. */
const char* drakkar_metadata_get_item(const drakkar_metadata* metadata, size_t claim, size_t device,
                                      size_t attribute, size_t item);
/* An attribute's value as a string, by name; NULL if there is none. */
const char* drakkar_metadata_attribute_text(const drakkar_metadata* metadata, size_t claim,
                                            size_t device, const char* name);
/* The value of an INT attribute, by name. */
drakkar_metadata_status drakkar_metadata_attribute_int(const drakkar_metadata* metadata,
                                                       size_t claim, size_t device,
                                                       const char* name, int64_t* out);

#ifdef __cplusplus
}
#endif

#endif /* DRAKKAR_METADATA_H_ */
