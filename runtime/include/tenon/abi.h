/* In the source tree the definitions stand in runtime/abi.h; installed, that file lies here. */
#include "../../abi.h"
