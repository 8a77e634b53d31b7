// Plain zlib as the table of functions that Deflate needs.
#ifndef DEEPREDUCE_TESTS_PLAIN_ZLIB_H_
#define DEEPREDUCE_TESTS_PLAIN_ZLIB_H_

#include "deepreduce_tf/cc/lib/value/deflate.h"

namespace deepreduce::testing {

// Null when this machine has no libz.so.1; says so once. Loaded by name at run time: every Debian has the library, few its header.
const DeflateFunctions* Zlib();

}  // namespace deepreduce::testing

#endif  // DEEPREDUCE_TESTS_PLAIN_ZLIB_H_
