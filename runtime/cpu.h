/* How many processors this process may use. */
#ifndef TENON_RUNTIME_CPU_H
#define TENON_RUNTIME_CPU_H
#include "internal.h"

/* The lesser of the affinity of this thread and the quota of its control groups. */
int tn_usable_processors(void);
/* INT_MAX without a quota. Files are named for tests. */
int tn_cgroup_processors(const char* groups_file, const char* mount);

#endif
