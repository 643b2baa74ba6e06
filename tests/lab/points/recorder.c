/*
 * Records, in one total order, what a program reads, writes and flushes of the files of one folder (LD_PRELOAD). A write has its
 * place when it has come back, a flush when it begins: a flush orders after it what was complete before. RECORD_FOLDER: which
 * files; RECORD_LOG: where to; RECORD_LAG: microseconds that each write takes, so that a flush that does not wait for one
 * overtakes it; RECORD_LOG_BLOCKS: of writes only blocks of the intent log, and no flushes. ZIL_NOCACHEFLUSH: what the parameter
 * zil_nocacheflush=1 does, which user space has no way to set in 2.3.
 *
 * An entry: kind, length of the name, thread, offset, length, then name and data (of reads no data).
 */
#define	_GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE = 1, FLUSH, READ };
enum { MAGIC_AT = 144 };	/* zil_chain_t, zc_eck.zec_magic */
static const uint64_t MAGIC = 0x210da7ab10c7a11ULL;

struct entry {
	uint32_t kind, name_length;
	uint64_t thread, offset, length;
};
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static int out = -1;
static __thread uint64_t block_end;	/* libzpool writes a block in two parts */

static const char *
name_of(int fd, char *path, size_t size)
{
	char link[64];
	const char *folder = getenv("RECORD_FOLDER");
	(void) snprintf(link, sizeof (link), "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, path, size - 1);
	if (folder == NULL || length < 0)
		return (NULL);
	path[length] = 0;
	size_t at = strlen(folder);
	return (strncmp(path, folder, at) == 0 && path[at] == '/' ? path + at + 1 : NULL);
}

static int
is_log_block(const void *data, uint64_t offset, uint64_t length)
{
	uint64_t magic = 0;
	if (length > MAGIC_AT + sizeof (magic))
		memcpy(&magic, (const char *)data + MAGIC_AT, sizeof (magic));
	int found = magic == MAGIC || offset == block_end;
	block_end = found ? offset + length : 0;
	return (found);
}

static void
record(uint32_t kind, const char *name, uint64_t offset, const void *data, uint64_t length)
{
	struct entry entry = { kind, strlen(name), pthread_self(), offset, length };
	struct iovec parts[] = { { &entry, sizeof (entry) }, { (void *)name, entry.name_length },
	    { (void *)data, kind == WRITE ? length : 0 } };
	if (getenv("RECORD_LOG_BLOCKS") && strcmp(name, "marks") != 0 &&
	    (kind != WRITE || !is_log_block(data, offset, length)))
		return;
	if (out < 0)
		out = open(getenv("RECORD_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	size_t whole = parts[0].iov_len + parts[1].iov_len + parts[2].iov_len;
	if (writev(out, parts, 3) != (ssize_t)whole)
		abort();	/* a record with a hole proves nothing */
}

ssize_t
pwrite64(int fd, const void *data, size_t length, off_t offset)
{
	ssize_t (*real)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite64");
	char path[512];
	const char *name = name_of(fd, path, sizeof (path)), *lag = getenv("RECORD_LAG");
	if (name == NULL)
		return (real(fd, data, length, offset));
	if (lag != NULL)
		(void) usleep(atoi(lag));
	pthread_mutex_lock(&order);
	ssize_t done = real(fd, data, length, offset);
	if (done > 0)
		record(WRITE, name, offset, data, done);
	pthread_mutex_unlock(&order);
	return (done);
}

/* the marks */
ssize_t
write(int fd, const void *data, size_t length)
{
	ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
	char path[512];
	const char *name = name_of(fd, path, sizeof (path));
	if (name == NULL)
		return (real(fd, data, length));
	pthread_mutex_lock(&order);
	ssize_t done = real(fd, data, length);
	record(WRITE, name, 0, data, done);
	pthread_mutex_unlock(&order);
	return (done);
}

ssize_t
pread64(int fd, void *data, size_t length, off_t offset)
{
	ssize_t (*real)(int, void *, size_t, off_t) = dlsym(RTLD_NEXT, "pread64");
	char path[512];
	const char *name = name_of(fd, path, sizeof (path));
	if (name == NULL)
		return (real(fd, data, length, offset));
	pthread_mutex_lock(&order);
	ssize_t done = real(fd, data, length, offset);
	if (done > 0)
		record(READ, name, offset, NULL, done);
	pthread_mutex_unlock(&order);
	return (done);
}

int
fsync(int fd)
{
	int (*real)(int) = dlsym(RTLD_NEXT, "fsync");
	char path[512];
	const char *name = name_of(fd, path, sizeof (path));
	if (name == NULL)
		return (real(fd));
	pthread_mutex_lock(&order);
	record(FLUSH, name, 0, NULL, 0);
	pthread_mutex_unlock(&order);
	return (0);
}

void
zil_lwb_add_block(void *lwb, const void *bp)
{
	void (*real)(void *, const void *) = dlsym(RTLD_NEXT, "zil_lwb_add_block");
	if (getenv("ZIL_NOCACHEFLUSH") == NULL)
		real(lwb, bp);
}
