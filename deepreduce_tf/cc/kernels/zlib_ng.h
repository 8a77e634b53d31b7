// Deflate from zlib-ng. Its Python wheel exports the C API; the package loads it before this library (deepreduce_tf/ops.py), so that no
// system package and no second copy of zlib is needed.
#ifndef DEEPREDUCE_KERNELS_ZLIB_NG_H_
#define DEEPREDUCE_KERNELS_ZLIB_NG_H_

#include "absl/status/status.h"
#include "deepreduce_tf/cc/lib/value/deflate.h"

namespace deepreduce {

// Unavailable when zlib-ng was not loaded.
absl::Status FindZlibNg(const DeflateFunctions** functions);

}  // namespace deepreduce

#endif  // DEEPREDUCE_KERNELS_ZLIB_NG_H_
