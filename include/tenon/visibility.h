// What every public header starts with: which names the shared library exports, and the namespace they live in.
#pragma once

/// The names of this interface live in tenon::v0, which a user sees as tenon. The library itself, whose own types have
/// some of these names, is built with the namespace not inline.
#ifdef TENON_BUILDING_LIBRARY
#define TENON_INLINE
#else
#define TENON_INLINE inline
#endif

#define TENON_PUBLIC __attribute__((visibility("default")))
