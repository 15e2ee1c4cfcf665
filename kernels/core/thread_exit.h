/* What is to be done when a thread ends. */
#pragma once
#include <pthread.h>

/* Defines register(p): `end` is called with `p`, which is not NULL, when the thread that registered it ends. */
#define TT_AT_THREAD_EXIT(register, end)                                                                               \
    static pthread_key_t register##_key;                                                                               \
    static void register##_once(void) { pthread_key_create(&register##_key, end); }                                    \
    static void register(void *p) {                                                                                    \
        static pthread_once_t once = PTHREAD_ONCE_INIT;                                                                \
        pthread_once(&once, register##_once);                                                                          \
        pthread_setspecific(register##_key, p);                                                                        \
    }
