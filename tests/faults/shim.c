/* Faults in system calls that change files: preloaded, armed from Python by `arm`.
 *
 * Every call that opens for writing, writes, syncs, truncates, renames, removes or makes something
 * below one folder is counted. The call with the chosen number fails, is cut short, or kills the
 * process; all of them are listed in a log. What a library does in C, C++ or Rust is seen as well.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char root[PATH_MAX];
static size_t root_length;
static atomic_long calls;
static long chosen = -1;
static int fault_errno, fault_signal, lasting, torn, log_file = -1;

/* Count from zero below `folder`. At call `number`: fail with `error` (from then on if `stay`, for
 * calls that need space), or raise `sig`; `half` lets a write do half of its work first. */
void arm(const char *folder, long number, int error, int sig, int stay, int half, int log) {
    strncpy(root, folder, sizeof root - 1);
    root_length = strlen(root);
    calls = 0;
    chosen = number;
    fault_errno = error;
    fault_signal = sig;
    lasting = stay;
    torn = half;
    log_file = log;
}

long counted(void) { return calls; }

static int below(const char *path) {
    return strncmp(path, root, root_length) == 0 && (path[root_length] == '/' || !path[root_length]);
}

static int in_folder(int directory, const char *path, char *full) {
    if (!root_length || !path) return 0;
    if (path[0] == '/') {
        snprintf(full, PATH_MAX, "%s", path);
        return below(full);
    }
    char link[64], base[PATH_MAX];
    ssize_t n;
    if (directory == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
    else snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
    n = readlink(link, base, sizeof base - 1);
    if (n < 0) return 0;
    base[n] = 0;
    if (snprintf(full, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) return 0;
    return below(full);
}

static int open_in_folder(int file, char *full) {
    char link[64];
    if (!root_length || file == log_file) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t n = readlink(link, full, PATH_MAX - 1);
    if (n < 0) return 0;
    full[n] = 0;
    return below(full);
}

enum { GO, FAIL, HALF };

/* What to do with a call: go on, fail with errno set, or do half and come to `finish`. */
static int decide(const char *name, const char *path, int needs_space, int is_write) {
    long number = calls++;
    if (log_file >= 0) {
        char line[PATH_MAX + 64];
        int n = snprintf(line, sizeof line, "%ld %s %s\n", number, name, path + root_length);
        syscall(SYS_write, log_file, line, n < (int)sizeof line ? n : (int)sizeof line);
    }
    if (chosen < 0 || number < chosen) return GO;
    if (number > chosen && !(lasting && needs_space)) return GO;
    if (torn && is_write && number == chosen) return HALF;
    if (fault_signal && number == chosen) raise(fault_signal);
    if (!fault_errno) return GO; /* a signal that was handled */
    errno = fault_errno;
    return FAIL;
}

static ssize_t finish(ssize_t result) {
    if (fault_signal) raise(fault_signal);
    torn = 0;
    chosen = fault_errno ? calls : -1; /* a short write is no error: the next call fails */
    return result;
}

#define NEXT(type, name, ...) static type (*next)(__VA_ARGS__); if (!next) next = dlsym(RTLD_NEXT, name)
#define PATH_CALL(directory, path, name, space) \
    char full[PATH_MAX]; \
    if (in_folder(directory, path, full) && decide(name, full, space, 0) == FAIL) return -1
#define FILE_CALL(file, name, space) \
    char full[PATH_MAX]; \
    if (open_in_folder(file, full) && decide(name, full, space, 0) == FAIL) return -1

#define OPEN(directory) \
    mode_t mode = 0; \
    if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); } \
    if (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) { PATH_CALL(directory, path, "open", 1); }

int open(const char *path, int flags, ...) {
    NEXT(int, "open", const char *, int, ...);
    OPEN(AT_FDCWD)
    return next(path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    NEXT(int, "open64", const char *, int, ...);
    OPEN(AT_FDCWD)
    return next(path, flags, mode);
}
int openat(int directory, const char *path, int flags, ...) {
    NEXT(int, "openat", int, const char *, int, ...);
    OPEN(directory)
    return next(directory, path, flags, mode);
}
int openat64(int directory, const char *path, int flags, ...) {
    NEXT(int, "openat64", int, const char *, int, ...);
    OPEN(directory)
    return next(directory, path, flags, mode);
}

ssize_t write(int file, const void *data, size_t size) {
    NEXT(ssize_t, "write", int, const void *, size_t);
    char full[PATH_MAX];
    if (size && open_in_folder(file, full)) {
        int what = decide("write", full, 1, 1);
        if (what == FAIL) return -1;
        if (what == HALF) return finish(next(file, data, (size + 1) / 2));
    }
    return next(file, data, size);
}
ssize_t writev(int file, const struct iovec *parts, int n) {
    NEXT(ssize_t, "writev", int, const struct iovec *, int);
    FILE_CALL(file, "write", 1);
    return next(file, parts, n);
}
ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) {
    NEXT(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    FILE_CALL(file, "write", 1);
    return next(file, data, size, at);
}
ssize_t sendfile(int to, int from, off_t *at, size_t size) {
    NEXT(ssize_t, "sendfile", int, int, off_t *, size_t);
    FILE_CALL(to, "sendfile", 1);
    return next(to, from, at, size);
}
ssize_t sendfile64(int to, int from, off64_t *at, size_t size) {
    NEXT(ssize_t, "sendfile64", int, int, off64_t *, size_t);
    FILE_CALL(to, "sendfile", 1);
    return next(to, from, at, size);
}
ssize_t copy_file_range(int from, off64_t *a, int to, off64_t *b, size_t size, unsigned flags) {
    NEXT(ssize_t, "copy_file_range", int, off64_t *, int, off64_t *, size_t, unsigned);
    FILE_CALL(to, "copy_file_range", 1);
    return next(from, a, to, b, size, flags);
}
int fsync(int file) {
    NEXT(int, "fsync", int);
    FILE_CALL(file, "fsync", 1);
    return next(file);
}
int fdatasync(int file) {
    NEXT(int, "fdatasync", int);
    FILE_CALL(file, "fsync", 1);
    return next(file);
}
int ftruncate(int file, off_t size) {
    NEXT(int, "ftruncate", int, off_t);
    FILE_CALL(file, "truncate", 1);
    return next(file, size);
}
int ftruncate64(int file, off64_t size) {
    NEXT(int, "ftruncate64", int, off64_t);
    FILE_CALL(file, "truncate", 1);
    return next(file, size);
}
int rename(const char *from, const char *to) {
    NEXT(int, "rename", const char *, const char *);
    PATH_CALL(AT_FDCWD, to, "rename", 0);
    return next(from, to);
}
int renameat(int a, const char *from, int b, const char *to) {
    NEXT(int, "renameat", int, const char *, int, const char *);
    PATH_CALL(b, to, "rename", 0);
    return next(a, from, b, to);
}
int unlink(const char *path) {
    NEXT(int, "unlink", const char *);
    PATH_CALL(AT_FDCWD, path, "remove", 0);
    return next(path);
}
int unlinkat(int directory, const char *path, int flags) {
    NEXT(int, "unlinkat", int, const char *, int);
    PATH_CALL(directory, path, "remove", 0);
    return next(directory, path, flags);
}
int rmdir(const char *path) {
    NEXT(int, "rmdir", const char *);
    PATH_CALL(AT_FDCWD, path, "remove", 0);
    return next(path);
}
int mkdir(const char *path, mode_t mode) {
    NEXT(int, "mkdir", const char *, mode_t);
    PATH_CALL(AT_FDCWD, path, "mkdir", 1);
    return next(path, mode);
}
int mkdirat(int directory, const char *path, mode_t mode) {
    NEXT(int, "mkdirat", int, const char *, mode_t);
    PATH_CALL(directory, path, "mkdir", 1);
    return next(directory, path, mode);
}
int chmod(const char *path, mode_t mode) {
    NEXT(int, "chmod", const char *, mode_t);
    PATH_CALL(AT_FDCWD, path, "chmod", 0);
    return next(path, mode);
}
int fchmodat(int directory, const char *path, mode_t mode, int flags) {
    NEXT(int, "fchmodat", int, const char *, mode_t, int);
    PATH_CALL(directory, path, "chmod", 0);
    return next(directory, path, mode, flags);
}
int fchmod(int file, mode_t mode) {
    NEXT(int, "fchmod", int, mode_t);
    FILE_CALL(file, "chmod", 0);
    return next(file, mode);
}
int link(const char *from, const char *to) {
    NEXT(int, "link", const char *, const char *);
    PATH_CALL(AT_FDCWD, to, "link", 1);
    return next(from, to);
}
int symlink(const char *from, const char *to) {
    NEXT(int, "symlink", const char *, const char *);
    PATH_CALL(AT_FDCWD, to, "link", 1);
    return next(from, to);
}
