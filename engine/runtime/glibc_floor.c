/* Lets a library that was built with a new glibc run on older ones, from 2.31 on (Linux on x86-64).
 *
 * In 2.33 and 2.34 glibc gave functions that had long been there new version names, as libpthread and libdl
 * became parts of libc. The old names are still there and mean the same; this file asks for them. The linker
 * sends every use of the wrapped names here (-Wl,--wrap), those within the C++ library's own archive too. */
#include <pthread.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/stat.h>

#define OLDEST_OF_X86_64 "GLIBC_2.2.5"
#define OLD_NAME(function) __asm__(".symver old_" #function "," #function "@" OLDEST_OF_X86_64)

OLD_NAME(dlopen);
OLD_NAME(dlsym);
OLD_NAME(dlclose);
OLD_NAME(hypot);
OLD_NAME(pthread_create);
OLD_NAME(pthread_join);
OLD_NAME(pthread_once);
OLD_NAME(pthread_rwlock_rdlock);
OLD_NAME(pthread_rwlock_unlock);
OLD_NAME(pthread_rwlock_wrlock);
__asm__(".symver old_xstat,__xstat@" OLDEST_OF_X86_64);
__asm__(".symver old_lxstat,__lxstat@" OLDEST_OF_X86_64);
__asm__(".symver old_fxstat,__fxstat@" OLDEST_OF_X86_64);
__asm__(".symver old_fxstat64,__fxstat64@" OLDEST_OF_X86_64);

void* old_dlopen(const char* file, int mode);
void* old_dlsym(void* library, const char* name);
int old_dlclose(void* library);
double old_hypot(double x, double y);
int old_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                       void* argument);
int old_pthread_join(pthread_t thread, void** result);
int old_pthread_once(pthread_once_t* control, void (*routine)(void));
int old_pthread_rwlock_rdlock(pthread_rwlock_t* lock);
int old_pthread_rwlock_unlock(pthread_rwlock_t* lock);
int old_pthread_rwlock_wrlock(pthread_rwlock_t* lock);
int old_xstat(int version, const char* path, struct stat* out);
int old_lxstat(int version, const char* path, struct stat* out);
int old_fxstat(int version, int file, struct stat* out);
int old_fxstat64(int version, int file, struct stat* out);

void* __wrap_dlopen(const char* file, int mode) { return old_dlopen(file, mode); }
void* __wrap_dlsym(void* library, const char* name) { return old_dlsym(library, name); }
int __wrap_dlclose(void* library) { return old_dlclose(library); }
int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                          void* argument) {
    return old_pthread_create(thread, attributes, start, argument);
}
int __wrap_pthread_join(pthread_t thread, void** result) { return old_pthread_join(thread, result); }
int __wrap_pthread_once(pthread_once_t* control, void (*routine)(void)) {
    return old_pthread_once(control, routine);
}
int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t* lock) { return old_pthread_rwlock_rdlock(lock); }
int __wrap_pthread_rwlock_unlock(pthread_rwlock_t* lock) { return old_pthread_rwlock_unlock(lock); }
int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t* lock) { return old_pthread_rwlock_wrlock(lock); }

/* From 2.35, without errno. */
double __wrap_hypot(double x, double y) { return old_hypot(x, y); }

/* From 2.36; std::random_device takes it. Where the kernel has no random bits yet, it gives 0. */
uint32_t __wrap_arc4random(void) {
    uint32_t value = 0;
    return getrandom(&value, sizeof value, 0) == sizeof value ? value : 0;
}

/* From 2.33; older headers have functions that call these with the version of the struct. */
int __wrap_stat(const char* path, struct stat* out) { return old_xstat(1, path, out); }
int __wrap_lstat(const char* path, struct stat* out) { return old_lxstat(1, path, out); }
int __wrap_fstat(int file, struct stat* out) { return old_fxstat(1, file, out); }
int __wrap_fstat64(int file, struct stat* out) { return old_fxstat64(1, file, out); }

/* From 2.32: tells if locks may be left out. False is always correct. */
char __wrap___libc_single_threaded = 0;
