/* Shared by the two halves of tn_tables_verify: what the tables hold, and the order in which steps use it. */
#ifndef TENON_RUNTIME_VERIFY_TABLES_H
#define TENON_RUNTIME_VERIFY_TABLES_H
#include "internal.h"

struct tn_verifier {
  struct tn_tables t;
  uint64_t budget; /* elements that may still be looked at: lists may overlap, and work must end */
};
bool tn_spend(struct tn_verifier* v, uint64_t work);
tenon_status tn_verify_list(struct tn_verifier* v, struct tenon_list list, uint64_t count, const char* what);
bool tn_is_expr(const struct tn_verifier* v, uint32_t expr, uint32_t type);
/* Runs last: relies on expressions, symbols and buffers being sound. */
tenon_status tn_verify_steps(struct tn_verifier* v);
tenon_status tn_check_version(const struct tenon_header* header);

#endif
