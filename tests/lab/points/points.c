/*
 * A program that commits through the intent log of OpenZFS in user space (libzpool), and one that reads what a crash left, with
 * OpenZFS's own import, claim and replay. build.sh compiles it for a line of the lab; recorder.c sees what it writes.
 *
 *	points run FOLDER <script	does what the script says, a command a line, and ends without an export
 *	points check FOLDER DEVICE... of NAME...	imports the pool, replays the datasets, prints what is in them
 *
 * Commands of a script; a DEVICE is a file in FOLDER, one whose name begins with l is for the log:
 *	create DEVICE... | mirror DEVICE DEVICE ...	a pool of these top-level vdevs ("mirror" takes the next two)
 *	dataset NAME RECORDSIZE latency|throughput	one object of such blocks
 *	write NAME OFFSET LENGTH GENERATION fsync|always|dsync	as zfs_write() and zfs_log_write() do it; durable with a commit
 *	commit NAME TOKEN	zil_commit(), as fsync does it, then TOKEN goes to the file "marks": acknowledged
 *	txg | snapshot NAME TAG | add DEVICE... | remove DEVICE | fault DEVICE
 *	nocacheflush	zfs_nocacheflush=1
 *
 * What is written: each 8 bytes hold the generation and their own place, so that each 8 bytes can be judged by themselves.
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

#if defined(LINE_2_1) || defined(LINE_2_2)
#define	ASSIGN		TXG_WAIT
#else
#define	ASSIGN		DMU_TX_WAIT
#endif
#ifdef LINE_2_1
#define	OPEN(os)	zil_open(os, get_data)
#define	ADD		spa_vdev_add
#define	LIST
#define	DATA(lr)	((char *)(lr + 1))
#else
#define	OPEN(os)	zil_open(os, get_data, NULL)
#define	ADD(...)	spa_vdev_add(__VA_ARGS__, B_FALSE)
#define	LIST		(const nvlist_t * const *)
#define	DATA(lr)	((char *)&lr->lr_data[0])
#endif
#ifdef LINE_2_4
#define	WRITE(...)	dmu_write(__VA_ARGS__, 0)
#else
#define	WRITE		dmu_write
#endif
extern char *spa_config_path;
extern int zfs_nocacheflush;
extern int spa_asize_inflation;

enum { SIZE = 64 << 20, LARGEST = 1 << 20, IMMEDIATE = 32768, NAMES = 8, CELL = 8 };
typedef enum { FSYNC, ALWAYS, DSYNC } how_t;

typedef struct {
	char name[32];
	objset_t *os;
	zilog_t *zilog;
	uint64_t object, record;
} dataset_t;

static const char *folder;
static spa_t *spa;
static dataset_t datasets[NAMES];
static char buffer[LARGEST];

static char *
path(const char *name)
{
	char found[300];
	(void) snprintf(found, sizeof (found), "%s/%s", folder, name);
	return (strdup(found));
}

/* The log asks for the data of a write: as zfs_get_data() and zfs_get_done(), without locks, for one thread writes. */
static void
get_done(zgd_t *zgd, int error)
{
	if (zgd->zgd_db)
		dmu_buf_rele(zgd->zgd_db, zgd);
	umem_free(zgd, sizeof (*zgd));
}

static int
get_data(void *arg, uint64_t gen, lr_write_t *lr, char *buf, struct lwb *lwb, zio_t *zio)
{
	dataset_t *ds = arg;
	if (buf != NULL)
		return (dmu_read(ds->os, lr->lr_foid, lr->lr_offset, lr->lr_length, buf, DMU_READ_NO_PREFETCH));
	zgd_t *zgd = umem_zalloc(sizeof (*zgd), UMEM_NOFAIL);
	dmu_buf_t *db;
	zgd->zgd_lwb = lwb;
	VERIFY0(dmu_buf_hold(ds->os, lr->lr_foid, P2ALIGN_TYPED(lr->lr_offset, ds->record, uint64_t), zgd, &db,
	    DMU_READ_NO_PREFETCH));
	zgd->zgd_db = db;
	zgd->zgd_bp = &lr->lr_blkptr;
	int error = dmu_sync(zio, lr->lr_common.lrc_txg, get_done, zgd);
	if (error == 0)
		return (0);
	if (error == EALREADY) {
		lr->lr_common.lrc_txtype = TX_WRITE2;
		zgd->zgd_bp = NULL;
		BP_ZERO(&lr->lr_blkptr);
		error = 0;
	}
	get_done(zgd, error);
	return (error);
}

/* zfs_log_write() of the line; sync=always alone is no reason for it to copy the data at once in 2.1 */
static void
log_write(dataset_t *ds, dmu_tx_t *tx, uint64_t off, uint64_t resid, how_t how)
{
	itx_wr_state_t chosen;
#ifdef LINE_2_4
	chosen = zil_write_state(ds->zilog, resid, ds->record, B_FALSE, how != FSYNC);
#else
#ifdef LINE_2_1
	int commit = how == DSYNC;
#else
	int commit = how != FSYNC;
#endif
	if (ds->zilog->zl_logbias == ZFS_LOGBIAS_THROUGHPUT || (!spa_has_slogs(spa) && resid >= IMMEDIATE))
		chosen = WR_INDIRECT;
	else
		chosen = commit ? WR_COPIED : WR_NEED_COPY;
#endif
	while (resid > 0) {
		itx_wr_state_t state = chosen;
		uint64_t len = resid;
		if (state == WR_COPIED && resid > zil_max_copied_data(ds->zilog))
			state = WR_NEED_COPY;
		else if (state == WR_INDIRECT)
			len = MIN(ds->record - P2PHASE(off, ds->record), resid);
		itx_t *itx = zil_itx_create(TX_WRITE, sizeof (lr_write_t) + (state == WR_COPIED ? len : 0));
		lr_write_t *lr = (lr_write_t *)&itx->itx_lr;
		if (state == WR_COPIED)
			VERIFY0(dmu_read(ds->os, ds->object, off, len, DATA(lr), DMU_READ_NO_PREFETCH));
		itx->itx_wr_state = state;
		itx->itx_private = ds;
		itx->itx_sync = B_TRUE;
		lr->lr_foid = ds->object;
		lr->lr_offset = off;
		lr->lr_length = len;
		lr->lr_blkoff = 0;
		BP_ZERO(&lr->lr_blkptr);
		zil_itx_assign(ds->zilog, itx, tx);
		off += len;
		resid -= len;
	}
}

/* zfs_write(): 2.1 has a transaction a block, later lines have one for all */
static void
write_data(dataset_t *ds, uint64_t off, uint64_t length, uint32_t generation, how_t how)
{
	while (length > 0) {
		uint64_t len = length;
#ifdef LINE_2_1
		len = MIN(len, ds->record - P2PHASE(off, ds->record));
#endif
		for (uint64_t at = 0; at < len; at += CELL) {
			uint32_t cell[2] = { generation, (off + at) / CELL };
			memcpy(buffer + at, cell, sizeof (cell));
		}
		dmu_tx_t *tx = dmu_tx_create(ds->os);
		dmu_tx_hold_write(tx, ds->object, off, len);
		VERIFY0(dmu_tx_assign(tx, ASSIGN));
		WRITE(ds->os, ds->object, off, len, buffer, tx);
		log_write(ds, tx, off, len, how);
		dmu_tx_commit(tx);
		off += len;
		length -= len;
	}
}

static int
replay_write(void *arg, void *record, boolean_t byteswap)
{
	dataset_t *ds = arg;
	lr_write_t *lr = record;
	uint64_t off = lr->lr_offset, len = lr->lr_length;
	if (lr->lr_common.lrc_reclen == sizeof (lr_write_t) && len < BP_GET_LSIZE(&lr->lr_blkptr)) {
		len = BP_GET_LSIZE(&lr->lr_blkptr);
		off -= off % len;
	}
	dmu_tx_t *tx = dmu_tx_create(ds->os);
	dmu_tx_hold_write(tx, lr->lr_foid, off, len);
	VERIFY0(dmu_tx_assign(tx, ASSIGN));
	WRITE(ds->os, lr->lr_foid, off, len, DATA(lr), tx);
	(void) zil_replaying(dmu_objset_zil(ds->os), tx);
	dmu_tx_commit(tx);
	return (0);
}

static int
replay_none(void *arg, void *record, boolean_t byteswap)
{
	return (0);
}

static nvlist_t *
vdev(const char *type, int log)
{
	nvlist_t *nv = fnvlist_alloc();
	fnvlist_add_string(nv, ZPOOL_CONFIG_TYPE, type);
	fnvlist_add_uint64(nv, ZPOOL_CONFIG_ASHIFT, 12);
	fnvlist_add_uint64(nv, ZPOOL_CONFIG_IS_LOG, log);
	return (nv);
}

static nvlist_t *
device(const char *name)
{
	int fd = open(path(name), O_RDWR | O_CREAT, 0600);
	VERIFY0(ftruncate(fd, SIZE));
	(void) close(fd);
	nvlist_t *nv = vdev(VDEV_TYPE_FILE, *name == 'l');
	fnvlist_add_string(nv, ZPOOL_CONFIG_PATH, path(name));
	return (nv);
}

/* The top-level vdevs that the rest of the line names. */
static nvlist_t *
tree(void)
{
	nvlist_t *tops[NAMES], *root = vdev(VDEV_TYPE_ROOT, 0);
	int count = 0;
	for (char *word; (word = strtok(NULL, " ")) != NULL; count++) {
		if (strcmp(word, "mirror") != 0) {
			tops[count] = device(word);
			continue;
		}
		char *one = strtok(NULL, " "), *two = strtok(NULL, " ");
		nvlist_t *legs[] = { device(one), device(two) };
		tops[count] = vdev(VDEV_TYPE_MIRROR, *one == 'l');
		VERIFY0(nvlist_add_nvlist_array(tops[count], ZPOOL_CONFIG_CHILDREN, LIST legs, 2));
	}
	VERIFY0(nvlist_add_nvlist_array(root, ZPOOL_CONFIG_CHILDREN, LIST tops, count));
	return (root);
}

static uint64_t
guid_of(const char *name)
{
	vdev_t *root = spa->spa_root_vdev;
	for (uint64_t c = 0; c < root->vdev_children; c++) {
		vdev_t *vd = root->vdev_child[c];
		if (vd->vdev_path && strcmp(vd->vdev_path, path(name)) == 0)
			return (vd->vdev_guid);
	}
	VERIFY3P(name, ==, NULL);
	return (0);
}

static dataset_t *
find(const char *name)
{
	for (int i = 0; i < NAMES; i++)
		if (strcmp(datasets[i].name, name) == 0)
			return (&datasets[i]);
	VERIFY3P(name, ==, NULL);
	return (NULL);
}

static void
make_object(objset_t *os, void *arg, cred_t *cr, dmu_tx_t *tx)
{
	(void) dmu_object_alloc(os, DMU_OT_PLAIN_FILE_CONTENTS, *(uint64_t *)arg, DMU_OT_NONE, 0, tx);
}

static int
own(dataset_t *ds, const char *name)
{
	char full[64];
	dmu_object_info_t info;
	(void) snprintf(full, sizeof (full), "p/%s", name);
	(void) snprintf(ds->name, sizeof (ds->name), "%s", name);
	int error = dmu_objset_own(full, DMU_OST_OTHER, B_FALSE, B_TRUE, ds, &ds->os);
	if (error != 0)
		return (error);
	VERIFY0(dmu_object_next(ds->os, &ds->object, B_FALSE, 0));
	VERIFY0(dmu_object_info(ds->os, ds->object, &info));
	ds->record = info.doi_data_block_size;
	return (0);
}

static void
create_dataset(const char *name, uint64_t record, const char *logbias)
{
	static int count = 0;
	char full[64];
	dataset_t *ds = &datasets[count++];
	(void) snprintf(full, sizeof (full), "p/%s", name);
	VERIFY0(dmu_objset_create(full, DMU_OST_OTHER, 0, NULL, make_object, &record));
	VERIFY0(own(ds, name));
	ds->zilog = OPEN(ds->os);
	zil_set_logbias(ds->zilog, *logbias == 't' ? ZFS_LOGBIAS_THROUGHPUT : ZFS_LOGBIAS_LATENCY);
}

static void
command(char *line)
{
	static int marks = -1;
	char *verb = strtok(line, " "), *name, *word[4];
	if (strcmp(verb, "create") == 0) {
		marks = open(path("marks"), O_RDWR | O_CREAT | O_APPEND, 0600);
		VERIFY0(spa_create("p", tree(), NULL, NULL, NULL));
		VERIFY0(spa_open("p", &spa, FTAG));
		zfs_txg_timeout = 3600;	/* the script says when */
		return;
	}
	if (strcmp(verb, "add") == 0)
		VERIFY0(ADD(spa, tree()));
	if (strcmp(verb, "txg") == 0)
		txg_wait_synced(spa_get_dsl(spa), 0);
	if (strcmp(verb, "nocacheflush") == 0)
		zfs_nocacheflush = 1;
	if ((name = strtok(NULL, " ")) == NULL)
		return;
	for (int i = 0; i < 4; i++)
		word[i] = strtok(NULL, " ");
	if (strcmp(verb, "dataset") == 0)
		create_dataset(name, atol(word[0]), word[1]);
	if (strcmp(verb, "write") == 0)
		write_data(find(name), atol(word[0]), atol(word[1]), atol(word[2]),
		    *word[3] == 'f' ? FSYNC : *word[3] == 'a' ? ALWAYS : DSYNC);
	if (strcmp(verb, "commit") == 0) {
		zil_commit(find(name)->zilog, 0);
		VERIFY3S(write(marks, word[0], strlen(word[0])), ==, strlen(word[0]));
	}
	if (strcmp(verb, "snapshot") == 0) {
		char full[64];
		(void) snprintf(full, sizeof (full), "p/%s", name);
		VERIFY0(dmu_objset_snapshot_one(full, word[0]));
	}
	if (strcmp(verb, "remove") == 0) {
		/* zil_suspend() may wait for the next txg (zil_commit_waiter(): a commit that races with spa_sync()) */
		zfs_txg_timeout = 1;
		VERIFY0(spa_vdev_remove(spa, guid_of(name), B_FALSE));
		zfs_txg_timeout = 3600;
	}
	if (strcmp(verb, "fault") == 0)
		VERIFY0(vdev_fault(spa, guid_of(name), VDEV_AUX_ERR_EXCEEDED));
}

static uint64_t
checksum_errors(vdev_t *vd)
{
	uint64_t found = vd->vdev_stat.vs_checksum_errors;
	for (uint64_t c = 0; c < vd->vdev_children; c++)
		found += checksum_errors(vd->vdev_child[c]);
	return (found);
}

/* Runs of one generation: NAME FROM TO GENERATION. Generation 0 is what nobody wrote; wrong: not of this place. */
static void
print_runs(dataset_t *ds)
{
	dmu_object_info_t info;
	uint64_t from = 0, at = 0, last = 0;
	VERIFY0(dmu_object_info(ds->os, ds->object, &info));
	while (at < info.doi_max_offset) {
		uint64_t len = MIN(LARGEST, info.doi_max_offset - at);
		int error = dmu_read(ds->os, ds->object, at, len, buffer, DMU_READ_NO_PREFETCH);
		if (error != 0) {
			(void) printf("unreadable %s %llu %d\n", ds->name, (u_longlong_t)at, error);
			return;
		}
		for (uint64_t b = 0; b < len; b += CELL, at += CELL) {
			uint32_t cell[2];
			memcpy(cell, buffer + b, sizeof (cell));
			uint64_t generation = cell[0] == 0 || cell[1] == (uint32_t)(at / CELL) ? cell[0] : UINT32_MAX;
			if (generation == last)
				continue;
			if (last != 0)
				(void) printf("run %s %llu %llu %llu\n", ds->name, (u_longlong_t)from,
				    (u_longlong_t)at, (u_longlong_t)last);
			from = at;
			last = generation;
		}
	}
	if (last != 0)
		(void) printf("run %s %llu %llu %llu\n", ds->name, (u_longlong_t)from, (u_longlong_t)at, (u_longlong_t)last);
}

/* The newest config of one device, from its four labels, as zpool_read_label() finds it; NULL where none is whole. */
static nvlist_t *
label(const char *name)
{
	static vdev_label_t read_label;
	nvlist_t *newest = NULL, *found;
	uint64_t best = 0, txg;
	int fd = open(path(name), O_RDONLY);
	for (int l = 0; l < VDEV_LABELS && fd >= 0; l++) {
		if (pread64(fd, &read_label, sizeof (read_label), vdev_label_offset(SIZE, l, 0)) != sizeof (read_label) ||
		    nvlist_unpack(read_label.vl_vdev_phys.vp_nvlist, sizeof (read_label.vl_vdev_phys.vp_nvlist), &found, 0) != 0)
			continue;
		if (nvlist_lookup_uint64(found, ZPOOL_CONFIG_POOL_TXG, &txg) == 0 && txg > best) {
			best = txg;
			newest = found;
		}
	}
	return (newest);
}

static nvlist_t *
top_of(const char *type, uint64_t id)
{
	nvlist_t *nv = vdev(type, 0);
	fnvlist_add_uint64(nv, ZPOOL_CONFIG_ID, id);
	fnvlist_add_uint64(nv, ZPOOL_CONFIG_GUID, 0);
	return (nv);
}

/* What zpool import makes of the labels (libzutil get_configs()): the newest config, with each top-level vdev from its own. */
static nvlist_t *
config_of(char **devices)
{
	nvlist_t *config = NULL, *tops[NAMES] = { NULL }, *root = fnvlist_alloc();
	uint64_t best = 0, dated[NAMES] = { 0 }, count, txg, id, guid;
	for (; *devices != NULL; devices++) {
		nvlist_t *one = label(*devices);
		if (one == NULL)
			continue;
		txg = fnvlist_lookup_uint64(one, ZPOOL_CONFIG_POOL_TXG);
		nvlist_t *top = fnvlist_lookup_nvlist(one, ZPOOL_CONFIG_VDEV_TREE);
		id = fnvlist_lookup_uint64(top, ZPOOL_CONFIG_ID);
		if (txg > dated[id]) {
			dated[id] = txg;
			tops[id] = top;
		}
		if (txg > best) {
			best = txg;
			config = one;
		}
	}
	if (config == NULL)
		return (NULL);
	count = fnvlist_lookup_uint64(config, ZPOOL_CONFIG_VDEV_CHILDREN);
	guid = fnvlist_lookup_uint64(config, ZPOOL_CONFIG_POOL_GUID);
	uint64_t *holes = NULL;
	uint_t hole_count = 0;
	(void) nvlist_lookup_uint64_array(config, ZPOOL_CONFIG_HOLE_ARRAY, &holes, &hole_count);
	for (uint_t hole = 0; hole < hole_count; hole++)
		tops[holes[hole]] = top_of(VDEV_TYPE_HOLE, holes[hole]);
	for (id = 0; id < count; id++)
		if (tops[id] == NULL)
			tops[id] = top_of(VDEV_TYPE_MISSING, id);
	fnvlist_add_string(root, ZPOOL_CONFIG_TYPE, VDEV_TYPE_ROOT);
	fnvlist_add_uint64(root, ZPOOL_CONFIG_ID, 0);
	fnvlist_add_uint64(root, ZPOOL_CONFIG_GUID, guid);
	VERIFY0(nvlist_add_nvlist_array(root, ZPOOL_CONFIG_CHILDREN, LIST tops, count));
	config = fnvlist_dup(config);
	fnvlist_add_nvlist(config, ZPOOL_CONFIG_VDEV_TREE, root);
	return (config);
}

/* names: those of the devices, then "of", then those of the datasets */
static void
check(char **names)
{
	static zil_replay_func_t *replay[TX_MAX_TYPE];
	char **devices = names;
	while (strcmp(*names, "of") != 0)
		names++;
	*names++ = NULL;
	nvlist_t *config = config_of(devices);
	int error = config == NULL ? ENOENT : spa_import("p", config, NULL, 0);
	(void) printf("import %d\n", error);
	if (error != 0)
		return;
	for (int type = 0; type < TX_MAX_TYPE; type++)
		replay[type] = type == TX_WRITE ? replay_write : replay_none;
	VERIFY0(spa_open("p", &spa, FTAG));
	for (dataset_t *ds = datasets; *names != NULL; names++, ds++) {
		if ((error = own(ds, *names)) != 0) {
			(void) printf("dataset %s %d\n", *names, error);
			continue;
		}
		zil_replay(ds->os, ds, replay);
		txg_wait_synced(spa_get_dsl(spa), 0);
		print_runs(ds);
	}
	(void) printf("checksum %llu\n", (u_longlong_t)checksum_errors(spa->spa_root_vdev));
}

int
main(int argc, char **argv)
{
	static char line[4096];
	folder = argv[2];
	spa_config_path = path("none/zpool.cache");
	dprintf_setup(&argc, argv);
	spa_asize_inflation = 1;	/* small pools: else a burst of 1 MiB reserves all, and waits for a transaction group */
	kernel_init(SPA_MODE_READ | SPA_MODE_WRITE);
	if (strcmp(argv[1], "check") == 0)
		check(argv + 3);
	else
		while (fgets(line, sizeof (line), stdin) != NULL) {
			line[strcspn(line, "\n")] = 0;
			command(line);
		}
	(void) fflush(stdout);
	_exit(0);
}
