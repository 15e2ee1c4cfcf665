/* The end of what is included for a type: undefines what it was defined with. */
#undef T
#undef OF
#undef FMA
#undef SPLAT
#undef LANES_OF
#undef EVEN_LANES_OF
#undef STORE_LANES
#undef STORE_EVEN_LANES
#undef vec
#undef LANES
#undef COLUMNS
#undef ALIGNED
#undef ALL_LANES
