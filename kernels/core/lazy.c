/* Arrays whose elements are yet to be computed: lazy.h. */
#include "core/tt.h"

const tt_deferred_hooks *tt_deferred;
__thread int64_t tt_looks;
__thread bool tt_flush_failed;
