/*
 * What becomes of acknowledged records when devices are in some state before a crash, with OpenZFS's own claim and replay in
 * user space (libzpool). run.sh builds it for a line of the lab, and says what is tried.
 *
 *	states write FOLDER LAYOUT STATE [restart]	20 records, the state, 20 more; then it is gone without an export
 *	states check FOLDER plain|-m			imports what is left, replays, and prints the newest record
 *
 * A record is a page of one object, written and committed by itself. restart closes the log and waits for the transaction group
 * in place of the second 20, as an unmount does.
 */
#include <sys/zfs_context.h>
#include <sys/spa.h>
#include <sys/spa_impl.h>
#include <sys/vdev_impl.h>
#include <sys/dmu.h>
#include <sys/dmu_objset.h>
#include <sys/dsl_pool.h>
#include <sys/zil.h>
#include <sys/zil_impl.h>
#include <sys/txg.h>
#include <sys/fs/zfs.h>
#include <libnvpair.h>
#include <fcntl.h>

#ifdef LINE_2_1
#define	ASSIGN		TXG_WAIT
#define	OPEN(os)	zil_open(os, get_data)
#define	LIST
#else
#define	ASSIGN		DMU_TX_WAIT
#define	OPEN(os)	zil_open(os, get_data, NULL)
#define	LIST		(const nvlist_t * const *)
#endif
#ifdef LINE_2_4
#define	WRITE(...)	dmu_write(__VA_ARGS__, 0)
#else
#define	WRITE		dmu_write
#endif
extern char *spa_config_path;
extern int zfs_scan_suspend_progress;

enum { PAGE = 4096, RECORDS = 40, SIZE = 128 << 20 };
static const char *folder;
static objset_t *os;
static zilog_t *zilog;
static uint64_t object = 0;

static char *
path(const char *name)
{
	char found[300];
	(void) snprintf(found, sizeof (found), "%s/%s", folder, name);
	return (strdup(found));
}

static int
get_data(void *arg, uint64_t arg2, lr_write_t *lr, char *buf, struct lwb *lwb, zio_t *zio)
{
	return (dmu_read(os, lr->lr_foid, lr->lr_offset, lr->lr_length, buf, DMU_READ_NO_PREFETCH));
}

static int
replay_write(void *arg, void *record, boolean_t byteswap)
{
	lr_write_t *lr = record;
	dmu_tx_t *tx = dmu_tx_create(os);
	dmu_tx_hold_write(tx, lr->lr_foid, lr->lr_offset, lr->lr_length);
	VERIFY0(dmu_tx_assign(tx, ASSIGN));
	WRITE(os, lr->lr_foid, lr->lr_offset, lr->lr_length, lr + 1, tx);
	(void) zil_replaying(dmu_objset_zil(os), tx);
	dmu_tx_commit(tx);
	return (0);
}

static void
commit(uint64_t record)
{
	char page[PAGE] = { 0 };
	uint64_t at = record * PAGE;
	dmu_tx_t *tx = dmu_tx_create(os);
	memcpy(page, &record, sizeof (record));
	dmu_tx_hold_write(tx, object, at, PAGE);
	VERIFY0(dmu_tx_assign(tx, ASSIGN));
	WRITE(os, object, at, PAGE, page, tx);
	itx_t *itx = zil_itx_create(TX_WRITE, sizeof (lr_write_t));
	lr_write_t *lr = (lr_write_t *)&itx->itx_lr;
	itx->itx_wr_state = WR_NEED_COPY;
	lr->lr_foid = object;
	lr->lr_offset = at;
	lr->lr_length = PAGE;
	lr->lr_blkoff = 0;
	BP_ZERO(&lr->lr_blkptr);
	itx->itx_sync = B_TRUE;
	zil_itx_assign(zilog, itx, tx);
	dmu_tx_commit(tx);
	zil_commit(zilog, 0);
}

static nvlist_t *
vdev(const char *type, int log)
{
	nvlist_t *nv = fnvlist_alloc();
	fnvlist_add_string(nv, ZPOOL_CONFIG_TYPE, type);
	fnvlist_add_uint64(nv, ZPOOL_CONFIG_ASHIFT, 12);
	fnvlist_add_uint64(nv, ZPOOL_CONFIG_IS_LOG, log);
	if (log)
		fnvlist_add_string(nv, ZPOOL_CONFIG_ALLOCATION_BIAS, VDEV_ALLOC_BIAS_LOG);
	return (nv);
}

static nvlist_t *
file(const char *prefix, int number)
{
	char name[8];
	(void) snprintf(name, sizeof (name), "%s%d", prefix, number);
	int fd = open(path(name), O_RDWR | O_CREAT | O_TRUNC, 0600);
	VERIFY0(ftruncate(fd, SIZE));
	(void) close(fd);
	nvlist_t *nv = vdev(VDEV_TYPE_FILE, *prefix == 'l');
	fnvlist_add_string(nv, ZPOOL_CONFIG_PATH, path(name));
	return (nv);
}

static nvlist_t *
parent(const char *type, const char *prefix, int width)
{
	nvlist_t *nv = vdev(type, *prefix == 'l'), *children[4];
	for (int c = 0; c < width; c++)
		children[c] = file(prefix, c);
	if (strcmp(type, VDEV_TYPE_RAIDZ) == 0)
		fnvlist_add_uint64(nv, ZPOOL_CONFIG_NPARITY, width - 2);
	VERIFY0(nvlist_add_nvlist_array(nv, ZPOOL_CONFIG_CHILDREN, LIST children, width));
	return (nv);
}

static nvlist_t *
root_of(nvlist_t **children, int count)
{
	nvlist_t *root = fnvlist_alloc();
	fnvlist_add_string(root, ZPOOL_CONFIG_TYPE, VDEV_TYPE_ROOT);
	VERIFY0(nvlist_add_nvlist_array(root, ZPOOL_CONFIG_CHILDREN, LIST children, count));
	return (root);
}

static void
make_object(objset_t *objset, void *arg, cred_t *cr, dmu_tx_t *tx)
{
	(void) dmu_object_alloc(objset, DMU_OT_UINT64_OTHER, PAGE, DMU_OT_NONE, 0, tx);
}

/* attached: a second leg whose resilver makes no progress. one-offline: the first leg. The others: every leg. */
static void
bring_about(spa_t *spa, vdev_t *top, const char *state)
{
	int leaf = top->vdev_ops->vdev_op_leaf;
	if (strcmp(state, "attached") == 0) {
		nvlist_t *leg = file(top->vdev_islog ? "l" : "d", 1);
		zfs_scan_suspend_progress = 1;
		VERIFY0(spa_vdev_attach(spa, top->vdev_guid, root_of(&leg, 1), B_FALSE, B_FALSE));
		return;
	}
	for (uint64_t c = 0; c < (leaf ? 1 : top->vdev_children); c++) {
		vdev_t *vd = leaf ? top : top->vdev_child[c];
		if (strcmp(state, "forced") == 0)
			VERIFY0(vdev_fault(spa, vd->vdev_guid, VDEV_AUX_EXTERNAL_PERSIST));
		if (strcmp(state, "faulted") == 0)
			VERIFY0(vdev_fault(spa, vd->vdev_guid, VDEV_AUX_ERR_EXCEEDED));
		if (strcmp(state, "offline") == 0 || (strcmp(state, "one-offline") == 0 && c == 0))
			VERIFY0(vdev_offline(spa, vd->vdev_guid, 0));
		if (strcmp(state, "removed") == 0) {
			vd->vdev_remove_wanted = B_TRUE;
			spa_async_request(spa, SPA_ASYNC_REMOVE);
		}
	}
	for (int wait = 0; wait < 3; wait++) {
		(void) sleep(1);
		txg_wait_synced(spa_get_dsl(spa), 0);
	}
	if (strcmp(state, "removed") == 0)
		VERIFY3U(leaf ? top->vdev_state : top->vdev_child[0]->vdev_state, ==, VDEV_STATE_REMOVED);
}

static void
own(spa_t **spa)
{
	VERIFY0(spa_open("p", spa, FTAG));
	VERIFY0(dmu_objset_own("p/ds", DMU_OST_OTHER, B_FALSE, B_TRUE, FTAG, &os));
	VERIFY0(dmu_object_next(os, &object, B_FALSE, 0));
}

static int
write_records(const char *layout, const char *state, int restart)
{
	spa_t *spa;
	nvlist_t *tops[3];
	int count = 0, at = 1, record = 1;
	if (strcmp(layout, "one") == 0)
		tops[count++] = file("d", 0);
	else if (strncmp(layout, "raidz", 5) == 0)
		tops[count++] = parent(VDEV_TYPE_RAIDZ, "d", 2 + layout[5] - '0');
	else
		tops[count++] = parent(VDEV_TYPE_MIRROR, "d", 2);
	if (strcmp(layout, "log-mirror") == 0)
		tops[count++] = parent(VDEV_TYPE_MIRROR, "l", 2);
	else if (strncmp(layout, "log-", 4) == 0)
		tops[count++] = file("l", 0);
	else
		at = 0;
	if (strcmp(layout, "log-striped") == 0)
		tops[count++] = file("l", 1);
	VERIFY0(spa_create("p", root_of(tops, count), NULL, NULL, NULL));
	VERIFY0(dmu_objset_create("p/ds", DMU_OST_OTHER, 0, NULL, make_object, NULL));
	own(&spa);
	zilog = OPEN(os);
	while (record <= RECORDS / 2)
		commit(record++);
	bring_about(spa, spa->spa_root_vdev->vdev_child[at], state);
	zfs_txg_timeout = 3600;
	if (restart) {
		zil_close(zilog);
		txg_wait_synced(spa_get_dsl(spa), 0);
	}
	while (!restart && record <= RECORDS)
		commit(record++);
	return (printf("%d\n", record - 1));
}

static int
check(const char *how)
{
	static zil_replay_func_t *replay[TX_MAX_TYPE];
	static char packed[1 << 20], page[PAGE];
	nvlist_t *pools, *config;
	spa_t *spa;
	uint64_t newest = 0, record;
	int fd = open(path("zpool.cache"), O_RDONLY);
	ssize_t length = read(fd, packed, sizeof (packed));
	VERIFY0(nvlist_unpack(packed, length, &pools, 0));
	VERIFY0(nvlist_lookup_nvlist(pools, "p", &config));
	if (spa_import("p", config, NULL, strcmp(how, "-m") == 0 ? ZFS_IMPORT_MISSING_LOG : 0) != 0)
		return (-1);
	own(&spa);
	replay[TX_WRITE] = replay_write;
	zil_replay(os, NULL, replay);
	for (int at = 1; at <= RECORDS; at++) {
		VERIFY0(dmu_read(os, object, at * PAGE, PAGE, page, DMU_READ_NO_PREFETCH));
		memcpy(&record, page, sizeof (record));
		newest = MAX(newest, record);
	}
	return (printf("%d\n", (int)newest));
}

int
main(int argc, char **argv)
{
	int done, write = strcmp(argv[1], "write") == 0;
	folder = argv[2];
	spa_config_path = path(write ? "zpool.cache" : "none");
	dprintf_setup(&argc, argv);
	kernel_init(SPA_MODE_READ | SPA_MODE_WRITE);
	done = write ? write_records(argv[3], argv[4], argc > 5) : check(argv[3]);
	(void) fflush(stdout);
	_exit(done < 0);
}
